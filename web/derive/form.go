package derive

import (
	"strconv"
	"strings"

	"distopt/core/importer"
	"distopt/core/scenario"
	"distopt/web/state"
)

// Form is the configuration as a form.
type Form struct {
	Groups []FormGroup
	Broken string // why the form can't edit: the text isn't YAML
}

// FormGroup is a group of fields.
type FormGroup struct {
	Name     string
	Key      string
	Note     string // derived, right of the heading
	Rows     []FormRow
	Rare     []FormRow
	RareOpen bool
	RareSet  int // rare fields that differ from the preset
}

// Control is the kind of control of a field.
type Control uint8

// The controls.
const (
	ControlNumber Control = iota
	ControlSwitch
	ControlSegments // a choice of two
	ControlSelect
	ControlDerived // not editable
)

// FormRow is one field.
type FormRow struct {
	ID, Path, Label string
	Control         Control
	Value           string
	On              bool // of a switch
	Unit            string
	Options         []Option
	Placeholder     string // what null means
	Help            string
	Changed         bool // differs from the preset
	Preset          string
	Error           string
}

// Option is one value of a choice.
type Option struct {
	Value, Label string
	Selected     bool
}

type formKey struct {
	read   *state.Reading
	broken bool // read is an earlier text; the present one is no YAML
	base   string
	more   string
}

// form builds the form of a reading. base is the text of the preset.
func form(k formKey) *Form {
	f := &Form{}
	if k.read == nil {
		return f
	}
	if k.broken {
		f.Broken = "The text is not YAML at the line marked. Mend it in the YAML tab; the form then works again."
		if k.read.Broken() { // it never was: there are no values to show
			return f
		}
	}
	preset := state.Base(k.base)
	errors, written := map[string]string{}, map[string]string{}
	for i := range k.read.Diagnostics {
		d := &k.read.Diagnostics[i]
		if d.Severity == importer.Error && errors[d.Path] == "" {
			errors[d.Path] = d.Message
			if text := scalar(k.read.Text, d); strings.HasPrefix(d.Message, "got ") || strings.Contains(text, "${") || text == "???" {
				written[d.Path] = text
			}
		}
	}
	derived := k.read.Scenario.Derive()
	for g := range scenario.NumGroups {
		group := FormGroup{Name: g.String(), Key: "g" + itoa(int(g)), RareOpen: contains(k.more, "g"+itoa(int(g)))}
		for i := range scenario.Fields {
			field := &scenario.Fields[i]
			if field.Group != g || !field.Applies(&k.read.Scenario) && errors[field.Path] == "" {
				continue
			}
			row := formRow(field, k.read, preset)
			row.Error = errors[field.Path]
			if text := written[field.Path]; text != "" {
				row.holds(text)
			}
			if field.Rare && row.Error == "" {
				group.Rare = append(group.Rare, row)
				if row.Changed {
					group.RareSet++
				}
			} else {
				group.Rows = append(group.Rows, row)
			}
		}
		derivedRows(&group, g, &derived)
		if len(group.Rows)+len(group.Rare) > 0 {
			f.Groups = append(f.Groups, group)
		}
	}
	return f
}

func formRow(field *scenario.Field, read *state.Reading, preset *scenario.Scenario) FormRow {
	row := FormRow{
		ID: "f-" + strings.ReplaceAll(field.Path, ".", "-"), Path: field.Path, Label: field.Label, Unit: field.Unit,
		Value: field.Get(&read.Scenario), Help: help(field),
	}
	if preset != nil {
		row.Preset = field.Get(preset)
		row.Changed = row.Preset != row.Value
	}
	switch field.Kind {
	case scenario.Bool:
		row.Control = ControlSwitch
		row.On = row.Value == "true"
	case scenario.Choice:
		row.Control = ControlSelect
		n := len(field.Choices)
		if n == 2 && !field.Optional && len(field.Choices[0])+len(field.Choices[1]) <= 14 {
			row.Control = ControlSegments
		}
		known := false
		if field.Optional {
			row.Options = append(row.Options, Option{scenario.Null, field.Null, row.Value == scenario.Null})
			known = row.Value == scenario.Null
		}
		for _, c := range field.Choices {
			row.Options = append(row.Options, Option{c, choiceLabel(field, c), c == row.Value})
			known = known || c == row.Value
		}
		if !known {
			row.Options = append(row.Options, Option{row.Value, row.Value, true})
		}
	default:
		if row.Value == scenario.Null {
			row.Value = ""
			row.Placeholder = field.Null
		}
	}
	return row
}

// choiceLabel is what a choice is called: frameworks are known by other names than NeMo's keys for them.
func choiceLabel(field *scenario.Field, choice string) string {
	if field.Path == "model.optim.name" {
		s := scenario.Scenario{Optim: scenario.Optim{Name: choice}}
		return s.Family().String()
	}
	return choice
}

// holds shows what the document holds and cannot be read, in place of the best reading. A switch has no room
// for it.
func (r *FormRow) holds(text string) {
	if r.Control == ControlSwitch {
		return
	}
	r.Value, r.Placeholder = text, ""
	if len(r.Options) == 0 {
		return
	}
	r.Control = ControlSelect
	for i := range r.Options {
		r.Options[i].Selected = false
	}
	r.Options = append(r.Options, Option{text, text, true})
}

// help is the tooltip of a label: what it does, what it may be, where the key comes from.
func help(f *scenario.Field) string {
	text := f.Help + "\n" + f.Path + ": " + f.Want()
	if f.Default != "" {
		text += ". Default: " + f.Default
	}
	if f.Source != "" {
		text += ".\n" + f.Source
	}
	return text
}

// scalar is the value that a problem stands at, as it is written: the best reading of the document
// has the default in its place.
func scalar(text string, d *importer.Diagnostic) string {
	for n := 1; n < d.Line; n++ {
		_, text, _ = strings.Cut(text, "\n")
	}
	line, _, _ := strings.Cut(text, "\n")
	runes := []rune(line)
	if d.Col < 1 || d.EndCol < d.Col || d.EndCol > len(runes)+1 {
		return ""
	}
	value := string(runes[d.Col-1 : d.EndCol-1])
	if plain, err := strconv.Unquote(value); err == nil {
		return plain
	}
	return strings.Trim(value, "'")
}

// derivedRows adds what follows from the fields of a group.
func derivedRows(g *FormGroup, id scenario.Group, d *scenario.Derived) {
	add := func(label string, n int64) {
		value := "–"
		if n > 0 {
			value = Count(n)
		}
		g.Rows = append(g.Rows, FormRow{ID: "d-" + strings.ReplaceAll(label, " ", "-"), Label: label, Control: ControlDerived, Value: value})
	}
	switch id {
	case scenario.GroupModel:
		if d.Parameters > 0 {
			g.Note = Large(d.Parameters) + " parameters"
		}
	case scenario.GroupBatch:
		add("Microbatches", int64(d.Microbatches))
	case scenario.GroupParallelism:
		if d.DP > 0 {
			g.Note = "DP " + Count(int64(d.DP)) + ", " + Count(int64(d.World)) + " " + noun(d.World, "GPU")
		}
	case scenario.GroupOptimizer:
		if d.BucketSize > 0 {
			g.Note = Elems(int64(d.BucketSize)) + " elements"
		}
	}
}
