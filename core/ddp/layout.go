package ddp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// Options are the settings that decide buckets, control flow or memory, named as
// DistributedDataParallel names them.
type Options struct {
	World       int // ranks of the process group: data- and context-parallel
	ExpertWorld int // those that hold the same experts; 0: World

	CapMB       float64 // bucket_cap_mb, MiB; 0: left at its default
	FindUnused  bool    // find_unused_parameters
	StaticGraph bool
	BucketView  bool // gradient_as_bucket_view

	// MainParams: 16-bit parameters have fp32 main parameters, as mixed-precision optimizers around
	// PyTorch's keep them. PyTorch's own update parameters as they are stored.
	MainParams bool
	State      dtype.DType // of moments: PyTorch's own take the dtype of what they update
	Foreach    bool        // the optimizer's multi-tensor loops in place of its fused kernel
	NormDecay  bool        // one parameter group: weight decay applies to vectors too
}

// maxRanks bounds the ranks of a group.
const maxRanks = 1 << 20

func (o *Options) check() error {
	switch {
	case o.World < 1 || o.World > maxRanks:
		return fmt.Errorf("data_parallel_size: got %d, want 1 to %d", o.World, maxRanks)
	case o.ExpertWorld < 0 || o.ExpertWorld > o.World:
		return fmt.Errorf("expert_data_parallel_size: got %d, want 1 to %d", o.ExpertWorld, o.World)
	case !(o.CapMB >= 0 && o.CapMB <= math.MaxInt32):
		return fmt.Errorf("bucket_cap_mb: got %v, want above 0, at most %d", o.CapMB, math.MaxInt32)
	case !o.State.Float():
		return fmt.Errorf("state dtype: got %s, want fp32, fp16 or bf16", o.State)
	}
	return nil
}

// GroupSize returns the ranks over which gradients are averaged.
func (o *Options) GroupSize(expert bool) int {
	if expert && o.ExpertWorld > 0 {
		return o.ExpertWorld
	}
	return o.World
}

// Rebuilds reports whether buckets are rebuilt after the first passes.
func (o *Options) Rebuilds() bool { return !o.FindUnused || o.StaticGraph }

// Layout is the buckets of one pipeline stage, the same on every rank. A bucket has no padding, lies
// in no larger buffer, and every rank holds all of it: it is its own shard.
type Layout struct {
	Options  Options
	Params   []model.Param
	Reducers []Reducer

	// Buckets are those of a steady step, rebuilt in the order in which gradients arrive; those of
	// Initial where buckets are never rebuilt. They stand reducer by reducer, each in the order of its
	// all-reduces. Buckets[i].ID == i.
	Buckets []bucket.Bucket
	Initial []bucket.Bucket // of the first passes, with ids of their own

	arrival [][]int // of each reducer: positions in its Params
	owner   []int32 // of each parameter: its reducer
	place   []int32 // and its position there
}

// Reducer is one DistributedDataParallel object: a model chunk's parameters, but for its experts, which
// have a process group and so an object of their own.
type Reducer struct {
	Chunk   int
	Expert  bool
	Params  []bucket.ParamID // in registration order
	Buckets [2]int           // its part of Layout.Buckets
	Initial [2]int
}

// Build lays out a stage whose gradients arrive in the given order, of all parameters; nil: that of
// Arrival. Chunks ascend in params.
func Build(o Options, params []model.Param, arrival []bucket.ParamID) (*Layout, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Layout{Options: o, Params: params, owner: make([]int32, len(params)), place: make([]int32, len(params))}
	for p := range params {
		if d := params[p].DType; params[p].FP8 || !d.Float() {
			return nil, fmt.Errorf("%s: got an FP8 weight, want fp32, fp16 or bf16; set fp8_params to false", params[p].Name)
		}
		expert := params[p].Expert
		at := slices.IndexFunc(l.Reducers, func(r Reducer) bool { return r.Chunk == params[p].Chunk && r.Expert == expert })
		if at < 0 {
			at = len(l.Reducers)
			l.Reducers = append(l.Reducers, Reducer{Chunk: params[p].Chunk, Expert: expert})
		}
		l.owner[p], l.place[p] = int32(at), int32(len(l.Reducers[at].Params))
		l.Reducers[at].Params = append(l.Reducers[at].Params, bucket.ParamID(p))
	}
	slices.SortStableFunc(l.Reducers, func(a, b Reducer) int {
		return cmp.Or(cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(bit(a.Expert), bit(b.Expert)))
	})
	for r := range l.Reducers {
		for _, p := range l.Reducers[r].Params {
			l.owner[p] = int32(r)
		}
	}
	if err := l.arrive(arrival); err != nil {
		return nil, err
	}
	for r := range l.Reducers {
		lists, err := First(l.list(r), o.CapMB, !o.Rebuilds())
		if err != nil {
			return nil, err
		}
		l.Initial = l.add(l.Initial, r, lists, &l.Reducers[r].Initial)
	}
	return l, l.rebuild()
}

// arrive notes the order of gradients.
func (l *Layout) arrive(arrival []bucket.ParamID) error {
	l.arrival = make([][]int, len(l.Reducers))
	if arrival == nil {
		for r := range l.Reducers {
			l.arrival[r] = Arrival(l.list(r))
		}
		return nil
	}
	seen := make([]bool, len(l.Params))
	for _, p := range arrival {
		if p < 0 || int(p) >= len(seen) || seen[p] {
			return fmt.Errorf("arrival: got parameter %d, want each of 0 to %d once", p, len(seen)-1)
		}
		seen[p] = true
		r := l.owner[p]
		l.arrival[r] = append(l.arrival[r], int(l.place[p]))
	}
	if len(arrival) != len(seen) {
		return fmt.Errorf("arrival: got %d parameters, want all %d", len(arrival), len(seen))
	}
	return nil
}

// rebuild makes the buckets of later passes.
func (l *Layout) rebuild() error {
	l.Buckets = l.Buckets[:0]
	for r := range l.Reducers {
		k := &l.Reducers[r]
		if !l.Options.Rebuilds() {
			k.Buckets = k.Initial
			continue
		}
		lists, err := Rebuilt(l.list(r), l.arrival[r], l.Options.CapMB)
		if err != nil {
			return err
		}
		l.Buckets = l.add(l.Buckets, r, lists, &k.Buckets)
	}
	if !l.Options.Rebuilds() {
		l.Buckets = slices.Clone(l.Initial)
	}
	return nil
}

// list returns a reducer's parameters as Assign takes them.
func (l *Layout) list(r int) []Param {
	params := make([]Param, len(l.Reducers[r].Params))
	for i, p := range l.Reducers[r].Params {
		q := &l.Params[p]
		params[i] = Param{
			Name: q.Name, Dims: len(q.Shape), Format: q.DType.String(), Bytes: units.Bytes(q.Numel) * q.DType.Size(),
		}
	}
	return params
}

// add appends a reducer's buckets in the words that frameworks share.
func (l *Layout) add(buckets []bucket.Bucket, r int, lists []Bucket, span *[2]int) []bucket.Bucket {
	span[0] = len(buckets)
	for _, list := range lists {
		own := l.Reducers[r].Params
		d := l.Params[own[list.Params[0]]].DType
		b := bucket.Bucket{
			ID: bucket.ID(len(buckets)), DTypes: bucket.DTypes{State: l.Options.State, GradSync: d, ParamSync: d},
			StoresParams: l.main(d), Fragments: make([]bucket.Fragment, 0, len(list.Params)),
		}
		if b.StoresParams {
			b.DTypes.State = dtype.FP32
		}
		for _, i := range list.Params {
			n := l.Params[own[i]].Numel
			b.Fragments = append(b.Fragments, bucket.Fragment{
				Param: own[i], InParam: bucket.Range{End: n}, InBucket: bucket.Range{Start: b.Size, End: b.Size + n},
			})
			b.Size += n
		}
		b.Shard, b.Filled = b.Size, b.Size
		for i := len(buckets) - 1; i >= 0 && b.Offset == 0; i-- {
			if buckets[i].DTypes == b.DTypes {
				b.Offset = buckets[i].Offset + buckets[i].Size
			}
		}
		buckets = append(buckets, b)
	}
	span[1] = len(buckets)
	return buckets
}

// main reports whether parameters of a dtype have main parameters.
func (l *Layout) main(d dtype.DType) bool { return l.Options.MainParams && d != dtype.FP32 }

// Sets numbers the buckets that complete together: every one alone.
func (l *Layout) Sets() []int {
	sets := make([]int, len(l.Buckets))
	for id := range sets {
		sets[id] = id
	}
	return sets
}

// Use returns the elements of all parameters and those of all buckets, which are the same.
func (l *Layout) Use() (numel, size units.Elems) {
	for p := range l.Params {
		numel += l.Params[p].Numel
	}
	for id := range l.Buckets {
		size += l.Buckets[id].Size
	}
	return numel, size
}

// StageArrival returns the order in which a stage's gradients arrive when its modules run once
// backward, last chunk first; inside a module it is that of its own list.
func StageArrival(s *model.Stage) []bucket.ParamID {
	order := make([]bucket.ParamID, 0, len(s.Params))
	for i := len(s.Modules) - 1; i >= 0; i-- {
		order = append(order, s.Modules[i].Params...)
	}
	return order
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
