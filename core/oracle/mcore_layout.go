package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/units"
)

// CheckMegatronLayout builds the buffers of a case of Megatron-Core and compares every field, for every
// rank of which the case holds what it owns.
func CheckMegatronLayout(data []byte) error {
	var in struct {
		Case   MegatronCase `json:"case"`
		Chunks []struct {
			Params []json.RawMessage          `json:"params"`
			Local  map[string]json.RawMessage `json:"local"`
		} `json:"chunks"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkMegatronCase(data); err != nil {
		return err
	}
	listed := make([]int, len(in.Chunks))
	for i := range in.Chunks {
		listed[i] = len(in.Chunks[i].Params)
	}
	l, _, err := in.Case.Layout(listed)
	if err != nil {
		return err
	}
	ranks := make([][]int, len(l.Chunks))
	for c := range l.Chunks {
		if ranks[c], err = ranksOf(in.Chunks[c].Local, max(l.Options.GroupSize(false), l.Options.GroupSize(true))); err != nil {
			return err
		}
		if err := shown(ranks[c], &l.Options); err != nil {
			return fmt.Errorf("chunks[%d].%w", c, err)
		}
	}
	return compare(data, describeMegatron(l, ranks), caseKeys...)
}

// shown demands the ranks that every case shows: all of a small group, some of a larger one, among them
// the first and the last; none without the distributed optimizer.
func shown(ranks []int, o *mcore.Options) error {
	group, all, few := o.GroupSize(false), 8, 3
	if !o.DistributedOptimizer {
		return nil
	}
	for rank := range group {
		if (group <= all || rank == 0 || rank == group-1) && !slices.Contains(ranks, rank) {
			return fmt.Errorf("local.%d: got nothing in the case, want what that rank owns", rank)
		}
	}
	if group > all && len(ranks) < few {
		return fmt.Errorf("local: got %d ranks, want at least %d", len(ranks), few)
	}
	return nil
}

// megatronLayout is a layout in the form of the reference cases.
type megatronLayout struct {
	Note     string          `json:"note,omitempty"`
	Resolved *units.Elems    `json:"resolved_bucket_size"`
	Chunks   []megatronChunk `json:"chunks"`
}

type megatronChunk struct {
	Disabled     bool                         `json:"disable_bucketing"`
	Size         *units.Elems                 `json:"bucket_size"`
	Params       [][4]any                     `json:"params"`
	Buffers      []megatronBuffer             `json:"buffers"`
	Groups       [][][2]int                   `json:"bucket_groups"`
	ExpertGroups [][][2]int                   `json:"expert_bucket_groups"`
	Next         []*int                       `json:"next_param_gather"`
	Previous     []*int                       `json:"previous_grad_reduce"`
	Local        map[string][][11]units.Elems `json:"local"`
}

type megatronBuffer struct {
	ParamDType string           `json:"param_dtype"`
	GradDType  string           `json:"grad_dtype"`
	Expert     bool             `json:"expert"`
	LayerWise  bool             `json:"layer_wise"`
	Group      string           `json:"group"`
	GroupSize  int              `json:"group_size"`
	Numel      units.Elems      `json:"numel"`
	Unpadded   units.Elems      `json:"numel_unpadded"`
	Scaling    float64          `json:"gradient_scaling_factor"`
	ParamData  *[2]any          `json:"param_data"`
	GradData   *[2]any          `json:"grad_data"`
	Shared     bool             `json:"shared_storage"`
	FP32Grads  []bucket.ParamID `json:"extra_main_grads"`
	Indices    []int            `json:"param_indices"`
	Params     [][4]units.Elems `json:"params"`
	Buckets    []megatronBucket `json:"buckets"`
	Packed     *megatronPacked  `json:"packed,omitempty"`
}

type megatronBucket struct {
	Start    units.Elems      `json:"start"`
	End      units.Elems      `json:"end"`
	Unpadded units.Elems      `json:"numel_unpadded"`
	Params   []bucket.ParamID `json:"params"`
	Ranges   [][2]units.Elems `json:"param_to_index"`
}

type megatronPacked struct {
	Numel    units.Elems      `json:"numel"`
	Unpadded units.Elems      `json:"numel_unpadded"`
	Buckets  [][2]units.Elems `json:"buckets"`
	Params   [][4]units.Elems `json:"params"`
}

// DescribeMegatron writes a layout with the fields of the reference cases, and that it is none; ranks are positions in the
// dp_cp group of the stage.
func DescribeMegatron(l *mcore.Layout, ranks []int) any {
	every := make([][]int, len(l.Chunks))
	for c := range every {
		every[c] = ranks
	}
	d := describeMegatron(l, every)
	d.Note = NotCase
	return d
}

func describeMegatron(l *mcore.Layout, ranks [][]int) *megatronLayout {
	d := &megatronLayout{Resolved: orNull(l.Size().Resolved), Chunks: make([]megatronChunk, len(l.Chunks))}
	for c := range l.Chunks {
		d.Chunks[c] = describeChunk(l, c, ranks[c])
	}
	return d
}

func describeChunk(l *mcore.Layout, index int, ranks []int) megatronChunk {
	c := &l.Chunks[index]
	first := c.Params[0]
	d := megatronChunk{
		Disabled: c.Bucketing.Disabled, Size: orNull(c.Bucketing.Size),
		Params: megatronParams(l, index), Groups: [][][2]int{}, ExpertGroups: [][][2]int{},
		Next: []*int{}, Previous: []*int{}, Local: map[string][][11]units.Elems{},
	}
	for i := range c.Buffers {
		d.Buffers = append(d.Buffers, describeBuffer(l, &c.Buffers[i], first))
	}
	chain := func(group int) *int {
		if group < 0 {
			return nil
		}
		group -= c.Groups[0]
		return &group
	}
	for g := c.Groups[0]; g < c.Groups[1]; g++ {
		list := [][2]int{}
		for _, id := range l.Groups[g].Buckets {
			list = append(list, [2]int{l.Places[id].Buffer, l.Places[id].Bucket})
		}
		if l.Groups[g].Expert {
			d.ExpertGroups = append(d.ExpertGroups, list)
		} else {
			d.Groups = append(d.Groups, list)
		}
		d.Next = append(d.Next, chain(l.Groups[g].Next))
		d.Previous = append(d.Previous, chain(l.Groups[g].Previous))
	}
	for _, rank := range ranks {
		rows := [][11]units.Elems{}
		for i := range c.Buffers {
			for _, o := range l.Local(index, i, rank) {
				rows = append(rows, [11]units.Elems{
					units.Elems(i), units.Elems(o.Bucket), units.Elems(o.Param - first),
					o.World.Start, o.World.End, o.InBucket.Start, o.InBucket.End,
					o.InShard.Start, o.InShard.End, o.InParam.Start, o.InParam.End,
				})
			}
		}
		d.Local[strconv.Itoa(rank)] = rows
	}
	return d
}

// megatronParams writes the parameters of a chunk: name, shape, dtype, flags.
func megatronParams(l *mcore.Layout, chunk int) [][4]any {
	rows := [][4]any{}
	span := l.Chunks[chunk].Params
	for p := span[0]; p < span[1]; p++ {
		q := &l.Params[p]
		flags := map[string]any{}
		if q.Quant != mcore.Plain {
			flags["q"] = q.Quant.String()
		}
		if q.Expert {
			flags["allreduce"] = false
		}
		if q.SharedEmbedding {
			flags["shared_embedding"] = true
		}
		rows = append(rows, [4]any{q.Path, q.Shape, q.DType.String(), flags})
	}
	return rows
}

func describeBuffer(l *mcore.Layout, b *mcore.Buffer, first bucket.ParamID) megatronBuffer {
	d := megatronBuffer{
		ParamDType: megatronDType(b.Param), GradDType: megatronDType(b.Grad), Expert: b.Expert, LayerWise: b.LayerWise,
		Group: l.GroupName(b.Expert), GroupSize: b.GroupSize, Numel: b.Numel, Unpadded: b.Unpadded,
		Scaling: l.Options.Scaling(b.Expert), GradData: &[2]any{megatronDType(b.Grad), b.Numel},
		Shared: b.Shared, FP32Grads: []bucket.ParamID{}, Indices: b.Indices,
	}
	if b.ParamData.Elems > 0 {
		d.ParamData = &[2]any{megatronDType(b.ParamData.DType), b.ParamData.Elems}
	}
	for _, p := range b.FP32Grads {
		d.FP32Grads = append(d.FP32Grads, p-first)
	}
	for _, p := range b.Params {
		d.Params = append(d.Params, [4]units.Elems{units.Elems(p.Param - first), p.Range.Start, p.Range.End, units.Elems(p.Bucket)})
	}
	for i := range b.Buckets {
		k := &b.Buckets[i]
		row := megatronBucket{Start: k.Range.Start, End: k.Range.End, Unpadded: k.Unpadded}
		for _, p := range b.Params[k.Params[0]:k.Params[1]] {
			row.Params = append(row.Params, p.Param-first)
			row.Ranges = append(row.Ranges, [2]units.Elems{p.Range.Start - k.Range.Start, p.Range.End - k.Range.Start})
		}
		d.Buckets = append(d.Buckets, row)
	}
	if k := b.Packed; k != nil {
		d.Packed = &megatronPacked{Numel: k.Numel, Unpadded: k.Unpadded}
		for _, r := range k.Buckets {
			d.Packed.Buckets = append(d.Packed.Buckets, [2]units.Elems{r.Start, r.End})
		}
		for i, r := range k.Params {
			p := b.Params[i]
			d.Packed.Params = append(d.Packed.Params, [4]units.Elems{units.Elems(p.Param - first), r.Start, r.End, units.Elems(p.Bucket)})
		}
	}
	return d
}

// megatronDType is the name of a dtype in the cases of Megatron-Core.
func megatronDType(d dtype.DType) string {
	switch d {
	case dtype.U8:
		return "u8"
	case dtype.I32:
		return "i32"
	}
	return d.String()
}

// orNull is null where nothing is bounded.
func orNull(n units.Elems) *units.Elems {
	if n == 0 {
		return nil
	}
	return &n
}
