package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// targets are what Go benchmarks run on: this machine's own architecture, and WebAssembly under Node.
var targets = []struct {
	name        string
	environment []string
	arguments   []string
}{
	{"native", nil, nil},
	{"WebAssembly", []string{"GOOS=js", "GOARCH=wasm"}, []string{"-exec", filepath.Join(directory(), ".ci", "wasm_exec")}},
}

// goBench runs Go benchmarks of a package on one of the targets and returns their report.
func goBench(target int, benchmarks, time, pkg string) ([]byte, error) {
	t := targets[target]
	c := exec.Command("go", append(append([]string{"test"}, t.arguments...), "-run=^$", "-bench="+benchmarks, "-benchtime="+time, pkg)...)
	c.Env = append(os.Environ(), t.environment...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", pkg, t.name, err)
	}
	return out, nil
}

// engine runs the benchmark of the event engine.
func engine() ([]row, error) {
	var rows []row
	for i, budget := range []string{"150 ns", "400 ns"} {
		out, err := goBench(i, "^BenchmarkEngine$", "1s", "./core/sched")
		if err != nil {
			return nil, err
		}
		for _, m := range engineLine.FindAllSubmatch(out, -1) {
			rows = append(rows, row{
				fmt.Sprintf("event engine, a task of %s, %s", m[3], targets[i].name), budget + ", 0 allocations",
				fmt.Sprintf("%s ns, %s allocations a run", m[2], m[4]),
			})
		}
	}
	return rows, nil
}

var engineLine = regexp.MustCompile(`(?m)^BenchmarkEngine/(\S+).*?([\d.]+) ns/task\s+([\d.]+ tasks).*?(\d+) allocs/op`)

func directory() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}
