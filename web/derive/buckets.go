package derive

import (
	"cmp"
	"slices"
	"strings"

	"distopt/core/report"
)

// BucketList is all buckets of one stage to scale. What a row says is made when the row is drawn.
type BucketList struct {
	Slot, Stage int
	Stages      int   // how many there are to pick from
	Ranks       int   // shard borders
	Largest     int64 // bucket, in elements
	Sets        []BucketSet

	stage *report.Stage
}

// Len is how many buckets there are.
func (l *BucketList) Len() int { return len(l.stage.Buckets) }

// ID is that of row i.
func (l *BucketList) ID(i int) int32 { return l.stage.Buckets[i].ID }

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

// Row makes row i.
func (l *BucketList) Row(i int) BucketRow {
	b := &l.stage.Buckets[i]
	fill := ratio(float64(b.Filled), float64(b.Size))
	return BucketRow{
		ID: b.ID, Size: b.Size, Utilisation: Percent(fill), Low: fill < 0.5,
		DType: DTypeName(b.Sync), Segments: segments(l.stage, b),
	}
}

func bucketList(r *report.Result, slot, stage int) *BucketList {
	st := &r.Stages[stage]
	l := &BucketList{Slot: slot, Stage: stage, Stages: len(r.Stages), Ranks: r.Grid.Distributed, Largest: 1, stage: st}
	for i := range st.Buckets {
		l.Largest = max(l.Largest, st.Buckets[i].Size)
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
	slices.SortStableFunc(order, func(x, y report.Fragment) int { return cmp.Compare(x.InBucket[0], y.InBucket[0]) })
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
	Rule        string // that made the buckets of its model chunk
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
	Run        bool // several buckets in a row, Bucket the first
}

func bucketDetail(r *report.Result, slot, stage int, id int32) *BucketDetail {
	st := &r.Stages[stage]
	index := slices.IndexFunc(st.Buckets, func(b report.Bucket) bool { return b.ID == id })
	if index < 0 {
		return &BucketDetail{Index: -1}
	}
	b := &st.Buckets[index]
	d := &BucketDetail{
		Slot: slot, Stage: stage, Index: index, ID: id, Title: "Bucket " + itoa(int(id)), Size: b.Size, Shard: b.Shard, Ranks: int(b.Size / max(b.Shard, 1)),
		Tags: [3][2]string{{"grad sync", DTypeName(b.Grad)}, {"param sync", DTypeName(b.Sync)}, {"state", DTypeName(b.State)}},
	}
	if mates := setOf(st, b.Set); len(mates) > 1 {
		d.Sub = "synchronised with " + IDs(mates)
	}
	rs, ag := b.Size*dtypeSize(b.Grad), b.Size*dtypeSize(b.Sync)
	d.Facts = []Fact{
		{Name: "Filled", Value: Count(b.Filled)}, {Name: "Shard", Value: Count(b.Shard)}, {Name: "Reduction", Value: Size(rs)},
		{Name: "Utilisation", Value: Percent(ratio(float64(b.Filled), float64(b.Size)))}, {Name: "Offset", Value: Count(b.Offset)}, {Name: "All-gather", Value: Size(ag)},
	}
	if b.Shard < b.Size || r.Grid.Distributed == 1 && r.Grid.Redundant == 1 {
		d.Facts[2].Name = "Reduce-scatter"
	} else {
		d.Facts[2].Name, d.Facts = "All-reduce", d.Facts[:5]
	}
	if len(b.Fragments) > 0 {
		if chunk := st.Params[b.Fragments[0].Param].Chunk; chunk < len(st.Bucketing) {
			d.Rule = st.Bucketing[chunk].Text
			if len(st.Bucketing) > 1 {
				d.Rule = "Model chunk " + itoa(chunk) + ". " + d.Rule
			}
		}
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

// ownersOf gives the first and the last rank whose shards a range touches.
func ownersOf(r [2]int64, shard int64) [2]int64 {
	if shard <= 0 {
		return [2]int64{}
	}
	return [2]int64{r[0] / shard, (r[1] - 1) / shard}
}

// owners names the ranks whose shards a range touches.
func owners(r [2]int64, shard int64) string {
	ranks := ownersOf(r, shard)
	if ranks[0] == ranks[1] {
		return Count(ranks[0])
	}
	return Count(ranks[0]) + "–" + Count(ranks[1])
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

var shorter = strings.NewReplacer("layer_norm", "ln", "layernorm", "ln", "query_key_value", "qkv")

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
		p = shorter.Replace(p)
		out = append(out, p)
	}
	if n := len(out); n > 1 && out[n-1] == "w" && out[0][0] != 'L' {
		out = out[:n-1]
	}
	return strings.Join(out, ".")
}
