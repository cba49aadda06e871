package dtype

import "math"

// EncodeBF16 rounds x to bf16: to nearest, ties to even, overflow to infinity. Every NaN becomes
// 0x7fff, as on the GPU (a host writes 0x7fc0).
func EncodeBF16(x float32) uint16 {
	b := math.Float32bits(x)
	code := (b + 0x7fff + b>>16&1) >> 16
	if b&^signBit > infinity {
		code = 0x7fff
	}
	return uint16(code)
}

// DecodeBF16 returns the value of a bf16 code, exactly.
func DecodeBF16(code uint16) float32 { return math.Float32frombits(uint32(code) << 16) }

// RoundBF16 is the value of x after a conversion to bf16 and back.
func RoundBF16(x float32) float32 {
	b := math.Float32bits(x)
	rounded := (b + 0x7fff + b>>16&1) &^ 0xffff
	if b&^signBit > infinity {
		rounded = 0x7fff0000
	}
	return math.Float32frombits(rounded)
}

// EncodeBF16s rounds all of src into dst, which is as long.
func EncodeBF16s(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		d, s := (*[4]uint16)(dst), (*[4]float32)(src)
		d[0], d[1], d[2], d[3] = EncodeBF16(s[0]), EncodeBF16(s[1]), EncodeBF16(s[2]), EncodeBF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		dst[i] = EncodeBF16(x)
	}
}

// DecodeBF16s widens all of src into dst, which is as long.
func DecodeBF16s(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0], d[1], d[2], d[3] = DecodeBF16(s[0]), DecodeBF16(s[1]), DecodeBF16(s[2]), DecodeBF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, code := range src {
		dst[i] = DecodeBF16(code)
	}
}
