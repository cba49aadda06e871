package derive

import (
	"slices"

	"distopt/core/report"
	"distopt/web/state"
)

// Table is the text twin of a picture.
type Table struct {
	Name    string // of the CSV file
	Caption string
	Columns []Column
	Rows    []TableRow
	Note    string
	More    int // rows that are not shown
}

// Column is a column's head.
type Column struct {
	Title   string
	Number  bool
	Sorted  int // 1 ascending, -1 descending
	Sorting string
}

// TableRow is a row: what it says and what a click on it selects.
type TableRow struct {
	Cells  []string
	Colour string
	Stage  int
	Span   int32
	Bucket int32
	Lit    bool
	Hot    bool
}

// tableLimit is how many rows of a table are put into the page.
const tableLimit = 400

func sortTable(t *Table, keys [][]float64, s state.Sort) {
	if s.Column < 0 || s.Column >= len(t.Columns) {
		return
	}
	t.Columns[s.Column].Sorted = 1
	t.Columns[s.Column].Sorting = "ascending"
	order := make([]int, len(t.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c := 0
		if keys[a] != nil && t.Columns[s.Column].Number {
			switch x, y := keys[a][s.Column], keys[b][s.Column]; {
			case x < y:
				c = -1
			case x > y:
				c = 1
			}
		} else if x, y := t.Rows[a].Cells[s.Column], t.Rows[b].Cells[s.Column]; x < y {
			c = -1
		} else if x > y {
			c = 1
		}
		if s.Reverse {
			return -c
		}
		return c
	})
	if s.Reverse {
		t.Columns[s.Column].Sorted = -1
		t.Columns[s.Column].Sorting = "descending"
	}
	rows := make([]TableRow, len(t.Rows))
	for i, o := range order {
		rows[i] = t.Rows[o]
	}
	t.Rows = rows
}

// collectives is the table of all collectives of a step.
func collectives(r *report.Result, sort state.Sort, sel state.Selection, slot int) *Table {
	t := &Table{Name: "collectives", Caption: "Collectives of one step"}
	for _, c := range [...]Column{{Title: "Stage", Number: true}, {Title: "Collective"}, {Title: "Buckets"}, {Title: "Size", Number: true}, {Title: "Start", Number: true}, {Title: "Length", Number: true}, {Title: "Exposed", Number: true}, {Title: "algbw", Number: true}, {Title: "busbw", Number: true}, {Title: "Ranks", Number: true}, {Title: "Cause"}} {
		t.Columns = append(t.Columns, c)
	}
	keys := make([][]float64, 0, len(r.Collectives))
	for i := range r.Collectives {
		c := &r.Collectives[i]
		t.Rows = append(t.Rows, TableRow{
			Cells: []string{itoa(c.Stage), c.Kind, Runs(c.Buckets), Size(c.Bytes), Instant(int64(c.Start)), Milliseconds(int64(c.Length)),
				Milliseconds(int64(c.Exposed)), Rate(c.AlgBW), Rate(c.BusBW), itoa(c.Ranks), c.Cause},
			Colour: colourName(&r.Spans, c.Span), Stage: c.Stage, Span: c.Span, Bucket: first(c.Buckets),
			Lit: sel.Slot == slot && (sel.Span == c.Span || sel.Span < 0 && sel.Bucket >= 0 && sel.Stage == c.Stage && slices.Contains(c.Buckets, sel.Bucket)),
			Hot: c.Exposed > 0,
		})
		keys = append(keys, []float64{float64(c.Stage), 0, 0, float64(c.Bytes), float64(c.Start), float64(c.Length), float64(c.Exposed), c.AlgBW, c.BusBW, float64(c.Ranks), 0})
	}
	sortTable(t, keys, sort)
	return t
}

func first(ids []int32) int32 {
	if len(ids) == 0 {
		return -1
	}
	return ids[0]
}

// bucketTable is the table of all buckets of a stage.
func bucketTable(r *report.Result, stage int, sort state.Sort, sel state.Selection, slot int) *Table {
	t := &Table{Name: "buckets", Caption: "Buckets of stage " + itoa(stage)}
	for _, c := range [...]Column{{Title: "Bucket", Number: true}, {Title: "Filled", Number: true}, {Title: "Utilisation", Number: true}, {Title: "Size", Number: true}, {Title: "Shard", Number: true}, {Title: "Offset", Number: true}, {Title: "Fragments", Number: true}, {Title: "Grad sync"}, {Title: "Param sync"}, {Title: "State"}, {Title: "Together with"}} {
		t.Columns = append(t.Columns, c)
	}
	st := &r.Stages[stage]
	keys := make([][]float64, 0, len(st.Buckets))
	for i := range st.Buckets {
		b := &st.Buckets[i]
		fill := ratio(float64(b.Filled), float64(b.Size))
		together := ""
		if mates := setOf(st, b.Set); len(mates) > 1 {
			together = Runs(mates)
		}
		t.Rows = append(t.Rows, TableRow{
			Cells: []string{itoa(int(b.ID)), Count(b.Filled), Percent(fill), Count(b.Size), Count(b.Shard), Count(b.Offset), itoa(len(b.Fragments)), DTypeName(b.Grad), DTypeName(b.Sync), DTypeName(b.State), together},
			Stage: stage, Span: -1, Bucket: b.ID, Lit: sel.Slot == slot && sel.Stage == stage && sel.Bucket == b.ID,
		})
		keys = append(keys, []float64{float64(b.ID), float64(b.Filled), fill, float64(b.Size), float64(b.Shard), float64(b.Offset), float64(len(b.Fragments)), 0, 0, 0, 0})
	}
	sortTable(t, keys, sort)
	return t
}

// fragmentTable is the table of the fragments of one bucket.
func fragmentTable(d *BucketDetail, sort state.Sort) *Table {
	t := &Table{Name: "bucket-" + itoa(int(d.ID)), Caption: "Fragments of bucket " + itoa(int(d.ID))}
	for _, c := range [...]Column{{Title: "Fragment"}, {Title: "In parameter", Number: true}, {Title: "In bucket", Number: true}, {Title: "Elements", Number: true}, {Title: "Ranks", Number: true}} {
		t.Columns = append(t.Columns, c)
	}
	keys := make([][]float64, 0, len(d.Fragments))
	for _, f := range d.Fragments {
		t.Rows = append(t.Rows, TableRow{Cells: []string{f.Short, f.ParamText, f.Range, f.Elements, f.RanksText}, Colour: GroupClass(f.Group), Span: -1, Bucket: -1})
		keys = append(keys, []float64{0, float64(f.InParam[0]), float64(f.InBucket[0]), float64(f.InBucket[1] - f.InBucket[0]), float64(f.InBucket[0])})
	}
	sortTable(t, keys, sort)
	return t
}

// CSV writes a table as RFC 4180 has it.
func CSV(t *Table) string {
	var b []byte
	cell := func(i int, s string) {
		if i > 0 {
			b = append(b, ',')
		}
		quote := false
		for _, c := range s {
			quote = quote || c == ',' || c == '"' || c == '\n' || c == '\r'
		}
		if !quote {
			b = append(b, s...)
			return
		}
		b = append(b, '"')
		for _, c := range []byte(s) {
			if c == '"' {
				b = append(b, '"')
			}
			b = append(b, c)
		}
		b = append(b, '"')
	}
	for i, c := range t.Columns {
		cell(i, c.Title)
	}
	b = append(b, "\r\n"...)
	for _, r := range t.Rows {
		for i, s := range r.Cells {
			cell(i, s)
		}
		b = append(b, "\r\n"...)
	}
	return string(b)
}
