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
	if b := math.Float64bits(s); b&halfMask == half || b&^(1<<63)-1 < leastNormal-1 {
		return roundOdd(p, float64(z), s)
	}
	return float32(s)
}

// Bits of a float64 below the last place of an fp32 value.
const (
	halfMask    = 1<<29 - 1
	half        = 1 << 28
	leastNormal = (1023 - 126) << 52 // 2^-126
)

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
