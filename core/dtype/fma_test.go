package dtype

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactFMA is x*y + z in rational arithmetic, rounded once. Finite inputs only.
func exactFMA(x, y, z float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(700).SetFloat64(float64(v)) }
	sum := exact(x)
	sum.Mul(sum, exact(y))
	sum.Add(sum, exact(z))
	if sum.Sign() == 0 { // big.Float knows no sign of an exact zero
		return float32(float64(x)*float64(y)) + z
	}
	f, _ := sum.Float32()
	return f
}

// Random operands over all exponents, and operands made so that the sum lies beside a tie.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 3))
	any := func() float32 {
		for {
			if v := math.Float32frombits(r.Uint32()); v-v == 0 {
				return v
			}
		}
	}
	near := func(v float64, spread int) float32 { // a power of two near v's, with random or few bits
		_, e := math.Frexp(v)
		m := 1 + float64(r.IntN(1<<23))/(1<<23)
		if r.IntN(2) == 0 {
			m = 1 + float64(r.IntN(8))/8
		}
		if r.IntN(2) == 0 {
			m = -m
		}
		return float32(math.Ldexp(m, e+r.IntN(2*spread+1)-spread))
	}
	check := func(x, y, z float32) {
		if z-z != 0 {
			return
		}
		got, want := FMA(x, y, z), exactFMA(x, y, z)
		require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%x * %x + %x = %x", x, y, z, want)
	}
	slow := 0
	for range 60000 {
		check(any(), any(), any())
		x, y := any(), any()
		check(x, y, near(float64(x)*float64(y), 30))
		x, y = near(1e-20, 3), near(1e-19, 8) // results around the subnormals
		check(x, y, near(1e-39, 12))
	}
	// Exact half-way sums, moved by a far smaller product: rounding twice gets these wrong.
	for range 60000 {
		z := near(1, 20)
		ulp := math.Ldexp(1, math.Ilogb(float64(z))-23)
		x := near(1, 0)
		y := float32(ulp / 2 / float64(x) * (1 + float64(r.IntN(3)-1)*0x1p-23))
		check(x, y, z)
		if s := float64(x)*float64(y) + float64(z); float32(s) != exactFMA(x, y, z) {
			slow++
		}
	}
	require.Positive(t, slow, "no case would tell double rounding")
}

func TestFMASpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	const zero = 0
	minus := float32(math.Copysign(0, -1))
	least := math.Float32frombits(1)
	most := float32(math.MaxFloat32)
	for _, tt := range []struct{ x, y, z, want float32 }{
		{inf, 1, 0, inf}, {inf, -1, most, -inf}, {1, 1, -inf, -inf},
		{most, 2, 0, inf}, {most, 1, most, inf}, {most, 2, -most, most},
		{1, 1, -1, 0}, {-1, 0, minus, minus}, {1, zero, minus, 0},
		{least, 0.5, 0, 0}, {least, 0.5, least, 2 * least}, {least, -0.5, least, 0}, {least, least, least, least},
		{least, -least, 0, minus},
		// Half the last place of the largest value, and just less: infinity or not.
		{0x1p103, 1, most, inf}, {0x1.fffffep102, 1, most, most},
	} {
		got := FMA(tt.x, tt.y, tt.z)
		require.Equal(t, math.Float32bits(tt.want), math.Float32bits(got), "%v * %v + %v = %v", tt.x, tt.y, tt.z, got)
	}
	for _, tt := range [][3]float32{{inf, 0, 1}, {inf, 1, -inf}, {nan, 1, 1}, {1, nan, 1}, {1, 1, nan}} {
		require.True(t, FMA(tt[0], tt[1], tt[2]) != FMA(tt[0], tt[1], tt[2]), "%v", tt)
	}
}
