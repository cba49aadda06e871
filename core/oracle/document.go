package oracle

import (
	"strconv"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/units"
)

// LayoutDocument is a layout in the form of the reference cases. Sizes and offsets are elements.
type LayoutDocument struct {
	Alignment       units.Elems    `json:"alignment"`
	ShardSize       units.Elems    `json:"default_shard_size"`
	DistributedSize int            `json:"distributed_size"`
	RedundantSize   int            `json:"redundant_size"`
	GroupNumParams  []int          `json:"group_num_params"`
	OptimizerArgs   map[string]any `json:"optimizer_args,omitempty"` // NeMo: what it passed to the constructor
	// Params rows: name, shape, dtype, fp8, fp32 gradients, overlap disabled, group, index in group.
	Params  [][8]any         `json:"params"`
	Buckets []BucketDocument `json:"buckets"`
	// ParamFragmentBuckets are the buckets of each parameter, in the order of its own list.
	ParamFragmentBuckets [][]bucket.ID          `json:"param_fragment_buckets"`
	GradBuffers          map[string]units.Elems `json:"grad_buffers"`
	ParamBuffers         map[string]units.Elems `json:"param_buffers"`
	// ParamBufferViews rows: buffer, offset; null for a parameter without elements.
	ParamBufferViews []*[2]any `json:"param_buffer_views,omitempty"`
	// Local rows by rank: bucket, fragment, then the ranges in shard, bucket and parameter.
	Local map[string][][8]units.Elems `json:"local"`
}

// BucketDocument is one bucket. Fragments rows: parameter, its range, the range in the bucket.
type BucketDocument struct {
	Size            units.Elems      `json:"bucket_size"`
	Shard           units.Elems      `json:"shard_size"`
	Filled          units.Elems      `json:"filled_size"`
	AbleToFill      bool             `json:"able_to_fill"`
	State           string           `json:"dtype"`
	GradSync        string           `json:"grad_sync_dtype"`
	ParamSync       string           `json:"param_sync_dtype"`
	Offset          units.Elems      `json:"contiguous_buffer_offset"`
	ParamsShard     *string          `json:"params_shard"`
	ParamRemainders bool             `json:"param_remainders"`
	Fragments       [][5]units.Elems `json:"fragments"`
}

// DescribeLayout writes l down, with the local shards of the given ranks of the process group.
func DescribeLayout(l *apex.Layout, ranks []int) *LayoutDocument {
	d := &LayoutDocument{
		Alignment:            l.Alignment,
		ShardSize:            l.ShardSize,
		DistributedSize:      l.Options.Distributed,
		RedundantSize:        l.Options.Redundant,
		Params:               make([][8]any, len(l.Params)),
		Buckets:              make([]BucketDocument, len(l.Buckets)),
		ParamFragmentBuckets: make([][]bucket.ID, len(l.Params)),
		GradBuffers:          map[string]units.Elems{},
		ParamBuffers:         map[string]units.Elems{},
		Local:                make(map[string][][8]units.Elems, len(ranks)),
	}
	for _, group := range l.Groups {
		d.GroupNumParams = append(d.GroupNumParams, len(group))
	}
	for p := range l.Params {
		q := &l.Params[p]
		shape := q.Shape
		if shape == nil {
			shape = []int64{}
		}
		d.Params[p] = [8]any{
			q.Name, shape, q.DType.String(), bit(q.FP8), bit(q.FP32Grads), bit(q.NoOverlap),
			l.Group[p].Group, l.Group[p].Index,
		}
		d.ParamFragmentBuckets[p] = make([]bucket.ID, len(l.Fragments[p]))
		for i, ref := range l.Fragments[p] {
			d.ParamFragmentBuckets[p][i] = ref.Bucket
		}
	}
	for i := range l.Buckets {
		d.Buckets[i] = describeBucket(&l.Buckets[i])
	}
	for _, b := range l.Buffers() {
		if l.Options.ContiguousGradBuffer {
			d.GradBuffers[b.DTypes.String()] = b.Length
		}
		if l.Options.ContiguousParamBuffer {
			d.ParamBuffers[b.DTypes.String()] = b.Length
		}
	}
	if l.Options.ContiguousParamBuffer {
		d.ParamBufferViews = make([]*[2]any, len(l.Params))
		for p := range l.Params {
			if v, ok := l.View(bucket.ParamID(p)); ok {
				d.ParamBufferViews[p] = &[2]any{v.DTypes.String(), v.Offset}
			}
		}
	}
	for _, rank := range ranks {
		d.Local[strconv.Itoa(rank)] = describeLocal(l, l.Options.DistributedRank(rank))
	}
	return d
}

func describeBucket(b *bucket.Bucket) BucketDocument {
	d := BucketDocument{
		Size: b.Size, Shard: b.Shard, Filled: b.Filled, AbleToFill: b.Open,
		State: b.DTypes.State.String(), GradSync: b.DTypes.GradSync.String(), ParamSync: b.DTypes.ParamSync.String(),
		Offset: b.Offset, ParamRemainders: b.StoresRemainders,
		Fragments: make([][5]units.Elems, len(b.Fragments)),
	}
	if b.StoresParams {
		state := d.State
		d.ParamsShard = &state
	}
	for i, f := range b.Fragments {
		d.Fragments[i] = [5]units.Elems{units.Elems(f.Param), f.InParam.Start, f.InParam.End, f.InBucket.Start, f.InBucket.End}
	}
	return d
}

func describeLocal(l *apex.Layout, rank int) [][8]units.Elems {
	rows := [][8]units.Elems{}
	for i := range l.Buckets {
		for j, f := range l.Buckets[i].Fragments {
			if r, ok := apex.Local(f, l.ShardSize, rank); ok {
				rows = append(rows, [8]units.Elems{
					units.Elems(i), units.Elems(j),
					r.Shard.Start, r.Shard.End, r.ShardBucket.Start, r.ShardBucket.End, r.ShardParam.Start, r.ShardParam.End,
				})
			}
		}
	}
	return rows
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
