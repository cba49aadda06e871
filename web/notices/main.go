// Command notices writes THIRD_PARTY_NOTICES: the licence of everything that the site bundles. Go's
// own and those of the modules linked into the program come from the toolchain and the module cache,
// those of the editor from web/editor/LICENSES.txt, which its build writes.
//
// With -check it writes nothing and fails when the file is not current.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

const (
	target = "THIRD_PARTY_NOTICES"
	editor = "web/editor/LICENSES.txt"
)

func main() {
	check := flag.Bool("check", false, "only say whether "+target+" is current")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	text, err := notices()
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(target, text, 0o644)
	}
	old, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, text) {
		return errors.New(target + " is not current; run: make notices")
	}
	return nil
}

func notices() ([]byte, error) {
	out := bytes.NewBufferString("Distopt Playground bundles the following software. Its own licence is in LICENSE.\n\n")
	goroot, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := section(out, "The Go standard library and wasm_exec.js", string(bytes.TrimSpace(goroot))); err != nil {
		return nil, err
	}
	modules, err := linked()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := section(out, m.Path+" "+m.Version, m.Dir); err != nil {
			return nil, err
		}
	}
	bundled, err := os.ReadFile(filepath.FromSlash(editor))
	if err != nil {
		return nil, err
	}
	out.Write(bundled)
	return out.Bytes(), nil
}

// section appends the licence files that lie in dir.
func section(out io.Writer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !licence.MatchString(e.Name()) || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "=== %s\n\n%s\n\n", title, bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	}
	if !found {
		return fmt.Errorf("%s: no licence file in %s", title, dir)
	}
	return nil
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|patents)(\.|$)`)

type module struct{ Path, Version, Dir string }

// linked returns the modules, other than this one, with a package in the program.
func linked() ([]module, error) {
	list := exec.Command("go", "list", "-deps", "-json=Module", "./wasm")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	list.Stderr = os.Stderr
	data, err := list.Output()
	if err != nil {
		return nil, err
	}
	var modules []module
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil && p.Module.Version != "" && !slices.Contains(modules, *p.Module) {
			modules = append(modules, *p.Module)
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

func output(name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	return c.Output()
}
