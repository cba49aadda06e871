package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Status is the line at the foot.
type Status struct {
	app.Compo
	VM *derive.Status
}

// Render places what was simulated, and the promise.
func (s *Status) Render() app.UI {
	parts := make([]app.UI, 0, len(s.VM.Left)+3)
	parts = append(parts, app.Elem("span").Class("bad").Hidden(s.VM.Error == "").Text(s.VM.Error))
	for _, t := range s.VM.Left {
		parts = append(parts, app.Elem("span").Text(t))
	}
	parts = append(parts, app.Elem("span").Class("grow"), app.Elem("span").Text("Nothing you type leaves this page"))
	return app.Elem("footer").ID(ids.Status).Class("status").Body(parts...)
}

// Banner is the line over the figures when something needs to be said.
type Banner struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Banner
}

// Render places the sentence and what can be done.
func (b *Banner) Render() app.UI {
	vm := b.VM
	return app.Elem("div").Class(class("banner", vm.Kind)).Role("status").Hidden(vm.Kind == "").Body(
		app.Elem("b").Text(vm.Lead), app.Elem("span").Class("text").Text(vm.Text), app.Elem("code").Class("badlink").Hidden(vm.Bad == "").Text(vm.Bad),
		app.Elem("span").Class("grow"),
		app.Elem("button").Attr("type", "button").Class("link").Hidden(vm.Line == 0).DataSet("line", vm.Line).OnClick(b.onGo).Text("Go to line "+derive.Plain(vm.Line)),
		app.Elem("button").Attr("type", "button").Class("link").Hidden(!vm.Undo).OnClick(b.onUndo).Text("Undo"),
		app.Elem("button").Attr("type", "button").Class("link").Hidden(!vm.Again).OnClick(b.onAgain).Text("Simulate again"),
		app.Elem("button").Attr("type", "button").Class("link").Hidden(vm.Kind != "note" && vm.Bad == "" || vm.Stays).OnClick(b.onDismiss).Text("Dismiss"),
	)
}

func (b *Banner) onGo(ctx app.Context, _ app.Event) {
	b.Mail.Post(state.ProblemGone{Line: number(ctx, "line")})
}
func (b *Banner) onUndo(app.Context, app.Event)    { b.Mail.Post(state.Undone{}) }
func (b *Banner) onAgain(app.Context, app.Event)   { b.Mail.Post(state.SimulateNow{}) }
func (b *Banner) onDismiss(app.Context, app.Event) { b.Mail.Post(state.NoteDismissed{}) }

// PhoneNav is the bar at the foot of a phone.
type PhoneNav struct {
	app.Compo
	Mail   *Mailbox
	Sheet  state.Sheet
	Errors int
}

// Render places three views.
func (n *PhoneNav) Render() app.UI {
	item := func(name string, sheet state.Sheet, count int) app.UI {
		b := app.Elem("button").Attr("type", "button").DataSet("sheet", int(sheet)).OnClick(n.onPick).Body(app.Text(name), app.Elem("span").Class("count err").Hidden(count == 0).Text(derive.Plain(count)))
		if n.Sheet == sheet {
			b.Aria("current", "page")
		}
		return b
	}
	return app.Elem("nav").Class("phonenav").Aria("label", "Views").Body(
		item("Result", state.ResultSheet, 0), item("Config", state.ConfigSheet, n.Errors), item("More", state.MoreSheet, 0),
	)
}

func (n *PhoneNav) onPick(ctx app.Context, _ app.Event) {
	n.Mail.Post(state.SheetPicked{Sheet: state.Sheet(number(ctx, "sheet"))})
}

// More is what a phone has no room for in its header.
type More struct {
	app.Compo
	Mail  *Mailbox
	Shown bool
}

// Render places the actions as a list.
func (m *More) Render() app.UI {
	item := func(text, act string) app.UI {
		return app.Elem("button").Attr("type", "button").DataSet("act", act).OnClick(m.onAct).Text(text)
	}
	return app.Elem("nav").Class("moresheet").Aria("label", "More").Hidden(!m.Shown).Body(
		item("Show A", "a"), item("Show B", "b"), item("Compare A and B", "compare"), item("Four versions", "versions"), item("Numerics", "numerics"),
		item("Undo", "undo"), item("Redo", "redo"), item("Import", "import"), item("Theme", "theme"), item("Help", "help"),
	)
}

func (m *More) onAct(ctx app.Context, _ app.Event) {
	messages := map[string]state.Msg{
		"a": state.SlotPicked{Slot: state.A}, "b": state.SlotPicked{Slot: state.B}, "compare": state.ComparePicked{},
		"versions": state.DetailPicked{Tab: state.FourVersions}, "numerics": state.DetailPicked{Tab: state.Numerics}, "undo": state.Undone{}, "redo": state.Redone{},
		"import": state.DialogOpened{Dialog: state.ImportDialog}, "theme": state.ThemePicked{}, "help": state.DialogOpened{Dialog: state.Help},
	}
	m.Mail.Post(messages[data(ctx, "act")])
	m.Mail.Post(state.SheetPicked{Sheet: state.ResultSheet})
}
