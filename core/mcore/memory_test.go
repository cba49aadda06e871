package mcore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// Bytes of one parameter on one of d ranks, setting by setting, for a matrix that divides evenly: the
// table of Megatron-Core's own documentation and of the reference rules.
func TestBytesPerParameter(t *testing.T) {
	const d, n = 8, 1 << 20
	aware := States{PrecisionAware: true}
	with := func(s States, change func(*States)) States {
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name   string
		param  Param
		change func(*Options)
		states States
		params, grads,
		main, moments, step, outside float64 // bytes per element; state of all d ranks together
	}{
		{"bf16, fp32 gradients", bf16(n), func(o *Options) { o.GradReduceInFP32 = true }, States{}, 2, 4, 4, 8, 0, 0},
		{"bf16, bf16 gradients", bf16(n), nil, States{}, 2, 2, 4, 8, 4, 0},
		{"fp32", fp32(n), nil, States{}, 4, 4, 0, 8, 0, 0},
		{"remainders", bf16(n), nil, aware, 2, 2, 2, 8, 0, 0},
		{"bf16 moments", bf16(n), nil, with(aware, func(s *States) { s.ExpAvg, s.ExpAvgSq = dtype.BF16, dtype.BF16 }), 2, 2, 2, 4, 0, 0},
		{"fp8 moments", bf16(n), nil, with(aware, func(s *States) { s.ExpAvg, s.ExpAvgSq = dtype.U8, dtype.U8 }), 2, 2, 2, 2, 0, 0},
		{"no remainders", bf16(n), nil, with(aware, func(s *States) { s.NoRemainders = true }), 2, 2, 4, 8, 0, 0},
		{"fp16 main parameters", bf16(n), nil, with(aware, func(s *States) { s.Main = dtype.FP16 }), 2, 2, 2, 8, 0, 0},
		{"FP8 recipe other than delayed", bf16(n), nil, with(aware, func(s *States) { s.FP8 = true }), 2, 2, 4, 8, 4, 0},
		{"delayed FP8", bf16(n), nil, with(aware, func(s *States) { s.FP8, s.Delayed = true, true }), 2, 2, 2, 8, 0, 0},
		{"half of the state on the host", bf16(n), nil, with(aware, func(s *States) { s.Offload = 0.5 }), 2, 2, 1, 4, 0, 0},
		{"FP8 weights", quantized(n, FP8), func(o *Options) { o.GradReduceInFP32 = true }, States{}, 1, 4, 4, 8, 0, 1},
		{"MXFP8 weights", quantized(n, MXFP8), func(o *Options) { o.ReuseGradBuffer = true }, States{}, 0, 2, 4, 8, 4, 2.0625},
		{"NVFP4 weights", quantized(n, NVFP4), nil, States{}, 0.5, 2, 4, 8, 4, 0},
	} {
		o := Options{World: d, DistributedOptimizer: true}
		if tt.change != nil {
			tt.change(&o)
		}
		require.NoError(t, tt.states.Check(&o), tt.name)
		l, err := Build(o, []Param{tt.param})
		require.NoError(t, err)
		for rank := range d {
			m := l.Memory(tt.states, rank)
			each := func(want float64, ranks float64, got units.Bytes) {
				t.Helper()
				require.InDelta(t, want*n/ranks, float64(got), 1, tt.name)
			}
			each(tt.params, 1, m.Params)
			each(tt.grads, 1, m.Grads)
			each(tt.main, d, m.Main)
			each(tt.moments, d, m.Moments)
			each(tt.step, d, m.StepGrads)
			each(tt.outside, 1, m.Quantized)
		}
	}
}

func bf16(n int64) Param {
	return Param{Param: model.Param{Name: "w", Shape: []int64{n / 1024, 1024}, Numel: units.Elems(n), DType: dtype.BF16}, Path: "w"}
}

func fp32(n int64) Param {
	p := bf16(n)
	p.DType = dtype.FP32
	return p
}

func quantized(n int64, q Quant) Param {
	p := bf16(n)
	p.quantize(true, q)
	return p
}

// Without the distributed optimizer every rank has everything: 18 bytes for a bf16 parameter.
func TestMemoryUnsharded(t *testing.T) {
	l, err := Build(Options{World: 8, GradReduceInFP32: true}, []Param{bf16(1 << 20)})
	require.NoError(t, err)
	require.Equal(t, units.Bytes(18<<20), l.Memory(States{}, 3).Total())
}

// What scales, private gradients and an all-to-all add.
func TestMemoryExtras(t *testing.T) {
	l, err := Build(Options{World: 4, DistributedOptimizer: true, FP32Accumulation: true, FP32Patterns: []string{"w"}}, []Param{bf16(1 << 12)})
	require.NoError(t, err)
	m := l.Memory(States{PrecisionAware: true, Main: dtype.FP16, ExpAvg: dtype.FP16, ExpAvgSq: dtype.U8}, 0)
	require.Equal(t, units.Bytes(4<<12), m.FP32Grads)
	require.Equal(t, units.Bytes(2<<12), m.Exchange)
	require.Equal(t, units.Bytes(12), m.Scales)
	for want, s := range map[string]States{
		"use_precision_aware_optimizer: got true":           {PrecisionAware: true},
		"main_params_dtype, exp_avg_dtype, exp_avg_sq_dtyp": {Main: dtype.FP16},
		"optimizer_offload_fraction: got 2":                 {Offload: 2},
	} {
		require.ErrorContains(t, s.Check(&Options{}), want)
	}
}

// State is owned by one rank each, whatever the settings.
func TestStateIsShardedOnce(t *testing.T) {
	o := Options{World: 6, Instances: 2, DistributedOptimizer: true, GradReduceInFP32: true}
	l, err := Build(o, []Param{bf16(1 << 12), bf16(3 << 10)})
	require.NoError(t, err)
	sum := units.Bytes(0)
	for rank := range 3 { // one instance
		sum += l.Memory(States{}, rank).Main
		require.Equal(t, l.Memory(States{}, rank), l.Memory(States{}, rank+3), "instances are alike")
	}
	require.Equal(t, 4*units.Bytes(1<<12+3<<10), sum)
}
