package apex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// restated is the optimizer told a second time, the slow way: no state is kept up to date where it
// can be looked up again, parameters are told apart by name, sets are maps. Its layout stands here,
// its control flow in restated_events_test.go.
type restated struct {
	o       Options
	params  []model.Param
	groups  [][]bucket.ParamID
	buckets []bucket.Bucket
	of      map[bucket.ParamID][]FragmentRef // of the parameters that are placed

	restatedEvents
}

func newRestated(o Options, params []model.Param, groups [][]bucket.ParamID) *restated {
	return &restated{o: o, params: slices.Clone(params), groups: groups, of: map[bucket.ParamID][]FragmentRef{}}
}

func (x *restated) order() []bucket.ParamID { return slices.Concat(x.groups...) }

func (x *restated) groupOf(p bucket.ParamID) int {
	return slices.IndexFunc(x.groups, func(g []bucket.ParamID) bool { return slices.Contains(g, p) })
}

func (x *restated) plain() bucket.DTypes {
	return bucket.DTypes{State: x.o.State, GradSync: x.o.GradSync, ParamSync: x.o.ParamSync}
}

func (x *restated) raw() bucket.DTypes {
	d := x.plain()
	d.ParamSync = dtype.U8
	return d
}

func (x *restated) wideGrads() bucket.DTypes {
	d := x.plain()
	d.GradSync = dtype.FP32
	return d
}

func (x *restated) align() int { return 128 / int(x.o.GradSync.Size()) }

func (x *restated) shardSize() int {
	n := int(1024 * 1024 * x.o.BucketCapMB / float64(x.o.GradSync.Size()) / float64(x.o.Distributed))
	return max(n-n%x.align(), x.align())
}

func (x *restated) open(d bucket.DTypes, offset units.Elems) {
	shard := units.Elems(x.shardSize())
	x.buckets = append(x.buckets, bucket.Bucket{
		ID: bucket.ID(len(x.buckets)), Size: shard * units.Elems(x.o.Distributed), Shard: shard, Open: true, DTypes: d, Offset: offset,
		StoresParams:     x.o.StoreParams || d.ParamSync != x.o.ParamSync,
		StoresRemainders: x.o.StoreParamRemainders && d.ParamSync == x.o.ParamSync,
	})
}

// last is the last bucket of d; without one, bucket 0 stands for it.
func (x *restated) last(d bucket.DTypes) *bucket.Bucket {
	for i := len(x.buckets) - 1; i > 0; i-- {
		if x.buckets[i].DTypes == d {
			return &x.buckets[i]
		}
	}
	return &x.buckets[0]
}

func (x *restated) put(b *bucket.Bucket, f bucket.Fragment) {
	x.of[f.Param] = append(x.of[f.Param], FragmentRef{b.ID, int32(len(b.Fragments))})
	b.Fragments = append(b.Fragments, f)
}

func (x *restated) place(p bucket.ParamID, d bucket.DTypes) {
	if _, ok := x.of[p]; ok {
		return
	}
	x.of[p] = nil
	if len(x.buckets) == 0 {
		x.open(d, 0)
	}
	for left := x.params[p].Numel; left > 0; {
		b := x.last(d)
		start := b.Filled
		for int(start)%x.align() > 0 {
			start++
		}
		if !b.Open || start >= b.Size {
			x.open(d, b.Offset+b.Size)
			continue
		}
		n := min(left, b.Size-start)
		done := x.params[p].Numel - left
		x.put(b, bucket.Fragment{Param: p, InParam: bucket.Range{Start: done, End: done + n}, InBucket: bucket.Range{Start: start, End: start + n}})
		b.Filled = start + n
		left -= n
	}
}

// init is init_params: in NeMo all FP8 tensors of the list come first.
func (x *restated) init(list []bucket.ParamID, d bucket.DTypes) {
	for _, p := range list {
		if x.params[p].FP8 && x.groupOf(p) >= 0 {
			x.place(p, x.raw())
		}
	}
	for _, p := range list {
		if x.groupOf(p) >= 0 {
			x.place(p, d)
		}
	}
}

func (x *restated) wait(b *bucket.Bucket, p bucket.ParamID) {
	n := x.params[p].Numel
	x.put(b, bucket.Fragment{Param: p, InParam: bucket.Range{Start: n, End: n}, InBucket: bucket.Range{Start: b.Size, End: b.Size}})
}

// together is init_params_bucket of Apex; it returns the ids of the new buckets.
func (x *restated) together(list []bucket.ParamID, d bucket.DTypes) (ids []bucket.ID) {
	list = x.unplaced(list)
	if len(list) == 0 {
		return nil
	}
	for i := range x.buckets {
		x.buckets[i].Open = false
	}
	old := len(x.buckets)
	x.init(list, d)
	for i := old; i < len(x.buckets); i++ {
		b := &x.buckets[i]
		b.Open = false
		ids = append(ids, b.ID)
		holds := map[bucket.ParamID]bool{}
		for _, f := range b.Fragments {
			holds[f.Param] = true
		}
		for _, p := range list {
			if !holds[p] {
				x.wait(b, p)
			}
		}
	}
	return ids
}

func (x *restated) unplaced(list []bucket.ParamID) []bucket.ParamID {
	return slices.DeleteFunc(slices.Clone(list), func(p bucket.ParamID) bool { _, ok := x.of[p]; return ok })
}

func (x *restated) isFP8(p bucket.ParamID) bool { return x.params[p].FP8 }

// split returns the members of list of which is is true, and the others.
func split(list []bucket.ParamID, is func(bucket.ParamID) bool) (yes, no []bucket.ParamID) {
	for _, p := range list {
		if is(p) {
			yes = append(yes, p)
		} else {
			no = append(no, p)
		}
	}
	return yes, no
}

// initBucket is init_params_bucket as NeMo overrides it.
func (x *restated) initBucket(list []bucket.ParamID) {
	list = x.unplaced(list)
	switch {
	case !x.o.NeMo:
		x.together(list, x.plain())
	case x.o.NewNeMo:
		wide, others := split(list, func(p bucket.ParamID) bool { return x.params[p].FP32Grads })
		fp8, rest := split(others, x.isFP8)
		a, b, c := x.together(wide, x.wideGrads()), x.together(fp8, x.raw()), x.together(rest, x.plain())
		for _, link := range []struct {
			ids  []bucket.ID
			with []bucket.ParamID
		}{{a, slices.Concat(fp8, rest)}, {b, slices.Concat(wide, rest)}, {c, slices.Concat(wide, fp8)}} {
			for _, id := range link.ids {
				for _, p := range link.with {
					x.wait(&x.buckets[id], p)
				}
			}
		}
	default:
		if fp8, others := split(list, x.isFP8); len(fp8) > 0 {
			for _, p := range others {
				x.params[p].NoOverlap = true
			}
			list = fp8
		}
		x.together(list, x.plain())
	}
}

// nemo is the constructor and configure_optimizers.
func (x *restated) nemo(s *model.Stage) {
	var all []bucket.ParamID
	for i := range x.params {
		q := &x.params[i]
		all = append(all, bucket.ParamID(i))
		embedding := strings.Contains(q.Name, "word_embedding") || strings.Contains(q.Name, "position_embedding")
		if x.o.Later.FP32EmbeddingGrads {
			q.FP32Grads = embedding || strings.Contains(q.Name, "output_layer") && s.Config.Tied && s.PP > 1
		} else {
			q.FP32Grads = s.VP == 1 && (embedding || strings.Contains(q.Name, "output_layer"))
		}
		q.FP32Grads = q.FP32Grads && x.o.State == dtype.FP32
		shared := s.PP > 1 && s.Config.Tied && (strings.Contains(q.Name, "word_embedding") || strings.Contains(q.Name, "output_layer"))
		q.NoOverlap = q.SequenceParallel || shared
	}
	if !x.o.NewNeMo && (x.o.State != dtype.FP32 || x.o.GradSync != dtype.FP32) {
		wide, _ := split(x.order(), func(p bucket.ParamID) bool { return x.params[p].FP32Grads })
		x.together(wide, x.wideGrads())
	}

	var lists [][]bucket.ParamID
	unit := ""
	for _, p := range all {
		q := &x.params[p]
		chunk, name := "", q.Name
		if s.VP > 1 {
			chunk, name, _ = strings.Cut(q.Name, ".")
		}
		layer, inLayer := strings.CutPrefix(name, "decoder.layers.")
		layer, _, _ = strings.Cut(layer, ".")
		key := chunk + " layer " + layer
		switch {
		case s.VP > 1 && x.o.Later.StageBuckets:
			key, inLayer = chunk, true
		case s.VP > 1 && !x.o.NewNeMo:
			key = chunk
		}
		if !inLayer {
			continue
		}
		if key != unit {
			unit = key
			lists = append(lists, nil)
		}
		if !q.NoOverlap {
			lists[len(lists)-1] = append(lists[len(lists)-1], p)
		}
	}
	slices.Reverse(lists)
	for i, list := range lists {
		if fp8, _ := split(list, x.isFP8); x.o.NewNeMo && len(fp8) > 0 {
			lists[i] = fp8
		}
	}
	_, left := split(all, func(p bucket.ParamID) bool { return slices.Contains(slices.Concat(lists...), p) })
	if x.o.NewNeMo {
		lists[len(lists)-1] = append(lists[len(lists)-1], left...)
	} else {
		lists = append(lists, left)
	}
	for _, list := range append(lists, all) {
		x.initBucket(list)
	}
}

// requireSame compares every field of a layout.
func (x *restated) requireSame(t *testing.T, l *Layout, what string) {
	t.Helper()
	require.Equal(t, x.params, l.Params, what)
	require.Equal(t, len(x.buckets), len(l.Buckets), what)
	for i := range x.buckets {
		require.Equal(t, x.buckets[i], l.Buckets[i], what)
	}
	for p := range l.Params {
		require.Equal(t, x.of[bucket.ParamID(p)], l.Fragments[p], what)
	}
}

// NeMo's layouts of every version are those of the second telling.
func TestRestatedNeMoLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(8221, 1771))
	for i := range 250 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		o.State = []dtype.DType{dtype.FP32, dtype.FP32, dtype.BF16, dtype.FP16}[r.IntN(4)]
		o.SetNeMo(dtype.BF16, s.Config.FP8Params)
		o.NormDecay = r.IntN(4) == 0
		what := fmt.Sprintf("%d: %+v %+v %+v", i, s.Config, s.Split, o)
		l, err := BuildNeMo(o, s)
		require.NoError(t, err, what)
		x := newRestated(o, s.Params, s.OptimizerGroups(o.NormDecay))
		x.nemo(s)
		x.requireSame(t, l, what)
	}
}

// Plain layouts are those of the second telling, in whatever order and with whatever dtypes
// parameters, empty ones too, are placed.
func TestRestatedPlainLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(1771, 8221))
	dtypes := []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16}
	for i := range 400 {
		params, groups := randomParams(r)
		o := randomPlainOptions(r)
		what := fmt.Sprintf("%d: %+v", i, o)
		l, err := NewLayout(o, params, groups)
		require.NoError(t, err)
		x := newRestated(o, params, groups)
		for _, p := range r.Perm(len(params)) {
			list := []bucket.ParamID{bucket.ParamID(p), bucket.ParamID(r.IntN(len(params)))}
			d := x.plain()
			d.GradSync, d.ParamSync = dtypes[r.IntN(3)], dtypes[r.IntN(3)]
			switch r.IntN(5) {
			case 0:
				require.NoError(t, l.InitParamsBucket(list))
				x.initBucket(list)
			case 1:
				l.InitParamsAs(list, d)
				x.init(list, d)
			case 2:
				l.InitParams(list)
				x.init(list, x.plain())
			default:
				l.Place(list[0])
				x.place(list[0], x.plain())
			}
		}
		l.InitParams(nil)
		x.init(x.order(), x.plain())
		x.requireSame(t, l, what)
	}
}

// randomParams draws tensors, some of them empty, in one or two groups.
func randomParams(r *rand.Rand) ([]model.Param, [][]bucket.ParamID) {
	sizes := make([]units.Elems, 1+r.IntN(20))
	for p := range sizes {
		sizes[p] = []units.Elems{units.Elems(r.IntN(400)), 0, 1, 32, 64, 128, 1000}[r.IntN(7)]
	}
	params, groups := sized(sizes...)
	if r.IntN(2) == 0 {
		odd, even := split(groups[0], func(p bucket.ParamID) bool { return p%2 == 1 })
		groups = [][]bucket.ParamID{odd, even}
	}
	return params, groups
}

func randomPlainOptions(r *rand.Rand) Options {
	o := DefaultOptions(1 + r.IntN(5))
	o.BucketCapMB = []float64{0.0001, 0.0005, 0.001, 0.003}[r.IntN(4)]
	o.GradSync = []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16}[r.IntN(3)]
	if r.IntN(3) == 0 {
		o.StoreParams, o.StoreParamRemainders, o.ParamSync = false, true, dtype.BF16
	}
	return o
}
