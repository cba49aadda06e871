// Command bench measures the budgets of the project and prints them as a table: what a budget is
// for, what it is, what this machine does. It fails only when it cannot measure.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// runs is how many warm runs a median is taken of.
const runs = 10

// row is one line of the table.
type row struct{ what, budget, measured string }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parts measure some budgets each, by the name that -only takes.
var parts = []struct {
	name    string
	measure func() ([]row, error)
}{
	{"native", native}, {"engine", engine}, {"numbers", numbers}, {"browser", inBrowser},
}

func run() error {
	only := flag.String("only", "", "measure only these parts, comma-separated: "+names())
	flag.Parse()
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if *only != "" && !slices.Contains(strings.Split(names(), ", "), name) {
			return fmt.Errorf("-only: got %q, want some of %s", name, names())
		}
	}
	var rows []row
	for _, part := range parts {
		if *only != "" && !slices.Contains(wanted, part.name) {
			continue
		}
		found, err := part.measure()
		if err != nil {
			return err
		}
		rows = append(rows, found...)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Printf("%d processors, load average %s\n", runtime.NumCPU(), bytes.TrimSpace(load))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tbudget\tmeasured")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.what, r.budget, r.measured)
	}
	return table.Flush()
}

func names() string {
	var all []string
	for _, part := range parts {
		all = append(all, part.name)
	}
	return strings.Join(all, ", ")
}

// median returns the middle of some measurements.
func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// timed returns the median time of warm runs of f, in ms.
func timed(n int, f func() error) (float64, error) {
	var all []float64
	for i := range n + 1 {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if i > 0 {
			all = append(all, milliseconds(time.Since(began)))
		}
	}
	return median(all), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
