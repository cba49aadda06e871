package model

import "distopt/core/hw"

// The products with weights, and what Transformer Engine puts around them.

// linearForward is a product with a weight of out rows. Weights that are not stored in FP8 are
// cast in the first microbatch, not again when it is recomputed; each microbatch bears its part.
func (l *lister) linearForward(name string, out, in int64) {
	l.castWeight(name, out, in)
	l.product(Kernel{Name: name, M: l.tokens, N: out, K: in, FP8: l.c.FP8})
}

// castWeight makes a weight an operand of a product.
func (l *lister) castWeight(name string, out, in int64) {
	if l.c.FP8 && !l.c.FP8Params && l.prefix == "" {
		stored := l.word
		if l.e.Autocast {
			stored = 4
		}
		l.memory(name+" weight to FP8", hw.CastTransposeFP8, (stored+2)*out*in/max(l.e.Microbatches, 1))
	}
	if !l.c.FP8 {
		l.autocast(name, out, in)
	}
}

// autocast casts a weight for a product; the backward pass has kept the result.
func (l *lister) autocast(name string, out, in int64) {
	if l.e.Autocast {
		l.memory(name+" weight to 16 bits", hw.Elementwise, (4+l.word)*out*in)
	}
}

// rowForward is a product whose input is cut along K: its result is summed over the ranks, then
// bias, dropout and the residual are added.
func (l *lister) rowForward(name string, in int64) {
	l.rowProduct(name, in)
	l.residual()
}

// residual adds bias, dropout and the residual.
func (l *lister) residual() {
	if l.e.Dropout {
		l.memory("bias, dropout, residual", hw.Dropout, (3*l.word+1)*l.own*l.c.Hidden)
	} else {
		l.memory("bias, residual", hw.Elementwise, 3*l.word*l.own*l.c.Hidden)
	}
}

func (l *lister) residualBackward() {
	if l.e.Dropout {
		l.memory("dropout backward", hw.Elementwise, (2*l.word+1)*l.own*l.c.Hidden)
	}
}

func (l *lister) rowProduct(name string, in int64) {
	h := l.c.Hidden
	switch {
	case l.c.FP8 && l.sp:
		l.memory(name+" input to FP8", hw.CastFP8, (l.word+1)*l.tokens*in)
	case l.c.FP8:
		l.memory(name+" input to FP8", hw.CastTransposeFP8, (l.word+2)*l.tokens*in)
	}
	if l.overlap() {
		l.comm(name, l.word*l.tokens*h, l.sum()).Beside = true
	}
	l.linearForward(name, h, in)
	if l.tp > 1 && !l.overlap() {
		l.comm(name, l.word*l.tokens*h, l.sum())
	}
}

// rowBackward is its backward pass. With SP the gradient is cast before it is gathered.
func (l *lister) rowBackward(name string, in int64) {
	l.residualBackward()
	if l.c.Bias {
		l.memory(name+" bias gradient", hw.ColumnSum, l.word*l.own*l.c.Hidden)
	}
	l.rowGradients(name, in)
}

func (l *lister) rowGradients(name string, in int64) {
	h := l.c.Hidden
	switch {
	case l.c.FP8 && l.sp:
		l.memory(name+" gradient to FP8", hw.CastFP8, (l.word+1)*l.own*h)
		l.gather(name+" gradient", l.tokens*h).Beside = l.overlap()
		l.memory(name+" gradient transpose", hw.TransposeFP8, 2*l.tokens*h)
	case l.c.FP8:
		l.memory(name+" gradient to FP8", hw.CastTransposeFP8, (l.word+2)*l.tokens*h)
	default:
		l.gather(name+" gradient", l.word*l.tokens*h).Beside = l.overlap()
	}
	l.product(Kernel{Name: name + " input gradient", M: l.tokens, N: in, K: h, FP8: l.c.FP8, Grad: true})
	if l.c.FP8 && l.sp {
		l.memory(name+" input transpose", hw.TransposeFP8, 2*l.tokens*in)
	}
	l.wgrad(name, h, in, l.c.FP8 && !l.e.BF16Wgrad)
}

// columnBackward is the backward pass of norm and projection: the input is gathered again beside
// the input gradient, which is summed beside the weight gradient.
func (l *lister) columnBackward(name string, out int64, bias bool) {
	if bias {
		l.memory(name+" bias gradient", hw.ColumnSum, l.word*l.tokens*out)
	}
	l.columnGradients(name, out)
	l.normBackward()
}

// normBackward is the gradient of a norm, and of the residual around what follows it.
func (l *lister) normBackward() {
	l.memory("norm backward", hw.NormBackward, 3*l.word*l.own*l.c.Hidden)
	l.memory("residual gradient", hw.Elementwise, 3*l.word*l.own*l.c.Hidden)
}

func (l *lister) columnGradients(name string, out int64) {
	h := l.c.Hidden
	if l.c.FP8 {
		l.memory(name+" gradient to FP8", hw.CastTransposeFP8, (l.word+2)*l.tokens*out)
	}
	l.gather(name+" input", l.norm*l.tokens*h).Beside = true
	l.product(Kernel{Name: name + " input gradient", M: l.tokens, N: h, K: out, FP8: l.c.FP8, Grad: true})
	if l.c.FP8 {
		l.memory(name+" input transpose", hw.TransposeFP8, 2*l.tokens*h)
	}
	if l.tp > 1 {
		l.comm(name+" input gradient", l.word*l.tokens*h, l.sum()).Beside = true
	}
	l.wgrad(name, out, h, l.c.FP8 && !l.e.BF16Wgrad)
}

func (l *lister) wgrad(name string, out, in int64, fp8 bool) {
	l.weightGradient(Kernel{Name: name, M: out, N: in, K: l.tokens, FP8: fp8})
}

func (l *lister) weightGradient(k Kernel) {
	k.Name += " weight gradient"
	k.Grad, k.Wgrad = true, true
	if l.e.GradFusion {
		k.Add, k.DType = true, l.e.GradDType
	} else {
		k.DType = l.c.DType
	}
	l.product(k)
}
