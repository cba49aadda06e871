package importer

import (
	"fmt"
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// field reads a field's value.
func (r *reader) field(n *node, f *scenario.Field) {
	r.at[f.Path] = n
	v, err := r.eval.eval(n)
	if !f.Applies(&r.out.Scenario) && (err != nil || v.kind == aSection || f.Set(&r.out.Scenario, v.text) != nil) {
		r.key(n, f.Path, NoEffect, f.WithoutEffect(&r.out.Scenario))
		return
	}
	if err != nil {
		r.report(Error, n, f.Path, err.Error())
		r.reject(n, f)
		return
	}
	if v.kind == aSection && f.Kind == scenario.Text && v.node.isList() {
		v = listText(v.node)
	}
	if v.kind == aSection {
		what := "a list"
		if v.node.isMap() {
			what = "a section"
		}
		d := r.diagnostic(Error, n, f.Path, "got "+what+", want "+f.Want())
		d.Fix = "write one value behind the key"
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		r.reject(n, f)
		return
	}
	if wrong := f.Set(&r.out.Scenario, v.text); wrong != nil {
		if f.Path == "model.optim.name" {
			wrong = otherOptimizer(wrong)
		}
		r.reportField(n, wrong)
		r.reject(n, f)
		return
	}
	k := r.key(n, f.Path, Used, v.source)
	k.Value = f.Get(&r.out.Scenario)
	if f.Path == "model.optim.name" && r.out.Scenario.Family() != scenario.FamilyNeMo {
		k.Why = r.out.Scenario.Family().String()
	}
	if !f.Applies(&r.out.Scenario) {
		k.Status, k.Value, k.Why = NoEffect, "", f.WithoutEffect(&r.out.Scenario)
	}
}

// listText writes a list of values as a text; one that holds more is no value.
func listText(n *node) value {
	items := make([]string, len(n.children))
	for i, c := range n.children {
		if !c.isScalar() {
			return value{kind: aSection, node: n}
		}
		items[i] = c.yaml.Value
	}
	return textValue("[" + strings.Join(items, ",") + "]")
}

func (r *reader) reject(n *node, f *scenario.Field) {
	r.invalid = append(r.invalid, f.Path)
	r.key(n, f.Path, Unsupported, "its value could not be used")
}

// otherOptimizer says of an optimizer that is not simulated that it is not.
func otherOptimizer(e *scenario.FieldError) *scenario.FieldError {
	e.Want += ": no other optimizer is simulated"
	e.Edits = []scenario.Edit{{Path: e.Path, Value: scenario.NeMoAdam}}
	e.Fix = "set " + e.Path + " to " + scenario.NeMoAdam + " to simulate Apex's with this model"
	return e
}

// assumption compares a key with the one value that is simulated.
func (r *reader) assumption(n *node, a *assumption) {
	r.at[a.path] = n
	v, err := r.eval.eval(n)
	same := err == nil && (v.kind == aNull || sameValue(v.text, a.value))
	switch {
	case err != nil && a.severity == Error:
		r.report(Error, n, a.path, err.Error())
		r.key(n, a.path, Unsupported, "its value could not be read")
	case same:
		r.key(n, a.path, NoEffect, "simulated with this value")
	default:
		got := scenario.Quote(v.text)
		if v.kind == aSection {
			got = "a section or list"
		}
		message := fmt.Sprintf("got %s, want %s: %s", got, a.value, a.why)
		edits := []scenario.Edit{{Path: a.path, Value: a.value}}
		d := r.diagnostic(a.severity, n, a.path, message)
		d.Fix, d.Edits = "set "+a.path+" to "+a.value, edits
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		r.key(n, a.path, Unsupported, a.why)
	}
}

// sameValue compares values as a document writes them.
func sameValue(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	switch strings.ToLower(a) {
	case "no", "off", "n":
		return b == "false"
	case "yes", "on", "y":
		return b == "true"
	}
	return false
}

// unknownKey is a key that nothing is known of, and where it is listed.
type unknownKey struct {
	node *node
	path string
	key  int
}

// unknown lists a key that nothing is known of.
func (r *reader) unknown(n *node, path string) {
	r.unknowns = append(r.unknowns, unknownKey{n, path, len(r.out.Keys)})
	r.key(n, path, Unknown, "")
}

// reportUnknown remarks on the unknown keys, once it is known which of them others refer to.
func (r *reader) reportUnknown(shared map[*yaml.Node]bool) {
	reports := 0
	for _, u := range r.unknowns {
		k := &r.out.Keys[u.key]
		if u.node.referred(shared) {
			k.Status, k.Why = NoEffect, "none by itself, but others refer to it"
			continue
		}
		if reports++; reports > maxReports {
			continue
		}
		k.Near = known.nearest(u.path)
		d := Diagnostic{Line: k.Line, Col: k.Col, EndCol: k.EndCol, Severity: Warning, Path: k.Path}
		d.Message = scenario.Quote(u.path) + " is not a key and is ignored."
		switch {
		case reports == maxReports:
			d.Message = "More keys are not known and are ignored, from here on without a remark."
		case k.Near != "":
			d.Message += " Did you mean " + k.Near + "?"
		}
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
}

// key lists a key, and returns its entry.
//
//go:noinline
func (r *reader) key(n *node, path string, s Status, why string) *Key {
	r.out.Keys = append(r.out.Keys, Key{
		Path: scenario.Visible(path), Line: n.key.Line, Col: n.key.Column, EndCol: r.src.end(n.key),
		Status: s, Why: why, Count: n.leaves(),
	})
	return &r.out.Keys[len(r.out.Keys)-1]
}
