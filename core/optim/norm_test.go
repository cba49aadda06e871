package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
)

// slowNorm is the kernel told thread by thread: tensors in chunks, launches of at most 320 chunks or
// 110 tensors, lanes, a tree over threads by strides.
func slowNorm(tensors [][]float32) float32 {
	var sums [320]float32
	block, inLaunch := 0, 0
	reduce := func(x []float32) float32 {
		for _, stride := range []int{256, 128, 64, 32, 16, 8, 4, 2, 1} {
			for t := range stride {
				x[t] += x[t+stride]
			}
		}
		return x[0]
	}
	for _, tensor := range tensors {
		inLaunch++
		chunks := (len(tensor) + 65535) / 65536
		for c := range chunks {
			x := tensor[c*65536:]
			n := len(x)
			threads := make([]float32, 512)
			for t := range 512 {
				var lane [4]float32
				if n%4 == 0 {
					for i := t; i*4 < n && i*4 < 65536; i += 512 {
						for ii := range 4 {
							lane[ii] = dtype.FMA(x[4*i+ii], x[4*i+ii], lane[ii])
						}
					}
				} else {
					for start := 0; start < n && start < 65536; start += 2048 {
						for ii := range 4 {
							if i := start + t + 512*ii; i < n && i < 65536 {
								lane[ii] = dtype.FMA(x[i], x[i], lane[ii])
							}
						}
					}
				}
				threads[t] = ((lane[0] + lane[1]) + lane[2]) + lane[3]
			}
			sums[block] += reduce(threads)
			block++
			last := c == chunks-1
			if block == 320 || inLaunch == 110 && last {
				block = 0
				if inLaunch = 1; last {
					inLaunch = 0
				}
			}
		}
	}
	all := make([]float32, 512)
	copy(all, sums[:])
	return float32(math.Sqrt(float64(reduce(all))))
}

func TestL2Norm(t *testing.T) {
	r := rand.New(rand.NewPCG(65536, 320))
	tensor := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32() - 0.5
		}
		return x
	}
	many := make([][]float32, 250)
	for i := range many {
		many[i] = tensor(1 + r.IntN(300))
	}
	fill := append(many[:100:100], tensor(221*65536+7), tensor(12))
	for _, tt := range []struct {
		name    string
		tensors [][]float32
	}{
		{"none", nil},
		{"one element", [][]float32{tensor(1)}},
		{"vectors", [][]float32{tensor(4096)}},
		{"elements", [][]float32{tensor(4097)}},
		{"several chunks", [][]float32{tensor(70000), tensor(65536), tensor(131073)}},
		{"more tensors than a launch takes", many},
		{"more chunks than a launch takes", fill},
	} {
		var s L2Norm
		s.Reset()
		for _, x := range tt.tensors {
			for start := 0; start < len(x); start += NormChunk {
				s.Chunk(x[start:min(start+NormChunk, len(x))], len(x)-start)
			}
		}
		require.Equal(t, bits(slowNorm(tt.tensors)), bits(s.Norm()), tt.name)
		require.False(t, s.NonFinite)
	}
	for _, x := range []float32{float32(math.Inf(1)), float32(math.NaN()), 1e30} {
		var s L2Norm
		s.Chunk([]float32{1, x, 2, 3}, 4)
		require.True(t, s.NonFinite, "%v", x)
		require.False(t, s.Norm() <= math.MaxFloat32)
	}
}

func TestRescale(t *testing.T) {
	// Half of fp16's largest value is 32752; of bf16's 2^127 - 2^119.
	x := []float32{0.5, -2, 1, 0}
	scale := Rescale(x, dtype.FP16)
	require.Equal(t, float32(2)/32752, scale)
	require.Equal(t, float32(-32752), dtype.FP16.Round(x[1]))
	Unscale(x, scale)
	require.InDelta(t, 0.5, x[0], 1e-7)

	zeros := []float32{0, 0}
	require.Zero(t, Rescale(zeros, dtype.FP16))
	require.Equal(t, []float32{0, 0}, zeros)

	// A subnormal scale has an infinite reciprocal: zeros become NaN.
	small := []float32{1e-3, 0}
	scale = Rescale(small, dtype.BF16)
	require.Less(t, scale, float32(0x1p-126))
	require.Equal(t, float32(math.Inf(1)), small[0])
	require.Equal(t, uint32(dtype.NaNBits), bits(small[1]))

	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		y := []float32{1, bad, -3}
		scale := Rescale(y, dtype.FP16)
		if bad != bad {
			require.Equal(t, uint32(dtype.NaNBits), bits(scale))
			require.Equal(t, float32(0), y[0], "a NaN scale is not above zero")
		} else {
			require.Equal(t, float32(math.Inf(1)), scale)
		}
		require.Equal(t, uint32(dtype.NaNBits), bits(y[1]))
	}
}

// Three steps of the delayed recipe, by hand: scale 448/amax in two roundings, history rolled.
func TestDelayedScaling(t *testing.T) {
	for _, recent := range []bool{false, true} {
		r := DelayedScaling{History: 3, MostRecent: recent, Margin: 1}
		m := NewFP8Meta(r)
		codes := make([]uint8, 4)
		m.Cast(codes, []float32{3, -7, 500, float32(math.NaN())})
		require.Equal(t, []float32{500, 0, 0}, m.Amax)
		require.Equal(t, []uint8{0x44, 0xce, 0x7e, 0x7f}, codes, "500 saturates, NaN does not count")
		m.Forward(r)
		require.Equal(t, []float32{0, 0, 500}, m.Amax)
		require.Equal(t, float32(1/float32(500))*448/2, m.Scale)
		m.Cast(codes, []float32{3, -7, 100, 1})
		m.Forward(r)
		require.Equal(t, []float32{0, 500, 100}, m.Amax)
		want := float32(1/float32(500)) * 448 / 2
		if recent {
			want = float32(1/float32(100)) * 448 / 2
		}
		require.Equal(t, want, m.Scale)
		m.Forward(r) // no cast since: amax 0 keeps the scale of the most recent one
		if recent {
			require.Equal(t, want, m.Scale)
		}
		m.Cast(codes, []float32{float32(math.Inf(1))})
		scale := m.Scale
		m.Forward(r)
		require.Equal(t, scale, m.Scale, "an infinite amax keeps the scale")
	}
	r := DelayedScaling{}
	m := NewFP8Meta(r)
	require.Len(t, m.Amax, 1)
	m.Cast(make([]uint8, 1), []float32{0x1p-149})
	m.Forward(r)
	require.Equal(t, float32(math.Inf(1)), m.Scale, "nothing guards against a tiny amax")
	require.Equal(t, []float32{0}, m.Amax)
}
