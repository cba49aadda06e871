package main

import (
	"fmt"
	"regexp"
)

// numbers runs the benchmarks of the exact arithmetic: the FP8 cast, one step of the optimizer, and
// the run that the lab opens with.
func numbers() ([]row, error) {
	var rows []row
	for _, b := range []struct {
		what, pkg, benchmarks, time string
		line                        *regexp.Regexp
		unit                        string
		budgets                     [2]string
	}{
		{
			"fp32 to E4M3", "./core/dtype", "^BenchmarkCastE4M3$", "1s",
			regexp.MustCompile(`(?m)^BenchmarkCastE4M3\S*.*?([\d.]+) Melem/s`), "million elements/s", [2]string{"at least 250", "a quarter of native"},
		},
		{
			"one step, 10 million parameters on 4 ranks, %s", "./core/optim/arrays", "^BenchmarkAdamStep10M4Ranks$", "5x",
			regexp.MustCompile(`(?m)^BenchmarkAdamStep10M4Ranks/([a-z0-9]+)\S*.*?([\d.]+) s/step`), "s", [2]string{"", "1 s"},
		},
		{
			"the lab's default run, %s", "./core/lab", "^BenchmarkDefaultRun$", "1x",
			regexp.MustCompile(`(?m)^BenchmarkDefaultRun/([a-z0-9]+)\S*.*?([\d.]+) s/run`), "s", [2]string{"", "10 s"},
		},
	} {
		for i := range targets {
			out, err := goBench(i, b.benchmarks, b.time, b.pkg)
			if err != nil {
				return nil, err
			}
			for _, m := range b.line.FindAllSubmatch(out, -1) {
				what := b.what
				if len(m) > 2 {
					what = fmt.Sprintf(what, m[1])
				}
				rows = append(rows, row{what + ", " + targets[i].name, b.budgets[i], fmt.Sprintf("%s %s", m[len(m)-1], b.unit)})
			}
		}
	}
	return rows, nil
}
