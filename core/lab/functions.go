package lab

import "math"

// exp, log and tanh of fp32 numbers, computed in float64 with every operation rounded by itself and
// rounded to fp32 at the end: at most one fp32 value away from the nearest one, and the same bits
// on every machine.

const (
	ln2High = 0.693147180369123816490    // ln 2 in 32 bits: its products with small integers are exact
	ln2Low  = 1.90821492927058770002e-10 // the rest
)

// inverseFactorials are 1/n!.
var inverseFactorials = [12]float64{
	1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
	1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
}

// exponential returns e^x in float64 for |x| up to 700.
func exponential(x float64) float64 {
	k := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := (x - float64(k*ln2High)) - float64(k*ln2Low) // |r| <= ln 2 / 2
	p := inverseFactorials[len(inverseFactorials)-1]
	for n := len(inverseFactorials) - 2; n >= 0; n-- { // Taylor: the next term is below 2^-48
		p = inverseFactorials[n] + float64(r*p)
	}
	return p * math.Float64frombits(uint64(int64(k)+1023)<<52)
}

// exp returns e^x.
func exp(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > 89:
		return float32(math.Inf(1))
	case x < -104:
		return 0
	}
	return float32(exponential(float64(x)))
}

// odd are the coefficients of artanh.
var odd = [11]float64{1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21}

// log returns the natural logarithm of x.
func log(x float32) float32 {
	switch {
	case x != x || x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	}
	b := math.Float64bits(float64(x)) // normal in float64, also for a subnormal x
	k := int64(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		k++
	}
	// ln m = 2 artanh s: |s| < 0.172.
	s := (m - 1) / (m + 1)
	square := s * s
	sum := 0.0
	for n := len(odd) - 1; n >= 0; n-- {
		sum = odd[n] + float64(square*sum)
	}
	return float32(float64(float64(k)*ln2High) + (float64(2*float64(s*sum)) + float64(float64(k)*ln2Low)))
}

// tanh returns the hyperbolic tangent of x.
func tanh(x float32) float32 {
	y := float64(x)
	switch {
	case x != x:
		return x
	case x > 10:
		return 1
	case x < -10:
		return -1
	case -0.01 < y && y < 0.01: // the difference below would lose bits
		square := float64(y * y)
		return float32(y - float64(float64(y*square)*(1.0/3-float64(square*(2.0/15)))))
	}
	e := exponential(2 * y)
	return float32((e - 1) / (e + 1))
}

// sqrt is IEEE's: rounded once.
func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }
