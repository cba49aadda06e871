package state

import (
	"distopt/core/report"
	"distopt/core/sched"
)

// Msg is something that happened.
type Msg any

// What the visitor does to the configuration.
type (
	// TextEdited is the whole text after a change in the editor.
	TextEdited struct{ Text string }
	// FieldEdited is one field of the form as typed.
	FieldEdited struct{ Path, Text string }
	// FieldReset gives a field the value it has in the preset.
	FieldReset struct{ Path string }
	// FixApplied is a click on the fix of a problem, by its place among the diagnostics.
	FixApplied struct{ Index int }
	// FindingApplied is a click on the change that mends a finding of the result shown.
	FindingApplied struct{ Rule string }
	// PresetPicked replaces the shown configuration.
	PresetPicked struct{ ID string }
	// Imported replaces the shown configuration by a file or pasted text.
	Imported struct{ Name, Text string }
	// FileChosen is a file to import, as the browser has it.
	FileChosen struct{ File any }
	// FileRefused is a file that could not be imported.
	FileRefused struct{ Name, Reason string }
	// EditRested ends a run of edits that undo takes back in one step.
	EditRested struct{ Edits int }
	// Undone and Redone walk the history.
	Undone struct{}
	Redone struct{}
)

// What the visitor looks at.
type (
	SlotPicked    struct{ Slot int }
	ComparePicked struct{}
	ConfigPicked  struct{ Tab ConfigTab }
	DetailPicked  struct{ Tab DetailTab }
	TableToggled  struct{}
	// SpanTableToggled shows the timeline as a table, or again as a picture. After a key the focus
	// goes along: what had it is hidden.
	SpanTableToggled struct{ Keys bool }
	SpanSortPicked   struct{ Column int }
	StageToggled     struct{ Key string }
	MoreToggled      struct{ Group string }
	SpanPicked       struct {
		Slot int
		Span int32
	}
	BucketPicked struct {
		Slot, Stage int
		Bucket      int32
	}
	Deselected    struct{}
	FigureOpened  struct{ ID string }
	DialogOpened  struct{ Dialog Dialog }
	SheetPicked   struct{ Sheet Sheet }
	ConfigToggled struct{}
	// SheetToggled opens the drawer of the configuration, or closes it.
	SheetToggled struct{}
	// SpanShown brings a span into view.
	SpanShown struct {
		Slot int
		Span int32
	}
	NoteDismissed      struct{}
	ThemePicked        struct{}
	SortPicked         struct{ Column int }
	FragmentSortPicked struct{ Column int }
	StagePicked        struct{ Stage int }
	Scrolled           struct{ First int }
	ViewMoved          struct{ T0, T1 float64 }
	Resized            struct{ Room int }
	ProblemGone        struct{ Line int } // a click on a problem: go there
	ZoomToSpan         struct{ Span int32 }
	NoticeGone         struct{ Text string }
	ShareAsked         struct{}
	Copied             struct {
		OK   bool
		What string
	}
	VersionPicked struct{ Version string } // load a row of the four versions into B and compare
	CSVAsked      struct{ Name, Text string }
)

// What the simulator and the browser report.
type (
	// Started opens the page: texts from a link, from storage, or presets.
	Started struct {
		Docs [2]Document
		Link Opened
		Note string // about a link that could not be read
		Bad  string // its text
	}
	// LinkOpened is a link that arrived while the page is open.
	LinkOpened struct {
		Docs  [2]Document
		Link  Opened
		First bool // the address that was left is no link
	}
	// LinkMade is the link to what is shown, on its way to the clipboard.
	LinkMade struct{ Link string }
	// LinkCopied is what became of the copy of Link.
	LinkCopied struct {
		Link string
		Copy Copy
	}
	LinkRefused struct{ Link, Reason string }
	// LinkLeft is the address without a link again, as by the browser's back button: what was shown
	// before the first link is shown again.
	LinkLeft struct{}

	Simulated struct {
		Slot, ID int
		Result   *report.Result
	}
	Refused struct { // the simulator says no, or failed
		Slot, ID     int
		Text, Report string
	}
	Progressed struct {
		Slot int
		Done float64
	}
	TookLong      struct{ Slot, ID int }
	WorkerStopped struct {
		Slot         int
		Text, Report string
	}
	Halt        struct{} // Cancel
	Restarted   struct{}
	SimulateNow struct{}

	VersionsDone struct {
		ID      int
		Rows    []VersionRow
		Failure string
	}
)

// Opened is what a link says beside the two documents.
type Opened struct {
	Compare bool
	Shown   int
	Tab     DetailTab
	Model   string
	Made    [2]sched.Time
}

// Effect is something for the browser to do.
type Effect any

// The effects.
type (
	Simulate struct {
		Slot, ID int
		Text     string
	}
	Cancel      struct{ Slot int }
	Restart     struct{ Slot int }
	AskVersions struct {
		ID    int
		Texts [len(VersionNames)]string
	}
	// Later posts Msg after some milliseconds.
	Later struct {
		Milliseconds int
		Msg          Msg
	}
	Save struct {
		Slot int
		Text string
	} // to local storage
	SetTheme   struct{ Theme Theme }
	RevealLine struct{ Line int }
	ShowSpan   struct{ T0, T1 float64 } // move the view of the timeline
	MakeLink   struct{}                 // write the address, copy it
	// WriteAddress puts what is shown into the address, so that a reload keeps it.
	WriteAddress struct{}
	Download     struct{ Name, Text string }
	OpenDialog   struct{ Dialog Dialog }
	Drawn        struct{ Count int } // after the next frame
	RevealSpan   struct {
		Slot int
		Span int32
	}
	ReadFile struct{ File any }
	// FocusTimeline focuses the timeline, picture or table, once it is there.
	FocusTimeline struct{ Table bool }
)
