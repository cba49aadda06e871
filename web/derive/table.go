package derive

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"distopt/core/report"
	"distopt/core/sched"
	"distopt/web/state"
)

// Table is the text twin of a picture. Rows are those that are shown; its CSV has them all.
type Table struct {
	Name    string // of the CSV file
	Caption string
	Columns []Column
	Rows    []TableRow
	Total   int // rows of the CSV
	More    int // rows beyond those

	order  []int32
	fields []field
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

// field is what one column is sorted by and holds in the CSV: a bare number in the unit that the CSV's
// head names, or a text.
type field struct {
	title  string // of the column, "" if only the CSV has it
	csv    string // head in the CSV, "" if only the page has it
	number func(i int) float64
	text   func(i int) string
}

// missing is a number that is not there. Its bits are not those of a NaN that was computed.
var missing = math.Float64frombits(0x7ff8_6d69_7373_0000)

func isMissing(x float64) bool { return math.Float64bits(x) == math.Float64bits(missing) }

// tableLimit is how many rows of a table are put into the page.
const tableLimit = 400

// newTable makes a table of n rows. Cells are written only for the rows that are shown, by row.
func newTable(name, caption string, n int, fields []field, by state.Sort, row func(i int) TableRow) *Table {
	t := &Table{Name: name, Caption: caption, Total: n, fields: fields, order: make([]int32, n)}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	for _, f := range fields {
		if f.title == "" {
			continue
		}
		c := Column{Title: f.title, Number: f.number != nil}
		if len(t.Columns) == by.Column {
			t.sort(&f, by.Reverse)
			c.Sorted, c.Sorting = 1, "ascending"
			if by.Reverse {
				c.Sorted, c.Sorting = -1, "descending"
			}
		}
		t.Columns = append(t.Columns, c)
	}
	t.Rows = make([]TableRow, min(n, tableLimit))
	for i := range t.Rows {
		t.Rows[i] = row(int(t.order[i]))
	}
	return t
}

// sort orders the rows by a field, equal ones as they came. NaN stands before all numbers.
func (t *Table) sort(f *field, reverse bool) {
	numbers, texts := make([]float64, len(t.order)), make([]string, len(t.order))
	for i := range t.order {
		if f.number != nil {
			numbers[i] = f.number(i)
		} else {
			texts[i] = f.text(i)
		}
	}
	slices.SortStableFunc(t.order, func(a, b int32) int {
		if reverse {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(numbers[a], numbers[b]), strings.Compare(texts[a], texts[b]))
	})
}

// whole gives a field that holds whole numbers.
func whole[T ~int | ~int32 | ~int64](title, csv string, of func(i int) T) field {
	return field{title: title, csv: csv, number: func(i int) float64 { return float64(of(i)) }}
}

// collectives is the table of all collectives of a step.
func collectives(r *report.Result, sort state.Sort, sel state.Selection, slot int) *Table {
	at := func(i int) *report.Collective { return &r.Collectives[i] }
	return newTable("collectives", "Collectives of one step", len(r.Collectives), []field{
		whole("Stage", "Stage", func(i int) int { return at(i).Stage }),
		{title: "Collective", csv: "Collective", text: func(i int) string { return at(i).Kind }},
		{title: "Buckets", csv: "Buckets", text: func(i int) string { return list(at(i).Buckets) }},
		whole("Size", "Size (bytes)", func(i int) int64 { return at(i).Bytes }),
		whole("Start", "Start (ns)", func(i int) sched.Time { return at(i).Start }),
		whole("Length", "Length (ns)", func(i int) sched.Time { return at(i).Length }),
		whole("Exposed", "Exposed (ns)", func(i int) sched.Time { return at(i).Exposed }),
		{title: "algbw", csv: "algbw (bytes/s)", number: func(i int) float64 { return at(i).AlgBW }},
		{title: "busbw", csv: "busbw (bytes/s)", number: func(i int) float64 { return at(i).BusBW }},
		whole("Ranks", "Ranks", func(i int) int { return at(i).Ranks }),
		{title: "Cause", csv: "Cause", text: func(i int) string { return at(i).Cause }},
	}, sort, func(i int) TableRow {
		c := at(i)
		return TableRow{
			Cells: []string{itoa(c.Stage), c.Kind, Runs(c.Buckets), Size(c.Bytes), Instant(int64(c.Start)), Milliseconds(int64(c.Length)),
				Milliseconds(int64(c.Exposed)), Rate(c.AlgBW), Rate(c.BusBW), itoa(c.Ranks), c.Cause},
			Colour: colourName(&r.Spans, c.Span), Stage: c.Stage, Span: c.Span, Bucket: first(c.Buckets),
			Lit: sel.Slot == slot && (sel.Span == c.Span || sel.Span < 0 && sel.Bucket >= 0 && sel.Stage == c.Stage && slices.Contains(c.Buckets, sel.Bucket)),
			Hot: c.Exposed > 0,
		}
	})
}

func first(ids []int32) int32 {
	if len(ids) == 0 {
		return -1
	}
	return ids[0]
}

// list writes numbers one by one.
func list(ids []int32) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}

// bucketTable is the table of all buckets of a stage.
func bucketTable(r *report.Result, stage int, sort state.Sort, sel state.Selection, slot int) *Table {
	st := &r.Stages[stage]
	at := func(i int) *report.Bucket { return &st.Buckets[i] }
	fill := func(i int) float64 { return ratio(float64(at(i).Filled), float64(at(i).Size)) }
	together := map[int]string{} // by set
	for set, ids := range sets(st) {
		if len(ids) > 1 {
			together[set] = Runs(ids)
		}
	}
	return newTable("buckets", "Buckets of stage "+itoa(stage), len(st.Buckets), []field{
		whole("Bucket", "Bucket", func(i int) int32 { return at(i).ID }),
		whole("Filled", "Filled (elements)", func(i int) int64 { return at(i).Filled }),
		{title: "Utilisation", csv: "Utilisation (fraction)", number: fill},
		whole("Size", "Size (elements)", func(i int) int64 { return at(i).Size }),
		whole("Shard", "Shard (elements)", func(i int) int64 { return at(i).Shard }),
		whole("Offset", "Offset (elements)", func(i int) int64 { return at(i).Offset }),
		whole("Fragments", "Fragments", func(i int) int { return len(at(i).Fragments) }),
		{title: "Grad sync", csv: "Grad sync", text: func(i int) string { return DTypeName(at(i).Grad) }},
		{title: "Param sync", csv: "Param sync", text: func(i int) string { return DTypeName(at(i).Sync) }},
		{title: "State", csv: "State", text: func(i int) string { return DTypeName(at(i).State) }},
		{title: "Together with", text: func(i int) string { return together[at(i).Set] }},
		whole("", "Set", func(i int) int { return at(i).Set }),
	}, sort, func(i int) TableRow {
		b := at(i)
		return TableRow{
			Cells: []string{itoa(int(b.ID)), Count(b.Filled), Percent(fill(i)), Count(b.Size), Count(b.Shard), Count(b.Offset), itoa(len(b.Fragments)), DTypeName(b.Grad), DTypeName(b.Sync), DTypeName(b.State), together[b.Set]},
			Stage: stage, Span: -1, Bucket: b.ID, Lit: sel.Slot == slot && sel.Stage == stage && sel.Bucket == b.ID,
		}
	})
}

// sets gives the buckets that are synchronised together, by the number of their set.
func sets(st *report.Stage) map[int][]int32 {
	sets := map[int][]int32{}
	for i := range st.Buckets {
		b := &st.Buckets[i]
		sets[b.Set] = append(sets[b.Set], b.ID)
	}
	return sets
}

// fragmentTable is the table of the fragments of one bucket.
func fragmentTable(d *BucketDetail, sort state.Sort) *Table {
	at := func(i int) *FragmentRow { return &d.Fragments[i] }
	return newTable("bucket-"+itoa(int(d.ID)), "Fragments of bucket "+itoa(int(d.ID)), len(d.Fragments), []field{
		{title: "Fragment", csv: "Parameter", text: func(i int) string { return at(i).Name }},
		whole("In parameter", "In parameter from", func(i int) int64 { return at(i).InParam[0] }),
		whole("", "In parameter to", func(i int) int64 { return at(i).InParam[1] }),
		whole("In bucket", "In bucket from", func(i int) int64 { return at(i).InBucket[0] }),
		whole("", "In bucket to", func(i int) int64 { return at(i).InBucket[1] }),
		whole("Elements", "Elements", func(i int) int64 { return at(i).InBucket[1] - at(i).InBucket[0] }),
		whole("Ranks", "First rank", func(i int) int64 { return ownersOf(at(i).InBucket, d.Shard)[0] }),
		whole("", "Last rank", func(i int) int64 { return ownersOf(at(i).InBucket, d.Shard)[1] }),
	}, sort, func(i int) TableRow {
		f := at(i)
		return TableRow{Cells: []string{f.Short, f.ParamText, f.Range, f.Elements, f.RanksText}, Colour: GroupClass(f.Group), Span: -1, Bucket: -1}
	})
}

// CSV writes a table as RFC 4180 has it. Numbers are bare and not rounded.
func CSV(t *Table) string {
	var b []byte
	line := func(of func(f *field) string) {
		sep := ""
		for i := range t.fields {
			f := &t.fields[i]
			if f.csv == "" {
				continue
			}
			b = append(b, sep...)
			sep = ","
			s := of(f)
			if strings.ContainsAny(s, ",\"\r\n") {
				s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
			}
			b = append(b, s...)
		}
		b = append(b, "\r\n"...)
	}
	line(func(f *field) string { return f.csv })
	for _, i := range t.order {
		line(func(f *field) string {
			if f.number == nil {
				return f.text(int(i))
			}
			x := f.number(int(i))
			if isMissing(x) {
				return ""
			}
			format := byte('f')
			if x != 0 && math.Abs(x) < 1e-6 || math.Abs(x) >= 1e21 {
				format = 'g'
			}
			return strconv.FormatFloat(x, format, -1, 64)
		})
	}
	return string(b)
}
