package main

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The functions match what the patterns match.
func TestNumbersAreThePatterns(t *testing.T) {
	const letters = "0123456789.+-eE_:5 x"
	float, base60 := regexp.MustCompile(floatPattern), regexp.MustCompile(base60Pattern)
	check := func(s string) bool {
		require.Equal(t, float.MatchString(s), matcher(matchFloat).MatchString(s), "float %q", s)
		require.Equal(t, base60.MatchString(s), matchBase60(s), "base 60 %q", s)
		return matchFloat(s) || matchBase60(s)
	}
	for _, s := range []string{"", "1", "-.5", "+1.e-3", ".", "1e", "1e+", "190:20:30.15", "1_0:59", "1:60", "1:5:", "1:05._", "1:005", "1\n", "é1"} {
		check(s)
	}
	r := rand.New(rand.NewPCG(5, 6))
	matched := 0
	for range 300_000 {
		b := make([]byte, r.IntN(8))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		if check(string(b)) {
			matched++
		}
	}
	require.Greater(t, matched, 5000)
}
