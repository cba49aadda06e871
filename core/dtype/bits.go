package dtype

import "math"

// NaNBits is the fp32 NaN that arithmetic on the GPU gives. The CPU's own differ between targets, so
// whatever ends in a result is brought to this one.
const NaNBits = 0x7fffffff

const (
	signBit  = 0x80000000
	infinity = 0x7f800000 // fp32 bits; larger magnitudes are NaNs
)

var nan = math.Float32frombits(NaNBits)

// Canonical returns x, or the GPU's NaN for any NaN.
func Canonical(x float32) float32 {
	if x != x {
		return nan
	}
	return x
}

// CanonicalAll does that to every element.
func CanonicalAll(x []float32) {
	for i, v := range x {
		if v != v {
			x[i] = nan
		}
	}
}

// Split divides the bits of an fp32 main parameter into a bf16 parameter and a 16-bit remainder,
// which Join takes back to the same bits. The parameter is rounded to nearest with ties away from
// zero, not to even; large values may show as infinity and NaNs as infinity or zero there.
func Split(main uint32) (param, remainder uint16) {
	remainder = uint16(main)
	return uint16(main>>16) + remainder>>15, remainder
}

// Join returns the fp32 main parameter that a bf16 parameter and its remainder encode.
func Join(param, remainder uint16) (main uint32) {
	return uint32(param-remainder>>15)<<16 | uint32(remainder)
}
