package dtype

import "math"

// Float reports whether d is a floating-point format of its own; the bytes of FP8 are not.
func (d DType) Float() bool { return d == FP32 || d == FP16 || d == BF16 }

// Round returns the value of x after a conversion to the floating-point format d and back.
func (d DType) Round(x float32) float32 {
	switch d {
	case BF16:
		return RoundBF16(x)
	case FP16:
		return DecodeFP16(EncodeFP16(x))
	}
	return x
}

// RoundAll does that to every element.
func (d DType) RoundAll(x []float32) {
	switch d {
	case BF16:
		for len(x) >= 4 {
			v := (*[4]float32)(x)
			v[0], v[1], v[2], v[3] = RoundBF16(v[0]), RoundBF16(v[1]), RoundBF16(v[2]), RoundBF16(v[3])
			x = x[4:]
		}
		for i, v := range x {
			x[i] = RoundBF16(v)
		}
	case FP16:
		for i, v := range x {
			x[i] = DecodeFP16(EncodeFP16(v))
		}
	}
}

// Max returns the largest finite value of the floating-point format d.
func (d DType) Max() float32 {
	switch d {
	case BF16:
		return DecodeBF16(0x7f7f)
	case FP16:
		return DecodeFP16(0x7bff)
	}
	return math.MaxFloat32
}
