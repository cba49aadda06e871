package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// engine runs the benchmark of the event engine natively and as WebAssembly under Node.
func engine() ([]row, error) {
	var rows []row
	for _, target := range []struct {
		name, budget string
		environment  []string
		arguments    []string
	}{
		{"native", "150 ns", nil, nil},
		{"WebAssembly", "400 ns", []string{"GOOS=js", "GOARCH=wasm"}, []string{"-exec", filepath.Join(directory(), ".ci", "wasm_exec")}},
	} {
		c := exec.Command("go", append(append([]string{"test"}, target.arguments...), "-run=^$", "-bench=^BenchmarkEngine$", "-benchtime=1s", "./core/sched")...)
		c.Env = append(os.Environ(), target.environment...)
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("engine, %s: %w", target.name, err)
		}
		for _, m := range engineLine.FindAllSubmatch(out, -1) {
			rows = append(rows, row{
				fmt.Sprintf("event engine, a task of %s, %s", m[3], target.name), target.budget + ", 0 allocations",
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
