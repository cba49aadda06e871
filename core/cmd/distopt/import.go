package main

import (
	"fmt"

	"distopt/core/importer"
	"distopt/core/scenario"
	"distopt/core/units"
)

// imported is what import -json prints.
type imported struct {
	Kind        string                `json:"kind"`
	Name        string                `json:"name"`
	Document    string                `json:"document,omitempty"`
	Fields      []fieldValue          `json:"fields"`
	Derived     scenario.Derived      `json:"derived"`
	Diagnostics []importer.Diagnostic `json:"diagnostics"`
	Keys        []importer.Key        `json:"keys"`
}

type fieldValue struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// runImport says what became of each key.
func runImport(e *env) error {
	d, err := e.read(e.args.operands[0])
	if err != nil {
		return err
	}
	r := importer.Read(d.text)
	switch {
	case e.args.set["yaml"]:
		text := r.Document
		if text == "" {
			text = d.text
		}
		fmt.Fprint(e.stdout, text)
	case e.args.set["json"]:
		out := imported{
			Kind: r.Kind.String(), Name: r.Scenario.Name, Document: r.Document, Derived: r.Scenario.Derive(),
			Diagnostics: append([]importer.Diagnostic{}, r.Diagnostics...), Keys: append([]importer.Key{}, r.Keys...),
		}
		for i := range scenario.Fields {
			if f := &scenario.Fields[i]; f.Applies(&r.Scenario) {
				out.Fields = append(out.Fields, fieldValue{f.Path, f.Get(&r.Scenario)})
			}
		}
		if err := e.json(out); err != nil {
			return err
		}
	default:
		e.listKeys(d, r)
	}
	for _, x := range r.Diagnostics {
		fmt.Fprintln(e.stderr, remark(d, x))
	}
	if !r.OK() {
		return errSilent
	}
	return nil
}

// listKeys writes the keys by what became of them.
func (e *env) listKeys(d document, r *importer.Reading) {
	counts := map[importer.Status]int{}
	for _, k := range r.Keys {
		counts[k.Status]++
	}
	fmt.Fprintf(e.stdout, "%s: %v\n", d.name(), r.Kind)
	for _, s := range []importer.Status{importer.Used, importer.Unsupported, importer.Unknown, importer.NoEffect} {
		if counts[s] == 0 {
			continue
		}
		fmt.Fprintf(e.stdout, "\n%d %v\n", counts[s], s)
		for _, k := range r.Keys {
			if k.Status == s {
				fmt.Fprintf(e.stdout, "%6d:%-3d %s\n", k.Line, k.Col, describe(k))
			}
		}
	}
	if v := r.Scenario.Derive(); r.OK() {
		fmt.Fprintf(e.stdout, "\nDP %d, %d microbatches, %s parameters", v.DP, v.Microbatches, units.Count(v.Parameters))
		if v.BucketSize > 0 {
			fmt.Fprintf(e.stdout, ", buckets of %v elements", v.BucketSize)
		}
		fmt.Fprintln(e.stdout)
	}
}

// describe says what became of a key.
func describe(k importer.Key) string {
	text := k.Path
	if k.Count > 1 {
		text += fmt.Sprintf(" (%d values)", k.Count)
	}
	if k.Status == importer.Used {
		text += " = " + k.Value
	}
	if k.Why != "" {
		text += ": " + k.Why
	}
	if k.Near != "" {
		text += ": perhaps " + k.Near
	}
	return text
}
