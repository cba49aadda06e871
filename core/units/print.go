package units

import (
	"math"
	"strconv"
	"strings"
)

// Numbers are written one way in every locale: decimal point, thousands comma, a thin gap before
// the unit, a real minus sign.
const (
	Gap   = "\u202f"
	Minus = "−"
)

// Count writes a whole number with thousands separated: 52,428,800.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = Minus, digits[1:]
	}
	return sign + group(digits)
}

// group separates thousands in a string of digits.
func group(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Fixed writes x with a number of decimals and thousands separated. What rounds to nothing has no
// sign; an infinity or NaN is written as a dash.
func Fixed(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	sign := ""
	if x < 0 && strings.Trim(digits, "0.") != "" {
		sign = Minus
	}
	whole, fraction, found := strings.Cut(digits, ".")
	if found {
		fraction = "." + fraction
	}
	return sign + group(whole) + fraction
}

// Signed is Fixed with a plus sign for what is not negative.
func Signed(x float64, decimals int) string {
	s := Fixed(x, decimals)
	if strings.HasPrefix(s, Minus) {
		return s
	}
	return "+" + s
}

// Milliseconds writes a length in nanoseconds: ms with one decimal, µs below 0.1 ms.
func Milliseconds(ns int64) string {
	if -100_000 < ns && ns < 100_000 && ns != 0 {
		return Fixed(float64(ns)/1e3, 1) + Gap + "µs"
	}
	return Fixed(float64(ns)/1e6, 1) + Gap + "ms"
}

// Percent writes a fraction of one with one decimal: 0.023 is 2.3 %.
func Percent(f float64) string { return Fixed(float64(f*100), 1) + Gap + "%" }

// String writes memory: GiB with one decimal, MiB, KiB and B with none.
func (b Bytes) String() string {
	switch size := max(b, -b); {
	case size >= GiB:
		return Fixed(float64(b)/float64(GiB), 1) + Gap + "GiB"
	case size >= MiB:
		return Fixed(float64(b)/float64(MiB), 0) + Gap + "MiB"
	case size >= KiB:
		return Fixed(float64(b)/float64(KiB), 0) + Gap + "KiB"
	}
	return Count(int64(b)) + Gap + "B"
}

// String writes a count of elements, never bytes.
func (n Elems) String() string { return Count(int64(n)) }

// String writes a predicted length as Milliseconds does, and s from a second on.
func (s Seconds) String() string {
	if math.Abs(float64(s)) >= 1 {
		return Fixed(float64(s), 2) + Gap + "s"
	}
	return Milliseconds(int64(math.Round(float64(float64(s) * 1e9))))
}

// String writes a rate in GB/s (powers of 1000) with three figures.
func (r BytesPerSecond) String() string { return three(float64(r)/1e9) + Gap + "GB/s" }

// String writes a compute rate in TFLOP/s.
func (r FLOPsPerSecond) String() string { return three(float64(r)/1e12) + Gap + "TFLOP/s" }

// String writes operations in powers of 1000.
func (f FLOPs) String() string { return scaled(float64(f), "FLOP") }

// Large writes a count in powers of 1000 with three figures: 5.05 B, 355 M.
func Large(n int64) string {
	switch x := float64(n); {
	case n >= 1e12:
		return three(x/1e12) + Gap + "T"
	case n >= 1e9:
		return three(x/1e9) + Gap + "B"
	case n >= 1e6:
		return three(x/1e6) + Gap + "M"
	}
	return Count(n)
}

// scaled writes x with the largest prefix that leaves at least one.
func scaled(x float64, unit string) string {
	for _, p := range []struct {
		prefix string
		factor float64
	}{{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if math.Abs(x) >= p.factor {
			return three(x/p.factor) + Gap + p.prefix + unit
		}
	}
	return three(x) + Gap + unit
}

// three writes x with three figures, but never fewer than its whole part has.
func three(x float64) string {
	switch size := math.Abs(x); {
	case size >= 99.95:
		return Fixed(x, 0)
	case size >= 9.995:
		return Fixed(x, 1)
	}
	return Fixed(x, 2)
}
