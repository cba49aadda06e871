package optim

import (
	"math"

	"distopt/core/dtype"
)

// Rescale divides x by a scale that brings its largest magnitude to half of the largest value of
// the 16-bit format d, and returns the scale: x times it is the true value again. Rounding to d is
// left to the caller. Zeros get scale 0. A NaN or infinity makes the scale one, and then every
// element NaN: infinity times the reciprocal 0, or any value times a NaN's.
//
// With bf16 the half of the largest value is so large that small tensors get subnormal scales, whose
// reciprocal is infinite: 0 becomes NaN. The real code has that defect too.
func Rescale(x []float32, d dtype.DType) (scale float32) {
	largest := float32(0)
	for _, v := range x {
		if v < 0 {
			v = -v
		}
		if v > largest || v != v {
			largest = v
		}
		if v != v {
			break
		}
	}
	scale = dtype.Canonical(largest / float32(float64(d.Max())/2))
	inverse := float32(0)
	if scale > 0 {
		inverse = 1 / scale
	}
	Unscale(x, inverse)
	return scale
}

// Unscale multiplies x by scale.
func Unscale(x []float32, scale float32) {
	for i, v := range x {
		x[i] = dtype.Canonical(float32(v * scale))
	}
}

// DelayedScaling is Transformer Engine's recipe for the scales of FP8 tensors.
type DelayedScaling struct {
	History    int  // amaxes that are kept, one for each forward pass
	MostRecent bool // take the newest amax instead of the largest
	Margin     int  // the scale is divided by 2^Margin
}

// FP8Meta are the scales of one FP8 weight on one rank.
type FP8Meta struct {
	Scale    float32   // for the next cast
	ScaleInv float32   // of the bytes that the weight holds now
	Amax     []float32 // largest magnitudes, that of the last cast first
}

// NewFP8Meta is that of a weight as it is created: cast with scale 1.
func NewFP8Meta(r DelayedScaling) FP8Meta {
	return FP8Meta{Scale: 1, ScaleInv: 1, Amax: make([]float32, max(r.History, 1))}
}

// Forward is what every forward pass begins with: the scale follows the amaxes written so far, then
// the history moves on by one and its first entry is free. An amax of 0, infinity or NaN leaves the
// scale as it is; a tiny one makes it infinite.
func (m *FP8Meta) Forward(r DelayedScaling) {
	amax := m.Amax[0]
	if !r.MostRecent {
		for _, a := range m.Amax[1:] {
			if a > amax || a != a {
				amax = a
			}
		}
	}
	if amax > 0 && amax <= math.MaxFloat32 {
		// The quotient is a reciprocal and a product there: two roundings.
		m.Scale = float32(1/amax) * dtype.E4M3.Max() / float32(math.Ldexp(1, r.Margin))
	}
	first := m.Amax[0]
	copy(m.Amax, m.Amax[1:])
	m.Amax[len(m.Amax)-1] = first
	m.Amax[0] = 0
}

// Cast encodes x with the delayed scale and records its largest magnitude; NaNs do not count.
func (m *FP8Meta) Cast(dst []uint8, x []float32) {
	amax := m.Amax[0]
	for _, v := range x {
		if v < 0 {
			v = -v
		}
		if v > amax {
			amax = v
		}
	}
	m.Amax[0] = amax
	dtype.E4M3.EncodeScaled(dst, x, m.Scale)
}
