package importer

import (
	"fmt"
	"slices"
	"strings"

	"distopt/core/scenario"
	"distopt/core/units"
)

// validate adds what is wrong with the scenario as a whole.
func (r *reader) validate() {
	errs, notes := r.out.Scenario.Validate(r.invalid...)
	for _, x := range r.wrong {
		// What is computed from the value follows it: the fix need not heed it as it is now.
		unsure := slices.Clone(r.invalid)
		name := x.err.Path[strings.LastIndexByte(x.err.Path, '.')+1:]
		for path, n := range r.at {
			if n.isScalar() && strings.Contains(n.yaml.Value, "${") && strings.Contains(n.yaml.Value, name) {
				unsure = append(unsure, path)
			}
		}
		r.out.Scenario.Complete(x.err, errs, unsure...)
		d := &r.out.Diagnostics[x.diagnostic]
		d.Fix, d.Edits = x.err.Fix, x.err.Edits
	}
	for _, e := range errs {
		d := r.nearest(e.Path)
		d.Severity, d.Path, d.Message, d.Fix, d.Edits = Error, e.Path, e.Problem(), e.Fix, e.Edits
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
	for _, n := range notes {
		d := r.nearest(n.Path)
		d.Severity, d.Path, d.Message, d.Edits = Info, n.Path, n.Text, n.Edits
		if n.Warning {
			d.Severity = Warning
		}
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
}

// nearest places a remark on a field: at its value, else at the section that would hold it, else
// at the first line that holds something.
func (r *reader) nearest(path string) Diagnostic {
	for {
		if n := r.at[path]; n != nil {
			return r.diagnostic(Error, n, path, "")
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			break
		}
		path = path[:i]
	}
	line := 1
	for line < len(r.src.lines) && strings.TrimSpace(r.src.line(line)) == "" {
		line++
	}
	if strings.TrimSpace(r.src.line(line)) == "" { // nothing anywhere
		line = 1
	}
	col, end := r.src.whole(line)
	return Diagnostic{Line: line, Col: col, EndCol: end}
}

// own treats the keys that are no fields but say something.
func (r *reader) own(n *node, path string) {
	r.at[path] = n
	k := r.key(n, path, NoEffect, "")
	v, err := r.eval.eval(n)
	switch path {
	case "name", "run.name":
		k.Why = "names the result"
		if err == nil && v.kind != aSection && v.kind != aNull && (path == "name" || r.out.Scenario.Name == "") {
			r.out.Scenario.Name = scenario.Visible(v.text)
		}
	case "model.data.seq_length":
		k.Why = "model.encoder_seq_length counts"
	default:
		k.Why = "the size of the vocabulary is what counts"
	}
}

// text returns the value of a key that own has seen.
func (r *reader) text(path string) string {
	n := r.at[path]
	if n == nil {
		return ""
	}
	v, err := r.eval.eval(n)
	if err != nil || v.kind == aNull || v.kind == aSection {
		return ""
	}
	return v.text
}

// vocabulary takes the size of the tokenizer that the document names.
func (r *reader) vocabulary() {
	const path = "model.tokenizer.vocab_size"
	if r.at[path] != nil || r.at["model.override_vocab_size"] != nil {
		return
	}
	for _, key := range []string{"model.tokenizer.type", "model.tokenizer.model", "model.tokenizer.library"} {
		if size := vocabulary(r.text(key)); size > 0 {
			r.out.Scenario.Model.TokenizerVocab = size
			for i := range r.out.Keys {
				if k := &r.out.Keys[i]; k.Path == key {
					k.Status, k.Value, k.Why = Used, scenario.Visible(r.text(key)), "a vocabulary of "+units.Count(int64(size))
				}
			}
			return
		}
	}
	if n := r.at["model.tokenizer.library"]; n != nil {
		d := r.diagnostic(Warning, n, path, fmt.Sprintf("The vocabulary is the tokenizer's, which is not known here; %s tokens are assumed.",
			units.Count(int64(r.out.Scenario.Model.TokenizerVocab))))
		d.Fix = "set " + path
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
}

// sequenceOfData remarks on data that is cut otherwise than the model expects.
func (r *reader) sequenceOfData() {
	const path = "model.data.seq_length"
	if n := r.at[path]; n != nil {
		if text := r.text(path); text != "" && text != fmt.Sprint(r.out.Scenario.Model.SeqLength) {
			r.report(Warning, n, path, fmt.Sprintf("Sequences are simulated with model.encoder_seq_length (%d), not with this.", r.out.Scenario.Model.SeqLength))
		}
	}
}
