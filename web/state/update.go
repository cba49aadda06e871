package state

import (
	"slices"
	"strings"

	"distopt/core/importer"
	"distopt/core/scenario"
)

// slowAfter is how long a simulation may run before the page shows that it runs, ms.
const slowAfter = 100

// Update gives the state after m, and what the browser has to do.
func Update(s State, m Msg) (State, []Effect) {
	var effects []Effect
	do := func(e ...Effect) { effects = append(effects, e...) }
	switch m := m.(type) {
	case Started:
		s.open(m.Docs, m.Link)
		s.Shared.Note, s.Shared.Bad = m.Note, m.Bad
		do(s.simulate(A)...)
		do(s.simulate(B)...)
	case LinkOpened:
		if m.First {
			s.unlinked = s.place()
		}
		s.remember("")
		s.open(m.Docs, m.Link)
		do(s.changed()...)
		do(s.simulate(1 - s.Shown)...)
	case LinkRefused:
		s.Shared.Note, s.Shared.Bad = m.Reason, m.Link
	case LinkLeft:
		if s.Shared.Bad != "" {
			s.Shared.Note, s.Shared.Bad = "", ""
		}
		if back := s.unlinked; back != nil {
			s.unlinked = nil
			s.remember("")
			s.open(back.Docs, back.Link)
			do(s.changed()...)
			do(s.simulate(1 - s.Shown)...)
		}

	case TextEdited:
		if m.Text != s.Current().Doc.Text {
			s.remember("text" + string(rune('A'+s.Shown)))
			do(s.edit(m.Text)...)
			do(s.rest())
		}
	case FieldEdited:
		do(s.editField(m.Path, m.Text)...)
		do(s.rest())
	case FixApplied:
		do(s.fix(m.Index)...)
	case FindingApplied:
		do(s.apply(m.Rule)...)
	case FieldReset:
		s.history.lastBy = ""
		text, err := resetField(s.Current().Doc, m.Path)
		do(s.editTo(text, err, "")...)
	case PresetPicked:
		if doc, ok := presetDocument(m.ID); ok {
			s.remember("")
			s.Import = nil
			mate := s.counterpart()
			s.setDoc(s.Shown, doc)
			if mate {
				s.setDoc(B, before(doc))
			}
			do(s.changed()...)
		}
	case Imported:
		s.ImportRefused = ""
		if len(m.Text) > ImportLimit {
			do(s.refuse(m.Name, TooLarge)...)
			break
		}
		s.remember("")
		s.setDoc(s.Shown, Document{Name: m.Name, Text: m.Text})
		s.Import = s.Current().Read
		do(s.openImport()...)
		do(s.changed()...)
	case FileRefused:
		do(s.refuse(m.Name, m.Reason)...)
	case Undone:
		if s.undo() {
			do(s.changed()...)
		}
	case Redone:
		if s.redo() {
			do(s.changed()...)
		}

	case SlotPicked:
		s.Shown, s.Compare = m.Slot, false
		s.leaveCompare()
		s.settle()
		do(s.simulate(m.Slot)...)
		do(s.askVersions()...)
	case ComparePicked:
		s.Compare = true
		s.DetailTab = Differences
		s.View = [2]float64{}
		s.settle()
		do(ShowSpan{})
		do(s.simulate(A)...)
		do(s.simulate(B)...)
	case ConfigPicked:
		s.ConfigTab = m.Tab
	case DetailPicked:
		if s.DetailTab != m.Tab {
			s.DetailTab, s.Sort = m.Tab, Sort{Column: -1}
		}
		do(s.askVersions()...)
	case TableToggled:
		s.Table = !s.Table
	case SpanTableToggled:
		s.SpanTable = !s.SpanTable
		if m.Keys {
			do(FocusTimeline{s.SpanTable})
		}
	case SpanSortPicked:
		s.SpanSort = Sort{Column: m.Column, Reverse: s.SpanSort.Column == m.Column && !s.SpanSort.Reverse}
	case StageToggled:
		s.Opened = toggle(s.Opened, m.Key)
	case MoreToggled:
		s.More = toggle(s.More, m.Group)
	case SpanPicked:
		s.Select = s.spanSelection(m.Slot, m.Span)
		s.Select.Chosen = true
	case BucketPicked:
		s.Select = Selection{Slot: m.Slot, Stage: m.Stage, Bucket: m.Bucket, Span: -1, Chosen: true}
	case Deselected:
		s.Select = NoSelection
		s.Select.Slot, s.Select.Chosen = s.Shown, true
		s.Figure = ""
	case FigureOpened:
		if s.Figure == m.ID {
			m.ID = ""
		}
		s.Figure = m.ID
	case DialogOpened:
		s.Dialog = m.Dialog
		do(OpenDialog(m))
	case SheetPicked:
		s.Sheet = m.Sheet
	case ConfigToggled:
		s.NoConfig = !s.NoConfig
	case SheetToggled:
		if s.Sheet == ConfigSheet {
			s.Sheet = ResultSheet
		} else {
			s.Sheet = ConfigSheet
		}
	case SpanShown:
		do(RevealSpan(m))
	case NoteDismissed:
		s.Shared.Note, s.Shared.Bad = "", ""
		s.Current().Halted = false
	case FileChosen:
		do(ReadFile(m))
	case EditRested:
		if s.history.edits == m.Edits {
			s.history.lastBy = ""
		}
	case ThemePicked:
		s.Theme = (s.Theme + 1) % 3
		do(SetTheme{s.Theme})
	case SortPicked:
		s.Sort = Sort{Column: m.Column, Reverse: s.Sort.Column == m.Column && !s.Sort.Reverse}
	case FragmentSortPicked:
		s.FragmentSort = Sort{Column: m.Column, Reverse: s.FragmentSort.Column == m.Column && !s.FragmentSort.Reverse}
	case StagePicked:
		s.Stage = m.Stage
		if s.Select.Bucket >= 0 && s.Select.Stage != m.Stage {
			s.Select = NoSelection
			s.Select.Chosen = true
		}
	case Scrolled:
		s.Scroll = m.First
	case ViewMoved:
		s.View = [2]float64{m.T0, m.T1}
	case Resized:
		s.Room = m.Room
	case ProblemGone:
		s.ConfigTab = YAML
		do(RevealLine(m))
	case ZoomToSpan:
		if r := s.Slots[s.Select.Slot].Result; r != nil && m.Span >= 0 && int(m.Span) < len(r.Spans.Start) {
			a, b := float64(r.Spans.Start[m.Span]), float64(r.Spans.End[m.Span])
			margin := max((b-a)*0.5, 1000)
			do(ShowSpan{a - margin, b + margin})
		}
	case NoticeGone:
		if s.Notice == m.Text {
			s.Notice = ""
		}
	case ShareAsked:
		do(MakeLink{})
	case LinkMade:
		s.Shared.Link, s.Shared.Copy = m.Link, Copying
		s.Dialog = ShareDialog
		do(OpenDialog{ShareDialog})
	case LinkCopied:
		if m.Link == s.Shared.Link {
			s.Shared.Copy = m.Copy
		}
	case Copied:
		s.Notice = m.What
		do(Later{4000, NoticeGone{m.What}})
	case VersionPicked:
		if text, err := setVersion(s.Current().Doc.Text, m.Version); err == nil {
			s.remember("")
			doc := s.Current().Doc
			doc.Text, doc.Name = text, doc.Name+", "+m.Version
			s.setDoc(1-s.Shown, doc)
			s.Compare, s.DetailTab = true, Differences
			do(s.changed()...)
		}
	case CSVAsked:
		do(Download(m))

	case Simulated:
		do(s.simulated(m)...)
	case Refused:
		if slot := &s.Slots[m.Slot]; slot.Request == m.ID {
			slot.Request, slot.Slow = 0, false
			slot.Failure, slot.Report = m.Text, m.Report
			s.Live = "The simulator refused the configuration. " + m.Text
		}
	case Progressed:
		s.progress(m)
	case TookLong:
		if slot := &s.Slots[m.Slot]; slot.Request == m.ID {
			slot.Slow = true
		}
	case WorkerStopped:
		slot := &s.Slots[m.Slot]
		slot.Request, slot.Slow, slot.Stopped = 0, false, true
		slot.Failure, slot.Report = m.Text, m.Report
		s.Live = "The simulator stopped. The configuration is safe."
	case Restarted:
		for i := range s.Slots {
			if s.Slots[i].Stopped {
				s.Slots[i].Stopped = false
				do(Restart{i})
				do(s.simulate(i)...)
			}
		}
	case Halt:
		do(s.halt()...)
	case SimulateNow:
		for i := range s.Slots {
			s.Slots[i].Halted = false
			do(s.simulate(i)...)
		}
	case VersionsDone:
		if s.Versions.Request == m.ID {
			s.Versions.Request, s.Versions.Rows, s.Versions.Failure = 0, m.Rows, m.Failure
		}
	default:
		do(s.labMessage(m)...)
	}
	return s, effects
}

// ImportLimit is how many bytes of a file are taken in: more than any reader of configurations
// reads, and little enough for the editor.
const ImportLimit = 1 << 20

// TooLarge says why a file was refused.
const TooLarge = "It is larger than 1 MiB, the most that is imported. The configuration is as it was."

// refuse says in the import dialog why a file was not taken.
func (s *State) refuse(name, reason string) []Effect {
	s.Import, s.ImportRefused = nil, name+": "+reason
	s.Live = s.ImportRefused
	return s.openImport()
}

func (s *State) openImport() []Effect {
	if s.Dialog == ImportDialog {
		return nil
	}
	s.Dialog = ImportDialog
	return []Effect{OpenDialog{ImportDialog}}
}

// open replaces both documents.
func (s *State) open(docs [2]Document, link Opened) {
	s.Shared = Shared{Model: link.Model, Made: link.Made}
	for i := range docs {
		s.setDoc(i, docs[i])
		s.Shared.Texts[i] = docs[i].Text
	}
	s.Shown, s.Compare, s.DetailTab = link.Shown, link.Compare, link.Tab
	if s.Compare {
		s.Select = NoSelection
	} else {
		s.leaveCompare()
	}
}

// place gives what open needs to come back to what is shown.
func (s *State) place() *LinkOpened {
	p := &LinkOpened{Link: Opened{Compare: s.Compare, Shown: s.Shown, Tab: s.DetailTab, Model: s.Shared.Model, Made: s.Shared.Made}}
	for i := range p.Docs {
		p.Docs[i] = s.Slots[i].Doc
	}
	return p
}

func (s *State) leaveCompare() {
	if s.DetailTab == Differences {
		s.DetailTab = Buckets
	}
}

func (s *State) setDoc(slot int, doc Document) {
	x := &s.Slots[slot]
	if x.Read == nil || x.Doc.Text != doc.Text {
		x.Read = Read(doc.Text)
	}
	if x.Form == nil || !x.Read.Broken() {
		x.Form = x.Read
	}
	x.Doc = doc
}

// edit replaces the shown text.
func (s *State) edit(text string) []Effect {
	doc := s.Current().Doc
	doc.Text = text
	s.setDoc(s.Shown, doc)
	return s.changed()
}

// fix applies the edits of a problem, all together as one step of the history.
func (s *State) fix(index int) []Effect {
	read := s.Current().Read
	if index < 0 || index >= len(read.Diagnostics) {
		return nil
	}
	text, err := importer.Apply(read.Text, read.Diagnostics[index].Edits)
	s.history.lastBy = ""
	return s.editTo(text, err, "")
}

// apply makes the change of a finding, in the configuration that it was found in.
func (s *State) apply(rule string) []Effect {
	x := s.Current()
	if x.Result == nil || x.Stale() {
		return nil
	}
	for i := range x.Result.Findings {
		f := &x.Result.Findings[i]
		if f.Rule != rule || len(f.Changes) == 0 {
			continue
		}
		edits := make([]scenario.Edit, len(f.Changes))
		for k, c := range f.Changes {
			edits[k] = scenario.Edit(c)
		}
		text, err := importer.Apply(x.Doc.Text, edits)
		s.history.lastBy = ""
		return s.editTo(text, err, "")
	}
	return nil
}

func (s *State) editField(path, value string) []Effect {
	text, err := importer.SetField(s.Current().Doc.Text, path, value)
	return s.editTo(text, err, "field "+path)
}

// editTo makes text the shown one, or says why the edit was refused.
func (s *State) editTo(text string, err error, by string) []Effect {
	if err != nil {
		s.Notice = err.Error()
		return []Effect{Later{8000, NoticeGone{s.Notice}}}
	}
	if text == s.Current().Doc.Text {
		return nil
	}
	s.remember(by)
	return s.edit(text)
}

// counterpart reports whether A is shown and B is nothing but its preset before the change: B
// then follows when another preset is picked.
func (s *State) counterpart() bool {
	a, b := &s.Slots[A].Doc, &s.Slots[B].Doc
	return s.Shown == A && a.Base != "" && b.Text == before(Document{Text: a.Base}).Text
}

// changed saves both texts and simulates what is shown and new.
func (s *State) changed() []Effect {
	var effects []Effect
	for i := range s.Slots {
		x := &s.Slots[i]
		x.Failure, x.Report, x.Halted = "", "", false
		effects = append(effects, Save{Slot: i, Text: x.Doc.Text})
		if i == s.Shown || s.Compare {
			effects = append(effects, s.simulate(i)...)
		}
	}
	return append(append(effects, s.askVersions()...), WriteAddress{})
}

// simulate asks for the result of a slot unless it is there, on its way, or impossible.
func (s *State) simulate(slot int) []Effect {
	x := &s.Slots[slot]
	if !x.Read.OK() || x.Empty() || x.Of == x.Doc.Text && x.Result != nil {
		if x.Request != 0 {
			x.Request, x.Slow = 0, false
			return []Effect{Cancel{slot}}
		}
		return nil
	}
	if x.Request != 0 && x.Asked == x.Doc.Text {
		return nil
	}
	x.Request, x.Asked, x.Done = s.id(), x.Doc.Text, 0
	return []Effect{
		Simulate{Slot: slot, ID: x.Request, Text: x.Doc.Text},
		Later{slowAfter, TookLong{Slot: slot, ID: x.Request}},
	}
}

func (s *State) id() int {
	s.nextID++
	return s.nextID
}

func (s *State) halt() []Effect {
	var effects []Effect
	for i := range s.Slots {
		if x := &s.Slots[i]; x.Request != 0 {
			x.Request, x.Slow, x.Halted = 0, false, true
			effects = append(effects, Cancel{i})
			s.Live = "Cancelled. The earlier result stays."
		}
	}
	return effects
}

// progress keeps the newest share and says every fifth of it.
func (s *State) progress(m Progressed) {
	if m.Slot >= len(s.Slots) { // the four versions tell by rows
		return
	}
	x := &s.Slots[m.Slot]
	if x.Request == 0 {
		return
	}
	if before, now := int(x.Done*5), int(m.Done*5); now > before && x.Slow {
		s.Live = "Simulating, " + itoa(now*20) + " percent."
	}
	x.Done = m.Done
}

// askVersions asks for the four versions while their table is shown and out of date.
func (s *State) askVersions() []Effect {
	x := s.Current()
	if s.DetailTab != FourVersions || !x.Read.OK() || x.Empty() || s.Versions.Of == x.Doc.Text {
		return nil
	}
	s.Versions = Versions{Of: x.Doc.Text, Request: s.id(), Rows: s.Versions.Rows}
	ask := AskVersions{ID: s.Versions.Request}
	for i, v := range VersionNames {
		ask.Texts[i], _ = setVersion(x.Doc.Text, v)
	}
	return []Effect{ask}
}

// FourVersionNames are the framework versions in the order in which the change was made.
var FourVersionNames = [4]string{scenario.Before, scenario.BeforeNewApex, scenario.AfterOldApex, scenario.After}

// VersionNames are those, and the frameworks beside NeMo and Apex.
var VersionNames = [...]string{
	FourVersionNames[0], FourVersionNames[1], FourVersionNames[2], FourVersionNames[3], scenario.MCoreAdam, scenario.TorchDDP,
}

// toggle adds a word to a list of words, or takes it out.
func toggle(list, word string) string {
	words := strings.Fields(list)
	if i := slices.Index(words, word); i >= 0 {
		words = slices.Delete(words, i, i+1)
	} else {
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
