package importer

import (
	"strconv"
	"strings"

	"distopt/core/scenario"
)

// draft is a document that is being written: values of fields, and from where each comes.
type draft []draftValue

type draftValue struct {
	path, value, comment string
	from                 *option // nil: what applies without a flag
}

// find returns the value of a field, nil if it has none.
func (d draft) find(path string) *draftValue {
	for i := range d {
		if d[i].path == path {
			return &d[i]
		}
	}
	return nil
}

func (d draft) has(path string) bool { return d.find(path) != nil }

// value returns what find does as text, nothing if there is none.
func (d draft) value(path string) string {
	if v := d.find(path); v != nil {
		return v.value
	}
	return ""
}

// number returns what value does as a number, or what applies without one.
func (d draft) number(path string, without int) int {
	if n, err := strconv.Atoi(d.value(path)); err == nil {
		return n
	}
	return without
}

// set gives a field its value.
//
//go:noinline
func (d *draft) set(path, value string, from *option, comment string) {
	v := d.find(path)
	if v == nil {
		*d = append(*d, draftValue{path: path})
		v = &(*d)[len(*d)-1]
	}
	v.value, v.comment = value, comment
	if from != nil {
		v.from = from
	}
}

// sections of a document in their order; those inside others stand behind them.
var sections = []string{"trainer", "model", "model.tokenizer", "model.optim", "hardware", "framework", "framework.mcore"}

const assumed = "assumed"

// text writes the document: sections in their order, keys in that of the field table. What was not
// given and has the default of its field is left out.
func (d draft) text(header string) string {
	var b strings.Builder
	b.WriteString("# " + header + "\n")
	open := ""
	def := scenario.Default(d.value(namePath))
	for _, section := range sections {
		for i := range scenario.Fields {
			f := &scenario.Fields[i]
			v := d.find(f.Path)
			dot := strings.LastIndexByte(f.Path, '.')
			if v == nil || f.Path[:dot] != section {
				continue
			}
			if v.from == nil && v.comment != assumed && f.Path != namePath && f.Get(&def) == v.value {
				continue
			}
			if open != section {
				begin(&b, open, section)
				open = section
			}
			b.WriteString(strings.Repeat("  ", 1+strings.Count(section, ".")) + f.Path[dot+1:] + ": " + v.value)
			if v.comment != "" {
				b.WriteString(" # " + scenario.Visible(v.comment))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// begin writes the keys that lead from one section to another.
func begin(b *strings.Builder, from, to string) {
	parent, _, _ := strings.Cut(from, ".")
	top, below, inside := strings.Cut(to, ".")
	if top != parent {
		b.WriteString("\n" + top + ":\n")
	}
	if inside {
		b.WriteString("  " + below + ":\n")
	}
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
		if v := t.doc.find(d.Path); v != nil && v.from != nil {
			at = v.from.place()
		}
		d.Line, d.Col, d.EndCol = at.line, at.col, at.end
		t.out.Diagnostics = append(t.out.Diagnostics, d)
	}
}
