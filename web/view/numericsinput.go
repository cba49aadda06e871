package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/state"
)

// write puts text into a field, unless it says the same number already: what is typed stays as typed.
func write(id, text string) {
	if app.IsServer {
		return
	}
	document := app.Window().Get("document")
	el := document.Call("getElementById", id)
	if el.Truthy() && el.Get("value").String() != text {
		el.Set("value", text)
	}
}

// LabInput is a number of a run.
type LabInput struct {
	app.Compo
	Mail *Mailbox
	VM   derive.LabField
}

func (f *LabInput) id() string { return "lab-field-" + f.VM.Path }

// Render places label, control and error.
func (f *LabInput) Render() app.UI {
	id := f.id()
	return app.Elem("div").Class(class("labfield", when(f.VM.Error != "", "bad"))).Body(
		app.Elem("label").Attr("for", id).Title(f.VM.Help).Text(f.VM.Label),
		app.Elem("span").Class("box").Body(app.ElemSelfClosing("input").ID(id).Attr("type", "text").Attr("inputmode", "decimal").Attr("autocomplete", "off").Attr("spellcheck", "false").
			Aria("describedby", id+"-error").Aria("invalid", boolText(f.VM.Error != "")).OnInput(f.onInput).OnKeyDown(f.onKey)),
		app.Elem("p").ID(id+"-error").Class("fnote").Hidden(f.VM.Error == "").Text(f.VM.Error),
	)
}

// OnMount and OnUpdate write the value as a property, as Field does.
func (f *LabInput) OnMount(app.Context)  { write(f.id(), f.VM.Value) }
func (f *LabInput) OnUpdate(app.Context) { write(f.id(), f.VM.Value) }

func (f *LabInput) onInput(ctx app.Context, _ app.Event) {
	f.Mail.Post(state.LabFieldEdited{Path: f.VM.Path, Text: ctx.JSSrc().Get("value").String()})
}

func (f *LabInput) onKey(_ app.Context, e app.Event) {
	if e.Get("key").String() == "Enter" && !e.Get("ctrlKey").Bool() {
		f.Mail.Post(state.LabRun{})
	}
}

// LabTick is a variant to pick.
type LabTick struct {
	app.Compo
	Mail *Mailbox
	VM   derive.LabChoice
}

// Render places box, name and error.
func (t *LabTick) Render() app.UI {
	id := "lab-variant-" + t.VM.ID
	return app.Elem("span").Class(class("tickbox", when(t.VM.Error != "", "bad"))).Body(
		app.Elem("label").Class("tick").Title(t.VM.Formats).Body(
			app.ElemSelfClosing("input").ID(id).Attr("type", "checkbox").Attr("checked", t.VM.On).Aria("describedby", id+"-error").DataSet("variant", t.VM.ID).OnChange(t.onChange),
			app.Text(t.VM.Name)),
		app.Elem("span").ID(id+"-error").Class("fnote").Hidden(t.VM.Error == "").Text(t.VM.Error),
	)
}

// OnMount and OnUpdate set the box by its property: a click has changed that, not the attribute.
func (t *LabTick) OnMount(app.Context)  { t.write() }
func (t *LabTick) OnUpdate(app.Context) { t.write() }

func (t *LabTick) write() {
	if app.IsServer {
		return
	}
	if el := app.Window().Get("document").Call("getElementById", "lab-variant-"+t.VM.ID); el.Truthy() {
		el.Set("checked", t.VM.On)
	}
}

func (t *LabTick) onChange(app.Context, app.Event) {
	t.Mail.Post(state.LabVariantPicked{ID: t.VM.ID})
}
