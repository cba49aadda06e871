package optim

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
)

func bits(x float32) uint32 { return math.Float32bits(x) }

func value(b uint32) float32 { return math.Float32frombits(b) }

// The specification's check values for betas 0.9 and 0.98.
func TestBiasCorrection(t *testing.T) {
	for step, want := range map[int][2]uint32{
		1: {0x3dccccd0, 0x3ca3d700}, 3: {0x3e8ac085, 0x3d70e09a}, 10: {0x3f26bd04, 0x3e3b5139},
	} {
		k := AdamArgs{Beta1: 0.9, Beta2: 0.98, BiasCorrection: true}.Kernel(step, 1)
		require.Equal(t, want, [2]uint32{bits(k.Correction1), bits(k.Correction2)}, step)
		k = AdamArgs{Beta1: 0.9, Beta2: 0.98}.Kernel(step, 1)
		require.Equal(t, [2]float32{1, 1}, [2]float32{k.Correction1, k.Correction2})
	}
}

// Powers are those of exact arithmetic, rounded once.
func TestPower(t *testing.T) {
	for _, beta := range []float32{0, 1e-30, 0.1, 0.5, 0.9, 0.95, 0.98, 0.999, 0.9999, 0.99999994} {
		exact, x := big.NewFloat(1).SetPrec(2000), new(big.Float).SetFloat64(float64(beta))
		for n := range 1200 {
			want, _ := exact.Float64()
			if got := power(float64(beta), n); got != want && want > 1e-290 {
				t.Fatalf("%v^%d: got %x, want %x", beta, n, got, want)
			}
			exact.Mul(exact, x)
		}
	}
	require.Zero(t, power(0.9, 1<<40))
	require.Equal(t, 1.0, power(0.9, 0))
}

// The specification's three vectors, p, m, v and g in, p, m and v out, in both modes.
func TestAdamVectors(t *testing.T) {
	k := Adam{
		LR: value(0x3951b717), Beta1: value(0x3f666666), Beta2: value(0x3f7ae148), Eps: value(0x322bcc77),
		WeightDecay: value(0x3c23d70a), GradScale: value(0x3f3b4a23),
		Correction1: value(0x3e8ac085), Correction2: value(0x3d70e09a),
	}
	for _, tt := range []struct {
		in    [4]uint32
		w, l2 [3]uint32
	}{
		{[4]uint32{0xbba8b241, 0xbcce9ffe, 0x38053d5e, 0x3bbc07b4}, [3]uint32{0xbb9168b7, 0xbcb685fd, 0x38040da7}, [3]uint32{0xbb91669c, 0xbcb690c9, 0x3804046d}},
		{[4]uint32{0x3cbd24ae, 0xb534ce7e, 0x33bfc60d, 0x368a4259}, [3]uint32{0x3cbd24f8, 0xb4a39c78, 0x33bbf045}, [3]uint32{0x3cbd07f4, 0x37bf2057, 0x33be49b7}},
		{[4]uint32{0x3d45f608, 0xb890628b, 0x36a13dc7, 0xb7496764}, [3]uint32{0x3d45fb5d, 0xb883c9cc, 0x369e043c}, [3]uint32{0x3d45f749, 0xb7737521, 0x369e2ae8}},
	} {
		for mode, want := range [][3]uint32{tt.w, tt.l2} {
			k.L2 = mode == 1
			p, m, v := []float32{value(tt.in[0])}, []float32{value(tt.in[1])}, []float32{value(tt.in[2])}
			k.Update(p, m, v, []float32{value(tt.in[3])}, dtype.FP32)
			require.Equal(t, want, [3]uint32{bits(p[0]), bits(m[0]), bits(v[0])})
		}
	}
}

// slowUpdate is the update with every operation in float64, where it is exact or loses nothing that
// rounding to fp32 would need, and multiply-adds in rational arithmetic.
func slowUpdate(a *Adam, p, m, v, g float32, stored dtype.DType) (p1, m1, v1 float32) {
	mul := func(x, y float32) float32 { return float32(float64(x) * float64(y)) }
	add := func(x, y float32) float32 { return float32(float64(x) + float64(y)) }
	div := func(x, y float32) float32 { return float32(float64(x) / float64(y)) }
	fma := func(x, y, z float32) float32 {
		if s := float64(x)*float64(y) + float64(z); s-s != 0 || s == 0 {
			return float32(s)
		}
		r := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
		f, _ := new(big.Rat).Add(new(big.Rat).Mul(r(x), r(y)), r(z)).Float32()
		return f
	}
	sg := mul(g, a.GradScale)
	decay := mul(a.WeightDecay, p)
	if a.L2 {
		sg = add(sg, decay)
	}
	m1 = fma(a.Beta1, m, fma(-a.Beta1, sg, sg))
	v1 = fma(a.Beta2, v, fma(-a.Beta2, mul(sg, sg), mul(sg, sg)))
	denominator := add(float32(math.Sqrt(float64(div(v1, a.Correction2)))), a.Eps)
	u := div(div(m1, a.Correction1), denominator)
	if !a.L2 {
		u = add(u, decay)
	}
	p1 = add(p, -stored.Round(mul(a.LR, u)))
	return dtype.Canonical(p1), dtype.Canonical(m1), dtype.Canonical(v1)
}

// Random elements of every size, among them subnormal ones, zeros, infinities and NaNs, and values of
// few bits, whose sums lie half way between two fp32 values more often.
func TestAdamAgainstSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 92))
	draw := func() float32 {
		switch r.IntN(40) {
		case 0:
			return 0
		case 1:
			return value(r.Uint32()) // anything
		case 2:
			return value(r.Uint32() & 0x80ffffff) // tiny
		case 3:
			return float32(r.IntN(9)-4) * 0x1p-10
		}
		return float32((r.Float64() - 0.5) * math.Ldexp(1, -r.IntN(30)))
	}
	for range 120 {
		args := AdamArgs{
			LR: 0.1 * r.Float64(), Beta1: r.Float64(), Beta2: 1 - 0.1*r.Float64(), Eps: 1e-8,
			WeightDecay: r.Float64() * float64(r.IntN(2)), BiasCorrection: r.IntN(2) == 0, L2: r.IntN(2) == 0,
		}
		if r.IntN(3) == 0 {
			args.Beta1, args.Beta2, args.LR, args.Eps = 0.5, 0.75, 0x1p-8, 0
		}
		k := args.Kernel(1+r.IntN(20), []float32{1, 0.25, float32(r.Float64())}[r.IntN(3)])
		stored := []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16}[r.IntN(3)]
		n := 1 + r.IntN(300)
		p, m, v, g := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range n {
			p[i], m[i], v[i], g[i] = stored.Round(draw()), stored.Round(draw()), float32(math.Abs(float64(stored.Round(draw())))), draw()
		}
		p1, m1, v1 := append([]float32(nil), p...), append([]float32(nil), m...), append([]float32(nil), v...)
		k.Update(p1, m1, v1, g, stored)
		for i := range n {
			wp, wm, wv := slowUpdate(&k, p[i], m[i], v[i], g[i], stored)
			want := [3]uint32{bits(wp), bits(wm), bits(wv)}
			got := [3]uint32{bits(p1[i]), bits(m1[i]), bits(v1[i])}
			if p[i] != p[i] || m[i] != m[i] || v[i] != v[i] { // whatever NaN went in, the GPU's comes out
				require.Equal(t, uint32(dtype.NaNBits), got[0])
				continue
			}
			require.Equal(t, want, got, "%+v: p %x m %x v %x g %x in %s", k, p[i], m[i], v[i], g[i], stored)
		}
	}
}

// Where infinities and NaNs go.
func TestAdamSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := value(dtype.NaNBits)
	for _, tt := range []struct {
		what           string
		args           AdamArgs
		scale, p, m, g float32
		wantP, wantM   float32
	}{
		{"no gradient", AdamArgs{LR: 0.1, Eps: 1e-8}, 1, 2, 0, 0, 2, 0},
		{"no gradient, no eps: 0/0", AdamArgs{LR: 0.1}, 1, 2, 0, 0, nan, 0},
		{"infinite gradient: inf - inf in the moment", AdamArgs{LR: 0.1, Beta1: 0.9, Beta2: 0.9, Eps: 1e-8}, 1, 2, 0, inf, nan, nan},
		{"square overflows: inf - inf in the other", AdamArgs{LR: 0.1, Beta1: 0.5, Beta2: 0.5, Eps: 1e-8}, 1, 2, 0, 0x1p100, nan, 0x1p99},
		{"NaN gradient", AdamArgs{LR: 0.1, Eps: 1e-8}, 1, 2, 0, nan, nan, nan},
		{"norm was infinite: finite gradients vanish", AdamArgs{LR: 0.1, Eps: 1e-8}, 0, 2, 0, 5, 2, 0},
		{"norm was infinite: infinity times 0", AdamArgs{LR: 0.1, Eps: 1e-8}, 0, 2, 0, inf, nan, nan},
		{"lr overflows", AdamArgs{LR: 1e39, Eps: 1e-8}, 1, 2, 0, 1, -inf, 1},
		{"lr overflows without gradient: infinity times 0", AdamArgs{LR: 1e39, Eps: 1e-8}, 1, 2, 0, 0, nan, 0},
		{"lr NaN", AdamArgs{LR: math.NaN(), Eps: 1e-8}, 1, 2, 0, 1, nan, 1},
	} {
		k := tt.args.Kernel(1, tt.scale)
		p, m, v := []float32{tt.p}, []float32{tt.m}, []float32{0}
		k.Update(p, m, v, []float32{tt.g}, dtype.FP32)
		require.Equal(t, bits(tt.wantP), bits(p[0]), "%s: p %v", tt.what, p[0])
		require.Equal(t, bits(tt.wantM), bits(m[0]), "%s: m %v", tt.what, m[0])
	}
}

func BenchmarkAdamUpdate(b *testing.B) {
	const n = 1 << 16
	r := rand.New(rand.NewPCG(1, 1))
	p, m, v, g := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		p[i], g[i] = r.Float32()-0.5, (r.Float32()-0.5)/100
	}
	k := AdamArgs{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, BiasCorrection: true}.Kernel(3, 1)
	b.ResetTimer()
	for range b.N {
		k.Update(p, m, v, g, dtype.FP32)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/n, "ns/elem")
}
