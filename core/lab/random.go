package lab

import "math"

// random is PCG-XSH-RR with 64 bits of state (O'Neill 2014): the same numbers on every machine and in
// every version of Go.
type random struct{ state, stream uint64 }

// newRandom returns the generator of a seed and a purpose, so that more data does not change
// the initial parameters.
func newRandom(seed int64, purpose uint64) *random {
	r := &random{stream: purpose<<1 | 1}
	r.next()
	r.state += uint64(seed)
	r.next()
	return r
}

func (r *random) next() uint32 {
	old := r.state
	r.state = old*6364136223846793005 + r.stream
	x := uint32((old>>18 ^ old) >> 27)
	turn := uint32(old >> 59)
	return x>>turn | x<<(-turn&31)
}

// below returns a number from 0 to n-1; the bias of 2^-32 n does not matter here.
func (r *random) below(n int) int { return int(uint64(r.next()) * uint64(n) >> 32) }

// uniform returns a number from 0 to below 1 with 24 bits.
func (r *random) uniform() float64 { return float64(r.next()>>8) * 0x1p-24 }

// normal returns a number with mean 0 and variance 1: the sum of twelve uniform ones less 6, exact
// in float64, with the Irwin-Hall distribution, which ends at ±6.
func (r *random) normal() float32 {
	sum := -6.0
	for range 12 {
		sum += r.uniform()
	}
	return float32(sum)
}

// filled returns n normal numbers with a standard deviation.
func (r *random) filled(n int, deviation float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.normal() * float32(deviation))
	}
	return x
}

// root is the square root of a small whole number; IEEE rounds it exactly.
func root(n int) float64 { return math.Sqrt(float64(n)) }
