package dtype

import (
	"math"
	"sync"
)

// FP8 is a format of 8 bits. A tensor of either is stored and sent as U8.
type FP8 uint8

// The formats. E4M3 has no infinities and one NaN of each sign; E5M2 is fp16 without its low byte.
const (
	E4M3 FP8 = iota
	E5M2
)

// Overflow is what a conversion to FP8 does with values beyond the largest finite one and with NaN.
type Overflow uint8

// The conversions that the reference data hold.
const (
	// Saturate gives the largest finite value, also for infinity, and 0x7f for every NaN. It is the
	// conversion of CUDA and of every FP8 cast of Transformer Engine.
	Saturate Overflow = iota
	// NoSaturate is CUDA's other one: overflow is NaN in E4M3 and infinity in E5M2.
	NoSaturate
	// Torch is PyTorch's .to(): as NoSaturate, but a NaN keeps its sign.
	Torch
)

// fp8Layout holds the constants of a format.
type fp8Layout struct {
	mantissa int    // bits
	bias     int    // of the exponent
	max      uint32 // code of the largest finite value
	over     uint32 // code of an overflow that does not saturate
}

var fp8Layouts = [...]fp8Layout{
	E4M3: {mantissa: 3, bias: 7, max: 0x7e, over: 0x7f},
	E5M2: {mantissa: 2, bias: 15, max: 0x7b, over: 0x7c},
}

// String returns e4m3 or e5m2.
func (f FP8) String() string { return [...]string{"e4m3", "e5m2"}[f] }

// Max returns the largest finite value: 448 or 57344.
func (f FP8) Max() float32 { return f.Decode(uint8(fp8Layouts[f].max)) }

// Encode rounds x to nearest, ties to even, and saturates.
func (f FP8) Encode(x float32) uint8 { return f.codes()[index8(x)] }

// EncodeAll does that to all of src; dst is as long.
func (f FP8) EncodeAll(dst []uint8, src []float32) {
	table := f.codes()
	dst = dst[:len(src)]
	// WebAssembly pays more for the turn of a loop than for a conversion.
	for len(src) >= 8 && len(dst) >= 8 {
		d, s := (*[8]uint8)(dst), (*[8]float32)(src)
		d[0] = table[index8(s[0])]
		d[1] = table[index8(s[1])]
		d[2] = table[index8(s[2])]
		d[3] = table[index8(s[3])]
		d[4] = table[index8(s[4])]
		d[5] = table[index8(s[5])]
		d[6] = table[index8(s[6])]
		d[7] = table[index8(s[7])]
		dst, src = dst[8:], src[8:]
	}
	for i, x := range src {
		dst[i] = table[index8(x)]
	}
}

// EncodeScaled encodes every element times scale, rounded to fp32 first; dst is as long as src.
func (f FP8) EncodeScaled(dst []uint8, src []float32, scale float32) {
	table := f.codes()
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		d, s := (*[4]uint8)(dst), (*[4]float32)(src)
		d[0] = table[index8(float32(s[0]*scale))]
		d[1] = table[index8(float32(s[1]*scale))]
		d[2] = table[index8(float32(s[2]*scale))]
		d[3] = table[index8(float32(s[3]*scale))]
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		dst[i] = table[index8(float32(x*scale))]
	}
}

// EncodeAs rounds x to nearest, ties to even, and treats overflow and NaN as o says.
func (f FP8) EncodeAs(x float32, o Overflow) uint8 { return f.encode(math.Float32bits(x), o) }

// Decode returns the value of a code, exactly.
func (f FP8) Decode(code uint8) float32 { return f.values()[code] }

// DecodeScaled decodes all of src and multiplies by scaleInv, once rounded; dst is as long.
func (f FP8) DecodeScaled(dst []float32, src []uint8, scaleInv float32) {
	table := f.values()
	dst = dst[:len(src)]
	for i, code := range src {
		dst[i] = Canonical(float32(table[code] * scaleInv))
	}
}

// encode is the conversion in steps: shift the significand down to the format's last place at that
// magnitude, round, and put the exponent in front. A carry moves into the exponent by itself.
func (f FP8) encode(bits uint32, o Overflow) uint8 {
	l := &fp8Layouts[f]
	sign := uint8(bits >> 24 & 0x80)
	a := bits &^ signBit
	if a > infinity {
		if o == Torch {
			return sign | 0x7f
		}
		return 0x7f
	}
	exponent := int(a>>23) - 127
	least := 1 - l.bias // exponent of the smallest normal value
	shift := 23 - l.mantissa + max(0, least-exponent)
	if a>>23 == 0 || shift > 25 { // below half of the smallest value
		return sign
	}
	significand := a&0x7fffff | 0x800000
	code := significand >> shift
	dropped, half := significand&(1<<shift-1), uint32(1)<<(shift-1)
	if dropped > half || dropped == half && code&1 == 1 {
		code++
	}
	if exponent >= least {
		code += uint32(exponent+l.bias-1) << l.mantissa
	}
	if code > l.max {
		code = l.max
		if o != Saturate {
			code = l.over
		}
	}
	return sign | uint8(code)
}

// decode computes the value of a code; NaNs have the bits that PyTorch gives them on the GPU.
func (f FP8) decode(code uint8) float32 {
	l := &fp8Layouts[f]
	sign := uint32(code&0x80) << 24
	c := uint32(code & 0x7f)
	switch {
	case c <= l.max:
	case f == E4M3:
		return math.Float32frombits(sign | 0x7ff00000)
	case c == l.over:
		return math.Float32frombits(sign | infinity)
	default:
		return math.Float32frombits(sign | NaNBits)
	}
	x := float64(c&(1<<l.mantissa-1)) / float64(int(1)<<l.mantissa)
	exponent := int(c >> l.mantissa)
	if exponent > 0 {
		x++
	} else {
		exponent = 1
	}
	return math.Float32frombits(math.Float32bits(float32(math.Ldexp(x, exponent-l.bias))) | sign)
}

// index8 is what an fp32 value means to a conversion to 8 bits: its upper half, with the last bit
// set if any bit below is. FP8 keeps at most 3 bits after the leading one and looks at one more, so
// the last bit of the upper half serves only to break a tie.
func index8(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16(b>>16) | uint16((b&0xffff+0xffff)>>16)
}

// saturated holds the code for each index8, decoded the value of each code; they are made when they
// are first asked for, since most runs of the program never do.
var (
	tables    sync.Once
	saturated [2][1 << 16]uint8
	decoded   [2][1 << 8]float32
)

func (f FP8) codes() *[1 << 16]uint8 {
	tables.Do(makeTables)
	return &saturated[f]
}

func (f FP8) values() *[1 << 8]float32 {
	tables.Do(makeTables)
	return &decoded[f]
}

func makeTables() {
	for f := E4M3; f <= E5M2; f++ {
		for i := range saturated[f] {
			saturated[f][i] = f.encode(uint32(i)<<16, Saturate)
		}
		for code := range decoded[f] {
			decoded[f][code] = f.decode(uint8(code))
		}
	}
}
