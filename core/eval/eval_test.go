package eval

import (
	"testing"

	"distopt/core/importer"
	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// BenchmarkEvaluate times a warm evaluation of every preset: record, price, simulate, report.
func BenchmarkEvaluate(b *testing.B) {
	for _, p := range scenario.Presets() {
		b.Run(p.ID, func(b *testing.B) {
			r := importer.Read(p.Text)
			require.True(b, r.OK())
			var x Simulator
			for b.Loop() {
				out, err := x.Evaluate(&r.Scenario)
				require.NoError(b, err)
				require.NotZero(b, out.Figures.StepTime)
			}
		})
	}
}
