package importer

import (
	"cmp"
	"slices"
	"strings"

	"distopt/core/scenario"
)

// draft is a document that is being written: values of fields, and from where each comes.
type draft struct {
	values []draftValue
	from   map[string]*option
}

type draftValue struct{ path, value, comment string }

// set gives a field its value. f is where it comes from, nil for a default.
func (d *draft) set(path, value string, f *option, comment string) {
	if f != nil {
		d.from[path] = f
	}
	for i := range d.values {
		if d.values[i].path == path {
			d.values[i] = draftValue{path, value, comment}
			return
		}
	}
	d.values = append(d.values, draftValue{path, value, comment})
}

func (d *draft) has(path string) bool {
	return slices.ContainsFunc(d.values, func(v draftValue) bool { return v.path == path })
}

func (d *draft) value(path string) string {
	for i := range d.values {
		if d.values[i].path == path {
			return d.values[i].value
		}
	}
	return ""
}

// sections of a document in their order; those inside others stand behind them.
var sections = []string{"trainer", "model", "model.tokenizer", "model.optim", "hardware", "framework", "framework.mcore"}

// text writes the document: sections in their order, keys in that of the field table. What was not
// given and has the default of its field is left out.
func (d *draft) text(header string) string {
	order := make(map[string]int, len(scenario.Fields))
	name := d.value("model.optim.name")
	for i := range scenario.Fields {
		order[scenario.Fields[i].Path] = i
	}
	slices.SortStableFunc(d.values, func(a, b draftValue) int { return cmp.Compare(order[a.path], order[b.path]) })
	var b strings.Builder
	b.WriteString("# " + header + "\n")
	open := ""
	for _, section := range sections {
		for _, v := range d.values {
			key, ok := strings.CutPrefix(v.path, section+".")
			if !ok || strings.Contains(key, ".") {
				continue
			}
			if f, _ := scenario.ByPath(v.path); d.from[v.path] == nil && v.comment != "assumed" && v.path != "model.optim.name" && same(f, v.value, name) {
				continue
			}
			if open != section {
				d.begin(&b, open, section)
				open = section
			}
			b.WriteString(strings.Repeat("  ", 1+strings.Count(section, ".")) + key + ": " + v.value)
			if v.comment != "" {
				b.WriteString(" # " + scenario.Visible(v.comment))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// begin writes the keys that lead from one section to another.
func (d *draft) begin(b *strings.Builder, from, to string) {
	had, keys := strings.Split(from, "."), strings.Split(to, ".")
	if had[0] != keys[0] {
		b.WriteByte('\n')
		had = nil
	}
	for i, k := range keys {
		if i < len(had) && had[i] == k {
			continue
		}
		b.WriteString(strings.Repeat("  ", i) + k + ":\n")
	}
}

// same reports whether a field has the value by default.
func same(f *scenario.Field, value, optimizer string) bool {
	s := scenario.Default(optimizer)
	def := f.Get(&s)
	return f.Set(&s, value) == nil && f.Get(&s) == def
}

// finish reads the document as any other, with its remarks at the words that they come from.
func (t *translation) finish() {
	kind := "a list of Megatron-LM flags"
	if t.out.Kind == MegatronYAML {
		kind = "a Megatron-LM model_config.yaml"
	}
	t.out.Document = t.doc.text("From " + kind + ".")
	inner := Read(t.out.Document)
	t.out.Scenario = inner.Scenario
	for _, d := range inner.Diagnostics {
		at := t.first
		if f := t.doc.from[d.Path]; f != nil {
			if at = f.at; len(f.values) > 0 {
				at = f.values[0]
			}
		}
		d.Line, d.Col, d.EndCol = at.line, at.col, at.end
		t.out.Diagnostics = append(t.out.Diagnostics, d)
	}
}
