package derive

import (
	"strings"

	"distopt/core/importer"
	"distopt/core/scenario"
	"distopt/web/state"
)

// Problems is the list at the foot of the configuration.
type Problems struct {
	Title    string
	Errors   int
	Warnings int
	Items    []Problem
}

// Problem is one entry.
type Problem struct {
	Index int // among the diagnostics
	Error bool
	Path  string
	Text  string
	Where string
	Line  int
	Fix   string // of the one click that mends it, "" when there is none
}

// problemLimit is how many problems are listed.
const problemLimit = 60

func problems(read *state.Reading) *Problems {
	p := &Problems{}
	if read == nil {
		return p
	}
	p.Errors, p.Warnings = read.Count(importer.Error), read.Count(importer.Warning)
	for _, severity := range [...]importer.Severity{importer.Error, importer.Warning} {
		for i := range read.Diagnostics {
			d := &read.Diagnostics[i]
			if d.Severity != severity || len(p.Items) >= problemLimit {
				continue
			}
			item := Problem{Index: i, Error: severity == importer.Error, Path: d.Path, Text: d.Message, Line: d.Line}
			if d.Line > 0 {
				item.Where = "Line " + itoa(d.Line) + ":" + itoa(d.Col)
			}
			if len(d.Edits) > 0 {
				item.Fix = fixLabel(d)
			}
			p.Items = append(p.Items, item)
		}
	}
	var parts []string
	if p.Errors > 0 {
		parts = append(parts, plural(p.Errors, "error"))
	}
	if p.Warnings > 0 {
		parts = append(parts, plural(p.Warnings, "warning"))
	}
	p.Title = strings.Join(parts, ", ")
	return p
}

// fixLabel says what a fix does: the edit itself while there is one, else in words.
func fixLabel(d *importer.Diagnostic) string {
	if e := d.Edits[0]; len(d.Edits) == 1 {
		switch {
		case e.Value == scenario.Null:
			return "Remove " + last(e.Path)
		case e.Path == d.Path:
			return "Set to " + e.Value
		default:
			return "Set " + last(e.Path) + " to " + e.Value
		}
	}
	return upper(d.Fix)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return Count(int64(n)) + " " + word + "s"
}

// noun is the word for n of something.
func noun(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
