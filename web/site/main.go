// Command site turns the work tree into a folder that any file server can serve under any path:
// every file that the page loads gets its content's hash in its name, so that a browser may keep it
// for ever and never mixes two builds. It prints what a first visit loads, and fails when that is
// more than the budget.
//
// The same tree gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "root of the repository, with web/static/app.wasm built")
	out := flag.String("out", "dist", "folder to write; what it holds is removed")
	weigh := flag.Bool("weigh", true, "print the sizes and check them against the budget")
	flag.Parse()
	if err := run(*root, *out, *weigh); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out string, weigh bool) error {
	files, err := collect(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(out, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
	}
	if !weigh {
		return nil
	}
	return report(os.Stdout, files, budget)
}
