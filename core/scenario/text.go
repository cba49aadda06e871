package scenario

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// isNull reports whether text is one of YAML's nulls.
func isNull(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL", "None":
		return true
	}
	return false
}

// parseInt reads an integer as YAML 1.1 does: with _ between digits, in base 2, 8 or 16 with a
// prefix; and a number with a fraction or exponent if it is whole, as arithmetic on values gives it.
func parseInt(text string) (n int, ok bool) {
	clean := strings.ReplaceAll(text, "_", "")
	if v, err := strconv.ParseInt(clean, 10, 64); err == nil {
		return int(v), true
	}
	if len(clean) > 2 && clean[0] == '0' && !strings.ContainsAny(clean, ".") {
		if v, err := strconv.ParseInt(clean, 0, 64); err == nil {
			return int(v), true
		}
	}
	if x, ok := parseFloat(text); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return int(x), true
	}
	return 0, false
}

// parseFloat reads a finite decimal number.
func parseFloat(text string) (x float64, ok bool) {
	clean := strings.ReplaceAll(text, "_", "")
	if clean == "" || strings.ContainsAny(clean, "xXpPnN") { // no hexadecimal floats, inf, nan
		return 0, false
	}
	x, err := strconv.ParseFloat(clean, 64)
	return x, err == nil && !math.IsInf(x, 0)
}

// parseBool reads a boolean in any case and in every spelling that OmegaConf converts.
func parseBool(text string) (b, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "y", "on", "1":
		return true, true
	case "false", "no", "n", "off", "0":
		return false, true
	}
	return false, false
}

// Bounds of how much of a text is repeated in messages.
const (
	maxQuoted  = 60
	maxVisible = 200
)

// Quote repeats a value in a message: as it is if it is a plain word, else quoted, with
// invisible and bidirectional characters escaped, and cut when it is long.
func Quote(text string) string {
	text = cut(text, maxQuoted)
	plain := text != ""
	for i := range len(text) {
		c := text[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"',:;#{}[]`, c) >= 0 {
			plain = false
			break
		}
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}

// Visible returns a name as it can be shown: invisible and bidirectional characters escaped, and
// cut when it is long.
func Visible(text string) string {
	text = cut(text, maxVisible)
	for _, r := range text {
		if !unicode.IsPrint(r) {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	count := 0
	for i := range text {
		if count++; count > n {
			return text[:i] + "…"
		}
	}
	return text
}

// orList joins words: "a", "a or b", "a, b or c".
func orList(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// Nearest returns the word that text is most likely a misspelling of: at most two edits away
// (one in a short word), counting a transposition as one.
func Nearest(text string, words []string) (near string, ok bool) {
	limit := 2
	if len(text) < 6 {
		limit = 1
	}
	low, best := strings.ToLower(text), limit+1
	for _, w := range words {
		if d := editDistance(low, strings.ToLower(w), best); d < best {
			near, best = w, d
		}
	}
	return near, best <= limit
}

// editDistance counts insertions, deletions, replacements and transpositions of neighbours
// between a and b; any result of at least bound means "that or more".
func editDistance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least >= bound {
			return bound
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
