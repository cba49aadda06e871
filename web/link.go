package web

import (
	"strconv"
	"strings"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/share"
	"distopt/web/ids"
	"distopt/web/state"
	"distopt/web/storage"
)

// start opens what the address says, else what a stopped page has saved, else the presets.
func (r *root) start() {
	opening := state.Opening()
	for i := range opening {
		r.opening[i] = opening[i].Text
	}
	if theme := storage.Browser.Get(storageTheme); theme != "" {
		r.state.Theme = map[string]state.Theme{"light": state.Light, "dark": state.Dark}[theme]
		r.setTheme(r.state.Theme)
	}
	if storage.Tab.Get(ids.RestoreFlag) != "" {
		storage.Tab.Remove(ids.RestoreFlag)
		if docs, ok := restored(opening); ok {
			r.send(state.Started{Docs: docs, Note: "Restored as it was typed."})
			return
		}
	}
	hash := address("hash")
	if !isLink(hash) {
		r.send(state.Started{Docs: opening})
		return
	}
	docs, link, err := read(hash, opening)
	if err != nil {
		r.send(state.Started{Docs: opening, Note: err.Error(), Bad: brief(hash)})
		return
	}
	r.send(state.Started{Docs: docs, Link: link})
}

// isLink reports whether an address or its fragment means to be a link to a configuration. What it
// may be else was never ours, and nothing is said of it.
func isLink(address string) bool {
	_, fragment, _ := strings.Cut(address, "#")
	return strings.Contains(fragment, "c=")
}

func address(part string) string {
	return app.Window().Get("location").Get(part).String()
}

// brief cuts the text of a link to what a line can show.
func brief(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// restored takes the texts that the page saved as they were typed.
func restored(docs [2]state.Document) ([2]state.Document, bool) {
	for i, key := range storageKeys {
		text := storage.Tab.Get(key)
		if text == "" {
			return docs, false
		}
		docs[i].Text = text
	}
	return docs, true
}

// The page's own settings in a link.
const (
	viewCompare = "compare"
	viewShown   = "shown"
	viewTab     = "tab"
)

// read opens a fragment. A link with one document leaves the other as the opening has it.
func read(hash string, docs [2]state.Document) ([2]state.Document, state.Opened, error) {
	link, err := share.Decode(strings.TrimPrefix(hash, "#"))
	if err != nil {
		return docs, state.Opened{}, err
	}
	docs[state.A] = document(&link.A)
	if link.Both {
		docs[state.B] = document(&link.B)
	}
	opened := state.Opened{Compare: link.View[viewCompare] == "1" && link.Both, Model: link.Model}
	opened.Made[state.A], opened.Made[state.B] = link.A.StepTime, link.B.StepTime
	if link.View[viewShown] == "b" && link.Both {
		opened.Shown = state.B
	}
	if tab, err := strconv.Atoi(link.View[viewTab]); err == nil && tab >= 0 && tab <= int(state.Numerics) && state.DetailTab(tab) != state.SelectionTab {
		opened.Tab = state.DetailTab(tab)
	}
	return docs, opened, nil
}

func document(d *share.Document) state.Document {
	doc := state.Document{Name: d.Name, Preset: d.Preset, Text: d.Text}
	for _, p := range state.Presets() {
		if p.ID == d.Preset {
			doc.Base = p.Text
			if doc.Name == "" {
				doc.Name = p.Name
			}
		}
	}
	if doc.Base == "" {
		doc.Preset = ""
	}
	if doc.Name == "" {
		doc.Name = "Linked configuration"
	}
	return doc
}

// fragment writes what is shown as a fragment.
func (r *root) fragment() (string, error) {
	s := &r.state
	link := &share.Link{Both: true, View: map[string]string{}}
	for i, d := range [...]*share.Document{&link.A, &link.B} {
		slot := &s.Slots[i]
		d.Text, d.Preset, d.Name = slot.Doc.Text, slot.Doc.Preset, slot.Doc.Name
		if slot.Result != nil && !slot.Stale() {
			d.StepTime = slot.Result.Figures.StepTime
			link.Model = slot.Result.ModelVersion
		}
	}
	if s.Compare {
		link.View[viewCompare] = "1"
	}
	if s.Shown == state.B {
		link.View[viewShown] = "b"
	}
	if s.DetailTab != state.Buckets && s.DetailTab != state.SelectionTab {
		link.View[viewTab] = strconv.Itoa(int(s.DetailTab))
	}
	return share.Encode(link)
}

// share writes the link into the address and copies it.
func (r *root) share() {
	fragment, err := r.fragment()
	if err != nil {
		r.send(state.Copied{What: "No link: " + err.Error()})
		return
	}
	link := address("origin") + address("pathname") + address("search") + "#" + fragment
	r.replace("#" + fragment)
	r.send(state.LinkMade{Link: link})
	copied := func(c state.Copy) { r.send(state.LinkCopied{Link: link, Copy: c}) }
	clipboard := app.Window().Get("navigator").Get("clipboard")
	if !clipboard.Truthy() { // a page that did not come by HTTPS or from this machine
		copied(state.CopyRefused)
		return
	}
	settle(clipboard.Call("writeText", link), func(app.Value) { copied(state.CopyDone) }, func() { copied(state.CopyRefused) })
}

// writeAddress keeps the address in step with what is shown, so that a reload brings it back. The
// opening needs no link, and a text that is too long for one has none.
func (r *root) writeAddress() {
	s := &r.state
	r.addresses++
	mine := r.addresses
	if s.Slots[0].Doc.Text == r.opening[0] && s.Slots[1].Doc.Text == r.opening[1] {
		r.replace("")
		return
	}
	after(400, func() {
		if mine != r.addresses {
			return
		}
		if fragment, err := r.fragment(); err == nil {
			r.replace("#" + fragment)
		}
	})
}

// replace changes the address without an entry in the history and without a hashchange.
func (r *root) replace(hash string) {
	if address("hash") == hash {
		return
	}
	attempt(func() {
		app.Window().Get("history").Call("replaceState", app.Null(), "", address("pathname")+address("search")+hash)
	})
}

// openHash follows a link that was clicked or typed while the page is open, and the way back.
func (r *root) openHash(left string) {
	hash := address("hash")
	if !isLink(hash) {
		r.send(state.LinkLeft{})
		return
	}
	docs, link, err := read(hash, [2]state.Document{r.state.Slots[0].Doc, r.state.Slots[1].Doc})
	if err != nil {
		r.send(state.LinkRefused{Link: brief(hash), Reason: err.Error()})
		return
	}
	r.send(state.LinkOpened{Docs: docs, Link: link, First: !isLink(left)})
}
