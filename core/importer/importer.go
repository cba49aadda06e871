// Package importer reads configuration documents into scenarios and edits them in place.
//
// A document is YAML with NeMo's own keys, as a whole, as a launcher file whose root holds run,
// trainer, exp_manager and model, or as the section model or model.optim alone. OmegaConf
// interpolations are evaluated where a value matters. Nothing is dropped in silence: every key is
// listed as used, without effect (and why), unsupported (and what it would change) or unknown
// (with the nearest known key), and every problem has its place.
//
// Flags of Megatron-LM, as a command line or in the model_config.yaml of its tests, are translated
// to such a document, with all remarks at the flags. Files of Hugging Face are recognised and
// refused by name.
//
// Lines and columns count from 1; columns count code points, tabs as one.
package importer

import (
	"cmp"
	"sort"

	"distopt/core/scenario"
)

// Limits of a document. What is beyond them is refused with the limit named.
const (
	MaxText  = 256 << 10 // bytes
	MaxNodes = 100_000   // values, aliases expanded
	MaxDepth = 64        // nesting
)

// Kind is what a document was taken for.
type Kind uint8

// The kinds of document.
const (
	NeMo             Kind = iota // trainer, model, hardware, framework at the root
	NeMoSection                  // the contents of model or of model.optim
	MegatronYAML                 // a model_config.yaml with MODEL_ARGS
	MegatronFlags                // a command line or script
	HuggingFace                  // a config.json
	NotConfiguration             // none of them
)

var kindNames = [...]string{
	"NeMo YAML", "a section of NeMo YAML", "Megatron-LM YAML", "Megatron-LM flags", "Hugging Face config.json", "no configuration",
}

// String names the kind for the reader.
func (k Kind) String() string { return kindNames[k] }

// Severity of a diagnostic.
type Severity uint8

// The severities. An error stops the simulation.
const (
	Error Severity = iota
	Warning
	Info
)

var severityNames = [...]string{"error", "warning", "info"}

// String returns "error", "warning" or "info".
func (s Severity) String() string { return severityNames[s] }

// MarshalText writes the name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is a remark at a place of the document.
type Diagnostic struct {
	Line     int             `json:"line"`
	Col      int             `json:"col"`
	EndCol   int             `json:"end_col"` // exclusive, on the same line
	Severity Severity        `json:"severity"`
	Path     string          `json:"path,omitempty"` // of the field or key, "" for the text itself
	Message  string          `json:"message"`
	Fix      string          `json:"fix,omitempty"`   // the way out in words
	Edits    []scenario.Edit `json:"edits,omitempty"` // the same for SetField, all together
}

// Status says what became of a key.
type Status uint8

// The statuses.
const (
	Used Status = iota
	NoEffect
	Unsupported
	Unknown
)

var statusNames = [...]string{"used", "no effect", "unsupported", "unknown"}

// String returns "used", "no effect", "unsupported" or "unknown".
func (s Status) String() string { return statusNames[s] }

// MarshalText writes the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Key is a key of the document, or a whole section that has one status.
type Key struct {
	Path   string `json:"path"` // as a field's path, whatever the document's root is
	Line   int    `json:"line"`
	Col    int    `json:"col"`
	EndCol int    `json:"end_col"`
	Status Status `json:"status"`
	Value  string `json:"value,omitempty"` // of a used key, as the scenario holds it
	Why    string `json:"why,omitempty"`
	Near   string `json:"near,omitempty"` // of an unknown key: the nearest known one
	Count  int    `json:"count"`          // values that the key holds
}

// Reading is what a document says.
type Reading struct {
	Kind     Kind
	Scenario scenario.Scenario // best reading; only without errors is it what the document says
	// Diagnostics and Keys are in the order of the text.
	Diagnostics []Diagnostic
	Keys        []Key
	// Document is what a text of another tool says, as a document of this program's keys; "" if the
	// text is one itself.
	Document string
}

// OK reports whether the document has no errors.
func (r *Reading) OK() bool { return r.Count(Error) == 0 }

// Count returns the diagnostics of a severity.
func (r *Reading) Count(s Severity) int {
	n := 0
	for i := range r.Diagnostics {
		if r.Diagnostics[i].Severity == s {
			n++
		}
	}
	return n
}

// Read reads a document. It never fails: what is wrong is in the diagnostics.
func Read(text string) *Reading {
	r := &reader{src: newSource(text)}
	r.out.Scenario = scenario.Default(scenario.NeMoAdam)
	r.read()
	sort.Stable(diagnosticsByPlace(r.out.Diagnostics))
	sort.Stable(keysByPlace(r.out.Keys))
	return &r.out
}

// Lists in the order of the text. Package sort has one copy of its code for all of them.
type (
	diagnosticsByPlace []Diagnostic
	keysByPlace        []Key
)

func (l diagnosticsByPlace) Len() int      { return len(l) }
func (l diagnosticsByPlace) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l diagnosticsByPlace) Less(i, j int) bool {
	a, b := &l[i], &l[j]
	return cmp.Or(a.Line-b.Line, a.Col-b.Col, int(a.Severity)-int(b.Severity)) < 0
}

func (l keysByPlace) Len() int      { return len(l) }
func (l keysByPlace) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l keysByPlace) Less(i, j int) bool {
	return cmp.Or(l[i].Line-l[j].Line, l[i].Col-l[j].Col) < 0
}
