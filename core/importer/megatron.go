package importer

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/scenario"
)

// translation turns the flags of Megatron-LM into a document with this program's keys, and knows
// from which word each of its values comes.
type translation struct {
	out   *Reading
	line  commandLine
	given map[string]*option // by name, the last one counts
	vars  map[string]string
	doc   draft
	first *word // where remarks on nothing in particular go
}

// translate reads the flags of a text whose kind is known.
func (r *reader) translate(line commandLine) {
	t := translation{out: &r.out, line: line, given: map[string]*option{}, vars: map[string]string{}}
	t.first = &word{line: 1, col: 1, end: 2}
	for i := range line.env {
		t.vars[line.env[i].name] = line.env[i].value()
	}
	for i := range line.flags {
		f := &line.flags[i]
		if i == 0 {
			t.first = &f.at
		}
		t.expand(f)
		if !f.off {
			t.given[f.name] = f
		}
	}
	t.variables()
	t.flags()
	t.rest()
	t.world()
	t.finish()
}

// expand puts the values of variables of the text in place of $NAME and ${NAME:-default}.
func (t *translation) expand(f *option) {
	for i := range f.values {
		name, ok := strings.CutPrefix(f.values[i].text, "$")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
		name, def, _ := strings.Cut(name, ":-")
		if v := t.vars[name]; v != "" && v[0] != '$' {
			def = v
		}
		if def != "" {
			f.values[i].text = def
		}
	}
}

func (t *translation) has(name string) bool { return t.given[name] != nil }

// number returns the integer behind a flag, or what applies without it.
func (t *translation) number(name string, without int) int {
	if f := t.given[name]; f != nil {
		if n, err := strconv.Atoi(strings.ReplaceAll(f.value(), "_", "")); err == nil {
			return n
		}
	}
	return without
}

//go:noinline
func (t *translation) report(s Severity, at *word, path, message string) {
	t.out.Diagnostics = append(t.out.Diagnostics, Diagnostic{Line: at.line, Col: at.col, EndCol: at.end, Severity: s, Path: path, Message: message})
}

// key lists a flag, and returns its entry.
//
//go:noinline
func (t *translation) key(f *option, s Status, why string) *Key {
	t.out.Keys = append(t.out.Keys, Key{
		Path: scenario.Visible(f.at.text), Line: f.at.line, Col: f.at.col, EndCol: f.at.end,
		Status: s, Why: why, Count: max(1, len(f.values)),
	})
	return &t.out.Keys[len(t.out.Keys)-1]
}

func (t *translation) idle(f *option, why string) { t.key(f, NoEffect, why) }

// used lists a flag that gives the field at path its value.
//
//go:noinline
func (t *translation) used(f *option, path, value string) {
	t.doc.set(path, value, f, f.comment)
	t.key(f, Used, path).Value = scenario.Visible(value)
}

// variables lists the environment.
func (t *translation) variables() {
	for i := range t.line.env {
		f := &t.line.env[i]
		path := variable(f.name)
		switch {
		case path == "":
			t.idle(f, "a variable that does not decide about a step")
		case path == nodesPath && t.has("nnodes"), path == devicesPath && t.has("nproc-per-node"):
			t.idle(f, "the flag counts")
		default:
			if n, err := strconv.Atoi(f.value()); err == nil && n > 0 {
				t.used(f, path, strconv.Itoa(n))
			} else {
				t.idle(f, "no number")
			}
		}
	}
}

const (
	nodesPath   = "trainer.num_nodes"
	devicesPath = "trainer.devices"
	namePath    = "model.optim.name"
	connections = "framework.mcore.cuda_device_max_connections"
)

// variable returns the field that an environment variable says something of, or nothing.
func variable(name string) string {
	switch name {
	case "CUDA_DEVICE_MAX_CONNECTIONS":
		return connections
	case "NNODES", "NUM_NODES", "SLURM_NNODES":
		return nodesPath
	case "GPUS_PER_NODE", "NPROC_PER_NODE":
		return devicesPath
	}
	return ""
}

// flags goes through the flags in their order.
func (t *translation) flags() {
	unknown := 0
	for i := range t.line.flags {
		f := &t.line.flags[i]
		r := megatron.rule(f.name)
		switch {
		case f.off:
			t.idle(f, "false: not given")
			continue
		case t.given[f.name] != f:
			t.idle(f, "given again below, where it counts")
			continue
		case r.kind == unknownFlag:
			k := t.key(f, Unknown, "")
			if unknown++; unknown < maxReports {
				k.Near, _ = scenario.Nearest(f.name, megatron.names)
				message := scenario.Quote(f.at.text) + " is not a flag that is known here, and is ignored."
				if k.Near != "" {
					k.Near = "--" + k.Near
					message += " Did you mean " + k.Near + "?"
				}
				t.report(Warning, &f.at, k.Path, message)
			}
			continue
		case r.takes && (r.kind == valueFlag || r.kind == ownFlag) && len(f.values) != 1, !r.takes && len(f.values) > 0:
			want := "one value"
			if !r.takes {
				want = "no value"
			}
			t.wrong(f, f.text(), fmt.Sprintf("got %d values, want %s behind %s", len(f.values), want, f.text()))
			continue
		case strings.HasPrefix(f.value(), "$") && (r.kind == valueFlag || r.kind == ownFlag) && !strings.HasPrefix(f.name, "tokenizer"):
			t.wrong(f, r.path, "The variable "+scenario.Quote(f.value())+" has no value here; write the value in its place.")
			continue
		}
		t.apply(f, r)
	}
}

// wrong lists a flag whose value cannot be used.
//
//go:noinline
func (t *translation) wrong(f *option, path, message string) {
	t.report(Error, f.place(), path, message)
	t.key(f, Unsupported, "its value could not be used")
	delete(t.given, f.name)
}

// apply makes of a flag what its rule says.
func (t *translation) apply(f *option, r flagRule) {
	switch r.kind {
	case valueFlag:
		field, _ := scenario.ByPath(r.path)
		var probe scenario.Scenario
		if e := field.Set(&probe, f.value()); e != nil {
			t.wrong(f, r.path, e.Problem())
			return
		}
		t.used(f, r.path, field.Get(&probe))
	case switchFlag:
		t.used(f, r.path, r.value)
	case ownFlag:
		t.own(f)
	case idleFlag:
		t.idle(f, r.reason)
	default:
		if r.value != "" && f.value() == r.value {
			t.idle(f, "simulated with this value")
			return
		}
		s := Warning
		if r.kind == refusedFlag {
			s = Error
		}
		t.report(s, &f.at, f.text(), f.text()+" is not simulated: "+r.reason+".")
		t.key(f, Unsupported, r.reason)
	}
}

// vocabulary takes the size of the tokenizer where the flags name one and no size.
func (t *translation) vocabulary() {
	const path = "model.tokenizer.vocab_size"
	if t.doc.has(path) || t.doc.has("model.override_vocab_size") {
		return
	}
	at := t.first
	for _, name := range [...]string{"tokenizer-model", "tokenizer-type"} {
		if f := t.given[name]; f != nil {
			at = f.place()
			if size := vocabulary(f.value()); size > 0 {
				t.used(f, path, strconv.Itoa(size))
				return
			}
		}
	}
	field, _ := scenario.ByPath(path)
	t.report(Warning, at, path, "The vocabulary is the tokenizer's, which is not known here; "+field.Default+" tokens are assumed.")
	t.doc.set(path, field.Default, nil, assumed)
}
