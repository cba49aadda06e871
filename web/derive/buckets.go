package derive

import (
	"slices"
	"strings"

	"distopt/core/report"
	"distopt/web/state"
)

// BucketList is all buckets of one stage to scale.
type BucketList struct {
	Slot, Stage int
	Rows        []BucketRow
	Stages      int // how many there are to pick from
	Ranks       int // shard borders
	Sets        []BucketSet
}

// BucketRow is one bucket of the list.
type BucketRow struct {
	ID          int32
	Size        int64
	Utilisation string
	Low         bool   // under half full
	DType       string // of the param sync: the stripe
	Segments    []Segment
}

// Segment is a run of one kind of parameter, or padding, in elements of the bucket.
type Segment struct {
	Start, End int64
	Group      string // "attention", "mlp", "embedding", "other"; "" is padding
}

// BucketSet is a run of rows that are synchronised together.
type BucketSet struct{ First, Last int }

func bucketList(r *report.Result, slot, stage int) *BucketList {
	l := &BucketList{Slot: slot, Stage: stage, Stages: len(r.Stages), Ranks: r.Grid.Distributed}
	st := &r.Stages[stage]
	for i := range st.Buckets {
		b := &st.Buckets[i]
		fill := ratio(float64(b.Filled), float64(b.Size))
		l.Rows = append(l.Rows, BucketRow{
			ID: b.ID, Size: b.Size, Utilisation: Percent(fill), Low: fill < 0.5,
			DType: DTypeName(b.Sync), Segments: segments(st, b),
		})
	}
	for i := 0; i < len(st.Buckets); {
		j := i
		for j+1 < len(st.Buckets) && st.Buckets[j+1].Set == st.Buckets[i].Set {
			j++
		}
		if j > i {
			l.Sets = append(l.Sets, BucketSet{i, j})
		}
		i = j + 1
	}
	return l
}

// segments joins neighbouring fragments of the same kind and leaves gaps as padding.
func segments(st *report.Stage, b *report.Bucket) (out []Segment) {
	order := slices.Clone(b.Fragments)
	slices.SortStableFunc(order, func(x, y report.Fragment) int {
		return int(min(max(x.InBucket[0]-y.InBucket[0], -1), 1))
	})
	at := int64(0)
	for _, f := range order {
		if f.InBucket[0] == f.InBucket[1] {
			continue
		}
		if f.InBucket[0] > at {
			out = append(out, Segment{at, f.InBucket[0], ""})
		}
		group := st.Params[f.Param].Group
		if n := len(out); n > 0 && out[n-1].Group == group && out[n-1].End == f.InBucket[0] {
			out[n-1].End = f.InBucket[1]
		} else {
			out = append(out, Segment{f.InBucket[0], f.InBucket[1], group})
		}
		at = f.InBucket[1]
	}
	if at < b.Size {
		out = append(out, Segment{at, b.Size, ""})
	}
	return out
}

// DTypeName is what a reader calls a dtype: the bytes of FP8 tensors are fp8.
func DTypeName(d string) string {
	if d == "uint8" {
		return "fp8"
	}
	return d
}

// BucketDetail is one bucket.
type BucketDetail struct {
	Slot, Stage int
	Index       int // position in the list
	ID          int32
	Title, Sub  string
	Size, Shard int64
	Ranks       int
	Tags        [3][2]string // role, dtype
	Facts       []Fact
	Fragments   []FragmentRow
	Gaps        []Segment // padding
	Also        []string  // parameters it waits for and holds nothing of
	Buffers     []BufferRow
}

// FragmentRow is one fragment.
type FragmentRow struct {
	Name, Short         string
	Group               string
	InParam, InBucket   [2]int64
	ParamText, Range    string
	Elements, RanksText string
}

// BufferRow is one contiguous buffer to scale.
type BufferRow struct {
	Label  string
	Length int64
	Slots  []BufferSlot
	Note   string
}

// BufferSlot is the run of a buffer that one bucket uses, or a hole (Bucket −1).
type BufferSlot struct {
	Start, End int64
	Bucket     int32
	Mate       bool // synchronised together with the selected bucket
}

func bucketDetail(r *report.Result, slot, stage int, id int32) *BucketDetail {
	st := &r.Stages[stage]
	index := slices.IndexFunc(st.Buckets, func(b report.Bucket) bool { return b.ID == id })
	if index < 0 {
		return &BucketDetail{Index: -1}
	}
	b := &st.Buckets[index]
	d := &BucketDetail{
		Slot: slot, Stage: stage, Index: index, ID: id, Title: "Bucket " + itoa(int(id)), Size: b.Size, Shard: b.Shard, Ranks: r.Grid.Distributed,
		Tags: [3][2]string{{"grad sync", DTypeName(b.Grad)}, {"param sync", DTypeName(b.Sync)}, {"state", DTypeName(b.State)}},
	}
	if mates := setOf(st, b.Set); len(mates) > 1 {
		d.Sub = "synchronised with " + IDs(mates)
	}
	rs, ag := b.Size*dtypeSize(b.Grad), b.Size*dtypeSize(b.Sync)
	d.Facts = []Fact{
		{Name: "Filled", Value: Count(b.Filled)}, {Name: "Shard", Value: Count(b.Shard)}, {Name: "Reduce-scatter", Value: Size(rs)},
		{Name: "Utilisation", Value: Percent(ratio(float64(b.Filled), float64(b.Size)))}, {Name: "Offset", Value: Count(b.Offset)}, {Name: "All-gather", Value: Size(ag)},
	}
	for _, f := range b.Fragments {
		p := &st.Params[f.Param]
		if f.InBucket[0] == f.InBucket[1] {
			d.Also = append(d.Also, Short(p.Name))
			continue
		}
		d.Fragments = append(d.Fragments, FragmentRow{
			Name: p.Name, Short: Short(p.Name), Group: p.Group, InParam: f.InParam, InBucket: f.InBucket,
			ParamText: interval(f.InParam), Range: interval(f.InBucket), Elements: Count(f.InBucket[1] - f.InBucket[0]),
			RanksText: owners(f.InBucket, b.Shard),
		})
	}
	for _, s := range segments(st, b) {
		if s.Group == "" {
			d.Gaps = append(d.Gaps, s)
		}
	}
	d.Buffers = buffers(st, b)
	return d
}

func setOf(st *report.Stage, set int) (ids []int32) {
	for i := range st.Buckets {
		if st.Buckets[i].Set == set {
			ids = append(ids, st.Buckets[i].ID)
		}
	}
	return ids
}

func dtypeSize(d string) int64 {
	switch d {
	case "fp32":
		return 4
	case "uint8", "fp8":
		return 1
	}
	return 2
}

func interval(r [2]int64) string { return "[" + Count(r[0]) + ", " + Count(r[1]) + ")" }

// owners names the ranks whose shards a range touches.
func owners(r [2]int64, shard int64) string {
	if shard <= 0 {
		return "0"
	}
	first, last := r[0]/shard, (r[1]-1)/shard
	if first == last {
		return Count(first)
	}
	return Count(first) + "–" + Count(last)
}

// buffers lists the contiguous buffers of a stage with the slots that buckets use.
func buffers(st *report.Stage, selected *report.Bucket) (rows []BufferRow) {
	all := st.GradBuffers
	if len(all) == 0 {
		all = st.ParamBuffers
	}
	for _, buf := range all {
		row := BufferRow{Label: bufferLabel(buf.Key), Length: buf.Length}
		at := int64(0)
		var hole int64
		order := bucketsOf(st, buf.Key)
		slices.SortStableFunc(order, func(a, b *report.Bucket) int { return int(min(max(a.Offset-b.Offset, -1), 1)) })
		for _, b := range order {
			if b.Offset > at {
				row.Slots = append(row.Slots, BufferSlot{at, b.Offset, -1, false})
				hole += b.Offset - at
			}
			row.Slots = append(row.Slots, BufferSlot{b.Offset, b.Offset + b.Size, b.ID, b.Set == selected.Set})
			at = b.Offset + b.Size
		}
		if at < buf.Length {
			row.Slots = append(row.Slots, BufferSlot{at, buf.Length, -1, false})
			hole += buf.Length - at
		}
		if hole > 0 && len(order) > 0 {
			row.Note = "never used: "
			if len(st.GradBuffers) > 0 {
				row.Note += Size(hole*dtypeSize(order[0].Grad)) + " of gradients"
			}
			if len(st.ParamBuffers) > 0 {
				if len(st.GradBuffers) > 0 {
					row.Note += ", "
				}
				row.Note += Size(hole*dtypeSize(order[0].Sync)) + " of parameters"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// bufferLabel names a buffer by what it sends: the dtypes of grad and param sync.
func bufferLabel(key string) string {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return key
	}
	return DTypeName(parts[1]) + ", " + DTypeName(parts[2])
}

// bucketsOf lists the buckets whose dtype triple a buffer's key names.
func bucketsOf(st *report.Stage, key string) (out []*report.Bucket) {
	for i := range st.Buckets {
		b := &st.Buckets[i]
		if key == BufferKey(b) {
			out = append(out, b)
		}
	}
	return out
}

// BufferKey is the key of the buffer that holds a bucket.
func BufferKey(b *report.Bucket) string { return b.State + "/" + b.Grad + "/" + b.Sync }

// Short is a parameter's name for narrow places: "layers.3.self_attention.linear_qkv.weight"
// becomes "L3.qkv.w".
func Short(name string) string {
	out := make([]string, 0, 6)
	parts := strings.Split(name, ".")
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		switch p {
		case "model", "module", "language_model", "encoder", "decoder", "self_attention", "mlp", "embedding":
			continue
		case "layers":
			if i+1 < len(parts) {
				i++
				out = append(out, "L"+parts[i])
			}
			continue
		case "weight":
			p = "w"
		case "bias":
			p = "b"
		}
		p = strings.TrimPrefix(p, "linear_")
		p = strings.TrimSuffix(p, "_embeddings")
		p = strings.NewReplacer("layer_norm", "ln", "layernorm", "ln", "query_key_value", "qkv").Replace(p)
		out = append(out, p)
	}
	if n := len(out); n > 1 && out[n-1] == "w" && out[0][0] != 'L' {
		out = out[:n-1]
	}
	return strings.Join(out, ".")
}

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

// GroupClass names the colour of a group of parameters.
func GroupClass(group string) string {
	switch group {
	case "attention":
		return "attn"
	case "mlp":
		return "mlp"
	case "embedding":
		return "embed"
	}
	return "small"
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
