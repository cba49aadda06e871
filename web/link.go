package web

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/ids"
	"distopt/web/state"
)

// start opens what the address says, else what a stopped page has saved, else the presets.
func (r *root) start() {
	opening := state.Opening()
	if theme := stored("localStorage", storageTheme); theme != "" {
		r.state.Theme = map[string]state.Theme{"light": state.Light, "dark": state.Dark}[theme]
		r.setTheme(r.state.Theme)
	}
	if stored("sessionStorage", ids.RestoreFlag) != "" {
		attempt(func() { app.Window().Get("sessionStorage").Call("removeItem", ids.RestoreFlag) })
		if docs, ok := restored(opening); ok {
			r.send(state.Started{Docs: docs, Note: "Restored as it was typed."})
			return
		}
	}
	r.send(state.Started{Docs: opening})
}

// restored takes the texts that the page saved as they were typed.
func restored(opening [2]state.Document) ([2]state.Document, bool) {
	docs := opening
	for i, key := range storageKeys {
		text := stored("localStorage", key)
		if text == "" {
			return opening, false
		}
		docs[i].Text = text
	}
	return docs, true
}

func (r *root) openHash()     {}
func (r *root) share()        {}
func (r *root) writeAddress() {}
