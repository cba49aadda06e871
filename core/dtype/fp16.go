package dtype

import "math"

// fp16Step tells for each exponent field of fp32 how far a significand is shifted to the last place
// of fp16 at that magnitude, and what is added to it then: the exponent, less the leading one, which
// adds itself. Shifted by 31 nothing is left: magnitudes below a quarter of the smallest subnormal,
// and those that overflow.
var fp16Step [256]struct {
	shift uint8
	base  uint16
}

func init() {
	for field := range fp16Step {
		step := &fp16Step[field]
		switch e := field - 127; {
		case e < -26:
			step.shift = 31
		case e < -14: // subnormal
			step.shift = uint8(13 - 14 - e)
		case e <= 15:
			step.shift, step.base = 13, uint16(e+14)<<10
		default:
			step.shift, step.base = 31, 0x7c00
		}
	}
}

// EncodeFP16 rounds x to fp16: to nearest, ties to even, with gradual underflow, overflow to
// infinity. Every NaN becomes 0x7fff, as on the GPU.
func EncodeFP16(x float32) uint16 {
	b := math.Float32bits(x)
	step := &fp16Step[b>>23&0xff]
	shift := step.shift & 31
	significand := b&0x7fffff | 0x800000
	half := uint32(1) << shift >> 1
	rounded := (significand + half - 1 + significand>>shift&1) >> shift
	code := b>>16&0x8000 | uint32(step.base) + rounded
	if b&^signBit > infinity {
		code = 0x7fff
	}
	return uint16(code)
}

// DecodeFP16 returns the value of an fp16 code, exactly.
func DecodeFP16(code uint16) float32 {
	b := uint32(code&0x7fff) << 13
	// Its exponent is 112 too small, that of a subnormal too.
	value := math.Float32bits(math.Float32frombits(b) * 0x1p112)
	if b >= 0x7c00<<13 {
		value = b | infinity
	}
	return math.Float32frombits(value | uint32(code&0x8000)<<16)
}

// EncodeFP16s rounds all of src into dst, which is as long.
func EncodeFP16s(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		d, s := (*[4]uint16)(dst), (*[4]float32)(src)
		d[0], d[1], d[2], d[3] = EncodeFP16(s[0]), EncodeFP16(s[1]), EncodeFP16(s[2]), EncodeFP16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		dst[i] = EncodeFP16(x)
	}
}

// DecodeFP16s widens all of src into dst, which is as long.
func DecodeFP16s(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0], d[1], d[2], d[3] = DecodeFP16(s[0]), DecodeFP16(s[1]), DecodeFP16(s[2]), DecodeFP16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, code := range src {
		dst[i] = DecodeFP16(code)
	}
}
