package state

import (
	"slices"
	"strconv"
	"strings"

	"distopt/core/bucket"
	"distopt/core/lab"
)

// Lab is the tab Numerics: what is set up, the run that was asked for, and what is looked at.
type Lab struct {
	Setup LabSetup
	More  bool // the rare fields are shown

	Mode    LabMode
	Request int // the one on its way, 0: none
	Config  lab.Config
	Frame   *lab.Frame // the newest
	Records []lab.StepRecord
	Failure string // why there is no answer
	Report  string

	Watch   lab.Watch
	Chosen  bool   // the visitor has picked the tensor
	Variant int    // whose tensor is looked at
	Picked  bool   // by the visitor
	Element string // as typed
	Seen    LabLook

	Number string // in the inspector of numbers, as typed
	Format string // whose bits those are

	ahead int     // steps of the next request
	asked LabLook // by the newest request
}

// LabLook is what a frame shows beside its steps.
type LabLook struct {
	Watch   lab.Watch
	Element int // -1: none
}

// LabMode is where a run stands.
type LabMode int

// The modes.
const (
	LabIdle LabMode = iota
	LabRunning
	LabPaused
	LabDone
	LabCancelled
	LabFailed // the simulator refused or died
)

// What the visitor does in the tab Numerics.
type (
	LabFieldEdited   struct{ Path, Text string }
	LabModelPicked   struct{ Model string }
	LabVariantPicked struct{ ID string } // in or out of the run
	LabRecentToggled struct{}            // the amax algorithm
	LabMoreToggled   struct{}
	LabReset         struct{}
	LabRun           struct{}
	LabPause         struct{}
	LabResume        struct{}
	LabCancel        struct{}

	LabTensorPicked  struct{ Tensor int }
	LabPartPicked    struct{ Part lab.Part }
	LabViewPicked    struct{ Variant int } // whose tensor is looked at
	LabElementEdited struct{ Text string }
	LabNumberEdited  struct{ Text string }
	LabFormatPicked  struct{ Format string }
	LabBitsPicked    struct{ Bits, Format string } // from a journey into the inspector
)

// What the simulator reports about the lab.
type (
	LabAnswered struct {
		ID           int
		Frame        *lab.Frame
		Milliseconds int // that the answer took
	}
	LabRefused struct {
		ID           int
		Text, Report string
	}
)

// What the lab wants of the browser.
type (
	AskLab struct {
		ID      int
		Request lab.Request
	}
	StopLab struct{}
)

func newLab() Lab {
	return Lab{Setup: DefaultLab(), Element: "0", Number: "0.1", Format: "fp32"}
}

// labTurn is how long a request should take, ms: long enough to be worth its message, short enough
// for a live picture and for Pause.
const labTurn = 250

// labMessage takes in the messages of the tab Numerics.
func (s *State) labMessage(m Msg) []Effect {
	l := &s.Lab
	switch m := m.(type) {
	case LabFieldEdited:
		for i := range LabFields {
			if LabFields[i].Path == m.Path {
				l.Setup.Texts[i] = m.Text
			}
		}
	case LabModelPicked:
		if m.Model == lab.Transformer || m.Model == lab.MLP {
			l.Setup.setModel(m.Model)
		}
	case LabVariantPicked:
		l.Setup.Picked = toggle(l.Setup.Picked, m.ID)
	case LabRecentToggled:
		l.Setup.MostRecent = !l.Setup.MostRecent
	case LabMoreToggled:
		l.More = !l.More
	case LabReset:
		l.Setup = DefaultLab()
	case LabRun:
		return s.labRun()
	case LabPause:
		if l.Mode == LabRunning {
			l.Mode = LabPaused
			s.Live = "Paused after step " + itoa(len(l.Records)) + "."
		}
	case LabResume:
		if l.Mode == LabPaused {
			l.Mode = LabRunning
			return s.labNext()
		}
	case LabCancel:
		return s.labCancel()
	case LabTensorPicked:
		l.Watch.Tensor, l.Chosen, l.Element = bucket.ParamID(m.Tensor), true, "0"
		return s.labNext()
	case LabPartPicked:
		l.Watch.Part = m.Part
		return s.labNext()
	case LabViewPicked:
		l.Variant, l.Picked = m.Variant, true
	case LabElementEdited:
		l.Element = m.Text
		return s.labNext()
	case LabNumberEdited:
		l.Number = m.Text
	case LabFormatPicked:
		l.Format = m.Format
	case LabBitsPicked:
		l.Number, l.Format = m.Bits, m.Format
	case LabAnswered:
		if m.ID == l.Request {
			return s.labAnswered(m)
		}
	case LabRefused:
		if m.ID == l.Request {
			l.Request, l.Mode = 0, LabFailed
			l.Failure, l.Report = m.Text, m.Report
			s.Live = "The run has ended. " + m.Text
		}
	}
	return nil
}

// labRun begins the run that is set up, unless it can't be done: the errors stand at their fields.
func (s *State) labRun() []Effect {
	l := &s.Lab
	c, wrong := l.Setup.Config(s.Current().Read)
	if len(wrong) > 0 {
		s.Live = wrong[0].Error()
		return nil
	}
	var effects []Effect
	if l.Request != 0 {
		effects = append(effects, StopLab{})
	}
	if c.Model != l.Config.Model || c.Layers != l.Config.Layers {
		l.Watch, l.Chosen, l.Element = lab.Watch{Part: l.Watch.Part}, false, "0"
	}
	l.Config, l.Frame, l.Records, l.Request = c, nil, nil, 0
	l.Mode, l.Failure, l.Report, l.ahead = LabRunning, "", "", 1
	if !l.Picked { // an FP8 variant tells most
		l.Variant = max(slices.IndexFunc(c.Variants, func(v lab.Variant) bool { return v.Params == lab.FP8 }), 0)
	}
	l.Variant = min(l.Variant, len(c.Variants)-1)
	s.Live = "Running " + itoa(c.Steps) + " steps."
	return append(effects, s.labNext()...)
}

func (s *State) labCancel() []Effect {
	l := &s.Lab
	if l.Request == 0 && l.Mode != LabRunning && l.Mode != LabPaused {
		return nil
	}
	if l.Mode == LabRunning || l.Mode == LabPaused {
		l.Mode = LabCancelled
		s.Live = "Cancelled after step " + itoa(len(l.Records)) + ". What was computed stays."
	}
	l.Request, l.asked = 0, l.Seen
	return []Effect{StopLab{}}
}

// look is what a frame should show: the watched tensor, and the element if there is such a one.
func (l *Lab) look() LabLook {
	look := LabLook{Watch: l.Watch, Element: -1}
	if n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(l.Element), ",", "")); err == nil && l.Frame != nil &&
		n >= 0 && int(l.Watch.Tensor) < len(l.Frame.Tensors) && n < l.Frame.Tensors[l.Watch.Tensor].Numel {
		look.Element = n
	}
	return look
}

// labNext asks for what is missing, unless an answer is on its way: more steps of a run, or
// another look at a run that rests.
func (s *State) labNext() []Effect {
	l := &s.Lab
	if l.Request != 0 || l.Mode == LabIdle || l.Mode == LabFailed {
		return nil
	}
	r := lab.Request{Config: l.Config, From: len(l.Records), Watch: l.Watch}
	look := l.look()
	switch {
	case l.Mode == LabRunning:
		r.Steps = l.ahead
		look.Element = -1 // a journey is for a step that stays
	case l.Frame == nil || look == l.asked:
		return nil
	}
	if look.Element >= 0 {
		r.Element = &look.Element
	}
	l.Request, l.asked = s.id(), look
	return []Effect{AskLab{ID: l.Request, Request: r}}
}

func (s *State) labAnswered(m LabAnswered) []Effect {
	l := &s.Lab
	l.Request, l.Frame, l.Seen = 0, m.Frame, l.asked
	l.Records = append(l.Records, m.Frame.Steps...)
	if !l.Chosen { // an FP8 weight tells most
		for i, t := range m.Frame.Tensors {
			if t.GEMM {
				l.Watch.Tensor, l.Chosen = bucket.ParamID(i), true
				break
			}
		}
	}
	if n := len(m.Frame.Steps); n > 0 {
		l.ahead = min(max(n*labTurn/max(m.Milliseconds, 1), 1), 2*n, lab.MaxSlice)
	}
	if m.Frame.Done && (l.Mode == LabRunning || l.Mode == LabPaused) {
		l.Mode = LabDone
		s.Live = l.outcome()
	}
	return s.labNext()
}

// outcome says what a run that is done has shown.
func (l *Lab) outcome() string {
	text := "Run done, " + itoa(len(l.Records)) + " steps."
	agree, equal := true, true
	for _, v := range l.Frame.Variants {
		text += " " + v.Name + ": "
		if v.Health == lab.Useless {
			text += "useless from step " + itoa(v.Stopped) + "."
		} else {
			text += "loss " + loss(v.First) + " to " + loss(v.Last) + "."
		}
		agree = agree && v.Agree.Different == 0
		equal = equal && v.Before.Different == 0
	}
	if agree {
		text += " All " + itoa(l.Config.Ranks) + " ranks hold identical parameters."
	}
	if equal {
		text += " BEFORE and AFTER do not differ."
	}
	return text
}

func loss(v lab.Value) string { return strconv.FormatFloat(float64(v), 'f', 2, 64) }
