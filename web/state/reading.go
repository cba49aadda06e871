package state

import (
	"fmt"
	"sync"

	"distopt/core/importer"
	"distopt/core/scenario"
)

// Reading is what a text means: the scenario it stands for, what is wrong with it, and what
// became of each of its keys.
type Reading struct {
	importer.Reading
	Text string
}

// Texts gives both texts as they are after a message that brings a new one. They are kept before
// Update reads them, so that a text whose reading ends the program is not lost.
func Texts(s *State, m Msg) (texts [2]string, ok bool) {
	texts = [2]string{s.Slots[A].Doc.Text, s.Slots[B].Doc.Text}
	switch m := m.(type) {
	case TextEdited:
		texts[s.Shown] = m.Text
	case Imported:
		texts[s.Shown] = m.Text
		return texts, len(m.Text) <= ImportLimit
	case LinkOpened:
		texts = [2]string{m.Docs[A].Text, m.Docs[B].Text}
	case Started:
		texts = [2]string{m.Docs[A].Text, m.Docs[B].Text}
		return texts, m.Link != Opened{}
	default:
		return texts, false
	}
	return texts, true
}

// Read reads a text.
func Read(text string) *Reading { return &Reading{*importer.Read(text), text} }

// OK reports whether the text can be simulated.
func (r *Reading) OK() bool { return r != nil && r.Reading.OK() }

// Broken reports whether fields can't be edited, since the text is no YAML.
func (r *Reading) Broken() bool {
	for i := range r.Diagnostics {
		if d := &r.Diagnostics[i]; d.Severity == importer.Error && d.Path == "" {
			return true
		}
	}
	return false
}

// Presets are the documents to start from.
var Presets = sync.OnceValue(scenario.Presets)

func presetDocument(id string) (Document, bool) {
	for _, p := range Presets() {
		if p.ID == id {
			return Document{Name: p.Name, Preset: p.ID, Base: p.Text, Text: p.Text}, true
		}
	}
	return Document{}, false
}

// Opening gives the documents of a first visit: the first preset after the change, and before it.
func Opening() [2]Document {
	after, _ := presetDocument(Presets()[0].ID)
	return [2]Document{after, before(after)}
}

// before gives a document as it was before the change; of one on another framework, the same on NeMo
// and Apex after it.
func before(doc Document) Document {
	if f := Read(doc.Text).Scenario.Family(); f == scenario.FamilyMCore || f == scenario.FamilyDDP {
		for _, other := range [...][2]string{{scenario.After, ", on NeMo"}, {scenario.TorchDDP, ", on PyTorch DDP"}} {
			if text, err := setVersion(doc.Text, other[0]); err == nil && Read(text).OK() {
				doc.Text = text
				doc.Name += other[1]
				break
			}
		}
		return doc
	}
	if text, err := setVersion(doc.Text, scenario.Before); err == nil {
		doc.Text = text
		doc.Name += ", before"
	}
	return doc
}

const (
	versionPath   = "framework.version"
	optimizerPath = "model.optim.name"
)

// setVersion sets one of VersionNames: a framework version of NeMo and Apex, or another framework.
func setVersion(text, version string) (string, error) {
	name := scenario.NeMoAdam
	if version == scenario.MCoreAdam || version == scenario.TorchDDP {
		return importer.SetField(text, optimizerPath, version)
	}
	if f := Read(text).Scenario.Family(); f == scenario.FamilyMCore || f == scenario.FamilyDDP {
		var err error
		if text, err = importer.SetField(text, optimizerPath, name); err != nil {
			return text, err
		}
	}
	return importer.SetField(text, versionPath, version)
}

// resetField gives a field the value it has in the document's preset, or its default.
func resetField(doc Document, path string) (string, error) {
	f, ok := scenario.ByPath(path)
	if !ok {
		return doc.Text, fmt.Errorf("%s is not a field", path)
	}
	base := Base(doc.Base)
	if base == nil {
		def := scenario.Default(Read(doc.Text).Scenario.Optim.Name)
		base = &def
	}
	return importer.SetField(doc.Text, path, f.Get(base))
}

// bases keeps what was read of the presets' texts, which are few.
var bases = map[string]*scenario.Scenario{}

// Base is the scenario of a preset's text, nil for none.
func Base(text string) *scenario.Scenario {
	if text == "" {
		return nil
	}
	if s, ok := bases[text]; ok {
		return s
	}
	s := importer.Read(text).Scenario
	bases[text] = &s
	return &s
}
