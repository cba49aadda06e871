package cost

import (
	"slices"

	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/units"
)

// torchLayer lists the kernels of the pre-norm GPT layer that was measured: PyTorch eager, bf16,
// no dropout, biases in the products. Two kernels are copies with a bad stride (0.43 and 1.03 TB/s
// in layer_burst): they are given the bytes that take as long at the full rate.
func torchLayer(h, heads, batch, seq int64, backend hw.Backend) (forward, backward []model.Kernel) {
	tokens := batch * seq
	memory := func(name string, p hw.Pattern, bytes int64) model.Kernel {
		return model.Kernel{Name: name, Kind: model.MemoryBound, Pattern: p, Bytes: units.Bytes(bytes), DType: dtype.BF16}
	}
	gemm := func(name string, m, n, k int64, grad bool) model.Kernel {
		return model.Kernel{Name: name, Kind: model.GEMM, M: m, N: n, K: k, Grad: grad, DType: dtype.BF16, FLOPs: units.FLOPs(2 * float64(m) * float64(n) * float64(k))}
	}
	flash := model.Kernel{Name: "attention", Kind: model.FlashForward, M: batch * heads, N: seq, K: h / heads, Backend: backend}
	flashBack := flash
	flashBack.Kind = model.FlashBackward
	n := tokens * h
	const strided, concatenate = 10, 4 // 4.3 TB/s over 0.43 and 1.03
	forward = []model.Kernel{
		memory("norm", hw.NormForward, 4*n),
		gemm("qkv", tokens, 3*h, h, false),
		flash,
		gemm("projection", tokens, h, h, false),
		memory("residual", hw.Elementwise, 6*n),
		memory("norm", hw.NormForward, 4*n),
		gemm("fc1", tokens, 4*h, h, false),
		memory("GELU", hw.Activation, 16*n),
		gemm("fc2", tokens, h, 4*h, false),
		memory("residual", hw.Elementwise, 6*n),
	}
	linear := func(name string, out, in int64) []model.Kernel {
		w := gemm(name+" weight gradient", out, in, tokens, true)
		w.Wgrad = true
		return []model.Kernel{
			gemm(name+" input gradient", tokens, in, out, true), w,
			memory(name+" bias gradient", hw.ColumnSum, 2*tokens*out),
		}
	}
	backward = append(backward, linear("fc2", h, 4*h)...)
	backward = append(backward, memory("GELU backward", hw.Activation, 24*n))
	backward = append(backward, linear("fc1", 4*h, h)...)
	backward = append(backward, memory("norm backward", hw.NormBackward, 6*n), memory("residual", hw.Elementwise, 6*n))
	backward = append(backward, linear("projection", h, h)...)
	backward = append(backward, memory("transpose", hw.Elementwise, strided*4*n),
		flashBack, memory("concatenate", hw.Elementwise, concatenate*12*n))
	backward = append(backward, linear("qkv", 3*h, h)...)
	backward = append(backward, memory("norm backward", hw.NormBackward, 6*n), memory("residual", hw.Elementwise, 6*n))
	return forward, backward
}

// torchStep lists the kernels of a whole step of such a model with tied embeddings, an fp32 loss
// and the distributed optimizer on one rank: bf16 remainders and contiguous buffers, or fp32 main
// parameters without them, which are converted together and copied one by one.
func torchStep(h, layers, heads, batch, seq, vocab, params int64, tensors int, remainders bool) map[string][]model.Kernel {
	tokens := batch * seq
	logits := tokens * vocab
	memory := func(name string, p hw.Pattern, bytes int64) model.Kernel {
		return model.Kernel{Name: name, Kind: model.MemoryBound, Pattern: p, Bytes: units.Bytes(bytes), DType: dtype.BF16}
	}
	product := func(name string, m, n, k int64, grad bool) model.Kernel {
		return model.Kernel{Name: name, Kind: model.GEMM, M: m, N: n, K: k, Grad: grad, DType: dtype.BF16}
	}
	f, b := torchLayer(h, heads, batch, seq, hw.FlashAttention2)
	repeat := func(list []model.Kernel) []model.Kernel {
		out := slices.Clone(list)
		for i := range out {
			out[i].Repeat = int(layers)
		}
		return out
	}
	n := tokens * h
	forward := append(repeat(f), memory("embedding", hw.Elementwise, 4*n), memory("norm", hw.NormForward, 4*n),
		product("logits", tokens, vocab, h, false), memory("to fp32", hw.Upcast, 6*logits), memory("cross entropy", hw.Softmax, 8*logits))
	backward := append(repeat(b),
		memory("cross entropy backward", hw.Softmax, 12*logits), memory("to bf16", hw.Elementwise, 6*logits),
		product("logits input gradient", tokens, h, vocab, true), product("logits weight gradient", vocab, h, tokens, true),
		memory("norm backward", hw.NormBackward, 6*n),
		memory("clear embedding gradient", hw.Fill, 2*vocab*h), memory("embedding gradient", hw.Scatter, 2*n),
		memory("tied gradient", hw.Elementwise, 6*vocab*h),
		memory("gradients into buckets", hw.Elementwise, 6*params))
	clip := []model.Kernel{{Name: "norm", Kind: model.MultiTensor, Multi: hw.SquaredNorm, Tensors: tensors, Elems: units.Elems(params), Bytes: units.Bytes(2 * params)}}
	adam := model.Kernel{
		Name: "Adam", Kind: model.MultiTensor, Multi: hw.AdamUpdate, Tensors: tensors, Elems: units.Elems(params),
		Bytes: units.Bytes(28 * params), PerLaunch: 30,
	}
	step := []model.Kernel{adam}
	if remainders {
		step[0].Bytes, step[0].PerLaunch = units.Bytes(26*params), 24
	} else {
		each := params / int64(tensors)
		step = append(step,
			model.Kernel{Name: "to bf16", Kind: model.MultiTensor, Multi: hw.ConvertCopy, Tensors: tensors, Elems: units.Elems(params), Bytes: units.Bytes(6 * params)},
			model.Kernel{Name: "copy parameter", Kind: model.MultiTensor, Multi: hw.ConvertCopy, Tensors: 1, Elems: units.Elems(each), Bytes: units.Bytes(4 * each), Repeat: tensors})
	}
	return map[string][]model.Kernel{"fwd": forward, "bwd": backward, "clip": clip, "step": step}
}
