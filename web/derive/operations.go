package derive

import (
	"distopt/core/report"
	"distopt/web/state"
)

// operationLimit is how many operations a table has.
const operationLimit = 100_000

// operations is the timeline as a table: passes, optimizer and communication of every stage.
func operations(r *report.Result, sort state.Sort, sel state.Selection, slot int) *Table {
	s := &r.Spans
	var spans []int32
	for i := range int32(s.Len()) {
		switch laneOf(s, i) {
		case report.LaneExposed, report.LaneHidden, report.LaneCompute:
		default:
			spans = append(spans, i)
		}
	}
	more := max(len(spans)-operationLimit, 0)
	spans = spans[:len(spans)-more]
	length := func(i int) int64 { return s.End[spans[i]] - s.Start[spans[i]] }
	exposed := func(i int) int64 {
		if g := s.Group[spans[i]]; g >= 0 && int(g) < len(r.Collectives) && r.Collectives[g].Span == spans[i] {
			return int64(r.Collectives[g].Exposed)
		}
		return 0
	}
	t := newTable("timeline", "Operations of one step", len(spans), []field{
		whole("Stage", "Stage", func(i int) int { return int(s.Stage[spans[i]]) }),
		{title: "Lane", csv: "Lane", text: func(i int) string { return laneName(laneOf(s, spans[i])) }},
		{title: "Operation", csv: "Operation", text: func(i int) string { return Name(r, spans[i]) }},
		whole("Start", "Start (ns)", func(i int) int64 { return s.Start[spans[i]] }),
		whole("Length", "Length (ns)", length),
		whole("Exposed", "Exposed (ns)", exposed),
	}, sort, func(k int) TableRow {
		i := spans[k]
		return TableRow{
			Cells: []string{itoa(int(s.Stage[i])), laneName(laneOf(s, i)), Name(r, i), Instant(s.Start[i]), Milliseconds(length(k)), Milliseconds(exposed(k))},
			Stage: int(s.Stage[i]), Span: i, Bucket: first(buckets(r, i)), Colour: colourName(s, i), Hot: exposed(k) > 0,
			Lit: sel.Slot == slot && sel.Span == i,
		}
	})
	t.More = more
	return t
}
