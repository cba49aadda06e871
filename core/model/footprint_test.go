package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/units"
)

var denseLayer = []ModuleKind{QKV, Attention, Proj, FC1, FC2}

// kept sums what a layer's modules keep.
func kept(c *Config, e *Execution, s *Storage, modules ...ModuleKind) (n units.Bytes) {
	for _, m := range modules {
		f := c.Footprint(e, s, Pass{Module: m})
		n += f.Kept - f.Again
	}
	return n
}

// Activations of a layer in units of s·b·h bytes, as Table 2 of arXiv:2205.05198 has them; norms' statistics
// and flash attention's sums beside them.
func TestFootprintOfALayer(t *testing.T) {
	const s, b, h, a = 64, 2, 128, 8
	c := Config{Layers: 2, Hidden: h, FFN: 4 * h, Heads: a, Groups: a, KVChannels: h / a, Vocab: 512, Seq: s, Bias: true, DType: dtype.BF16}
	const sbh = s * b * h
	stats := func(own int64) int64 { return 2 * 8 * own }
	for _, tt := range []struct {
		name string
		e    Execution
		s    Storage
		want int64
	}{
		{"no parallelism", Execution{TP: 1}, Storage{PlainAttention: true, AttentionDropout: true}, 34*sbh + 5*a*s*s*b + stats(s*b)},
		{"without dropout", Execution{TP: 1}, Storage{PlainAttention: true}, 32*sbh + 2*a*s*s*b + stats(s*b)},
		{"flash", Execution{TP: 1}, Storage{}, 32*sbh + 4*a*s*b + stats(s*b)},
		{"tensor parallel", Execution{TP: 4}, Storage{PlainAttention: true, AttentionDropout: true}, 10*sbh + (24*sbh+5*a*s*s*b)/4 + stats(s*b)},
		{"and sequence parallel", Execution{TP: 4, SP: true}, Storage{PlainAttention: true, AttentionDropout: true}, (34*sbh+5*a*s*s*b)/4 + stats(s*b/4)},
		{"inputs kept gathered", Execution{TP: 4, SP: true}, Storage{KeptGathers: true}, 4*sbh + 28*sbh/4 + 4*a*s*b/4 + stats(s*b/4)},
		{"selective", Execution{TP: 4, Recompute: CoreAttention}, Storage{PlainAttention: true, AttentionDropout: true}, 10*sbh + 24*sbh/4 + stats(s*b)},
		{"full", Execution{TP: 4, Recompute: FullLayers}, Storage{PlainAttention: true}, 2 * sbh},
		{"full, sequence parallel", Execution{TP: 4, SP: true, Recompute: FullLayers}, Storage{}, 2 * sbh / 4},
		{"context parallel", Execution{TP: 1, CP: 2}, Storage{}, 32*sbh/2 + 4*a*s*b/2 + stats(s*b/2)},
		{"context parallel by heads", Execution{TP: 1, CP: 2}, Storage{CPAllToAll: true}, 34*sbh/2 + 4*a*s*b/2 + stats(s*b/2)},
		{"eager norms, 4 bytes more each", Execution{TP: 1}, Storage{EagerNorm: true}, 40*sbh + 4*a*s*b + stats(s*b)},
	} {
		tt.e.Micro = b
		tt.e.Dropout = tt.s.AttentionDropout
		require.EqualValues(t, tt.want, kept(&c, &tt.e, &tt.s, denseLayer...), tt.name)
	}

	// Two of eight key heads, gated, RMSNorm: 8h + 2(q+2kv) + 2q + 6 of the MLP's width.
	g := c
	g.Groups, g.Gated, g.RMSNorm, g.FFN = 2, true, true, 3*h
	e := Execution{Micro: b, TP: 1}
	gated := int64(s * b * (8*h + 2*(h+2*h/4) + 2*h + 6*3*h + 4*a + 2*4))
	require.EqualValues(t, gated, kept(&g, &e, &Storage{}, denseLayer...))
	require.EqualValues(t, gated+s*b*2*3*h, kept(&g, &e, &Storage{EagerGate: true}, denseLayer...))

	// FP8 products keep their inputs in 8 bits; attention needs its output in 16, too.
	c.FP8 = true
	require.EqualValues(t, (2+1+6+2+1+2+1+8+4)*sbh+4*a*s*b+stats(s*b), kept(&c, &e, &Storage{}, denseLayer...))
}

// Only the first layer of a group keeps its input.
func TestFootprintOfRecomputedGroups(t *testing.T) {
	c := Config{Layers: 4, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 512, Seq: 32, DType: dtype.BF16}
	e := Execution{Micro: 1, TP: 1, Recompute: FullLayers, RecomputeLayers: 3}
	for layer, want := range []int64{2 * 32 * 64, 0, 2 * 32 * 64} {
		n := units.Bytes(0)
		for _, m := range denseLayer {
			f := c.Footprint(&e, &Storage{RecomputeGroup: 2}, Pass{Module: m, Layer: layer})
			n += f.Kept - f.Again
		}
		require.EqualValues(t, want, n, layer)
	}
	require.Zero(t, c.Footprint(&e, &Storage{}, Pass{Module: FC1, Layer: 3}).Again)
	require.Zero(t, c.Footprint(&e, &Storage{}, Pass{Module: Output, Layer: -1}).Again)
}

// Bytes of one logit at the worst moment, and what the backward pass of the output layer has.
func TestFootprintOfTheLoss(t *testing.T) {
	c := Config{Layers: 1, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 1024, Seq: 32, DType: dtype.BF16}
	e := Execution{Micro: 2, TP: 2, GradFusion: true}
	own, all := units.Bytes(64*512), units.Bytes(64*1024)
	for loss, want := range map[LossKernel]units.Bytes{LossInPlace: 6 * own, LossCompiled: 10 * own, LossTE: 2 * own, LossTorch: 14*all + 2*own} {
		s := Storage{Loss: loss, KeptDummies: true}
		f := c.Footprint(&e, &s, Pass{Module: Loss})
		require.Equal(t, want, f.Kept+max(f.Forward, f.Backward), loss)
		made := own
		if loss == LossTorch {
			made += all
		}
		require.Equal(t, 2*made+2*64*64, c.Footprint(&e, &s, Pass{Module: Output}).Backward)
	}
	c.DType = dtype.FP32
	f := c.Footprint(&e, &Storage{}, Pass{Module: Loss})
	require.Equal(t, Footprint{Kept: 4 * own}, f)
}

// Without fusion, or with placeholders that are made anew, a weight's gradient exists for a moment.
func TestFootprintOfGradients(t *testing.T) {
	c := Config{Layers: 1, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 1024, Seq: 32, DType: dtype.BF16}
	for _, m := range []ModuleKind{QKV, Proj, FC2, Output} {
		e := Execution{Micro: 2, TP: 2, GradFusion: true}
		fused := c.Footprint(&e, &Storage{KeptDummies: true}, Pass{Module: m}).Backward
		anew := c.Footprint(&e, &Storage{}, Pass{Module: m}).Backward
		e.GradFusion = false
		require.Equal(t, anew, c.Footprint(&e, &Storage{KeptDummies: true}, Pass{Module: m}).Backward)
		elems := map[ModuleKind]units.Bytes{QKV: 96 * 64, Proj: 64 * 32, FC2: 64 * 128, Output: 512 * 64}[m]
		require.Equal(t, fused+2*elems, anew, m)
	}
}

// Experts keep the rows that they are sent: balanced, every rank as many as its tokens choose.
func TestFootprintOfExperts(t *testing.T) {
	c := Config{
		Layers: 1, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 1024, Seq: 32, DType: dtype.BF16, RMSNorm: true,
		Experts: 8, TopK: 2, ExpertFFN: 128, SharedFFN: 64, Gated: true,
	}
	e := Execution{Micro: 2, TP: 1, EP: 4}
	const tokens, rows = 64, 128
	for m, want := range map[ModuleKind]units.Bytes{
		MLPNorm:   2*2*tokens*64 + 4*tokens,
		Router:    (2 + 5) * tokens * 8,
		ExpertFC1: 2*rows*64 + 2*rows*256 + 8*rows,
		ExpertFC2: 2*rows*128 + 4*rows,
		SharedFC1: 2 * tokens * 128,
		SharedFC2: 2 * tokens * 64,
	} {
		require.Equal(t, want, c.Footprint(&e, &Storage{}, Pass{Module: m}).Kept, m)
	}
}

func TestFootprintOfGathers(t *testing.T) {
	c := Config{Layers: 1, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 1024, Seq: 32, DType: dtype.BF16}
	require.Zero(t, c.Gathered(&Execution{Micro: 2, TP: 2}))
	require.EqualValues(t, 2*64*64, c.Gathered(&Execution{Micro: 2, TP: 2, SP: true}))
	require.EqualValues(t, 2*2*64*32, c.Scores(&Execution{Micro: 2, TP: 2}))
}
