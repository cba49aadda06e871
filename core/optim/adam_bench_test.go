package optim

import (
	"distopt/core/dtype"
	"testing"
)

func BenchmarkAdamUpdate(b *testing.B) {
	const n = 1 << 16
	p, m, v, g := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	s := uint32(7)
	for i := range g {
		s = s*1664525 + 1013904223
		g[i] = float32(int32(s)) * 0x1p-40
		p[i] = float32(int32(s*3)) * 0x1p-31
	}
	args := AdamArgs{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, BiasCorrection: true}
	k := args.Kernel(3, 1)
	b.ResetTimer()
	for range b.N {
		k.Update(p, m, v, g, dtype.FP32)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/n, "ns/elem")
}
