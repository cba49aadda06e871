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
		options[i] = app.Elem("option").Attr("value", o.Value).Attr("selected", o.Selected).Text(o.Label)
	}
	return app.Elem("header").Class("top").Body(
		app.Elem("button").ID("menu").Attr("type", "button").Class("icon only-narrow").Aria("label", "Configuration").OnClick(h.onMenu).Body(icon("menu")),
		app.Elem("h1").Class("brand").Body(
			app.Elem("span").Class("mark").Aria("hidden", "true").Body(app.Elem("i"), app.Elem("i"), app.Elem("i")),
			app.Elem("b").Text("Distopt"), app.Elem("span").Text("Playground"),
		),
		app.Elem("span").Class("pick").Body(
			app.Elem("select").ID(ids.Preset).Aria("label", "Preset").OnChange(h.onPreset).Body(options...),
			icon("down"),
		),
		app.Elem("div").Class("seg").Role("group").Aria("label", "Configuration shown").Body(
			h.side(ids.SideA, "A", !vm.Compare && vm.Shown == state.A, vm.Broken[state.A], h.onA),
			h.side(ids.SideB, "B", !vm.Compare && vm.Shown == state.B, vm.Broken[state.B], h.onB),
			h.side(ids.Compare, "Compare", vm.Compare, false, h.onCompare),
		),
		app.Elem("span").Class("b-name").Text(vm.Other),
		app.Elem("span").Class("grow"),
		app.Elem("span").Class("notice").Title(vm.Notice).Text(vm.Notice),
		app.Elem("button").ID(ids.Undo).Attr("type", "button").Class("icon wide").Aria("label", "Undo, Ctrl+Z").Title("Undo (Ctrl+Z)").Attr("disabled", !vm.CanUndo).OnClick(h.onUndo).Body(icon("undo")),
		app.Elem("button").ID(ids.Redo).Attr("type", "button").Class("icon wide").Aria("label", "Redo, Ctrl+Shift+Z").Title("Redo (Ctrl+Shift+Z)").Attr("disabled", !vm.CanRedo).OnClick(h.onRedo).Body(icon("redo")),
		app.Elem("button").ID(ids.Share).Attr("type", "button").Class("btn").Title("Copy a link to this configuration").OnClick(h.onShare).Body(icon("share"), app.Elem("span").Text("Share")),
		iconButton(ids.Theme, "theme", themeLabel(vm.Theme), h.onTheme),
		app.Elem("button").ID(ids.Help).Attr("type", "button").Class("icon").Aria("label", "Help and keyboard map").Title("Help (?)").OnClick(h.onHelp).Body(app.Elem("span").Class("q").Text("?")),
	)
}

func (h *Header) side(id, name string, on, broken bool, pressed app.EventHandler) app.UI {
	title := "Show and edit " + name
	if id == ids.Compare {
		title = "A and B on one axis (Shift+X)"
	}
	return app.Elem("button").ID(id).Attr("type", "button").Class(when(broken, "broken")).Aria("pressed", boolText(on)).Title(title).OnClick(pressed).Text(name)
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
