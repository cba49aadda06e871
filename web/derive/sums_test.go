package derive

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sums say what a look at every segment says.
func TestSumsAgreeWithSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, parts := range []bool{false, true} {
		s := &Strip{}
		if parts {
			s.Parts = [][]PartRange{{{0, 0, 1 << 14}, {1, 1 << 15, 3 << 14}}, {{0, 0, 1 << 16}}}
		}
		var at int64
		for range 1000 {
			at += rng.Int64N(20)
			start := at
			at += 1 + rng.Int64N(50)
			s.add(start, at, Class(rng.IntN(3)*4), 0)
			s.Work = append(s.Work, rng.Int32N(2))
		}
		sums := s.Sums()
		require.Equal(t, []Class{0, 4, 8}, sums.Classes)
		first, sum := 0, [NumClasses]int64{}
		for from := int64(-10); from < at+100; from += rng.Int64N(300) {
			first = sums.At(from, first, &sum)
			require.Equal(t, s.FirstFrom(from), first)
			var want [NumClasses]int64
			for i := range first {
				d := min(s.End[i], from) - s.Start[i]
				if parts && s.Work[i] == 0 {
					d = max(d/2, 1)
				}
				want[s.Class[i]/4] += d
			}
			require.Equal(t, want[:3], sum[:3], "at %d", from)
		}
	}
	require.Nil(t, (&Strip{Start: []int64{0, 5}, End: []int64{10, 7}, Class: make([]Class, 2)}).Sums(), "segments overlap")
	require.Nil(t, (&Strip{}).Sums())
}
