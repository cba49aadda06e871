package step_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/step"
)

// The largest preset: 128 layers on 64 stages with two chunks each, 512 microbatches.
func BenchmarkRecordLargest(b *testing.B) {
	in := pipeline(b, 64, 2)
	for b.Loop() {
		rec, err := step.Record(in, config(512, false))
		require.NoError(b, err)
		b.ReportMetric(float64(len(rec.Program.Tasks)), "tasks")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rec.Program.Tasks)), "ns/task")
	}
}
