package optim

import (
	"math"

	"distopt/core/dtype"
)

// AdamArgs are the arguments of Adam for one parameter group.
type AdamArgs struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64

	BiasCorrection bool
	// L2 adds the decay to the gradient (adam_w_mode false) instead of the update.
	L2 bool
}

// Adam is the element update of one step: everything a kernel is given, rounded to fp32 once.
//
// Each operation below rounds once, as the kernel's does when it is compiled for IEEE arithmetic
// without contraction. The production build uses fast math (approximate division and root,
// subnormals flushed to zero) and differs in some elements by a last place of the update.
type Adam struct {
	LR, Beta1, Beta2, Eps, WeightDecay float32

	Correction1, Correction2 float32 // of the bias of m and v; 1: none
	GradScale                float32
	L2                       bool
}

// Kernel returns the update of a step, 1 in the first one.
func (a AdamArgs) Kernel(step int, gradScale float32) Adam {
	k := Adam{
		LR: float32(a.LR), Beta1: float32(a.Beta1), Beta2: float32(a.Beta2), Eps: float32(a.Eps),
		WeightDecay: float32(a.WeightDecay), Correction1: 1, Correction2: 1, GradScale: gradScale, L2: a.L2,
	}
	if a.BiasCorrection {
		k.Correction1 = biasCorrection(k.Beta1, step)
		k.Correction2 = biasCorrection(k.Beta2, step)
	}
	return k
}

// Update takes one step with gradients g: p, m and v are replaced. Where they are stored in 16 bits
// they hold widened values, and so do results until the caller stores them, rounding; stored is
// that format, in which the step of p is rounded before it is subtracted.
func (a *Adam) Update(p, m, v, g []float32, stored dtype.DType) {
	var steps [256]float32
	for len(g) > 0 {
		n := min(len(g), len(steps))
		a.moments(steps[:n], p[:n], m[:n], v[:n], g[:n])
		stored.RoundAll(steps[:n])
		subtract(p[:n], m[:n], v[:n], steps[:n])
		p, m, v, g = p[n:], m[n:], v[n:], g[n:]
	}
}

// moments updates m and v and computes by how much p is to shrink. A moment is the kernel's
// lerp(beta, x, y) = fma(beta, y, fma(-beta, x, x)), in float64 as dtype.FMA does it: the four sums of
// an element are looked at together, and the rare one that needs more than that is done again.
func (a *Adam) moments(steps, p, m, v, g []float32) {
	n := len(g)
	steps, p, m, v = steps[:n], p[:n], m[:n], v[:n]
	beta1, beta2 := float64(a.Beta1), float64(a.Beta2)
	for i := range g {
		scaled := float32(g[i] * a.GradScale)
		decay := float32(a.WeightDecay * p[i])
		if a.L2 {
			scaled += decay
			decay = 0
		}
		square := float32(scaled * scaled)
		x, y := float64(scaled), float64(square)
		s1 := x - float64(beta1*x)
		s2 := y - float64(beta2*y)
		s3 := float64(beta1*float64(m[i])) + float64(float32(s1))
		s4 := float64(beta2*float64(v[i])) + float64(float32(s2))
		m1, v1 := float32(s3), float32(s4)
		if dtype.AnyHalfWay(s1, s2, s3, s4) || dtype.AnySubnormal(s1, s2, s3, s4) {
			m1, v1 = lerp(a.Beta1, scaled, m[i]), lerp(a.Beta2, square, v[i])
		}
		m[i], v[i] = m1, v1
		root := float32(math.Sqrt(float64(float32(v1 / a.Correction2))))
		update := float32(m1/a.Correction1) / float32(root+a.Eps)
		if !a.L2 {
			update += decay
		}
		steps[i] = float32(a.LR * update)
	}
}

// lerp is (1-t)x + ty in two multiply-adds, each rounded once.
func lerp(t, x, y float32) float32 { return dtype.FMA(t, y, dtype.FMA(-t, x, x)) }

// subtract ends the update. A NaN anywhere has reached p by now: it gets the GPU's bits.
func subtract(p, m, v, steps []float32) {
	n := len(p)
	m, v, steps = m[:n], v[:n], steps[:n]
	for i, x := range p {
		x -= steps[i]
		p[i] = x
		if x != x {
			p[i], m[i], v[i] = dtype.Canonical(x), dtype.Canonical(m[i]), dtype.Canonical(v[i])
		}
	}
}

// biasCorrection is 1 - beta^step, the power and the difference in float64, rounded to fp32.
func biasCorrection(beta float32, step int) float32 {
	return float32(1 - power(float64(beta), step))
}

// power returns x^n rounded once (but for ties beyond twice the precision): it squares and
// multiplies pairs of float64 values, of which the second holds what the first lost.
func power(x float64, n int) float64 {
	hi, lo := 1.0, 0.0
	squareHi, squareLo := x, 0.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			hi, lo = multiply(hi, lo, squareHi, squareLo)
		}
		squareHi, squareLo = multiply(squareHi, squareLo, squareHi, squareLo)
	}
	return hi + lo
}

// multiply returns the product of two pairs, to about 2^-102 of it.
func multiply(aHi, aLo, bHi, bLo float64) (hi, lo float64) {
	p := float64(aHi * bHi)
	e := math.FMA(aHi, bHi, -p)
	e += float64(aHi*bLo) + float64(aLo*bHi)
	hi = p + e
	return hi, e - (hi - p)
}
