package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDefaultRun is the run that the lab opens with: all steps of four variants.
func BenchmarkDefaultRun(b *testing.B) {
	for _, m := range []string{Transformer, MLP} {
		b.Run(m, func(b *testing.B) {
			for b.Loop() {
				s, err := New(Default(m))
				require.NoError(b, err)
				for !s.Done() {
					require.NoError(b, s.Step())
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
		})
	}
}
