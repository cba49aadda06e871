package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Editor is the text. The custom element keeps its own document; text and marks are set as
// properties.
type Editor struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Editor
	Hide bool
}

// Render places the element.
func (e *Editor) Render() app.UI {
	return app.Elem("div").ID(editorPanel).Class("editor").Role("tabpanel").Aria("labelledby", ids.TabYAML).Hidden(e.Hide).Body(
		app.Elem(ids.EditorTag).ID(ids.Editor).On(ids.EventDocChange, e.onChange).On(ids.EventDocSubmit, e.onSubmit).On(ids.EventDocUndo, e.onUndo).On(ids.EventDocRedo, e.onRedo),
	)
}

// OnMount and OnUpdate hand text, marks and key names over.
func (e *Editor) OnMount(app.Context)  { e.write(true) }
func (e *Editor) OnUpdate(app.Context) { e.write(false) }

func (e *Editor) write(first bool) {
	if app.IsServer {
		return
	}
	el := app.Window().Get("document").Call("getElementById", ids.Editor)
	if !el.Truthy() {
		return
	}
	if el.Get("value").String() != e.VM.Text {
		el.Set("value", e.VM.Text)
	}
	el.Set("diagnostics", e.VM.Diagnostics)
	if first {
		el.Set("completions", e.VM.Completions)
	}
}

func (e *Editor) onChange(_ app.Context, ev app.Event) {
	e.Mail.Post(state.TextEdited{Text: ev.Get("detail").String()})
}

func (e *Editor) onSubmit(app.Context, app.Event) { e.Mail.Post(state.SimulateNow{}) }

func (e *Editor) onUndo(_ app.Context, ev app.Event) {
	ev.PreventDefault()
	e.Mail.Post(state.Undone{})
}

func (e *Editor) onRedo(_ app.Context, ev app.Event) {
	ev.PreventDefault()
	e.Mail.Post(state.Redone{})
}
