package arrays_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
	"distopt/core/units"
)

// task is what is trained: parameters, arguments and gradients. How it is done (ranks, buckets,
// overlaps, versions) is a setup.
type task struct {
	options apex.Options // state and sync formats, storage
	sizes   []int
	fp8     []bool
	dtype   dtype.DType
	groups  [][]bucket.ParamID
	args    []optim.AdamArgs
	initial [][]float32
	grads   [][][][]float32 // by step, contribution, parameter; nil: not used in this step
	maxNorm float64
	scaler  bool
}

// contributions of a step are divided over ranks and microbatches: all setups add up the same.
const contributions = 4

// exactTask draws a task whose gradients are small multiples of 1/16, so that every sum is exact in
// every format.
func exactTask(r *rand.Rand, o apex.Options, d dtype.DType, fp8 bool) task {
	t := task{options: o, dtype: d}
	n := 1 + r.IntN(6)
	t.groups = make([][]bucket.ParamID, 1+r.IntN(2))
	for g := range t.groups {
		t.args = append(t.args, optim.AdamArgs{
			LR: 0.05 / float64(g+1), Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1 * float64(g),
			BiasCorrection: r.IntN(3) > 0, L2: r.IntN(3) == 0,
		})
	}
	for p := range n {
		size := 1 + r.IntN(200)
		if r.IntN(8) == 0 {
			size = 1
		}
		t.sizes = append(t.sizes, size)
		t.fp8 = append(t.fp8, fp8 && r.IntN(3) > 0)
		g := r.IntN(len(t.groups))
		t.groups[g] = append(t.groups[g], bucket.ParamID(p))
		x := make([]float32, size)
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		t.initial = append(t.initial, x)
	}
	for range 3 {
		unused := -1
		if r.IntN(3) == 0 {
			unused = r.IntN(n)
		}
		var step [][][]float32
		for range contributions {
			var row [][]float32
			for p, size := range t.sizes {
				if p == unused {
					row = append(row, nil)
					continue
				}
				x := make([]float32, size)
				for i := range x {
					x[i] = float32(r.IntN(9)-4) / 16
				}
				row = append(row, x)
			}
			step = append(step, row)
		}
		t.grads = append(t.grads, step)
	}
	return t
}

// setup is one way to train a task.
type setup struct {
	options  apex.Options
	micros   int // microbatches: contributions / ranks
	noSync   bool
	init     int // 0 lazily, 1 optimizer order, 2 backwards, 3 in linked buckets of init[i]
	lists    [][]bucket.ParamID
	batched  bool // hooks of all parameters at once
	ranks    *arrays.Ranks
	opt      *apex.Sharded
	layout   *apex.Layout
	finished int // steps
}

func (s *setup) String() string {
	return fmt.Sprintf("%+v micros %d no_sync %t init %d", s.options, s.micros, s.noSync, s.init)
}

// begin builds ranks and control flow.
func (s *setup) begin(t *testing.T, k *task, change ...func(*arrays.Config)) {
	o := s.options
	var params []model.Param
	c := arrays.Config{
		Distributed: o.Distributed, Redundant: o.Redundant, Groups: slices.Clone(k.args),
		ContiguousGrads: o.ContiguousGradBuffer, ContiguousParams: o.ContiguousParamBuffer,
		Scaled: o.WithScaledStates, FP8: optim.DelayedScaling{History: 16},
		Buckets: func() []bucket.Bucket { return s.layout.Buckets },
	}
	for p, size := range k.sizes {
		params = append(params, model.Param{Name: fmt.Sprint("p", p), Shape: []int64{int64(size)}, Numel: units.Elems(size), DType: k.dtype, FP8: k.fp8[p]})
		c.Params = append(c.Params, arrays.Param{Numel: units.Elems(size), DType: k.dtype, FP8: k.fp8[p]})
	}
	for g, list := range k.groups {
		for _, p := range list {
			c.Params[p].Group = g
		}
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	s.layout, err = apex.NewLayout(o, params, k.groups)
	require.NoError(t, err, s)
	all := make([]bucket.ParamID, len(params))
	for p := range all {
		all[p] = bucket.ParamID(p)
	}
	switch s.init {
	case 1:
		s.layout.InitParams(nil)
	case 2:
		slices.Reverse(all)
		s.layout.InitParams(all)
	case 3:
		for _, list := range s.lists {
			require.NoError(t, s.layout.InitParamsBucket(list), s)
		}
		s.layout.InitParams(nil)
	}
	s.ranks, err = arrays.New(c, k.initial)
	require.NoError(t, err, s)
	s.opt, err = apex.NewSharded(s.layout, apex.Config{Runtime: s.ranks, MaxNorm: k.maxNorm, GradScaler: k.scaler})
	require.NoError(t, err, s)
}

// step trains one step on the gradients of the given contributions, and gathers everything.
func (s *setup) step(t *testing.T, k *task, grads [][][]float32) {
	s.opt.ZeroGrad()
	s.ranks.Forward()
	for p := range k.sizes {
		s.opt.PreForward(bucket.ParamID(p))
	}
	ranks := s.ranks.Size()
	for m := range s.micros {
		s.opt.NoSync(s.noSync && m < s.micros-1)
		var used []bucket.ParamID
		for p := len(k.sizes) - 1; p >= 0; p-- {
			if grads[0][p] == nil {
				continue
			}
			for rank := range ranks {
				// Losses are divided by the microbatches before the backward pass.
				g := slices.Clone(grads[rank*s.micros+m][p])
				for i := range g {
					g[i] /= float32(s.micros)
				}
				s.ranks.AddGrad(rank, bucket.ParamID(p), g)
			}
			used = append(used, bucket.ParamID(p))
			if !s.batched {
				s.opt.PostBackward(bucket.ParamID(p))
			}
		}
		if s.batched {
			s.opt.PostBackwardAll(used)
		}
	}
	s.opt.NoSync(false)
	s.opt.AfterBackward()
	s.opt.ClipGradNorm()
	s.opt.Step()
	s.finished++
	for p := range k.sizes {
		s.opt.PreForward(bucket.ParamID(p))
	}
	require.NoError(t, s.opt.Err(), s)
	require.NoError(t, s.ranks.Err(), s)
	p, i, rank, differ := s.ranks.Difference()
	require.False(t, differ, "%s: after step %d, parameter %d[%d] of rank %d", s, s.finished, p, i, rank)
}

// train does all steps of a task.
func (s *setup) train(t *testing.T, k *task, change ...func(*arrays.Config)) {
	s.begin(t, k, change...)
	for _, grads := range k.grads {
		s.step(t, k, grads)
	}
}

// randomSetup draws ranks, buckets, overlaps and versions.
func randomSetup(r *rand.Rand, k *task) *setup {
	s := &setup{options: k.options, init: r.IntN(4), batched: r.IntN(4) == 0}
	o := &s.options
	ranks := []int{1, 2, 4}[r.IntN(3)]
	s.micros = contributions / ranks
	o.Redundant = 1
	if ranks > 1 && r.IntN(3) == 0 {
		o.Redundant = 2
	}
	o.Distributed = ranks / o.Redundant
	o.BucketCapMB = []float64{0.00001, 0.0003, 0.001, 0.02}[r.IntN(4)]
	o.OverlapGradSync = r.IntN(2) == 0
	o.OverlapParamSync = r.IntN(2) == 0
	o.ContiguousGradBuffer = r.IntN(2) == 0
	o.ContiguousParamBuffer = o.ParamSync == k.dtype && r.IntN(2) == 0
	o.NewApex = o.WithScaledStates || r.IntN(3) > 0
	if o.NeMo {
		o.NewNeMo = r.IntN(2) == 0
		o.O2 = o.ContiguousGradBuffer && r.IntN(2) == 0
	}
	o.Later.CommStreams = r.IntN(3)
	o.Later.SkipEmptyGroups = r.IntN(2) == 0
	o.Later.NCCLUserBuffers = o.ContiguousGradBuffer && o.Redundant == 1 && r.IntN(4) == 0 // with copies it does not average over them
	s.noSync = r.IntN(2) == 0
	if o.NeMo && o.ParamSync != dtype.U8 && slices.Contains(k.fp8, true) {
		s.init = 3 // as NeMo does: otherwise other parameters could follow FP8 ones into a bucket of bytes
	}
	if !o.NewApex && s.init == 0 {
		s.init = 1 // it leaves parameters out of a step that are placed in no bucket by then
	}
	order := r.Perm(len(k.sizes))
	for len(order) > 0 {
		n := 1 + r.IntN(len(order))
		var list []bucket.ParamID
		for _, p := range order[:n] {
			list = append(list, bucket.ParamID(p))
		}
		s.lists, order = append(s.lists, list), order[n:]
	}
	return s
}

// formats are the ways to store and send that do not depend on where fragments end.
var formats = []struct {
	name   string
	dtype  dtype.DType
	fp8    bool
	change func(*apex.Options)
}{
	{"fp32", dtype.FP32, false, func(*apex.Options) {}},
	{"bf16 parameters", dtype.BF16, false, func(o *apex.Options) { o.ParamSync = dtype.BF16 }},
	{"bf16 parameters and gradients", dtype.BF16, false, func(o *apex.Options) { o.ParamSync, o.GradSync = dtype.BF16, dtype.BF16 }},
	{"remainders", dtype.BF16, false, func(o *apex.Options) {
		o.ParamSync, o.StoreParams, o.StoreParamRemainders = dtype.BF16, false, true
	}},
	{"bf16 state", dtype.BF16, false, func(o *apex.Options) {
		o.State, o.GradSync, o.ParamSync, o.StoreParams = dtype.BF16, dtype.BF16, dtype.BF16, false
	}},
	{"fp16 state", dtype.FP32, false, func(o *apex.Options) { o.State = dtype.FP16 }},
	{"fp16 state, bytes gathered", dtype.FP16, false, func(o *apex.Options) {
		o.State, o.GradSync, o.ParamSync = dtype.FP16, dtype.FP16, dtype.U8
	}},
	{"int16 gathered", dtype.BF16, false, func(o *apex.Options) { o.ParamSync = dtype.I16 }},
	{"fp32 gathered for bf16 parameters", dtype.BF16, false, func(o *apex.Options) {}},
	{"fp8", dtype.BF16, true, func(o *apex.Options) {
		o.NeMo, o.GradSync, o.ParamSync = true, dtype.BF16, dtype.BF16
	}},
}

func options(change func(*apex.Options)) apex.Options {
	o := apex.DefaultOptions(1)
	change(&o)
	return o
}
