package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Header is the line above all.
type Header struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Header
}

// Render places the header.
func (h *Header) Render() app.UI {
	vm := h.VM
	options := make([]app.UI, len(vm.Presets))
	for i, o := range vm.Presets {
		options[i] = app.Option().Value(o.Value).Selected(o.Selected).Text(o.Label)
	}
	return app.Header().Class("top").Body(
		app.Button().ID("menu").Type("button").Class("icon only-narrow").Aria("label", "Configuration").OnClick(h.onMenu).Body(icon("menu")),
		app.H1().Class("brand").Body(
			app.Span().Class("mark").Aria("hidden", "true").Body(app.I(), app.I(), app.I()),
			app.B().Text("Distopt"), app.Span().Text("Playground"),
		),
		app.Span().Class("pick").Body(
			app.Select().ID(ids.Preset).Aria("label", "Preset").OnChange(h.onPreset).Body(options...),
			icon("down"),
		),
		app.Div().Class("seg").Role("group").Aria("label", "Configuration shown").Body(
			h.side(ids.SideA, "A", !vm.Compare && vm.Shown == state.A, vm.Broken[state.A], h.onA),
			h.side(ids.SideB, "B", !vm.Compare && vm.Shown == state.B, vm.Broken[state.B], h.onB),
			h.side(ids.Compare, "Compare", vm.Compare, false, h.onCompare),
		),
		app.Span().Class("b-name").Text(vm.Other),
		app.Span().Class("grow"),
		app.Span().Class("notice").Text(vm.Notice),
		app.Button().ID(ids.Undo).Type("button").Class("icon wide").Aria("label", "Undo, Ctrl+Z").Title("Undo (Ctrl+Z)").Disabled(!vm.CanUndo).OnClick(h.onUndo).Body(icon("undo")),
		app.Button().ID(ids.Redo).Type("button").Class("icon wide").Aria("label", "Redo, Ctrl+Shift+Z").Title("Redo (Ctrl+Shift+Z)").Disabled(!vm.CanRedo).OnClick(h.onRedo).Body(icon("redo")),
		app.Button().ID(ids.Share).Type("button").Class("btn").Title("Copy a link to this configuration").OnClick(h.onShare).Body(icon("share"), app.Span().Text("Share")),
		iconButton(ids.Theme, "theme", themeLabel(vm.Theme), h.onTheme),
		app.Button().ID(ids.Help).Type("button").Class("icon").Aria("label", "Help and keyboard map").Title("Help (?)").OnClick(h.onHelp).Body(app.Span().Class("q").Text("?")),
	)
}

func (h *Header) side(id, name string, on, broken bool, pressed app.EventHandler) app.UI {
	title := "Show and edit " + name
	if id == ids.Compare {
		title = "A and B on one axis (Shift+X)"
	}
	return app.Button().ID(id).Type("button").Class(when(broken, "broken")).Aria("pressed", boolText(on)).Title(title).OnClick(pressed).Text(name)
}

func themeLabel(t state.Theme) string {
	return [...]string{"Theme: as system", "Theme: light", "Theme: dark"}[t]
}

func (h *Header) onMenu(app.Context, app.Event) {
	h.Mail.Post(state.SheetToggled{})
}

func (h *Header) onPreset(ctx app.Context, _ app.Event) {
	h.Mail.Post(state.PresetPicked{ID: ctx.JSSrc().Get("value").String()})
}

func (h *Header) onA(app.Context, app.Event)       { h.Mail.Post(state.SlotPicked{Slot: state.A}) }
func (h *Header) onB(app.Context, app.Event)       { h.Mail.Post(state.SlotPicked{Slot: state.B}) }
func (h *Header) onCompare(app.Context, app.Event) { h.Mail.Post(state.ComparePicked{}) }
func (h *Header) onUndo(app.Context, app.Event)    { h.Mail.Post(state.Undone{}) }
func (h *Header) onRedo(app.Context, app.Event)    { h.Mail.Post(state.Redone{}) }
func (h *Header) onShare(app.Context, app.Event)   { h.Mail.Post(state.ShareAsked{}) }
func (h *Header) onTheme(app.Context, app.Event)   { h.Mail.Post(state.ThemePicked{}) }
func (h *Header) onHelp(app.Context, app.Event) {
	h.Mail.Post(state.DialogOpened{Dialog: state.Help})
}
