package report_test

import (
	"testing"

	"distopt/core/report"
)

// BenchmarkMake reports on the opening preset and on the largest: 1T parameters on 64 stages of two
// chunks, 512 microbatches.
func BenchmarkMake(b *testing.B) {
	largest := run{layers: 128, hidden: 25600, heads: 160, tp: 8, pp: 64, vp: 2, dp: 6, micros: 512, cap: 400, newNeMo: true, newApex: true, overlapP2P: true}
	for _, c := range []struct {
		name string
		run  run
	}{{"5B", preset5B()}, {"1T", largest}} {
		b.Run(c.name, func(b *testing.B) {
			in := c.run.simulate(b)
			b.ReportAllocs()
			var r *report.Result
			for b.Loop() {
				var err error
				if r, err = report.Make(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(r.Figures.Tasks), "ns/task")
			b.ReportMetric(float64(r.Figures.Tasks), "tasks")
			b.ReportMetric(float64(r.Figures.Spans), "spans")
		})
	}
}
