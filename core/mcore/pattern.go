package mcore

import (
	"strings"

	"distopt/core/bucket"
)

// fp32Grad reports whether p has a private fp32 gradient.
func (l *Layout) fp32Grad(p bucket.ParamID) bool {
	for _, pattern := range l.Options.FP32Patterns {
		if pattern == "all" || matches(pattern, l.Params[p].Path) {
			return true
		}
	}
	return false
}

// matches is a shell's match of a whole name, as Python's fnmatch does it: * any characters, dots
// included, ? any one, [abc], [a-z] and [!a] sets; a bracket without its end stands for itself.
func matches(pattern, name string) bool {
	star, rest := -1, 0 // after the last star, and the name from where it is tried
	i, j := 0, 0
	for j < len(name) {
		if i < len(pattern) {
			if pattern[i] == '*' {
				i++
				star, rest = i, j
				continue
			}
			if n, ok := matchesOne(pattern[i:], name[j]); ok {
				i, j = i+n, j+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		rest++
		i, j = star, rest
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// matchesOne matches one character with the beginning of a pattern, of which it takes n bytes.
func matchesOne(pattern string, c byte) (n int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		end := 1
		if end < len(pattern) && pattern[end] == '!' {
			end++
		}
		if end < len(pattern) && pattern[end] == ']' {
			end++
		}
		for end < len(pattern) && pattern[end] != ']' {
			end++
		}
		if end < len(pattern) {
			return end + 1, inSet(pattern[1:end], c)
		}
	}
	return 1, pattern[0] == c
}

// inSet reports whether a set of characters and ranges has c.
func inSet(set string, c byte) bool {
	want := true
	if strings.HasPrefix(set, "!") {
		want, set = false, set[1:]
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return want
			}
			i += 2
			continue
		}
		if set[i] == c {
			return want
		}
	}
	return !want
}
