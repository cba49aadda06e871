// Package view places what derive has made: go-app components, one a file, named for what the
// reader sees. They compute nothing and keep nothing; a click posts a message.
//
// A handler is a method that reads what it needs from the data-* attributes of its element, since
// go-app compares handlers by code pointer and would keep a stale closure.
//
// Elements are made by app.Elem: each of go-app's typed elements that a program mentions brings
// some 120 methods into it, half a megabyte in all for those used here.
package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/state"
)

// Mailbox takes messages to the page. There is one for the page's life.
type Mailbox struct{ Send func(state.Msg) }

// Post sends a message.
func (m *Mailbox) Post(msg state.Msg) {
	if m.Send != nil {
		m.Send(msg)
	}
}

// data reads a data attribute of the element that a handler belongs to.
func data(ctx app.Context, name string) string {
	v := ctx.JSSrc().Get("dataset").Get(name)
	if !v.Truthy() {
		return ""
	}
	return v.String()
}

func number(ctx app.Context, name string) int {
	n, _ := strconv.Atoi(data(ctx, name))
	return n
}

// icon is a line drawing of 16 by 16.
func icon(name string) app.UI {
	return app.Raw(`<svg class="ic" viewBox="0 0 16 16" aria-hidden="true" focusable="false">` + icons[name] + `</svg>`)
}

var icons = map[string]string{
	"down":   `<path d="M4.5 6.5 8 10l3.5-3.5"/>`,
	"share":  `<path d="M6.5 9.5 12.5 3.5M8.5 3.5h4v4M11.5 9v3.500h-8v-8H7"/>`,
	"theme":  `<circle cx="8" cy="8" r="5.5"/><path class="fill" d="M8 2.500a5.500 5.500 0 0 1 0 11z"/>`,
	"undo":   `<path d="M6 3.500 3 6.500l3 3M3.500 6.500H10a3 3 0 0 1 0 6H7"/>`,
	"redo":   `<path d="m10 3.500 3 3-3 3M12.500 6.500H6a3 3 0 0 0 0 6h3"/>`,
	"in":     `<path d="M8 3.500v9M3.500 8h9"/>`,
	"out":    `<path d="M3.500 8h9"/>`,
	"fit":    `<path d="M2.500 5.500v5M13.500 5.500v5M4.500 8h7M6.500 6l-2 2 2 2M9.500 6l2 2-2 2"/>`,
	"menu":   `<path d="M3 4.500h10M3 8h10M3 11.500h10"/>`,
	"close":  `<path d="m4 4 8 8M12 4l-8 8"/>`,
	"table":  `<path d="M2.500 3.500h11v9h-11zM2.500 6.500h11M2.500 9.500h11M6.500 6.500v6"/>`,
	"import": `<path d="M8 2.500v7M5 7l3 3 3-3M3 11.500v2h10v-2"/>`,
}

// iconButton is a button with an icon for a label.
func iconButton(id, name, label string, pressed func(app.Context, app.Event)) app.HTMLElem {
	return app.Elem("button").ID(id).Attr("type", "button").Class("icon").Aria("label", label).Title(label).OnClick(pressed).Body(icon(name))
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// class joins a class with others that hold only sometimes.
func class(base string, more ...string) string {
	for _, m := range more {
		if m != "" {
			base += " " + m
		}
	}
	return base
}

func when(ok bool, text string) string {
	if ok {
		return text
	}
	return ""
}
