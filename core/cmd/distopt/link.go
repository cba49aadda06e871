package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"distopt/core/eval"
	"distopt/core/importer"
	"distopt/core/share"
	"distopt/core/units"
)

// runLink prints the fragment of one file, or of two.
func runLink(e *env) error {
	var l share.Link
	if o := e.args.operands; len(o) == 2 && o[0] == "-" && o[1] == "-" {
		return usageError{"link: standard input can be read once only"}
	}
	for i, file := range e.args.operands {
		d, err := e.read(file)
		if err != nil {
			return err
		}
		doc := share.Document{Text: d.text, Preset: presetOf(d.text)}
		if r := importer.Read(d.text); r.OK() {
			if result, err := eval.Evaluate(&r.Scenario); err == nil {
				doc.StepTime, l.Model = result.Figures.StepTime, eval.ModelVersion
			}
		} else {
			fmt.Fprintf(e.stderr, "distopt: warning: %s has errors; the link holds it as it is\n", d.name())
		}
		if i == 0 {
			l.A = doc
		} else {
			l.B, l.Both = doc, true
		}
	}
	fragment, err := share.Encode(&l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.stdout, "#"+fragment)
	return err
}

// opened is what open -json prints.
type opened struct {
	A     openedDocument    `json:"a"`
	B     *openedDocument   `json:"b,omitempty"`
	View  map[string]string `json:"view,omitempty"`
	Model string            `json:"model_version,omitempty"`
}

type openedDocument struct {
	Text     string `json:"text"`
	Name     string `json:"name,omitempty"`
	Preset   string `json:"preset,omitempty"`
	StepTime int64  `json:"step_time_ns,omitempty"`
}

// runOpen prints what a link holds.
func runOpen(e *env) error {
	link := e.args.operands[0]
	if link == "-" {
		data, err := io.ReadAll(io.LimitReader(e.stdin, maxInput))
		if err != nil {
			return plainError("read", "standard input", err)
		}
		link = strings.TrimSpace(string(data))
	}
	l, err := share.Decode(link)
	if err != nil {
		return err
	}
	if e.args.set["json"] {
		out := opened{A: opens(l.A), View: l.View, Model: l.Model}
		if l.Both {
			b := opens(l.B)
			out.B = &b
		}
		return e.json(out)
	}
	doc := l.A
	if e.args.set["b"] {
		if !l.Both {
			return fmt.Errorf("the link holds one configuration only")
		}
		doc = l.B
	} else if l.Both {
		fmt.Fprintln(e.stderr, "distopt: the link compares two configurations; -b prints the other")
	}
	e.changedPrediction(l, doc)
	_, err = io.WriteString(e.stdout, doc.Text)
	return err
}

func opens(d share.Document) openedDocument {
	return openedDocument{d.Text, d.Name, d.Preset, int64(d.StepTime)}
}

// changedPrediction says when the step time is another one than the link was made with.
func (e *env) changedPrediction(l *share.Link, d share.Document) {
	if d.StepTime == 0 || l.Model == eval.ModelVersion {
		return
	}
	r := importer.Read(d.Text)
	if !r.OK() {
		return
	}
	result, err := eval.Evaluate(&r.Scenario)
	if err != nil || result.Figures.StepTime == d.StepTime {
		return
	}
	model, _ := json.Marshal(l.Model) // untrusted: shown escaped
	fmt.Fprintf(e.stderr, "distopt: the link was made with model %s; model %s gives %s instead of %s\n",
		model, eval.ModelVersion, units.Milliseconds(int64(result.Figures.StepTime)), units.Milliseconds(int64(d.StepTime)))
}
