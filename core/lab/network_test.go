package lab

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
)

// Gradients agree with differences of losses.
func TestGradients(t *testing.T) {
	for _, c := range []Config{
		{Model: Transformer, Layers: 2, Hidden: 8, Heads: 2, FFN: 12, Window: 5, Batch: 2, Seed: 3},
		{Model: Transformer, Layers: 1, Hidden: 6, Heads: 1, FFN: 7, Window: 3, Batch: 3, Seed: 4},
		{Model: MLP, Layers: 1, Hidden: 4, FFN: 9, Window: 3, Batch: 2, Seed: 5},
		{Model: MLP, Layers: 3, Hidden: 5, FFN: 6, Window: 2, Batch: 3, Seed: 6},
	} {
		s, err := c.architecture(dtype.FP32, false)
		require.NoError(t, err)
		net := c.network(s)
		params := c.initial(s)
		r := newRandom(9, 9)
		grads := make([][]float32, len(params))
		for p := range params {
			grads[p] = make([]float32, len(params[p]))
			for i := range params[p] { // also biases and norms: nothing may be at a special point
				params[p][i] += r.normal() * 0.1
			}
		}
		data := c.data(1, 0, net.length())
		net.pass(params, grads, data, 1)
		unused := zeros(params)
		loss := func() float64 { return float64(net.pass(params, unused, data, 1)) }
		for p := range params {
			// All elements at once, in a random direction, and a few alone.
			direction := r.filled(len(params[p]), 1)
			want := 0.0
			for i, d := range direction {
				want += float64(d) * float64(grads[p][i])
			}
			old := append([]float32(nil), params[p]...)
			const h = 1e-2 / 4
			move := func(f float32) float64 {
				for i := range old {
					params[p][i] = old[i] + f*direction[i]
				}
				return loss()
			}
			got := (8*(move(h)-move(-h)) - (move(2*h) - move(-2*h))) / (12 * h)
			copy(params[p], old)
			require.InDelta(t, want, got, 2e-3*max(1, math.Abs(want)), "%s %s", c.Model, s.Params[p].Name)
		}
	}
}

func zeros(like [][]float32) [][]float32 {
	z := make([][]float32, len(like))
	for i := range like {
		z[i] = make([]float32, len(like[i]))
	}
	return z
}

// The gradient is linear in the loss scale, and a power of two does not change a bit of it.
func TestLossScale(t *testing.T) {
	c := Default(Transformer)
	s, err := c.architecture(dtype.FP32, false)
	require.NoError(t, err)
	net, params := c.network(s), c.initial(s)
	data := c.data(1, 0, net.length())
	plain, scaled := zeros(params), zeros(params)
	a, b := net.pass(params, plain, data, 1), net.pass(params, scaled, data, 1024)
	require.Equal(t, a, b)
	for p := range plain {
		for i, g := range plain[p] {
			if math.Abs(float64(g)) > 1e-30 {
				require.Equal(t, g*1024, scaled[p][i], s.Params[p].Name)
			}
		}
	}
}

func TestDefaultSize(t *testing.T) {
	for _, m := range []string{Transformer, MLP} {
		c := Default(m)
		s, err := c.architecture(dtype.BF16, true)
		require.NoError(t, err)
		t.Log(m, elements(s))
		require.LessOrEqual(t, int(elements(s)), 30_000)
	}
}

// places between nearby fp32 values.
func ulps(got float32, want float64) float64 {
	near := float32(want)
	step := float64(math.Nextafter32(float32(math.Abs(float64(near))), float32(math.Inf(1)))) - math.Abs(float64(near))
	return math.Abs(float64(got)-want) / step
}

func TestFunctions(t *testing.T) {
	r := newRandom(1, 1)
	worst := [3]float64{}
	for range 300_000 {
		x := float32((r.uniform()*2 - 1) * math.Exp2(float64(r.below(60)-52)))
		if e := math.Exp(float64(x)); e < math.MaxFloat32 && e > 1e-38 {
			worst[0] = max(worst[0], ulps(exp(x), e))
		}
		y := math.Float32frombits(r.next() & 0x7fffffff)
		if y == y && y > 0 && y <= math.MaxFloat32 {
			worst[1] = max(worst[1], ulps(log(y), math.Log(float64(y))))
		}
		if x != 0 {
			worst[2] = max(worst[2], ulps(tanh(x), math.Tanh(float64(x))))
		}
	}
	for i, name := range []string{"exp", "log", "tanh"} {
		t.Log(name, worst[i])
		require.LessOrEqual(t, worst[i], 0.5001, name)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	require.Equal(t, inf, exp(inf))
	require.Equal(t, float32(0), exp(-inf))
	require.Equal(t, float32(1), exp(0))
	require.Equal(t, -inf, log(0))
	require.Equal(t, inf, log(inf))
	require.Equal(t, float32(0), log(1))
	require.Equal(t, float32(1), tanh(inf))
	require.Equal(t, float32(-1), tanh(-inf))
	for _, x := range []float32{exp(nan), log(nan), log(-1), tanh(nan)} {
		require.True(t, x != x)
	}
}
