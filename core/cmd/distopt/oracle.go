package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"distopt/core/oracle"
	"distopt/core/scenario"
)

// maxCase bounds a reference case. Larger files are something else.
const maxCase = 256 << 20

// checked is the outcome of one file.
type checked struct {
	Path   string `json:"path"`
	Kind   string `json:"kind,omitempty"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	Note   string `json:"note,omitempty"` // how it agrees, where that is not all to the bit

	status oracle.Status
}

// tally counts the outcomes of a kind.
type tally struct {
	Kind    string `json:"kind"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// noCase names the files that are no reference cases.
const noCase = "other"

// runOracle checks all cases below a folder.
func runOracle(e *env) error {
	dir := e.args.operands[0]
	files, err := casesBelow(dir)
	if err != nil {
		return err
	}
	results := checkAll(files)
	tallies := count(results)
	if e.args.set["json"] {
		if err := e.json(struct {
			Files []checked `json:"files"`
			Kinds []tally   `json:"kinds"`
		}{results, tallies}); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			fmt.Fprintln(e.stdout, outcome(r))
		}
		for _, t := range tallies {
			fmt.Fprintf(e.stdout, "%s %d passed, %d failed, %d skipped\n", t.Kind, t.Passed, t.Failed, t.Skipped)
		}
	}
	known, failed := 0, 0
	for _, t := range tallies {
		failed += t.Failed
		if t.Kind != noCase {
			known += t.Passed + t.Failed + t.Skipped
		}
	}
	switch {
	case known == 0:
		return fmt.Errorf("no reference case in %s", dir)
	case failed > 0:
		return errSilent
	}
	return nil
}

// casesBelow lists the files below a folder, or the one file, in the order of their paths.
func casesBelow(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, plainError("read", dir, err)
	}
	if !info.IsDir() {
		return []string{dir}, nil
	}
	root, err := filepath.EvalSymlinks(dir) // a walk does not follow links, not even its root
	if err != nil {
		return nil, plainError("read", dir, err)
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return plainError("read", path, err)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				return nil
			}
		} else if !d.Type().IsRegular() {
			return nil
		}
		if rel, err := filepath.Rel(root, path); err == nil {
			path = filepath.Join(dir, rel)
		}
		files = append(files, path)
		return nil
	})
	return files, err
}

// checkAll checks files side by side and returns the outcomes in their order.
func checkAll(files []string) []checked {
	results := make([]checked, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.NumCPU(), max(1, len(files))) {
		workers.Go(func() {
			for i := range next {
				results[i] = check(files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// check finds out what a file is and checks it. A check that panics has failed.
func check(path string) (c checked) {
	c.Path = path
	defer func() {
		if p := recover(); p != nil {
			c.status, c.Error = oracle.Failed, fmt.Sprint("the check broke down: ", p)
			if c.Kind == "" {
				c.Kind = oracle.Unreadable
			}
		}
		c.Status = statusNames[c.status]
	}()
	f, err := os.Open(path)
	if err != nil {
		c.Kind, c.status, c.Error = oracle.Unreadable, oracle.Failed, plainError("read", path, err).Error()
		return c
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCase+1))
	if err != nil {
		c.Kind, c.status, c.Error = oracle.Unreadable, oracle.Failed, plainError("read", path, err).Error()
		return c
	}
	if len(data) > maxCase {
		c.status = oracle.Skipped
		return c
	}
	r := oracle.Run(data)
	c.Kind, c.status, c.Note = r.Kind, r.Status, r.Note
	if r.Err != nil {
		c.Error = r.Err.Error()
	}
	return c
}

var statusNames = map[oracle.Status]string{oracle.Passed: "passed", oracle.Failed: "failed", oracle.Skipped: "skipped"}

// count adds up outcomes by kind, in the order of the kinds.
func count(results []checked) []tally {
	names := make([]string, 0, len(oracle.Kinds)+3)
	for _, k := range oracle.Kinds {
		names = append(names, k.Name)
	}
	names = append(names, oracle.Casts, oracle.Unreadable, noCase)
	at := make(map[string]*tally, len(names))
	all := make([]tally, len(names))
	for i, n := range names {
		all[i].Kind = n
		at[n] = &all[i]
	}
	for _, r := range results {
		t := at[r.Kind]
		if t == nil {
			t = at[noCase]
		}
		switch r.status {
		case oracle.Passed:
			t.Passed++
		case oracle.Failed:
			t.Failed++
		default:
			t.Skipped++
		}
	}
	found := all[:0]
	for _, t := range all {
		if t.Passed+t.Failed+t.Skipped > 0 {
			found = append(found, t)
		}
	}
	return found
}

// outcome writes the outcome of a file on one line.
func outcome(c checked) string {
	kind := c.Kind
	if kind == "" {
		kind = "no reference case"
	}
	line := fmt.Sprintf("%-7s %s (%s)", c.Status, scenario.Visible(c.Path), kind)
	if c.Error != "" {
		line += ": " + scenario.Visible(c.Error)
	}
	if c.Note != "" {
		line += ": " + c.Note
	}
	return line
}
