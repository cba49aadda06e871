package derive

import (
	"distopt/core/report"
	"distopt/web/state"
)

// operations is the timeline as a table: passes, optimizer and communication of every stage.
func operations(r *report.Result, sort state.Sort, sel state.Selection, slot int) *Table {
	t := &Table{Name: "timeline", Caption: "Operations of one step"}
	for _, c := range [...]Column{{Title: "Stage", Number: true}, {Title: "Lane"}, {Title: "Operation"}, {Title: "Start", Number: true}, {Title: "Length", Number: true}, {Title: "Exposed", Number: true}} {
		t.Columns = append(t.Columns, c)
	}
	s := &r.Spans
	var keys [][]float64
	for i := range int32(s.Len()) {
		lane := laneOf(s, i)
		if lane == report.LaneExposed || lane == report.LaneHidden || lane == report.LaneCompute {
			continue
		}
		if len(t.Rows) == tableLimit*10 {
			t.More = s.Len() - int(i)
			break
		}
		exposed := int64(0)
		if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) && r.Collectives[g].Span == i {
			exposed = int64(r.Collectives[g].Exposed)
		}
		t.Rows = append(t.Rows, TableRow{
			Cells: []string{itoa(int(s.Stage[i])), laneName(lane), Name(r, i), Instant(s.Start[i]), Milliseconds(s.End[i] - s.Start[i]), Milliseconds(exposed)},
			Stage: int(s.Stage[i]), Span: i, Bucket: first(buckets(r, i)), Colour: colourName(s, i), Hot: exposed > 0,
			Lit: sel.Slot == slot && sel.Span == i,
		})
		keys = append(keys, []float64{float64(s.Stage[i]), 0, 0, float64(s.Start[i]), float64(s.End[i] - s.Start[i]), float64(exposed)})
	}
	sortTable(t, keys, sort)
	return t
}
