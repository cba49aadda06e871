package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/units"
)

var gpt5B = Config{
	Layers: 24, Hidden: 4096, FFN: 16384, Heads: 32, Groups: 32, KVChannels: 128, Vocab: 50304, Seq: 2048,
	LearnedPositions: true, Bias: true, Tied: true, FP8: true, FP8Params: true, DType: dtype.BF16,
}

var llama70B = Config{
	Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, Groups: 8, KVChannels: 128, Vocab: 128256, Seq: 8192,
	RMSNorm: true, Gated: true, DType: dtype.BF16,
}

// Megatron-LM prints 72BsLh²(1 + s/6h + V/12Lh); Llama 3 70B at 8k has 481 GFLOP a token with
// full and 449 with causal attention (NeMo 24.07 and Megatron Bridge pages).
func TestModelFLOPs(t *testing.T) {
	c := gpt5B
	L, h, s, V := float64(c.Layers), float64(c.Hidden), float64(c.Seq), float64(c.Vocab)
	_, full := c.ModelFLOPs(16)
	require.InEpsilon(t, 72*16*s*L*h*h*(1+s/(6*h)+V/(12*L*h)), float64(full), 1e-12)

	causal, full := llama70B.ModelFLOPs(1)
	require.InDelta(t, 449, float64(causal)/8192/1e9, 0.5)
	require.InDelta(t, 481, float64(full)/8192/1e9, 0.5)
}

// passes lists the passes of a whole model, forward and backward.
func passes(t testing.TB, c Config) []Pass {
	var all []Pass
	for _, m := range build(t, c, Split{TP: 1, PP: 1, VP: 1}).Modules {
		all = append(all, Pass{Module: m.Kind, Layer: m.Layer}, Pass{Module: m.Kind, Layer: m.Layer, Backward: true})
	}
	return all
}

// The products of all kernels are the model's arithmetic, however it is cut.
func TestKernelFLOPsAddUp(t *testing.T) {
	for _, c := range []Config{gpt5B, llama70B} {
		causal, _ := c.ModelFLOPs(2)
		for _, e := range []Execution{
			{Micro: 2, TP: 1, CP: 1},
			{Micro: 2, TP: 4, SP: true, CP: 1, Dropout: true},
			{Micro: 2, TP: 2, CP: 2, GradFusion: true},
			{Micro: 2, TP: 8, SP: true, CP: 4, FusedRope: true},
		} {
			sum := units.FLOPs(0)
			for _, p := range passes(t, c) {
				for _, k := range c.Kernels(&e, p) {
					sum += k.FLOPs
				}
			}
			got := float64(sum) * float64(e.TP*e.CP)
			// Flash attention recomputes the scores: 7 products instead of 6.
			attention := float64(c.Layers) * 2 * float64(c.Seq) * float64(c.Seq) * float64(c.KVChannels*c.Heads) * 0.5 * 2
			require.InEpsilon(t, float64(causal)+attention, got, 1e-9, "%+v", e)
		}
	}
}

func TestRecomputeAddsTheForwardPass(t *testing.T) {
	e := Execution{Micro: 1, TP: 2, SP: true, CP: 1}
	for _, tt := range []struct {
		recompute Recompute
		layers    int
		pass      Pass
		again     bool
	}{
		{NoRecompute, 0, Pass{Module: FC1, Backward: true}, false},
		{CoreAttention, 0, Pass{Module: FC1, Backward: true}, false},
		{CoreAttention, 0, Pass{Module: Attention, Backward: true}, true},
		{FullLayers, 0, Pass{Module: FC1, Backward: true, Layer: 7}, true},
		{FullLayers, 2, Pass{Module: FC1, Backward: true, Layer: 1}, true},
		{FullLayers, 2, Pass{Module: FC1, Backward: true, Layer: 2}, false},
		{FullLayers, 0, Pass{Module: Output, Backward: true}, false},
	} {
		e.Recompute, e.RecomputeLayers = NoRecompute, 0
		plain := gpt5B.Kernels(&e, tt.pass)
		forward := gpt5B.Kernels(&e, Pass{Module: tt.pass.Module, Layer: tt.pass.Layer})
		e.Recompute, e.RecomputeLayers = tt.recompute, tt.layers
		want := len(plain)
		if tt.again {
			want += len(forward)
		}
		require.Len(t, gpt5B.Kernels(&e, tt.pass), want, "%+v", tt)
	}
}

// Selective recompute is the flash kernel alone, without the rotary positions that come before the
// core of attention; and weights are cast to FP8 once, not again.
func TestRecomputeIsNoMoreThanTheForwardPass(t *testing.T) {
	names := func(c Config, e Execution, m ModuleKind) (all []string) {
		for _, k := range c.Kernels(&e, Pass{Module: m, Backward: true}) {
			all = append(all, k.Name)
		}
		return all
	}
	e := Execution{Micro: 1, TP: 1, CP: 1, Recompute: CoreAttention}
	require.Equal(t, []string{"recomputed attention", "attention backward", "rotary backward"}, names(llama70B, e, Attention))
	e.Recompute = FullLayers
	require.Equal(t, []string{"recomputed rotary", "recomputed attention", "attention backward", "rotary backward"}, names(llama70B, e, Attention))
	cast := gpt5B
	cast.FP8Params = false
	require.Equal(t, names(gpt5B, e, FC2), names(cast, e, FC2))
}

// Dropout off leaves fewer kernels behind embeddings, and none of its pattern anywhere.
func TestWithoutDropout(t *testing.T) {
	count := func(dropout bool) (all, droppers int) {
		e := Execution{Micro: 1, TP: 2, SP: true, CP: 1, Dropout: dropout}
		one := gpt5B
		one.Layers = 1
		for _, p := range passes(t, one) {
			for _, k := range gpt5B.Kernels(&e, p) {
				all++
				if k.Kind == MemoryBound && k.Pattern == hw.Dropout {
					droppers++
				}
			}
		}
		return all, droppers
	}
	with, droppers := count(true)
	require.Equal(t, 3, droppers, "embedding, projection, fc2")
	without, droppers := count(false)
	require.Zero(t, droppers)
	require.Equal(t, with-4, without, "two of the embedding, and the backward ones of projection and fc2")
}

// Without parallelism nothing is communicated; with TP 8 and SP every layer gathers and scatters
// twice in each direction, and gathers the inputs of its column products once more in backward.
func TestTensorParallelCollectives(t *testing.T) {
	count := func(e Execution) (gathers, scatters, reduces int) {
		for _, m := range []ModuleKind{QKV, Attention, Proj, FC1, FC2} {
			for _, backward := range []bool{false, true} {
				for _, k := range gpt5B.Kernels(&e, Pass{Module: m, Backward: backward}) {
					switch {
					case k.Kind != TensorComm:
					case k.Gather:
						gathers++
					case k.Scatter:
						scatters++
					default:
						reduces++
					}
				}
			}
		}
		return
	}
	g, s, r := count(Execution{Micro: 1, TP: 1, SP: true, CP: 1})
	require.Equal(t, [3]int{}, [3]int{g, s, r})
	g, s, r = count(Execution{Micro: 1, TP: 8, SP: true, CP: 1})
	require.Equal(t, [3]int{6, 4, 0}, [3]int{g, s, r})
	g, s, r = count(Execution{Micro: 1, TP: 8, CP: 1})
	require.Equal(t, [3]int{0, 0, 4}, [3]int{g, s, r})
}

// An FP8 forward layer of the opening preset, by name.
func TestForwardLayerKernels(t *testing.T) {
	e := Execution{Micro: 1, TP: 1, CP: 1, Dropout: true, GradFusion: true}
	var names []string
	for _, m := range []ModuleKind{QKV, Attention, Proj, FC1, FC2} {
		for _, k := range gpt5B.Kernels(&e, Pass{Module: m}) {
			names = append(names, k.Name)
		}
	}
	require.Equal(t, []string{
		"norm", "qkv", "attention", "projection input to FP8", "projection", "bias, dropout, residual",
		"norm", "fc1", "activation", "fc2 input to FP8", "fc2", "bias, dropout, residual",
	}, names)
}
