package view

import (
	"strconv"
	"strings"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/state"
)

// Field is one row of the form.
type Field struct {
	app.Compo
	Mail *Mailbox
	Row  derive.FormRow
}

// Render places label, control and error.
func (f *Field) Render() app.UI {
	r := &f.Row
	rowClass := class("frow", when(r.Changed, "set"), when(r.Error != "", "bad"), when(r.Control == derive.ControlSwitch, "onoff"))
	label := app.Elem("label").Attr("for", r.ID).Title(r.Help).Text(r.Label)
	reset := app.Elem("button").Attr("type", "button").Class("dot").Hidden(!r.Changed).Title("Differs from the preset. Reset to "+r.Preset).
		Aria("label", "Reset "+r.Label+" to "+r.Preset).OnClick(f.onReset)
	return app.Elem("div").Class(rowClass).Body(
		reset, label, f.control(),
		app.Elem("p").ID(r.ID+"-error").Class("fnote").Hidden(r.Error == "").Text(r.Error),
	)
}

func (f *Field) control() app.UI {
	r := &f.Row
	switch r.Control {
	case derive.ControlDerived:
		return app.Elem("output").ID(r.ID).Class("derived").Text(r.Value)
	case derive.ControlSwitch:
		return app.Elem("button").ID(r.ID).Attr("type", "button").Class("switch").Role("switch").Aria("checked", boolText(r.On)).Aria("label", r.Label).
			Aria("describedby", r.ID+"-error").DataSet("field", r.Path).OnClick(f.onSwitch)
	case derive.ControlSegments:
		buttons := make([]app.UI, len(r.Options))
		for i, o := range r.Options {
			buttons[i] = app.Elem("button").Attr("type", "button").Aria("pressed", boolText(o.Selected)).DataSet("value", o.Value).OnClick(f.onSegment).Text(o.Label)
		}
		return app.Elem("div").ID(r.ID).Class("seg small").Role("group").Aria("label", r.Label).DataSet("field", r.Path).DataSet("value", r.Value).Body(buttons...)
	case derive.ControlSelect:
		options := make([]app.UI, len(r.Options))
		for i, o := range r.Options {
			options[i] = app.Elem("option").Attr("value", o.Value).Attr("selected", o.Selected).Text(o.Label)
		}
		return app.Elem("span").Class("box pick2").Body(
			app.Elem("select").ID(r.ID).Aria("describedby", r.ID+"-error").DataSet("field", r.Path).OnChange(f.onChange).Body(options...),
			icon("down"),
		)
	}
	return app.Elem("span").Class("box").Body(
		app.ElemSelfClosing("input").ID(r.ID).Attr("type", "text").Attr("inputmode", "decimal").Attr("autocomplete", "off").Attr("spellcheck", "false").
			Aria("describedby", r.ID+"-error").Aria("invalid", boolText(r.Error != "")).Attr("placeholder", r.Placeholder).Title(r.Placeholder).
			DataSet("field", r.Path).OnInput(f.onInput).OnBlur(f.onBlur).OnKeyDown(f.onKey),
		app.Elem("span").Class("unit").Hidden(r.Value == "").Text(r.Unit),
	)
}

// OnMount and OnUpdate write the value as a property: go-app writes an attribute only when it
// differs from what was rendered last, whatever the visitor has typed since.
func (f *Field) OnMount(app.Context)      { f.write(false) }
func (f *Field) OnUpdate(ctx app.Context) { f.write(false) }

func (f *Field) write(force bool) {
	if app.IsServer {
		return
	}
	document := app.Window().Get("document")
	el := document.Call("getElementById", f.Row.ID)
	if !el.Truthy() {
		return
	}
	switch f.Row.Control {
	case derive.ControlSelect:
		if el.Get("value").String() != f.Row.Value {
			el.Set("value", f.Row.Value)
		}
	case derive.ControlNumber:
		typed := el.Get("value").String()
		if typed == f.Row.Value {
			return
		}
		focused := document.Get("activeElement").Equal(el)
		if !force && focused && same(typed, f.Row.Value) {
			return // what is typed stays as typed
		}
		el.Set("value", f.Row.Value)
	}
}

// plain takes the separators of thousands out.
var plain = strings.NewReplacer("_", "", ",", "")

// same reports whether two texts are the same number, written differently.
func same(a, b string) bool {
	a, b = plain.Replace(strings.TrimSpace(a)), plain.Replace(b)
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

func (f *Field) post(text string) {
	f.Mail.Post(state.FieldEdited{Path: f.Row.Path, Text: text})
}

func (f *Field) onInput(ctx app.Context, _ app.Event) {
	text := strings.TrimSpace(ctx.JSSrc().Get("value").String())
	if text == "" {
		if f.Row.Placeholder == "" {
			return // on the way to another number
		}
		text = "null"
	}
	f.post(strings.ReplaceAll(text, ",", ""))
}

func (f *Field) onBlur(app.Context, app.Event) {
	if f.Row.Error == "" {
		f.write(true)
	}
}

// onKey steps a number with the arrow keys.
func (f *Field) onKey(ctx app.Context, e app.Event) {
	step := int64(0)
	switch e.Get("key").String() {
	case "ArrowUp":
		step = 1
	case "ArrowDown":
		step = -1
	default:
		return
	}
	n, err := strconv.ParseInt(f.Row.Value, 10, 64)
	if err != nil || n+step < 0 {
		return
	}
	e.PreventDefault()
	ctx.JSSrc().Set("value", strconv.FormatInt(n+step, 10))
	f.post(strconv.FormatInt(n+step, 10))
}

func (f *Field) onChange(ctx app.Context, _ app.Event)  { f.post(ctx.JSSrc().Get("value").String()) }
func (f *Field) onSegment(ctx app.Context, _ app.Event) { f.post(data(ctx, "value")) }
func (f *Field) onSwitch(app.Context, app.Event)        { f.post(boolText(!f.Row.On)) }
func (f *Field) onReset(app.Context, app.Event) {
	f.Mail.Post(state.FieldReset{Path: f.Row.Path})
}
