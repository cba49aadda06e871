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

// Overflows reports whether x lies so far beyond the largest finite value that it does not round to it:
// further than half a step, or that far if the tie goes to the even code beyond. NaN does not.
func (f Format) Overflows(x float32) bool {
	limit := float64(f.Max())
	beyond := math.Abs(float64(x)) - limit
	half := (limit - f.next(f.max, -1)) / 2
	return beyond > half || beyond == half && f.max&1 == 1
}

// Neighbours returns the finite values of the format next to x on both sides, without x itself;
// an infinity where there is none. NaN gets itself.
func (f Format) Neighbours(x float64) (below, above float64) {
	limit := float64(f.Max())
	switch {
	case x != x:
		return x, x
	case x > limit:
		return limit, math.Inf(1)
	case x < -limit:
		return math.Inf(-1), -limit
	}
	// What x rounds to, by way of fp32, is x or next to it.
	code := f.encode(float32(x))
	nearest := float64(f.decode(code))
	below, above = nearest, nearest
	if below >= x {
		below = f.next(code, -1)
	}
	if above <= x {
		above = f.next(code, 1)
	}
	return below, above
}

// next returns the value one step from a finite one in a direction, an infinity beyond the last.
func (f Format) next(code uint32, direction int) float64 {
	sign := uint32(1) << (f.Bits() - 1)
	magnitude := int64(code &^ sign)
	if code&sign != 0 {
		magnitude = -magnitude
	}
	magnitude += int64(direction)
	switch {
	case max(magnitude, -magnitude) > int64(f.max):
		return math.Inf(direction)
	case magnitude < 0:
		return float64(f.decode(uint32(-magnitude) | sign))
	}
	return float64(f.decode(uint32(magnitude)))
}
