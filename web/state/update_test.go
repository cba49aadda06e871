package state

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/web/sample"
)

// opened returns the page as a first visitor has it, both results in.
func opened(t *testing.T) State {
	t.Helper()
	s, effects := Update(New(), Started{Docs: Opening()})
	for _, e := range effects {
		if e, ok := e.(Simulate); ok {
			s, _ = Update(s, Simulated{Slot: e.Slot, ID: e.ID, Result: sample.Result(1, 4)})
		}
	}
	require.Equal(t, 2, s.Draws)
	return s
}

func simulations(effects []Effect) (out []Simulate) {
	for _, e := range effects {
		if e, ok := e.(Simulate); ok {
			out = append(out, e)
		}
	}
	return out
}

func TestOpeningIsSimulatedAndTheWorstOperationSelected(t *testing.T) {
	s := opened(t)
	require.False(t, s.Current().Stale())
	require.GreaterOrEqual(t, s.Select.Span, int32(0))
	require.Equal(t, int32(0), s.Select.Bucket)
	require.NotEqual(t, s.Slots[A].Doc.Text, s.Slots[B].Doc.Text, "B is the version before the change")
	require.False(t, s.CanUndo())
}

func TestFieldEditChangesOnlyItsLineAndCanBeUndone(t *testing.T) {
	s := opened(t)
	text := s.Current().Doc.Text
	for _, typed := range []string{"2", "20", "200"} { // a run of keys is one step of the history
		var effects []Effect
		s, effects = Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: typed})
		require.Len(t, simulations(effects), 1)
	}
	require.Equal(t, strings.Replace(text, "bucket_cap_mb: 400", "bucket_cap_mb: 200", 1), s.Current().Doc.Text)
	require.True(t, s.Current().Stale())
	s, effects := Update(s, Undone{})
	require.Equal(t, text, s.Current().Doc.Text)
	require.Empty(t, simulations(effects), "the old result is still there")
	require.Contains(t, effects, Effect(Cancel{A}))
	s, _ = Update(s, Redone{})
	require.Contains(t, s.Current().Doc.Text, "bucket_cap_mb: 200")
}

func TestPauseEndsARunOfEdits(t *testing.T) {
	s := opened(t)
	first := s.Current().Doc.Text
	s, effects := Update(s, TextEdited{first + "# a\n"})
	var rested EditRested
	for _, e := range effects {
		if later, ok := e.(Later); ok {
			if m, ok := later.Msg.(EditRested); ok {
				rested = m
			}
		}
	}
	s, _ = Update(s, rested)
	s, _ = Update(s, TextEdited{first + "# ab\n"})
	s, _ = Update(s, Undone{})
	require.Equal(t, first+"# a\n", s.Current().Doc.Text)
	s, _ = Update(s, Undone{})
	require.Equal(t, first, s.Current().Doc.Text)
}

func TestErrorKeepsTheLastResult(t *testing.T) {
	s := opened(t)
	result := s.Current().Result
	s, effects := Update(s, TextEdited{s.Current().Doc.Text + "\nmodel: [broken\n"})
	require.Empty(t, simulations(effects))
	require.Same(t, result, s.Current().Result)
	require.True(t, s.Current().Stale())
	require.False(t, s.Current().Read.OK())
	require.True(t, s.Current().Read.Broken())
	require.Contains(t, s.Current().Doc.Text, "[broken")
}

func TestOldAnswersAreDropped(t *testing.T) {
	s := opened(t)
	s, one := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "100"})
	s, two := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "50"})
	old, fresh := sample.Result(1, 2), sample.Result(1, 3)
	s, _ = Update(s, Simulated{Slot: A, ID: simulations(one)[0].ID, Result: old})
	require.NotSame(t, old, s.Current().Result)
	s, _ = Update(s, Simulated{Slot: A, ID: simulations(two)[0].ID, Result: fresh})
	require.Same(t, fresh, s.Current().Result)
	require.False(t, s.Current().Stale())
}

func TestSlowThenCancelled(t *testing.T) {
	s := opened(t)
	s, effects := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "100"})
	id := simulations(effects)[0].ID
	require.False(t, s.Current().Slow)
	s, _ = Update(s, TookLong{A, id})
	s, _ = Update(s, Progressed{A, 0.7})
	require.True(t, s.Current().Slow)
	require.Equal(t, "Simulating, 60 percent.", s.Live)
	s, effects = Update(s, Halt{})
	require.Contains(t, effects, Effect(Cancel{A}))
	require.Zero(t, s.Current().Request)
	require.True(t, s.Current().Halted)
	_, effects = Update(s, SimulateNow{})
	require.Len(t, simulations(effects), 1)
}

func TestWorkerDies(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "100"})
	text := s.Current().Doc.Text
	s, _ = Update(s, WorkerStopped{Slot: A, Text: "exit code 2", Report: "goroutine 1"})
	require.True(t, s.Current().Stopped)
	s, effects := Update(s, Restarted{})
	require.Contains(t, effects, Effect(Restart{A}))
	require.Len(t, simulations(effects), 1)
	require.Equal(t, text, s.Current().Doc.Text)
}

func TestSelectionFollowsItsNamesake(t *testing.T) {
	s := opened(t)
	r := s.Current().Result
	last := r.Collectives[len(r.Collectives)-1]
	s, _ = Update(s, SpanPicked{Slot: A, Span: last.Span})
	require.Equal(t, last.Buckets[0], s.Select.Bucket)
	s, effects := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "100"})
	s, _ = Update(s, Simulated{Slot: A, ID: simulations(effects)[0].ID, Result: sample.Result(1, 4)})
	require.Equal(t, last.Span, s.Select.Span)
	s, effects = Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "50"})
	s, _ = Update(s, Simulated{Slot: A, ID: simulations(effects)[0].ID, Result: sample.Result(1, 2)})
	require.False(t, s.Select.Chosen, "it is gone: the worst operation is selected again")
}

func TestFixAndReset(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, FieldEdited{Path: "model.global_batch_size", Text: "20"})
	require.False(t, s.Current().Read.OK())
	index := -1
	for i, d := range s.Current().Read.Diagnostics {
		if len(d.Edits) > 0 && d.Path == "model.global_batch_size" {
			index = i
		}
	}
	require.GreaterOrEqual(t, index, 0)
	fixed, effects := Update(s, FixApplied{Index: index})
	require.True(t, fixed.Current().Read.OK())
	require.NotEmpty(t, effects)
	s, _ = Update(s, FieldReset{Path: "model.global_batch_size"})
	require.Equal(t, s.Current().Doc.Base, s.Current().Doc.Text)
}

func TestCompareAndVersions(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, ComparePicked{})
	require.Equal(t, Differences, s.DetailTab)
	require.Equal(t, NoSelection, s.Select)
	s, effects := Update(s, DetailPicked{FourVersions})
	require.Len(t, effects, 1)
	ask := effects[0].(AskVersions)
	for i, text := range ask.Texts[:4] {
		require.Equal(t, FourVersionNames[i], Read(text).Scenario.Framework.Version)
	}
	for i, text := range ask.Texts[4:] {
		require.Equal(t, VersionNames[4+i], Read(text).Scenario.Optim.Name)
	}
	s, _ = Update(s, VersionsDone{ID: ask.ID, Rows: make([]VersionRow, len(VersionNames))})
	require.Len(t, s.Versions.Rows, len(VersionNames))
	_, effects = Update(s, DetailPicked{FourVersions})
	require.Empty(t, effects, "the table is up to date")
	s, _ = Update(s, SlotPicked{B})
	require.False(t, s.Compare)
	require.Equal(t, B, s.Select.Slot)
}

func TestPresetsAreValid(t *testing.T) {
	for _, p := range Presets() {
		doc, ok := presetDocument(p.ID)
		require.True(t, ok)
		require.True(t, Read(doc.Text).OK(), p.ID)
	}
}

func TestBFollowsThePresetUntilItIsEdited(t *testing.T) {
	s := opened(t)
	s, effects := Update(s, PresetPicked{"gpt3-20b-fp8"})
	require.Equal(t, "before", s.Slots[B].Read.Scenario.Framework.Version)
	require.Equal(t, s.Slots[A].Read.Scenario.Model, s.Slots[B].Read.Scenario.Model)
	require.Len(t, simulations(effects), 1, "B is simulated when it is shown")
	_, effects = Update(s, ComparePicked{})
	require.Len(t, simulations(effects), 1, "A is on its way")
	s, _ = Update(s, SlotPicked{B})
	s, _ = Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "77"})
	s, _ = Update(s, SlotPicked{A})
	edited := s.Slots[B].Doc.Text
	s, _ = Update(s, PresetPicked{"gpt3-5b-bf16"})
	require.Equal(t, edited, s.Slots[B].Doc.Text)
}

func TestProgressOfTheFourVersionsIsNoSlots(t *testing.T) {
	s := opened(t)
	next, effects := Update(s, Progressed{Slot: 2, Done: 0.5})
	require.Empty(t, effects)
	require.Equal(t, s.Live, next.Live)
}

func TestHugeFilesAreRefusedAndChangeNothing(t *testing.T) {
	s := opened(t)
	text := s.Current().Doc.Text
	s, effects := Update(s, Imported{Name: "huge.yaml", Text: strings.Repeat("k: 1\n", ImportLimit/5+1)})
	require.Equal(t, text, s.Current().Doc.Text)
	require.False(t, s.CanUndo())
	require.Equal(t, "huge.yaml: "+TooLarge, s.ImportRefused)
	require.Equal(t, []Effect{OpenDialog{ImportDialog}}, effects)

	s, _ = Update(s, Imported{Name: "small.yaml", Text: text})
	require.Empty(t, s.ImportRefused)
}

func TestEmptyTextIsNotSimulated(t *testing.T) {
	s := opened(t)
	s, effects := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "200"})
	asked := simulations(effects)[0]
	s, effects = Update(s, TextEdited{Text: " \n"})
	require.Contains(t, effects, Effect(Cancel{A}))
	require.Empty(t, simulations(effects))
	s, _ = Update(s, Simulated{Slot: A, ID: asked.ID, Result: sample.Result(1, 6)})
	require.True(t, s.Current().Stale(), "the late answer belongs to another text")
	for _, text := range []string{"", "# hidden_size: 4\n", "{}", "null", "---\n...\n"} {
		s, effects = Update(s, TextEdited{Text: text})
		require.Empty(t, simulations(effects), "%q", text)
		require.True(t, s.Current().Empty(), "%q", text)
		require.Empty(t, s.Current().Read.Diagnostics, "%q", text)
	}
	s, effects = Update(s, TextEdited{Text: "model: {num_layers: 4}"})
	require.Len(t, simulations(effects), 1)
	s, _ = Update(s, TextEdited{Text: "[broken"})
	require.False(t, s.Current().Empty(), "what is wrong is not nothing")
}

func TestClearedSelectionStaysCleared(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, Deselected{})
	require.Negative(t, s.Select.Span)
	s, effects := Update(s, FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "200"})
	s, _ = Update(s, Simulated{Slot: A, ID: simulations(effects)[0].ID, Result: sample.Result(1, 6)})
	require.Negative(t, s.Select.Span, "a result selects nothing that the visitor has cleared")
	s, _ = Update(s, SlotPicked{Slot: B})
	require.GreaterOrEqual(t, s.Select.Span, int32(0))
}

func TestLeavingABadLinkTakesItsNoteAway(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, LinkRefused{Link: "#x", Reason: "no link"})
	require.NotEmpty(t, s.Shared.Note)
	s, _ = Update(s, LinkLeft{})
	require.Empty(t, s.Shared.Note+s.Shared.Bad)
}

func TestTheWayBackFromALinkLeadsToWhatWasShown(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, TextEdited{Text: s.Current().Doc.Text + "# mine\n"})
	s, _ = Update(s, ComparePicked{})
	mine, was := s.Slots[A].Doc, *s.place()
	link := LinkOpened{First: true, Docs: [2]Document{{Name: "x", Text: "model:\n  num_layers: 4\n"}, {Name: "y", Text: "model:\n  num_layers: 8\n"}}}
	s, _ = Update(s, link)
	require.False(t, s.Compare)
	next := link
	next.First, next.Docs[A].Text = false, "model:\n  num_layers: 12\n"
	s, _ = Update(s, next)
	s, _ = Update(s, link.later()) // back to the first link
	s, effects := Update(s, LinkLeft{})
	require.Equal(t, was, *s.place())
	require.Len(t, simulations(effects), 1, "A has no result yet")
	s, _ = Update(s, LinkLeft{})
	require.Equal(t, mine, s.Slots[A].Doc)
	s, _ = Update(s, Undone{})
	require.Equal(t, link.Docs[A].Text, s.Slots[A].Doc.Text, "Undo knows the way too")
}

// later is the link as it is opened from another one.
func (l LinkOpened) later() LinkOpened {
	l.First = false
	return l
}

// Every message that brings a text gives it away before it is read.
func TestTextsAreKeptBeforeTheyAreRead(t *testing.T) {
	s := opened(t)
	b := s.Slots[B].Doc.Text
	docs := [2]Document{{Text: "new"}, {Text: "other"}}
	for _, c := range []struct {
		msg  Msg
		want [2]string
	}{
		{TextEdited{Text: "new"}, [2]string{"new", b}},
		{Imported{Text: "new"}, [2]string{"new", b}},
		{LinkOpened{Docs: docs}, [2]string{"new", "other"}},
		{Started{Docs: docs, Link: Opened{Model: "1.0"}}, [2]string{"new", "other"}},
	} {
		got, ok := Texts(&s, c.msg)
		require.True(t, ok, "%T", c.msg)
		require.Equal(t, c.want, got, "%T", c.msg)
	}
	for _, m := range []Msg{Started{Docs: docs}, Imported{Text: strings.Repeat("x", ImportLimit+1)}, Undone{}, FieldEdited{}} {
		_, ok := Texts(&s, m)
		require.False(t, ok, "%T", m)
	}
	s, _ = Update(s, SlotPicked{Slot: B})
	got, _ := Texts(&s, TextEdited{Text: "new"})
	require.Equal(t, "new", got[B])
}

func TestFocusGoesWithTheTimelinesTable(t *testing.T) {
	s := opened(t)
	s, effects := Update(s, SpanTableToggled{Keys: true})
	require.Equal(t, []Effect{FocusTimeline{Table: true}}, effects)
	s, effects = Update(s, SpanTableToggled{Keys: true})
	require.Equal(t, []Effect{FocusTimeline{}}, effects)
	_, effects = Update(s, SpanTableToggled{})
	require.Empty(t, effects, "a click leaves the focus where it is")
}

func TestShareShowsTheLinkBeforeItIsCopied(t *testing.T) {
	s := opened(t)
	s, effects := Update(s, ShareAsked{})
	require.Equal(t, []Effect{MakeLink{}}, effects)
	s, effects = Update(s, LinkMade{Link: "#c=1.x"})
	require.Contains(t, effects, Effect(OpenDialog{ShareDialog}), "a browser may ask before it copies")
	require.Equal(t, Copying, s.Shared.Copy)
	s, _ = Update(s, LinkCopied{Link: "#c=1.old", Copy: CopyRefused})
	require.Equal(t, Copying, s.Shared.Copy, "an answer about an earlier link changes nothing")
	s, _ = Update(s, LinkCopied{Link: "#c=1.x", Copy: CopyDone})
	require.Equal(t, CopyDone, s.Shared.Copy)
}
