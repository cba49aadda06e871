package hw

import (
	"math"

	"distopt/core/units"
)

// fits lists every fitted curve with its samples. Parameters are scaled to about 1 to 1000: rates
// in TFLOP/s and TB/s, times in us.
func fits() []fit {
	var all []fit
	for _, g := range []struct {
		name   string
		fp8    bool
		passes string
		curve  *GEMMCurve
		bound  float64
	}{
		{"bf16 product", false, "fprop dgrad wgrad", &h200.BF16, 0.03},
		{"FP8 product, fast accumulation", true, "fprop", &h200.FP8Fast, 0.02},
		{"FP8 product, split accumulation", true, "dgrad wgrad", &h200.FP8Split, 0.03},
	} {
		all = append(all, fit{
			name: g.name, samples: products(g.fp8, g.passes), bound: g.bound,
			start:   []float64{900, 100, 0.5, 4, 4, 6, 3},
			current: func() []float64 { return fromGEMM(g.curve) },
		})
	}
	for b, name := range []string{"FlashAttention 2", "cuDNN attention"} {
		a := &h200.Attention[b]
		for d, dim := range []int64{64, 128} {
			for _, backward := range []bool{false, true} {
				curve, way := &a.Forward[d], " forward"
				if backward {
					curve, way = &a.Backward[d], " backward"
				}
				all = append(all, fit{
					name: name + way + map[int64]string{64: " 64", 128: " 128"}[dim], bound: 0.06,
					samples: attentions(Backend(b), dim, backward),
					start:   []float64{500, 400, 0.8, 5},
					current: func() []float64 { return fromFlash(curve) },
				})
			}
		}
	}
	for p := range NumPattern {
		if p == Scatter { // set by hand: few samples of two kinds of work
			continue
		}
		all = append(all, fit{
			name: "stream " + patternNames[p], samples: streams(p), bound: 0.10,
			start:   []float64{3, 3, 3},
			current: func() []float64 { return fromStream(&h200.Streams[p]) },
		})
	}
	for m, name := range []string{"Adam", "squared norm", "converting copy"} {
		all = append(all, fit{
			name: "multi-tensor " + name, samples: chunked(MultiTensor(m)), bound: 0.09,
			start:   []float64{4, 20, 3.5, 1},
			current: func() []float64 { return fromChunk(&h200.Multi[m]) },
		})
	}
	return all
}

func toGEMM(x []float64) *GEMMCurve {
	return &GEMMCurve{
		Rate: units.FLOPsPerSecond(x[0] * tflop), Prologue: x[1], WaveLoss: math.Min(x[2], 1), TileSide: x[3],
		Floor: units.Seconds(x[4] * 1e-6), Bandwidth: units.BytesPerSecond(x[5] * 1e12), Split: units.Seconds(x[6] * 1e-6),
	}
}

func fromGEMM(c *GEMMCurve) []float64 {
	return []float64{
		float64(c.Rate) / tflop, c.Prologue, c.WaveLoss, c.TileSide,
		float64(c.Floor) * 1e6, float64(c.Bandwidth) / 1e12, float64(c.Split) * 1e6,
	}
}

// products are the measured products. Of the two series the smaller time counts: rows where the
// clock still ramped up after a gap, or was held down by the power limit, are slower.
func products(fp8 bool, passes string) []sample {
	var all []sample
	for _, row := range measured().Gemm {
		if !containsWord(passes, row[0].(string)) {
			continue
		}
		at := 4
		p := Product{M: int64(row[1].(float64)), N: int64(row[2].(float64)), K: int64(row[3].(float64)), Operand: 2, Result: 2}
		if fp8 {
			at, p.Operand = 5, 1
		}
		ms := math.Inf(1)
		for _, i := range []int{at, at + 2} {
			if v, ok := row[i].(float64); ok {
				ms = min(ms, v)
			}
		}
		all = append(all, sample{ms*1e-3 - eventPair, func(x []float64) units.Seconds { return toGEMM(x).Time(p, h200.SMs) }})
	}
	return all
}

func containsWord(list, word string) bool {
	for i := 0; i+len(word) <= len(list); i++ {
		if list[i:i+len(word)] == word {
			return true
		}
	}
	return false
}

func toFlash(x []float64) *FlashCurve {
	return &FlashCurve{Rate: units.FLOPsPerSecond(x[0] * tflop), Half: x[1], Tail: x[2], Floor: units.Seconds(x[3] * 1e-6)}
}

func fromFlash(c *FlashCurve) []float64 {
	return []float64{float64(c.Rate) / tflop, c.Half, c.Tail, float64(c.Floor) * 1e6}
}

func attentions(b Backend, dim int64, backward bool) []sample {
	var all []sample
	for _, r := range measured().Attention {
		if r.HeadDim != dim {
			continue
		}
		ms := [2][2]float64{{r.FlashFwdMs, r.FlashBwdMs}, {r.CudnnFwdMs, r.CudnnBwdMs}}[b][0]
		if backward {
			ms = [2][2]float64{{r.FlashFwdMs, r.FlashBwdMs}, {r.CudnnFwdMs, r.CudnnBwdMs}}[b][1]
		}
		heads := r.Batch * r.Heads
		flops := FlashFLOPs(heads, r.Seq, dim, backward)
		all = append(all, sample{ms*1e-3 - eventPair, func(x []float64) units.Seconds {
			return toFlash(x).Time(flops, heads, r.Seq, h200.SMs)
		}})
	}
	return all
}

func toStream(x []float64) *StreamCurve {
	return &StreamCurve{Floor: units.Seconds(x[0] * 1e-6), Near: units.BytesPerSecond(x[1] * 1e12), Bandwidth: units.BytesPerSecond(x[2] * 1e12)}
}

func fromStream(c *StreamCurve) []float64 {
	return []float64{float64(c.Floor) * 1e6, float64(c.Near) / 1e12, float64(c.Bandwidth) / 1e12}
}

var patternNames = [NumPattern]string{
	"elementwise", "fill", "upcast", "norm forward", "RMS norm forward", "norm backward", "activation", "dropout",
	"column sum", "FP8 cast", "FP8 cast and transpose", "FP8 transpose", "softmax", "scatter",
}

// streams are the measured kernels of a pattern. Bytes count each operand once in and once out.
func streams(p Pattern) []sample {
	var all []sample
	add := func(ms, bytes float64) {
		if ms > 0 {
			all = append(all, sample{ms*1e-3 - eventPair, func(x []float64) units.Seconds {
				return toStream(x).Time(units.Bytes(bytes), h200.L2)
			}})
		}
	}
	cold := func(ms, bytes float64) {
		if !warm(bytes) {
			add(ms, bytes)
		}
	}
	for _, r := range measured().CopyD2d {
		switch p {
		case Elementwise:
			add(r.CopyMs, 2*r.Bytes)
		case Fill:
			add(r.ZeroMs, r.Bytes)
		}
	}
	for _, r := range measured().Elements {
		n := r["elements"]
		switch p {
		case Elementwise:
			cold(r["cast_fp32_bf16_ms"], 6*n)
			cold(r["accum_bf16_into_bf16_ms"], 6*n)
			cold(r["accum_fp32_into_fp32_ms"], 12*n)
		case Fill:
			cold(r["zero_fp32_ms"], 4*n)
		}
	}
	for _, r := range measured().Pointwise {
		n, wide := r["h"]*r["tokens"], 4*r["h"]*r["tokens"]
		gated := r["swiglu_ffn"] * r["tokens"]
		switch p {
		case Elementwise:
			add(r["residual_add_torch_ms"], 6*n)
			add(r["bias_add_residual_ms"], 6*n)
		case NormForward:
			add(r["layernorm_fwd_ms"], 4*n)
		case RMSNormForward:
			add(r["rmsnorm_fwd_ms"], 4*n)
		case NormBackward:
			add(r["layernorm_bwd_ms"], 6*n)
		case Activation:
			add(r["gelu_fwd_torch_ms"], 4*wide)
			add(r["gelu_bwd_torch_ms"], 6*wide)
			add(r["bias_gelu_fwd_ms"], 4*wide)
			add(r["bias_gelu_bwd_ms"], 6*wide)
			add(r["swiglu_fwd_ms"], 6*gated)
			add(r["swiglu_bwd_ms"], 10*gated)
		case Dropout: // two reads, one write, the mask
			add(r["bias_dropout_add_fwd_ms"], 7*n)
		case ColumnSum:
			add(r["bias_grad_colsum_ms"], 2*n)
		case CastFP8:
			add(r["fp8_cast_amax_ms"], 3*n)
		case CastTransposeFP8:
			add(r["fp8_cast_transpose_amax_ms"], 4*n)
		case TransposeFP8:
			add(r["fp8_transpose_ms"], 2*n)
		}
	}
	for _, r := range measured().Loss {
		n := r["tokens"] * r["vocab"]
		switch p {
		case Upcast:
			add(r["to_float_ms"], 6*n)
		case Softmax: // log-softmax in and out; backward in, out, and a zeroed gradient
			add(r["ce_fwd_ms"], 8*n)
			add(r["ce_bwd_ms"], 12*n)
		}
	}
	return all
}

// warm says that a kernel which is repeated on the same buffers runs from the L2 cache, as the
// series over sizes of elementwise, l2norm and the casts do; such samples are left out.
func warm(bytes float64) bool { return bytes > 1e6 && bytes < 100e6 }

func toChunk(x []float64) *ChunkCurve {
	return &ChunkCurve{
		Floor: units.Seconds(x[0] * 1e-6), Latency: units.Seconds(x[1] * 1e-6),
		Bandwidth: units.BytesPerSecond(x[2] * 1e12), Elements: x[3] * 1e12,
	}
}

func fromChunk(c *ChunkCurve) []float64 {
	return []float64{float64(c.Floor) * 1e6, float64(c.Latency) * 1e6, float64(c.Bandwidth) / 1e12, c.Elements / 1e12}
}

func chunked(m MultiTensor) []sample {
	var all []sample
	add := func(ms float64, tensors int, elems int64, bytes int64, perLaunch int) {
		all = append(all, sample{ms*1e-3 - eventPair, func(x []float64) units.Seconds {
			t, _ := toChunk(x).Time(tensors, units.Elems(elems), units.Bytes(bytes), perLaunch)
			return t
		}})
	}
	switch m {
	case AdamUpdate:
		for _, r := range measured().Adam {
			if r.Elements/int64(r.Tensors)%4 == 0 { // the others take the kernel's unaligned path
				perLaunch := 30
				if r.Kind == "remainders_bf16g" || r.Kind == "remainders_fp32g" {
					perLaunch = 24
				}
				add(r.Ms, r.Tensors, r.Elements, r.Elements*r.BytesPerElement, perLaunch)
			}
		}
	case SquaredNorm:
		for _, r := range measured().L2norm {
			size := int64(4)
			if r.Dtype == "bf16" {
				size = 2
			}
			if !warm(float64(r.Elements * size)) {
				add(r.Ms, 1, r.Elements, r.Elements*size, 0)
			}
		}
	case ConvertCopy:
		for _, r := range measured().Elements {
			n := int64(r["elements"])
			if !warm(float64(6 * n)) {
				add(r["maybe_cast_uint8_ms"], 1, n, 2*n, 0)
				add(r["maybe_cast_fp32_fp16_ms"], 1, n, 6*n, 0)
			}
		}
	}
	return all
}
