package web

import (
	"strings"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/ids"
	"distopt/web/state"
)

// on binds f to an event of the window for the page's life: before the elements see it, or after.
func on(name string, before bool, f func(e app.Value)) {
	app.Window().Call("addEventListener", name, app.FuncOf(func(_ app.Value, args []app.Value) any {
		f(args[0])
		return nil
	}), before)
}

// listen binds what belongs to no element: hash, keys, files dropped, changes of the theme.
func (r *root) listen() {
	on("hashchange", false, func(e app.Value) { r.openHash(e.Get("oldURL").String()) })
	on("keydown", true, r.onSecondKey)
	on("keydown", false, r.onKey)
	on("dragover", false, func(e app.Value) { e.Call("preventDefault") })
	on("drop", false, func(e app.Value) {
		e.Call("preventDefault")
		if files := e.Get("dataTransfer").Get("files"); files.Length() > 0 {
			r.send(state.FileChosen{File: files.Index(0)})
		}
	})
	changed := app.FuncOf(func(app.Value, []app.Value) any {
		r.recolour()
		return nil
	})
	for _, query := range [...]string{"(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"} {
		app.Window().Call("matchMedia", query).Call("addEventListener", "change", changed)
	}
}

// typing reports whether keys go into a text: single keys are then no commands.
func typing(target app.Value) bool {
	if !target.Truthy() || !target.Get("tagName").Truthy() {
		return false
	}
	switch strings.ToLower(target.Get("tagName").String()) {
	case "input", "textarea", "select", ids.EditorTag:
		return true
	}
	return false
}

// regions are what F6 moves between.
var regions = [...]string{ids.Preset, ids.TabForm, ids.StepTime, ids.Timeline, ids.TimelineTable, ids.Inspector, "pane"}

// onSecondKey goes where the key after G says. It sees the key before what has the focus, for which
// it may mean something else.
func (r *root) onSecondKey(e app.Value) {
	key := e.Get("key").String()
	if !r.going || key == "Shift" {
		return
	}
	r.going = false
	if typing(e.Get("target")) || e.Get("ctrlKey").Bool() || e.Get("metaKey").Bool() || e.Get("altKey").Bool() || r.state.Dialog != state.NoDialog {
		return
	}
	switch strings.ToLower(key) {
	case "t":
		focusFirst(ids.Timeline, ids.TimelineTable)
	case "b":
		if r.state.Table {
			r.send(state.TableToggled{})
		}
		r.send(state.DetailPicked{Tab: state.Buckets})
		soon(func() bool { return focusFirst(ids.Buckets) })
	case "c":
		focus(ids.TabForm)
	default:
		return
	}
	e.Call("preventDefault")
	e.Call("stopPropagation")
}

func (r *root) onKey(e app.Value) {
	target := e.Get("target")
	key := e.Get("key").String()
	ctrl, shift := e.Get("ctrlKey").Bool() || e.Get("metaKey").Bool(), e.Get("shiftKey").Bool()
	done := func(m state.Msg) {
		e.Call("preventDefault")
		r.send(m)
	}
	if ctrl {
		tag := strings.ToLower(target.Get("tagName").String())
		if tag == ids.EditorTag || tag == "textarea" {
			return
		}
		switch {
		case strings.EqualFold(key, "z") && shift, strings.EqualFold(key, "y"):
			done(state.Redone{})
		case strings.EqualFold(key, "z"):
			done(state.Undone{})
		case strings.EqualFold(key, "b") && !shift:
			done(state.ConfigToggled{})
		case key == "Enter":
			done(state.SimulateNow{})
		}
		return
	}
	switch key {
	case "F6":
		e.Call("preventDefault")
		r.nextRegion(target, shift)
		return
	case "Escape":
		r.escape(typing(target))
		return
	}
	if typing(target) || e.Get("altKey").Bool() || e.Get("defaultPrevented").Bool() || r.state.Dialog != state.NoDialog {
		return
	}
	switch key {
	case "?":
		done(state.DialogOpened{Dialog: state.Help})
	case "x":
		done(state.SlotPicked{Slot: 1 - r.state.Shown})
	case "X":
		done(state.ComparePicked{})
	case "g", "G":
		r.going = true
	case "t":
		if within("pane", target) {
			done(state.TableToggled{})
		} else if within(ids.TimelineTable, target) {
			done(state.SpanTableToggled{Keys: true})
		}
	case "1", "2", "3", "4", "5":
		tabs := []state.DetailTab{state.Buckets, state.Collectives, state.FourVersions, state.Numerics}
		if r.state.Compare {
			tabs = append([]state.DetailTab{state.Differences}, tabs...)
		}
		if n := int(key[0] - '1'); n < len(tabs) {
			done(state.DetailPicked{Tab: tabs[n]})
		}
	}
}

// escape closes what lies on top, else cancels, else clears.
func (r *root) escape(typed bool) {
	switch s := &r.state; {
	case s.Dialog != state.NoDialog:
		// the browser closes it and tells
	case s.Figure != "":
		r.send(state.FigureOpened{})
	case s.Sheet == state.ConfigSheet:
		r.send(state.SheetPicked{Sheet: state.ResultSheet})
	case s.Slots[0].Request != 0 || s.Slots[1].Request != 0:
		r.send(state.Halt{})
	case !typed && s.Select != state.NoSelection:
		r.send(state.Deselected{})
	}
}

func focus(id string) {
	if el := element(id); el.Truthy() {
		el.Call("focus")
	}
}

// focusFirst focuses the first of the elements that is shown, and reports whether there is one.
func focusFirst(all ...string) bool {
	for _, id := range all {
		if el := element(id); el.Truthy() && !el.Get("offsetParent").IsNull() {
			el.Call("focus")
			return true
		}
	}
	return false
}

// soon tries f with each frame until it succeeds: what it needs is placed with the next update.
func soon(f func() bool) {
	left := 60
	var try func()
	try = func() {
		if left--; !f() && left > 0 {
			frames(1, try)
		}
	}
	frames(1, try)
}

// within reports whether an element lies in the one with an id.
func within(id string, target app.Value) bool {
	el := element(id)
	return el.Truthy() && el.Call("contains", target).Bool()
}

func (r *root) nextRegion(target app.Value, back bool) {
	at := -1
	for i, id := range regions {
		el := element(id)
		if !el.Truthy() || !target.Truthy() {
			continue
		}
		if region := el.Call("closest", "header, aside, section, main"); region.Truthy() && region.Call("contains", target).Bool() {
			at = i
		}
	}
	step := 1
	if back {
		step = len(regions) - 1
	}
	for range regions {
		at = (at + step + len(regions)) % len(regions)
		el := element(regions[at])
		if !el.Truthy() || el.Get("offsetParent").IsNull() {
			continue
		}
		if !el.Call("matches", "button, select, [tabindex]").Bool() {
			el.Call("setAttribute", "tabindex", "-1")
		}
		el.Call("focus")
		return
	}
}

// announce says what is new in the live region, at most once in 1.5 s and not while the visitor
// types.
func (r *root) announce() {
	if app.IsServer || r.state.Live == r.saying {
		return
	}
	r.saying = r.state.Live
	text := r.saying
	after(1500, func() {
		if r.saying == text && r.said != text {
			r.said = text
			r.ctx.Dispatch(func(app.Context) {})
		}
	})
}
