package dtype

import "math"

// Format is a floating-point format as one looks at it: codes, values, neighbours.
type Format struct {
	Name               string
	Exponent, Mantissa int // bits beside the sign
	encode             func(x float32) uint32
	decode             func(code uint32) float32
	max                uint32 // code of the largest finite value
}

// Formats are all of them, the widest first.
var Formats = []Format{
	{"fp32", 8, 23, math.Float32bits, math.Float32frombits, 0x7f7fffff},
	{"bf16", 8, 7, func(x float32) uint32 { return uint32(EncodeBF16(x)) }, func(c uint32) float32 { return DecodeBF16(uint16(c)) }, 0x7f7f},
	{"fp16", 5, 10, func(x float32) uint32 { return uint32(EncodeFP16(x)) }, func(c uint32) float32 { return DecodeFP16(uint16(c)) }, 0x7bff},
	{"e4m3", 4, 3, func(x float32) uint32 { return uint32(E4M3.Encode(x)) }, func(c uint32) float32 { return E4M3.Decode(uint8(c)) }, 0x7e},
	{"e5m2", 5, 2, func(x float32) uint32 { return uint32(E5M2.Encode(x)) }, func(c uint32) float32 { return E5M2.Decode(uint8(c)) }, 0x7b},
}

// Bits returns the size of a code.
func (f Format) Bits() int { return 1 + f.Exponent + f.Mantissa }

// Encode rounds x to a code: FP8 saturates.
func (f Format) Encode(x float32) uint32 { return f.encode(x) }

// Decode returns the value of a code.
func (f Format) Decode(code uint32) float32 { return f.decode(code) }

// Max returns the largest finite value.
func (f Format) Max() float32 { return f.decode(f.max) }

// Neighbours returns the finite values of the format on both sides of x, without x itself; beyond the
// largest one there is only that one. NaN has none: it gets itself.
func (f Format) Neighbours(x float32) (below, above float32) {
	if x != x {
		return x, x
	}
	limit := f.Max()
	if x > limit || x < -limit {
		limit = float32(math.Copysign(float64(limit), float64(x)))
		return limit, limit
	}
	nearest := f.decode(f.encode(x))
	below, above = nearest, nearest
	if below >= x {
		below = f.next(nearest, -1)
	}
	if above <= x {
		above = f.next(nearest, 1)
	}
	return below, above
}

// next returns the finite value one step from x in a direction, x at the end.
func (f Format) next(x float32, direction int) float32 {
	sign := uint32(1) << (f.Bits() - 1)
	code := f.encode(x)
	magnitude := int64(code &^ sign)
	if code&sign != 0 {
		magnitude = -magnitude
	}
	magnitude = min(max(magnitude+int64(direction), -int64(f.max)), int64(f.max))
	if magnitude < 0 {
		return f.decode(uint32(-magnitude) | sign)
	}
	return f.decode(uint32(magnitude))
}
