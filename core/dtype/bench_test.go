package dtype

import (
	"math"
	"testing"
)

// spread returns n values over the exponents that a cast of weights or gradients meets.
func spread(n int) []float32 {
	values := make([]float32, n)
	state := uint32(1)
	for i := range values {
		state = state*1664525 + 1013904223
		values[i] = float32(math.Ldexp(1+float64(state>>9)/(1<<23), int(state>>4%24)-14))
		if state>>31 == 1 {
			values[i] = -values[i]
		}
	}
	return values
}

// benchmark reports elements per second of a conversion of a million.
func benchmark[To any](b *testing.B, convert func(dst []To, src []float32)) {
	src := spread(1 << 20)
	dst := make([]To, len(src))
	b.ResetTimer()
	for range b.N {
		convert(dst, src)
	}
	b.ReportMetric(float64(len(src))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melem/s")
}

func BenchmarkCastE4M3(b *testing.B) { benchmark(b, E4M3.EncodeAll) }

func BenchmarkCastE4M3Scaled(b *testing.B) {
	benchmark(b, func(dst []uint8, src []float32) { E4M3.EncodeScaled(dst, src, 17.5) })
}

func BenchmarkCastBF16(b *testing.B) { benchmark(b, EncodeBF16s) }

func BenchmarkCastFP16(b *testing.B) { benchmark(b, EncodeFP16s) }

func BenchmarkFMA(b *testing.B) {
	benchmark(b, func(dst, src []float32) {
		for i, x := range src {
			dst[i] = FMA(x, 0.9, dst[i])
		}
	})
}
