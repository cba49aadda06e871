package arrays_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
)

// What an element went through can be read at its home: gradients of the ranks, their sum, the main
// parameter.
func TestJourney(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, f := range formats {
		k := exactTask(r, options(f.change), f.dtype, f.fp8)
		s := randomSetup(r, &k)
		s.options.NewApex, s.options.Later.NCCLUserBuffers = true, false
		s.options.Redundant = 1
		s.options.Distributed = contributions / s.micros
		if s.init == 0 {
			s.init = 2
		}
		s.begin(t, &k)
		s.step(t, &k, k.grads[0])
		saved, err := s.ranks.Save(1)
		require.NoError(t, err)
		for p, size := range k.sizes {
			id := bucket.ParamID(p)
			main := make([]float32, size)
			s.ranks.MainValues(id, main)
			stored := make([]float32, size)
			saved.Params[p].Param.Load(stored)
			require.Equal(t, stored, main, "%s: %s", f.name, s)
			sum := make([]float32, size)
			for rank := range s.ranks.Size() {
				g := make([]float32, size)
				s.ranks.LocalGrad(rank, id, g)
				for i := range g {
					sum[i] += g[i] / float32(s.ranks.Size())
				}
			}
			for i := range size {
				at, rank, index, ok := s.ranks.Home(id, i)
				require.True(t, ok)
				x := make([]float32, 1)
				s.ranks.Shard(rank, at).Grad.Slice(index, index+1).Load(x)
				if k.grads[0][0][p] != nil && !s.noSync && s.micros == 1 {
					require.Equal(t, sum[i], x[0], "%s: parameter %d[%d] %s", f.name, p, i, s)
				}
			}
			_, _, _, ok := s.ranks.Home(id, size)
			require.False(t, ok)
		}
	}
}
