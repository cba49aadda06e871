package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"distopt/core/units"
)

// Kind is the type of a field's value.
type Kind uint8

// The kinds of value.
const (
	Int Kind = iota
	Float
	Bool
	Choice
	Text
)

var kindNames = [...]string{"integer", "number", "boolean", "choice", "text"}

// String returns the kind as a reader calls it.
func (k Kind) String() string { return kindNames[k] }

// Group is a group of the form, in reading order.
type Group uint8

// The groups.
const (
	GroupModel Group = iota
	GroupBatch
	GroupParallelism
	GroupPrecision
	GroupOptimizer
	GroupHardware
	GroupSimulation
	NumGroups
)

var groupNames = [NumGroups]string{
	"Model", "Batch", "Parallelism", "Precision", "Distributed optimizer", "Hardware", "Simulation",
}

// String returns the group's heading.
func (g Group) String() string { return groupNames[g] }

// Field describes one field of a Scenario.
type Field struct {
	Path  string // key path in a document
	Label string
	Kind  Kind
	Unit  string  // "" for counts and switches
	Min   float64 // Int and Float
	Max   float64
	// Choices are the canonical values of a Choice, Names what a reader calls them (nil: the same),
	// Aliases other spellings (lower case).
	Choices []string
	Names   []string
	Aliases map[string]string
	// Optional fields may be null, which means Null; their zero value is null.
	Optional bool
	Null     string // what null means: "4 × hidden_size"
	// Default applies to a document without the key; PlainDefault and MCoreDefault, if given, in
	// place of it with plain Apex and with Megatron-Core's optimizer.
	Default      string
	PlainDefault string
	MCoreDefault string
	Help         string
	Group        Group
	Rare         bool     // behind "More"
	ReadBy       Families // 0: all optimizers
	Source       string   // where the key comes from

	// check tells what is wrong with a Text, and form what it looks like.
	check func(text string) error
	form  string
	// at returns a *int, *float64, *bool or *string into s.
	at func(s *Scenario) any
}

// ByPath returns the field at path.
func ByPath(path string) (f *Field, ok bool) {
	i, ok := byPath[path]
	if !ok {
		return nil, false
	}
	return &Fields[i], true
}

var byPath = indexFields()

func indexFields() map[string]int {
	index := make(map[string]int, len(Fields))
	for i := range Fields {
		index[Fields[i].Path] = i
	}
	return index
}

// Get returns the value as text: "null" for an Optional field that is not given.
func (f *Field) Get(s *Scenario) string {
	switch v := f.at(s).(type) {
	case *int:
		if f.Optional && *v == 0 {
			return Null
		}
		return strconv.Itoa(*v)
	case *float64:
		if f.Optional && *v == 0 {
			return Null
		}
		return strconv.FormatFloat(*v, 'f', -1, 64)
	case *bool:
		return strconv.FormatBool(*v)
	case *string:
		if f.Optional && *v == "" {
			return Null
		}
		return *v
	default:
		panic(fmt.Sprintf("scenario: field %s has an accessor of type %T", f.Path, v))
	}
}

// Set parses text as a document's scalar and stores it. s is unchanged if that fails. The error
// has no edit: one bad value does not tell which was meant, save by its range.
func (f *Field) Set(s *Scenario, text string) *FieldError {
	text = strings.TrimSpace(text)
	if isNull(text) {
		if f.Optional {
			f.clear(s)
			return nil
		}
		if f.Kind == Bool { // absent and null are both false to code that asks "if cfg.get(key)"
			*f.at(s).(*bool) = false
			return nil
		}
		return f.wrong("null")
	}
	switch v := f.at(s).(type) {
	case *int:
		n, ok := parseInt(text)
		if !ok || float64(n) < f.Min || float64(n) > f.Max {
			return f.wrong(text)
		}
		*v = n
	case *float64:
		x, ok := parseFloat(text)
		if !ok || x < f.Min || x > f.Max {
			return f.wrong(text)
		}
		*v = x
	case *bool:
		b, ok := parseBool(text)
		if !ok {
			return f.wrong(text)
		}
		*v = b
	case *string:
		c, ok := text, f.check != nil && len(text) <= maxTyped && f.check(text) == nil
		if f.check == nil {
			c, ok = f.choice(text)
		}
		if !ok {
			return f.wrong(text)
		}
		*v = c
	}
	return nil
}

// maxTyped bounds the bytes of a Text.
const maxTyped = 1000

func (f *Field) clear(s *Scenario) {
	switch v := f.at(s).(type) {
	case *int:
		*v = 0
	case *float64:
		*v = 0
	case *string:
		*v = ""
	}
}

// holds reports whether the field's value is one that Set would store.
func (f *Field) holds(s *Scenario) bool {
	switch v := f.at(s).(type) {
	case *int:
		return f.Optional && *v == 0 || float64(*v) >= f.Min && float64(*v) <= f.Max
	case *float64:
		return f.Optional && *v == 0 || *v >= f.Min && *v <= f.Max
	case *string:
		return f.Optional && *v == "" || slices.Contains(f.Choices, *v) || f.check != nil && len(*v) <= maxTyped && f.check(*v) == nil
	}
	return true
}

// choice finds the canonical spelling of text.
func (f *Field) choice(text string) (string, bool) {
	low := strings.ToLower(text)
	if c, ok := f.Aliases[low]; ok {
		return c, true
	}
	for _, c := range f.Choices {
		if strings.ToLower(c) == low {
			return c, true
		}
	}
	return "", false
}

// wrong reports a value that the field cannot hold.
func (f *Field) wrong(text string) *FieldError {
	e := &FieldError{Path: f.Path, Got: Quote(text), Want: f.Want(), Fix: "use " + f.Want()}
	if f.Kind == Int || f.Kind == Float {
		if x, ok := parseFloat(text); ok { // a number out of range: the nearest end
			near := min(max(x, f.Min), f.Max)
			if f.Kind == Int {
				near = math.Round(near)
			}
			e.Edits = []Edit{{f.Path, strconv.FormatFloat(near, 'f', -1, 64)}}
			e.Fix = setTo(e.Edits...)
		}
	} else if f.Kind == Choice {
		if near, ok := Nearest(text, f.Choices); ok {
			e.Edits = []Edit{{f.Path, near}}
			e.Fix = setTo(e.Edits...)
		}
	}
	return e
}

// Want says in words what the field may hold.
func (f *Field) Want() string {
	var want string
	switch f.Kind {
	case Int:
		want = "an integer from " + units.Count(int64(f.Min)) + " to " + units.Count(int64(f.Max))
	case Float:
		want = "a number from " + decimal(f.Min) + " to " + decimal(f.Max)
	case Bool:
		want = "true or false"
	case Choice:
		want = orList(f.Choices)
	case Text:
		want = f.form
	}
	if f.Optional {
		want += ", or null"
	}
	return want
}

// decimal writes a bound as people read it.
func decimal(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return units.Count(int64(x))
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// DefaultFor returns the default of a document that names the optimizer name.
func (f *Field) DefaultFor(name string) string {
	switch {
	case name == PlainApex && f.PlainDefault != "":
		return f.PlainDefault
	case name == MCoreAdam && f.MCoreDefault != "":
		return f.MCoreDefault
	}
	return f.Default
}

// Default returns the scenario of an empty document that names the optimizer name.
func Default(name string) Scenario {
	var s Scenario
	for i := range Fields {
		f := &Fields[i]
		if err := f.Set(&s, f.DefaultFor(name)); err != nil {
			panic("scenario: default of " + err.Error())
		}
	}
	s.Optim.Name = name
	return s
}
