package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"distopt/core/importer"
	"distopt/core/scenario"
)

// maxInput bounds what is read of a file; the importer names its own, lower limit.
const maxInput = 8 << 20

// document is a configuration file.
type document struct {
	file string // as the command line names it
	text string
}

// read reads a file, or standard input for "-".
func (e *env) read(file string) (document, error) {
	var r io.Reader = e.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return document{}, plainError("read", file, err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	d := document{file, string(data)}
	switch {
	case err != nil:
		return document{}, plainError("read", d.name(), err)
	case len(data) > maxInput:
		return document{}, fmt.Errorf("cannot read %s: it has more than %d MiB; at most %d KiB are read", d.name(), maxInput>>20, importer.MaxText>>10)
	}
	return d, nil
}

// plainError says what could not be done with a file, once.
func plainError(verb, file string, err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("cannot %s %s: %v", verb, file, err)
}

// name is what a document is called in remarks.
func (d document) name() string {
	if d.file == "-" {
		return "standard input"
	}
	return d.file
}

// scenario reads a document and prints what is wrong with it. The error is errSilent if it
// cannot be simulated.
func (e *env) scenario(d document) (*importer.Reading, error) {
	r := importer.Read(d.text)
	for _, x := range r.Diagnostics {
		if x.Severity <= importer.Warning {
			fmt.Fprintln(e.stderr, remark(d, x))
		}
	}
	if !r.OK() {
		return r, errSilent
	}
	if r.Scenario.Name == "" {
		r.Scenario.Name = d.name()
	}
	return r, nil
}

// remark writes a diagnostic as compilers do.
func remark(d document, x importer.Diagnostic) string {
	text := fmt.Sprintf("%s:%d:%d: %v: ", d.name(), x.Line, x.Col, x.Severity)
	if x.Path != "" && !strings.HasPrefix(x.Message, x.Path+" ") {
		text += x.Path + ": "
	}
	if x.Fix == "" {
		return text + x.Message
	}
	return text + strings.TrimSuffix(x.Message, ".") + "; " + x.Fix
}

// presetOf returns the ID of the preset whose text d is.
func presetOf(text string) string {
	for _, p := range scenario.Presets() {
		if p.Text == text {
			return p.ID
		}
	}
	return ""
}
