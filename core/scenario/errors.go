package scenario

import "strings"

// Edit is one machine-applicable change of a document: the field at Path gets Value, which is
// Null for "not given".
type Edit struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Null is the text of a value that is not given.
const Null = "null"

// FieldError says what is wrong with a field. Edits, if any, mend it together.
type FieldError struct {
	Path  string `json:"path"`
	Got   string `json:"got"`
	Want  string `json:"want"`
	Fix   string `json:"fix"` // the same edit in words
	Edits []Edit `json:"edits,omitempty"`
}

// Error returns "path: got G, want W; fix".
func (e *FieldError) Error() string {
	text := e.Path + ": " + e.Problem()
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Problem returns the error without path and fix: "got 12, want a divisor of 64".
func (e *FieldError) Problem() string {
	return "got " + e.Got + ", want " + e.Want
}

// Note is a remark on a valid field. A warning is about something that is likely not meant.
type Note struct {
	Path    string `json:"path"`
	Text    string `json:"text"`
	Warning bool   `json:"warning"`
	Edits   []Edit `json:"edits,omitempty"`
}

// Errors are several field errors as one.
type Errors []*FieldError

// Error returns one line per error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns e as an error, nil if there is none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Lists in the order of their paths. Package sort has one copy of its code for both.
type (
	errorsByPath []*FieldError
	notesByPath  []Note
)

func (e errorsByPath) Len() int           { return len(e) }
func (e errorsByPath) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e errorsByPath) Less(i, j int) bool { return e[i].Path < e[j].Path }

func (n notesByPath) Len() int           { return len(n) }
func (n notesByPath) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n notesByPath) Less(i, j int) bool { return n[i].Path < n[j].Path }

// setTo describes edits in words: "set a to 1", "set a to 1 and b to 2".
func setTo(edits ...Edit) string {
	var b strings.Builder
	for i, e := range edits {
		switch {
		case i == 0:
			b.WriteString("set ")
		case i == len(edits)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(e.Path + " to " + e.Value)
	}
	return b.String()
}
