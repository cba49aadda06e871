// Package share turns what a visitor has before them into a short URL fragment and back:
// c=VERSION.<base64url>, the form that docs/link-format.md describes.
//
// A link holds the texts of both configurations, what the page asks to be kept of its view, and
// with what prediction it was made. It is untrusted input: decoding is bounded in time and memory
// and ends in a link or in an error that says what is wrong with it. Every link that was ever
// made must open for ever, so the dictionary of a version is frozen, and fields are tagged:
// later programs add tags, earlier ones skip what they do not know.
package share

import (
	"fmt"

	"distopt/core/sched"
)

// Link is what a fragment holds.
type Link struct {
	A, B Document
	Both bool // there is a B

	// View is the page's own: what it shows, by names that only it knows.
	View map[string]string
	// Model is the version of the prediction with which the step times were made, "" for none.
	Model string
}

// Document is one configuration.
type Document struct {
	Text   string
	Name   string // for the reader, "" if the text says it
	Preset string // ID of the preset that it started from, "" for none
	// StepTime is the step time that was predicted when the link was made, 0 for none.
	StepTime sched.Time
}

// Limits of a link.
const (
	MaxFragment = 100_000   // characters
	MaxInflated = 1 << 20   // bytes of the record
	MaxText     = 256 << 10 // bytes of one text
	MaxName     = 200       // bytes of a name, a preset's ID, a version
	MaxView     = 64        // entries
	MaxSetting  = 1000      // bytes of a view's key or value
)

// Version is the newest version of the format. All earlier ones are read, and 1 is written, too.
const Version = 2

// Reason says why a fragment cannot be opened.
type Reason uint8

// The reasons.
const (
	NoLink   Reason = iota // there is no c=VERSION. in it
	Newer                  // of a version that is not known here
	TooLong                // beyond a limit
	NotText                // not base64url
	CutOff                 // its end is missing
	Damaged                // characters were changed or added
	NotValid               // a record that no program writes
)

// Error says why a fragment cannot be opened.
type Error struct {
	Reason  Reason
	Version string // Newer: the version asked for
	Detail  string
}

// Error returns the reason as a sentence.
func (e *Error) Error() string {
	switch e.Reason {
	case NoLink:
		return "This is no link of this program: it has no part that begins with c=1. or c=2."
	case Newer:
		return fmt.Sprintf("This link was made by a newer version of this program (link format %s; this one reads up to format %d).", e.Version, Version)
	case TooLong:
		return "This link is too long: " + e.Detail + "."
	case NotText:
		return "This link is damaged: " + e.Detail + "."
	case CutOff:
		return "This link is cut off: its end is missing."
	case Damaged:
		return "This link is damaged: some of its characters were changed or added."
	default:
		return "This link does not hold a configuration: " + e.Detail + "."
	}
}
