package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// LabLook looks at one tensor, one element of it, and one number.
type LabLook struct {
	app.Compo
	Mail    *Mailbox
	Shown   bool // there is a run
	Running bool
	Element string // as typed
	Wrong   string // about it
	Journey *derive.Journey
	Number  *derive.NumberView
}

// Render places what is looked at, the journey of the element, and the inspector of numbers.
func (l *LabLook) Render() app.UI {
	return app.Elem("div").Class("lablook").Body(
		app.Elem("section").Class("labjourney").Aria("label", "An element through one step").Hidden(!l.Shown).Body(
			app.Elem("h3").Text("One element of the tensor through a step"),
			app.Elem("div").Class("labfields").Body(
				app.Elem("div").Class(class("labfield", when(l.Wrong != "", "bad"))).Body(
					app.Elem("label").Attr("for", ids.LabElement).Text("Element"),
					app.Elem("span").Class("box").Body(app.ElemSelfClosing("input").ID(ids.LabElement).Attr("type", "text").Attr("inputmode", "numeric").Attr("autocomplete", "off").
						Aria("describedby", "lab-element-error").Aria("invalid", boolText(l.Wrong != "")).OnInput(l.onElement)),
					app.Elem("p").ID("lab-element-error").Class("fnote").Hidden(l.Wrong == "").Text(l.Wrong),
				),
			),
			l.journey(),
		),
		l.number(),
	)
}

// choice is a labelled list to pick from.
func choice(id, label string, options []derive.Option, picked func(app.Context, app.Event)) app.UI {
	items := make([]app.UI, len(options))
	for i, o := range options {
		items[i] = app.Elem("option").Attr("value", o.Value).Attr("selected", o.Selected).Text(o.Label)
	}
	return app.Elem("div").Class("labfield").Body(
		app.Elem("label").Attr("for", id).Text(label),
		app.Elem("span").Class("box pick2").Body(app.Elem("select").ID(id).OnChange(picked).Body(items...), icon("down")),
	)
}

func (l *LabLook) journey() app.UI {
	j := l.Journey
	if j == nil {
		text := ""
		if l.Running {
			text = "The journey is that of the last step: it is shown when the run rests."
		}
		return app.Elem("p").Class("dim note").Text(text)
	}
	rows := make([]app.UI, len(j.Stops))
	for i, s := range j.Stops {
		rows[i] = app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "row").Text(s.Name), app.Elem("td").Class("num").Text(s.Value),
			app.Elem("td").Body(app.Elem("button").Attr("type", "button").Class("inline mono").DataSet("bits", s.Bits).DataSet("format", s.Format).
				Title("Look at it in every format").OnClick(l.onBits).Text(s.Bits), app.Elem("span").Class("dim").Text(" "+s.Format)),
			app.Elem("td").Class("wrap dim").Text(s.Note),
		)
	}
	return app.Elem("div").Class("tablewrap").Body(
		app.Elem("p").Class("dim").Body(app.Text(j.Title), app.Elem("span").Hidden(j.Text == "").Text(". "+j.Text+".")),
		app.Elem("table").ID("lab-journey").Class("rows").Body(
			app.Elem("caption").Class("sr").Text(j.Title),
			app.Elem("thead").Body(app.Elem("tr").Body(
				app.Elem("th").Attr("scope", "col").Text("Place"), app.Elem("th").Attr("scope", "col").Class("num").Text("Value"),
				app.Elem("th").Attr("scope", "col").Text("Bits"), app.Elem("th").Attr("scope", "col").Text("How"),
			)),
			app.Elem("tbody").Body(rows...),
		),
	)
}

func (l *LabLook) number() app.UI {
	v := l.Number
	formats := make([]derive.Option, 0, 5)
	for _, name := range [...]string{"fp32", "bf16", "fp16", "e4m3", "e5m2"} {
		formats = append(formats, derive.Option{Value: name, Label: name, Selected: name == v.Format})
	}
	rows := make([]app.UI, len(v.Rows))
	for i := range v.Rows {
		r := &v.Rows[i]
		number := func(text string) app.UI { return app.Elem("td").Class("num").Text(text) }
		rows[i] = app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "row").Body(app.Elem("i").Class("sw c-"+r.Colour), app.Text(r.Format)),
			app.Elem("td").Class("bits").Role("img").Aria("label", "sign "+r.Sign+", exponent "+r.Exponent+", mantissa "+r.Mantissa).Body(
				app.Elem("span").Class("b-sign").Text(r.Sign), app.Elem("span").Class("b-exponent").Text(r.Exponent), app.Elem("span").Class("b-mantissa").Text(r.Mantissa)),
			app.Elem("td").Class("mono").Text(r.Bits), number(r.Value), number(r.Error), number(r.Relative), number(r.Below), number(r.Above), number(r.ULP),
			app.Elem("td").Text(r.Kind+note(r.Note)),
		)
	}
	head := func(title string) app.UI { return app.Elem("th").Attr("scope", "col").Class("num").Text(title) }
	return app.Elem("section").Class("labnumber").Aria("label", "A number in every format").Body(
		app.Elem("h3").Text("A number in every format"),
		app.Elem("div").Class("labfields").Body(
			app.Elem("div").Class(class("labfield wide", when(v.Error != "", "bad"))).Body(
				app.Elem("label").Attr("for", ids.LabNumber).Text("Number, or bits as 0x…"),
				app.Elem("span").Class("box").Body(app.ElemSelfClosing("input").ID(ids.LabNumber).Attr("type", "text").Attr("autocomplete", "off").Attr("spellcheck", "false").
					Aria("describedby", "lab-number-error").Aria("invalid", boolText(v.Error != "")).OnInput(l.onNumber)),
				app.Elem("p").ID("lab-number-error").Class("fnote").Hidden(v.Error == "").Text(v.Error),
			),
			choice("lab-format", "Bits are", formats, l.onFormat),
			app.Elem("span").Class("bitkey").Body(
				app.Elem("span").Class("b-sign").Text("sign"), app.Elem("span").Class("b-exponent").Text("exponent"), app.Elem("span").Class("b-mantissa").Text("mantissa")),
		),
		app.Elem("div").Class("tablewrap").Hidden(len(rows) == 0).Body(app.Elem("table").ID("lab-formats").Class("rows").Body(
			app.Elem("caption").Class("sr").Text("The number in every format"),
			app.Elem("thead").Body(app.Elem("tr").Body(
				app.Elem("th").Attr("scope", "col").Text("Format"), app.Elem("th").Attr("scope", "col").Text("Bits"), app.Elem("th").Attr("scope", "col").Text("Hex"),
				head("Value"), head("Rounding error"), head("Relative"), head("Below"), head("Above"), head("Spacing"), app.Elem("th").Attr("scope", "col").Text("Kind"),
			)),
			app.Elem("tbody").Body(rows...),
		)),
	)
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

// OnMount and OnUpdate write what is typed as a property.
func (l *LabLook) OnMount(app.Context)  { l.write() }
func (l *LabLook) OnUpdate(app.Context) { l.write() }

func (l *LabLook) write() {
	write(ids.LabElement, l.Element)
	write(ids.LabNumber, l.Number.Text)
	write("lab-format", l.Number.Format)
}

func typed(ctx app.Context) string { return ctx.JSSrc().Get("value").String() }

func (l *LabLook) onElement(ctx app.Context, _ app.Event) {
	l.Mail.Post(state.LabElementEdited{Text: typed(ctx)})
}
func (l *LabLook) onNumber(ctx app.Context, _ app.Event) {
	l.Mail.Post(state.LabNumberEdited{Text: typed(ctx)})
}
func (l *LabLook) onFormat(ctx app.Context, _ app.Event) {
	l.Mail.Post(state.LabFormatPicked{Format: typed(ctx)})
}
func (l *LabLook) onBits(ctx app.Context, _ app.Event) {
	l.Mail.Post(state.LabBitsPicked{Bits: data(ctx, "bits"), Format: data(ctx, "format")})
	if !app.IsServer { // it may be out of view
		app.Window().Get("document").Call("getElementById", ids.LabNumber).Call("focus")
	}
}
