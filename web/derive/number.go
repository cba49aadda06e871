package derive

import (
	"math"
	"strconv"
	"strings"
)

// Numbers are written one way in every locale: decimal point, thousands comma, a thin gap
// before a unit sign, and a real minus.
const (
	thin  = "\u202f"
	minus = "−"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Plain writes a whole number without separators.
func Plain(n int) string { return strconv.Itoa(n) }

// Count writes a whole number with thousands separated.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = minus, s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// fixed writes x with a number of decimals and thousands separated.
func fixed(x float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return s
	}
	out := Count(n)
	if rest != "" {
		out += "." + rest
	}
	if x < 0 && strings.Trim(s, "0.") != "" {
		out = minus + out
	}
	return out
}

// Fixed writes x with a number of decimals and thousands separated.
func Fixed(x float64, decimals int) string { return fixed(x, decimals) }

// signed is fixed with a plus sign for what is not negative.
func signed(x float64, decimals int) string {
	s := fixed(x, decimals)
	if strings.HasPrefix(s, minus) || strings.Trim(s, "0.") == "" {
		return s
	}
	return "+" + s
}

// Milliseconds writes a length: ms with one decimal, µs below 0.1 ms.
func Milliseconds(ns int64) string {
	n, unit := length(ns)
	return n + thin + unit
}

// Instant writes a point in time: ms with two decimals, fewer beyond a second.
func Instant(ns int64) string {
	decimals := 2
	switch {
	case ns >= 10e9:
		decimals = 0
	case ns >= 1e9:
		decimals = 1
	}
	return fixed(float64(ns)/1e6, decimals) + thin + "ms"
}

// brief writes a length for a narrow place: three figures, seconds from one on.
func brief(ns int64) string {
	switch {
	case ns >= 1e9:
		return fixed(float64(ns)/1e9, 2) + thin + "s"
	case ns >= 100e6:
		return fixed(float64(ns)/1e6, 0) + thin + "ms"
	}
	return Milliseconds(ns)
}

func length(ns int64) (number, unit string) {
	if abs := max(ns, -ns); abs > 0 && abs < 100_000 {
		return fixed(float64(ns)/1e3, 1), "µs"
	}
	if ns >= 10e9 {
		return fixed(float64(ns)/1e6, 0), "ms"
	}
	return fixed(float64(ns)/1e6, 1), "ms"
}

// Percent writes a fraction of 1 with one decimal.
func Percent(f float64) string { return fixed(f*100, 1) + thin + "%" }

// Size writes bytes: GiB with one decimal, MiB and KiB with none.
func Size(bytes int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch b := float64(bytes); {
	case bytes >= gib:
		return fixed(b/gib, 1) + thin + "GiB"
	case bytes >= mib:
		return fixed(b/mib, 0) + thin + "MiB"
	case bytes >= kib:
		return fixed(b/kib, 0) + thin + "KiB"
	}
	return Count(bytes) + thin + "B"
}

// Rate writes bytes per second in powers of 1000.
func Rate(perSecond float64) string {
	if perSecond <= 0 {
		return "–"
	}
	return fixed(perSecond/1e9, digits(perSecond/1e9)) + thin + "GB/s"
}

// digits is how many decimals leave three figures.
func digits(x float64) int {
	switch {
	case x >= 100:
		return 0
	case x >= 10:
		return 1
	}
	return 2
}

// Large writes a count in words of the field: 5.05 B, 355 M.
func Large(n int64) string {
	x := float64(n)
	switch {
	case n >= 1e12:
		return fixed(x/1e12, digits(x/1e12)) + thin + "T"
	case n >= 1e9:
		return fixed(x/1e9, digits(x/1e9)) + thin + "B"
	case n >= 1e6:
		return fixed(x/1e6, digits(x/1e6)) + thin + "M"
	}
	return Count(n)
}

// Elems writes a bucket size: in Mi when it is whole, else rounded.
func Elems(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return Count(n>>20) + thin + "Mi"
	}
	return Large(n)
}

// IDs writes bucket numbers: "bucket 22", "buckets 23–26", "buckets 1, 3".
func IDs(ids []int32) string {
	if len(ids) == 0 {
		return ""
	}
	if len(ids) == 1 {
		return "bucket " + itoa(int(ids[0]))
	}
	return "buckets " + Runs(ids)
}

// Runs writes ascending numbers, neighbours joined: "1, 3–5".
func Runs(ids []int32) string {
	var b strings.Builder
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(itoa(int(ids[i])))
		if j > i {
			b.WriteString("–" + itoa(int(ids[j])))
		}
		i = j + 1
	}
	return b.String()
}

// Meet reports whether two lists of ascending numbers share one.
func Meet(a, b []int32) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

func contains(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// Difference writes a length with its sign.
func Difference(ns int64) string {
	n, unit := length(ns)
	if ns > 0 {
		n = "+" + n
	}
	return n + thin + unit
}
