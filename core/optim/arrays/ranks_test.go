package arrays_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
)

var plainArgs = []optim.AdamArgs{{LR: 0.1, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, BiasCorrection: true}}

// oneParam is a task of one parameter of n elements in one group.
func oneParam(n int, d dtype.DType) task {
	return task{
		options: apex.DefaultOptions(1), sizes: []int{n}, fp8: []bool{false}, dtype: d,
		groups: [][]bucket.ParamID{{0}}, args: plainArgs, initial: [][]float32{make([]float32, n)},
	}
}

func filled(n int, x float32) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = x
	}
	return all
}

// The reduction's order and roundings, told a second time: shard i of three ranks is rounded after
// each of the products and sums i+1, i+2, i.
func TestReductionOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 16))
	for _, d := range []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16} {
		for _, average := range []bool{true, false} {
			k := oneParam(192, d)
			k.options.Distributed, k.options.GradSync, k.options.ParamSync = 3, d, d
			k.options.AverageGradSync = average
			s := &setup{options: k.options, micros: 1, init: 1}
			s.options.BucketCapMB = 1e-5
			s.begin(t, &k)
			grads := make([][][]float32, 3)
			for rank := range grads {
				x := make([]float32, 192)
				for i := range x {
					x[i] = d.Round(float32(r.NormFloat64()))
				}
				grads[rank] = [][]float32{x}
			}
			s.step(t, &k, grads)
			third := float32(1)
			if average {
				third = d.Round(1 / float32(3))
			}
			shard := int(s.layout.ShardSize)
			for e := range 192 {
				rank := e / shard % 3
				id := bucket.ID(e / (3 * shard))
				sum := d.Round(grads[(rank+1)%3][0][e] * third)
				for _, from := range []int{(rank + 2) % 3, rank} {
					sum = d.Round(sum + d.Round(grads[from][0][e]*third))
				}
				got := s.ranks.Shard(rank, id).Grad.Slice(e%shard, e%shard+1)
				x := make([]float32, 1)
				got.Load(x)
				require.Equal(t, sum, x[0], "%s average %t element %d", d, average, e)
			}
		}
	}
}

// A sum of fp16 gradients that overflows is infinite on every rank, and NaN in the update.
func TestFP16Overflow(t *testing.T) {
	k := oneParam(4, dtype.FP16)
	k.options.Distributed, k.options.GradSync, k.options.ParamSync, k.options.AverageGradSync = 2, dtype.FP16, dtype.FP16, false
	k.scaler = true
	s := &setup{options: k.options, micros: 1, init: 1}
	s.begin(t, &k)
	s.ranks.SetLossScale(65536)
	s.step(t, &k, [][][]float32{{{60000, 1, 1, 1}}, {{60000, 1, 1, 1}}})
	require.Equal(t, uint32(0x7c00), s.ranks.Shard(0, 0).Grad.Bits(0))
	// With a loss scaler the step is left out before anything changes.
	require.Equal(t, filled(4, 0), s.ranks.Shard(0, 0).Param.Words[:4])
	require.Equal(t, filled(4, 0), s.ranks.Shard(0, 0).ExpAvg.Words[:4])
	require.Equal(t, float32(1)/65536, s.ranks.GradScale())
	saved, err := s.ranks.Save(0)
	require.NoError(t, err)
	require.Zero(t, saved.Step)
	// The next one is taken, with the loss scale divided out.
	s.step(t, &k, [][][]float32{{{65536 / 4, 0, 0, 0}}, {{0, 0, 0, 0}}})
	require.Equal(t, []float32{dtype.FP16.Round(-0.1)}, widen(s, 0)[:1])
	require.InDelta(t, 0.1*0.25, s.ranks.Shard(0, 0).ExpAvg.Words[0], 1e-6)
}

func widen(s *setup, p bucket.ParamID) []float32 {
	x := make([]float32, s.ranks.Param(0, p).Len())
	s.ranks.ParamValues(0, p, x)
	return x
}

// An infinite gradient on one rank: without clipping the element becomes NaN, with clipping every
// other gradient vanishes. All ranks see the same.
func TestNonFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		name    string
		bad     float32
		maxNorm float64
		want    []float32
		scale   float32
	}{
		{"inf", inf, 0, []float32{nan, -0.1, -0.1}, 1},
		{"inf, clipped", inf, 1, []float32{nan, 0, 0}, 0},
		{"NaN", nan, 0, []float32{nan, -0.1, -0.1}, 1},
		{"NaN, clipped", nan, 1, []float32{nan, nan, nan}, nan},
		{"both signs of infinity meet", -inf, 0, []float32{nan, -0.1, -0.1}, 1},
		{"finite, clipped", 8, 0.5, []float32{-0.1, -0.1, -0.1}, 0.5 / 4},
	} {
		k := oneParam(3, dtype.FP32)
		k.options.Distributed, k.maxNorm = 2, tt.maxNorm
		s := &setup{options: k.options, micros: 1, init: 1}
		s.begin(t, &k)
		other := float32(0)
		if tt.bad == -inf {
			other = inf
		}
		s.step(t, &k, [][][]float32{{{tt.bad, 1e-3, 1e-3}}, {{other, 1e-3, 1e-3}}})
		got := widen(s, 0)
		for i := range tt.want {
			if tt.want[i] != tt.want[i] {
				require.Equal(t, uint32(dtype.NaNBits), math.Float32bits(got[i]), "%s: %v", tt.name, got)
				continue
			}
			require.InDelta(t, tt.want[i], got[i], 1e-4, tt.name)
		}
		if tt.scale != tt.scale {
			require.Equal(t, uint32(dtype.NaNBits), math.Float32bits(s.ranks.GradScale()), tt.name)
		} else {
			require.InDelta(t, tt.scale, s.ranks.GradScale(), 1e-6, tt.name)
		}
	}
}

var nan = math.Float32frombits(dtype.NaNBits)

// The flag that a norm kernel sets makes the fused copy kernel do nothing: the rank whose shard was
// infinite keeps old parameters when they are gathered in the same step, though Adam has run.
func TestFusedCopyFlag(t *testing.T) {
	for _, fused := range []bool{false, true} {
		k := oneParam(64, dtype.FP32)
		k.options.Distributed, k.maxNorm = 2, 1
		s := &setup{options: k.options, micros: 1, init: 1}
		s.options.BucketCapMB = 1e-5
		s.begin(t, &k, func(c *arrays.Config) { c.FusedCopy = fused })
		g := filled(64, 1)
		g[0] = float32(math.Inf(1)) // in the shard of rank 0
		s.opt.ZeroGrad()
		for rank := range 2 {
			s.ranks.AddGrad(rank, 0, g)
		}
		s.opt.PostBackward(0)
		s.opt.ClipGradNorm()
		s.opt.Step()
		_, element, rank, differ := s.ranks.Difference()
		require.Equal(t, fused, differ)
		if fused {
			require.Equal(t, []int{0, 1}, []int{element, rank})
			require.Zero(t, s.ranks.Param(0, 0).Words[0], "kept")
			require.Equal(t, uint32(dtype.NaNBits), s.ranks.Param(1, 0).Bits(0))
		}
		require.Equal(t, uint32(dtype.NaNBits), s.ranks.Shard(0, 0).Param.Bits(0))
	}
}

// More ranks than elements, parameters without elements, shards that nobody fills.
func TestEmptyShards(t *testing.T) {
	k := task{
		options: options(formats[0].change), sizes: []int{1, 0, 3}, fp8: make([]bool, 3), dtype: dtype.FP32,
		groups: [][]bucket.ParamID{{0, 1, 2}}, args: plainArgs,
		initial: [][]float32{{1}, {}, {1, 2, 3}},
	}
	k.options.Distributed, k.maxNorm = 16, 1
	for _, overlap := range []bool{false, true} {
		s := &setup{options: k.options, micros: 1, init: 1}
		s.options.OverlapParamSync = overlap
		s.begin(t, &k)
		grads := make([][][]float32, 16)
		for rank := range grads {
			grads[rank] = [][]float32{{1}, {}, {1, 1, 1}}
		}
		s.step(t, &k, grads)
		require.InDelta(t, 0.9, widen(s, 0)[0], 1e-6)
		require.InDelta(t, 2.0, s.ranks.GradNorm(), 1e-6)
		saved, err := s.ranks.Save(1)
		require.NoError(t, err)
		require.NoError(t, s.ranks.Load(saved))
	}
}

// FP8 weights: quantized with scale 1, decoded masters, scales that follow by a step, transposes of
// every copy, NaN and an amax of 0.
func TestFP8(t *testing.T) {
	k := oneParam(70, dtype.BF16)
	formats[len(formats)-1].change(&k.options)
	k.options.NewNeMo, k.options.Distributed = true, 2
	k.fp8[0], k.initial[0] = true, filled(70, 0.3)
	s := &setup{options: k.options, micros: 1, init: 3, lists: [][]bucket.ParamID{{0}}}
	s.begin(t, &k)
	quantized := dtype.E4M3.Decode(dtype.E4M3.Encode(0.3))
	require.Equal(t, quantized, s.ranks.Shard(0, 0).Param.Words[0])
	require.Equal(t, []float32{0.3}, s.ranks.FP8Meta(1, 0).Amax[:1])
	g := [][][]float32{{filled(70, 1)}, {filled(70, 1)}}
	s.step(t, &k, g)
	m := s.ranks.FP8Meta(1, 0)
	require.Equal(t, float32(1/float32(0.3))*448, m.Scale, "the scale of the amax before")
	require.Equal(t, 1/m.Scale, m.ScaleInv)
	require.Equal(t, s.ranks.Shard(0, 0).Param.Words[0], m.Amax[0])
	require.Equal(t, 1, s.ranks.Transposes())
	require.InDelta(t, s.ranks.Shard(0, 0).Param.Words[0], widen(s, 0)[0], 0.02)

	bad := filled(70, 1)
	bad[3] = nan
	s.step(t, &k, [][][]float32{{bad}, {filled(70, 1)}})
	require.Equal(t, uint32(0x7f), s.ranks.Param(1, 0).Bits(3))
	require.False(t, m.Amax[0] != m.Amax[0], "a NaN does not count")

	zero := oneParam(8, dtype.BF16)
	zero.options, zero.fp8[0] = k.options, true
	s = &setup{options: k.options, micros: 1, init: 3, lists: [][]bucket.ParamID{{0}}}
	s.begin(t, &zero)
	s.step(t, &zero, [][][]float32{{filled(8, 0)}, {filled(8, 0)}})
	require.Equal(t, float32(1), s.ranks.FP8Meta(0, 0).Scale, "an amax of 0 keeps the scale")
}

// The first step of scaled states stores halves of the format's largest value.
func TestScaledStates(t *testing.T) {
	k := oneParam(64, dtype.BF16)
	k.options.State, k.options.ParamSync, k.options.GradSync, k.options.WithScaledStates = dtype.FP16, dtype.BF16, dtype.FP32, true
	k.initial[0][1] = -2
	s := &setup{options: k.options, micros: 1, init: 1}
	s.begin(t, &k)
	shard := s.ranks.Shard(0, 0)
	require.Equal(t, float32(2)/32752, shard.Scales[0].Param)
	require.Equal(t, uint32(0xf7ff), shard.Param.Bits(1))
	s.step(t, &k, [][][]float32{{filled(64, 3)}})
	require.Equal(t, uint32(0x77ff), shard.ExpAvg.Bits(0))
	require.InDelta(t, 0.3, float64(shard.Scales[0].ExpAvg)*32752, 1e-6)
	require.InDelta(t, 0.45, float64(shard.Scales[0].ExpAvgSq)*32752, 1e-6)
	saved, err := s.ranks.Save(1)
	require.NoError(t, err)
	require.Equal(t, dtype.FP32, saved.Params[0].ExpAvg.DType, "checkpoints hold unscaled fp32")
	require.InDelta(t, 0.3, saved.Params[0].ExpAvg.Words[5], 1e-6)
	before := shard.Scales[0]
	require.NoError(t, s.ranks.Load(saved))
	require.InEpsilon(t, before.ExpAvg, shard.Scales[0].ExpAvg, 1e-6)
}

// Impossible configurations and uses are refused in words.
func TestErrors(t *testing.T) {
	k := oneParam(8, dtype.FP32)
	layout, err := apex.NewLayout(k.options, nil, nil)
	require.NoError(t, err)
	buckets := func() []bucket.Bucket { return layout.Buckets }
	good := func() arrays.Config {
		return arrays.Config{Distributed: 2, Params: []arrays.Param{{Numel: 8}}, Groups: plainArgs, Buckets: buckets}
	}
	for _, tt := range []struct {
		change func(*arrays.Config)
		want   string
	}{
		{func(c *arrays.Config) { c.Distributed = 0 }, "distributed_size: got 0"},
		{func(c *arrays.Config) { c.Buckets = nil }, "buckets: got none"},
		{func(c *arrays.Config) { c.Params = nil }, "initial values: got 1 parameters, want 0"},
		{func(c *arrays.Config) { c.Params[0].Numel = 7 }, "parameter 0: got 8 initial values, want 7"},
		{func(c *arrays.Config) { c.Params[0].DType = dtype.U8 }, "parameter 0: got dtype uint8"},
		{func(c *arrays.Config) { c.Params[0].Group = 1 }, "parameter 0: got parameter group 1, want 0 to 0"},
		{func(c *arrays.Config) { c.Distributed = 1 << 25 }, "want at most 4096 ranks and 134217728 elements"},
		{func(c *arrays.Config) { c.Distributed = math.MaxInt; c.Redundant = 3 }, "want at most"},
		{func(c *arrays.Config) { c.Distributed, c.Redundant = 1<<62, 4 }, "want at most"},
		{func(c *arrays.Config) { c.FP8.Margin = 1000 }, "fp8 margin: got 1000"},
		{func(c *arrays.Config) { c.FP8.History = -1 }, "fp8_amax_history_len: got -1"},
		{func(c *arrays.Config) { c.Groups = []optim.AdamArgs{{Beta1: 1}} }, "betas of parameter group 0: got 1 and 0"},
		{func(c *arrays.Config) { c.Groups = []optim.AdamArgs{{Beta2: math.NaN()}} }, "betas of parameter group 0"},
	} {
		c := good()
		tt.change(&c)
		_, err := arrays.New(c, [][]float32{make([]float32, 8)})
		require.ErrorContains(t, err, tt.want)
	}

	s := &setup{options: k.options, micros: 1, init: 1}
	s.begin(t, &k)
	s.opt.ZeroGrad()
	s.opt.PostBackward(0)
	require.ErrorContains(t, s.ranks.Err(), "parameter 0: got no gradient on rank 0")

	s.begin(t, &k)
	s.ranks.AddGrad(0, 0, make([]float32, 3))
	require.ErrorContains(t, s.ranks.Err(), "got a gradient of 3 elements, want 8")

	s.begin(t, &k)
	saved, err := s.ranks.Save(0)
	require.NoError(t, err)
	for _, tt := range []struct {
		change func(*arrays.Checkpoint)
		want   string
	}{
		{func(c *arrays.Checkpoint) { c.Format = 1 }, "got format 1, want 2"},
		{func(c *arrays.Checkpoint) { c.Params = nil }, "got 0 parameters, want 1"},
		{func(c *arrays.Checkpoint) { c.Groups = nil }, "got 0 parameter groups, want 1"},
		{func(c *arrays.Checkpoint) { c.Params = []arrays.ParamState{{}} }, "got 0 fp32 elements of state for parameter 0, want 8"},
	} {
		c := *saved
		tt.change(&c)
		require.ErrorContains(t, s.ranks.Load(&c), tt.want)
	}
	require.ErrorContains(t, s.ranks.SetModel(&arrays.Model{}), "model: got 0 parameters, want 1")
	lazy := &setup{options: k.options, micros: 1}
	lazy.begin(t, &k)
	_, err = lazy.ranks.Save(0)
	require.ErrorContains(t, err, "parameter 0 has no fragments yet")
	require.ErrorContains(t, lazy.ranks.Load(saved), "parameter 0 has no fragments yet")
}

// A gradient that a GEMM adds is not rounded to the parameter's format on its way.
func TestFusedGradients(t *testing.T) {
	k := oneParam(32, dtype.BF16)
	k.options.ParamSync = dtype.BF16
	x := float32(1 + 0x1p-12) // not a bf16 value
	for _, fused := range []bool{false, true} {
		s := &setup{options: k.options, micros: 1, init: 1}
		s.begin(t, &k, func(c *arrays.Config) { c.Params[0].Fused = fused })
		s.step(t, &k, [][][]float32{{filled(32, x)}})
		want := float32(1)
		if fused {
			want = x
		}
		require.Equal(t, want, s.ranks.Shard(0, 0).Grad.Words[0])
	}
}
