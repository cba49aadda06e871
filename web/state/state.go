// Package state is the page's memory and its one way to change: State holds only what cannot be
// recomputed, a message says what happened, and Update gives the next state and the effects to run.
// It is pure: no clock, no browser.
package state

import (
	"distopt/core/report"
	"distopt/core/sched"
)

// The two configurations.
const (
	A = 0
	B = 1
)

// State is everything the page remembers. Its pointers lead to values that are never changed.
type State struct {
	Slots   [2]Slot
	Shown   int  // the slot that is edited and shown
	Compare bool // both on one axis

	ConfigTab    ConfigTab
	DetailTab    DetailTab
	Table        bool // the details as a table instead of a picture
	SpanTable    bool // the timeline as a table
	SpanSort     Sort
	Opened       string // stages opened or closed by hand, as derive.PictureSpec has them
	More         string // groups of the form whose rare fields are shown
	Select       Selection
	Figure       string // the key figure whose formula is open; ""
	Dialog       Dialog
	NoConfig     bool  // the configuration is hidden
	Sheet        Sheet // what a narrow page shows over or instead of the result
	Theme        Theme
	Sort         Sort
	FragmentSort Sort
	Stage        int // of the bucket list when no bucket is selected
	Scroll       int // first row in view of the list of buckets

	Versions Versions
	Lab      Lab
	Shared   Shared
	Import   *Reading // what the last import used and ignored; nil: nothing to tell

	ImportRefused string // why the last file was not imported

	View   [2]float64 // the part of the step in view, ns; both 0: the whole step
	Room   int        // height at hand for the lanes of the timeline, px
	Live   string     // what the live region says
	Notice string     // a passing remark: "Link copied"
	Draws  int        // results that arrived so far

	history  history
	unlinked *LinkOpened // what the way back leads to from the links opened since; nil: nowhere
	nextID   int
}

// Slot is one configuration and what is known of it.
type Slot struct {
	Doc  Document
	Read *Reading // of Doc.Text
	Form *Reading // the last one that was YAML: what the form shows meanwhile

	Result  *report.Result // the last valid one; nil before the first
	Of      string         // the text Result was made from
	ReadOf  *Reading       // the reading Result was made from
	Request int            // the request on its way; 0: none
	Asked   string         // its text
	Slow    bool           // it takes longer than 100 ms
	Done    float64        // its progress, 0..1
	Failure string         // why the last request has no answer
	Report  string         // for a bug report
	Stopped bool           // the worker died
	Halted  bool           // the visitor cancelled
}

// Stale reports whether the figures belong to an earlier text.
func (s *Slot) Stale() bool { return s.Result != nil && s.Of != s.Doc.Text }

// Document is a configuration as the visitor has it.
type Document struct {
	Name   string // of the preset or file
	Preset string // slug of the preset it started from; "" when imported
	Base   string // text of that preset, for what differs from it
	Text   string
}

// Empty reports whether its text holds nothing to simulate: no key.
func (s *Slot) Empty() bool { return s.Read.OK() && len(s.Read.Keys) == 0 }

// Selection is the one thing that is lit everywhere.
type Selection struct {
	Slot   int
	Span   int32 // index into the result's spans, -1: none
	Stage  int
	Bucket int32 // -1: none
	Chosen bool  // by the visitor, so that a new result keeps it or drops it
}

// NoSelection is nothing.
var NoSelection = Selection{Span: -1, Bucket: -1}

// ConfigTab is a tab of the configuration.
type ConfigTab int

// The tabs of the configuration.
const (
	Form ConfigTab = iota
	YAML
)

// DetailTab is a tab of the details.
type DetailTab int

// The tabs of the details. Differences stands first and only while comparing; SelectionTab only
// where there is no room for the inspector beside the timeline.
const (
	Buckets DetailTab = iota
	Collectives
	Differences
	FourVersions
	SelectionTab
	Numerics
	Findings
)

// Dialog is what lies over the page.
type Dialog int

// The dialogs.
const (
	NoDialog Dialog = iota
	Help
	ImportDialog
	ShareDialog
)

// Sheet is the view of a narrow page.
type Sheet int

// The sheets.
const (
	ResultSheet Sheet = iota
	ConfigSheet
	MoreSheet
)

// Theme is the colour scheme.
type Theme int

// The themes.
const (
	System Theme = iota
	Light
	Dark
)

// Sort orders a table.
type Sort struct {
	Column  int
	Reverse bool
}

// Versions is the table of the four framework versions for one text.
type Versions struct {
	Of      string
	Request int
	Rows    []VersionRow // in the order of their names; nil: not asked for
	Failure string
}

// VersionRow is what one framework version makes of the configuration.
type VersionRow struct {
	Version string
	Result  *report.Result
	Err     string
}

// Copy says how far a link came on its way to the clipboard.
type Copy uint8

const (
	Copying Copy = iota // the browser may be asking the visitor
	CopyDone
	CopyRefused
)

// Shared is the link made last.
type Shared struct {
	Link string
	Copy Copy
	Note string // why a link that was opened gives other figures, or could not be read
	Bad  string // the text of a link that could not be read

	// Model and Made are the version and the step times that an opened link was made with.
	Model string
	Made  [2]sched.Time
	Texts [2]string // that it brought
}

// New is the page before anything is known.
func New() State {
	unsorted := Sort{Column: -1}
	return State{Select: NoSelection, Sort: unsorted, SpanSort: unsorted, FragmentSort: unsorted, Lab: newLab(), nextID: 1}
}

// Current is the slot that is edited and shown.
func (s *State) Current() *Slot { return &s.Slots[s.Shown] }
