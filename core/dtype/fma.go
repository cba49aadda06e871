package dtype

import "math"

// FMA returns x*y + z rounded once, in fp32, with the bits that every IEEE unit gives.
//
// The product of two fp32 values is exact in float64. The sum there may be inexact, and rounding it
// again would be wrong where it lies half way between two fp32 values: then the part that it lost
// decides, and the rare exact way is taken. So it is where the result is subnormal, since those lie
// half way elsewhere.
func FMA(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := float64(p) + float64(z)
	if Unsure(s) {
		return roundOdd(p, float64(z), s)
	}
	return float32(s)
}

const (
	belowFP32   = 1<<29 - 1 // the bits of a float64 below the last place of fp32
	halfFP32    = 1 << 28
	leastNormal = (1023 - 126) << 52 // 2^-126
)

// Unsure reports whether rounding s to fp32 could differ from rounding the exact sum that s stands
// for. Inner loops ask it, and call FMA where it does, which hardly ever happens.
func Unsure(s float64) bool {
	b := math.Float64bits(s)
	return b&belowFP32 == halfFP32 || b&^(1<<63)-1 < leastNormal-1
}

// AnyHalfWay and AnySubnormal ask that of four sums at once: unsure is where either says so.
func AnyHalfWay(s1, s2, s3, s4 float64) bool {
	b1, b2, b3, b4 := math.Float64bits(s1), math.Float64bits(s2), math.Float64bits(s3), math.Float64bits(s4)
	return min(b1&belowFP32^halfFP32, b2&belowFP32^halfFP32, b3&belowFP32^halfFP32, b4&belowFP32^halfFP32) == 0
}

// AnySubnormal: see AnyHalfWay.
func AnySubnormal(s1, s2, s3, s4 float64) bool {
	b1, b2, b3, b4 := math.Float64bits(s1), math.Float64bits(s2), math.Float64bits(s3), math.Float64bits(s4)
	return min(b1&^(1<<63)-1, b2&^(1<<63)-1, b3&^(1<<63)-1, b4&^(1<<63)-1) < leastNormal-1
}

// roundOdd returns the exact sum of p and c as fp32, where s is their float64 sum. An inexact s whose
// last bit is 0 moves one place towards the exact sum: with an odd last bit no later rounding to
// fewer bits can mistake it for a tie.
func roundOdd(p, c, s float64) float32 {
	// Two-sum: the error of s, exactly.
	q := s - p
	e := (p - (s - q)) + (c - q)
	if b := math.Float64bits(s); e != 0 && b&1 == 0 {
		if (e > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return float32(s)
}
