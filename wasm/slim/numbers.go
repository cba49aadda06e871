package main

// matcher is a pattern that a function matches.
type matcher func(string) bool

// MatchString is the method of a regular expression.
func (m matcher) MatchString(s string) bool { return m(s) }

// matchFloat matches a decimal number with or without a sign, a fraction and an exponent.
func matchFloat(s string) bool {
	whole, s := digits(unsigned(s), "")
	fraction := 0
	if s != "" && s[0] == '.' {
		fraction, s = digits(s[1:], "")
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	exponent, s := digits(unsigned(s[1:]), "")
	return exponent > 0 && s == ""
}

// matchBase60 matches a number such as 190:20:30.15.
func matchBase60(s string) bool {
	s = unsigned(s)
	if n, _ := digits(s, ""); n == 0 {
		return false
	}
	_, s = digits(s, "_")
	groups := 0
	for ; s != "" && s[0] == ':'; groups++ {
		n, rest := digits(s[1:], "")
		if n == 0 || n > 2 || n == 2 && s[1] > '5' {
			return false
		}
		s = rest
	}
	if groups > 0 && s != "" && s[0] == '.' {
		_, s = digits(s[1:], "_")
	}
	return groups > 0 && s == ""
}

// unsigned leaves out a sign.
func unsigned(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:]
	}
	return s
}

// digits counts the digits that s begins with, and the other byte if there is one, and returns what
// follows.
func digits(s, other string) (int, string) {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || other != "" && s[n] == other[0]) {
		n++
	}
	return n, s[n:]
}
