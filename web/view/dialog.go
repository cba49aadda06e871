package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/importer"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Dialogs holds the three dialogs. They are <dialog> elements, opened by showModal, so the browser
// keeps focus inside and gives it back.
type Dialogs struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Dialog
}

// Render places all of them; only one is open.
func (d *Dialogs) Render() app.UI {
	return app.Elem("div").Body(d.help(), d.share(), d.imports())
}

func (d *Dialogs) frame(id, title string, body ...app.UI) app.UI {
	head := app.Elem("header").Body(
		app.Elem("h2").ID(id+"-title").Text(title), app.Elem("span").Class("grow"),
		app.Elem("button").Attr("type", "button").Class("icon").Aria("label", "Close").OnClick(d.onClose).Body(icon("close")),
	)
	return app.Elem("dialog").ID(id).Aria("labelledby", id+"-title").On("close", d.onClosed).On("click", d.onBackdrop).Body(
		app.Elem("div").Class("dialog").Body(append([]app.UI{head}, body...)...),
	)
}

var keys = [...][2]string{
	{"W S, A D", "zoom in and out at the pointer, pan; Shift for coarse"},
	{"← →, ↑ ↓", "previous or next operation in the lane, lane above or below"},
	{"F, Shift+F or 0", "zoom to the selection, whole step"},
	{"[ ]", "previous, next exposed operation"},
	{", .", "previous, next operation of the same bucket"},
	{"R", "go to what released it; again: further up the chain"},
	{"T", "picture or table"},
	{"Esc", "clear, close, cancel"},
	{"1 … 5", "detail tabs"},
	{"G then T, B, C", "go to timeline, buckets, configuration"},
	{"X, Shift+X", "A or B; Compare"},
	{"Ctrl+Enter", "simulate now"},
	{"Ctrl+Z, Ctrl+Shift+Z", "undo, redo"},
	{"Ctrl+B", "hide the configuration, show it"},
	{"F6", "next region"},
	{"?", "this map"},
}

func (d *Dialogs) help() app.UI {
	rows := make([]app.UI, 0, len(keys))
	for _, k := range keys {
		rows = append(rows, app.Elem("tr").Body(app.Elem("th").Attr("scope", "row").Body(app.Elem("kbd").Text(k[0])), app.Elem("td").Text(k[1])))
	}
	model := ""
	if d.VM.Model != "" {
		model = "Model " + d.VM.Model + ". "
	}
	return d.frame(ids.HelpDialog, "Help",
		app.Elem("p").Text("What a sharded Adam optimizer does with a training configuration: which parameter goes into which bucket, which collective runs when, what hides it, what stays exposed. Everything runs in this browser; nothing you type leaves the page."),
		app.Elem("h3").Text("Keyboard"),
		app.Elem("p").Class("dim").Text("Letters of the first rows work while the timeline or the buckets have focus."),
		app.Elem("table").Class("plain keys").Body(app.Elem("tbody").Body(rows...)),
		app.Elem("h3").Text("Licence and notices"),
		app.Elem("p").Body(
			app.Text(model+"Distopt Playground is free software under the Apache License 2.0: "),
			app.Elem("a").Attr("href", "LICENSE").Attr("target", "_blank").Text("licence"), app.Text(", "),
			app.Elem("a").Attr("href", "THIRD_PARTY_NOTICES.txt").Attr("target", "_blank").Text("notices of the software it contains"), app.Text("."),
		),
	)
}

func (d *Dialogs) share() app.UI {
	note := "Link copied, "
	switch d.VM.Copy {
	case state.Copying:
		note = "Copying the link, "
	case state.CopyRefused:
		note = "The browser did not allow copying. Select the link and copy it: "
	}
	note += d.VM.Length + " characters. It holds both configurations, nothing else about you."
	return d.frame("share-dialog", "Share",
		app.Elem("p").Role("status").Text(note),
		app.Elem("label").Class("field").Body(app.Text("Link"), app.ElemSelfClosing("input").ID(ids.ShareLink).Attr("type", "text").Attr("readonly", true).Attr("value", d.VM.Link).OnFocus(d.onSelect)),
		app.Elem("div").Class("acts").Body(app.Elem("button").Attr("type", "button").Class("btn small primary").OnClick(d.onCopy).Text("Copy again")),
	)
}

func (d *Dialogs) imports() app.UI {
	return d.frame("import-dialog", "Import",
		app.Elem("p").Text("Paste a NeMo configuration, drop the file anywhere on the page, or pick it. It replaces the configuration that is shown; undo brings that back."),
		app.Elem("textarea").ID("import-text").Aria("label", "Configuration text").Attr("spellcheck", "false").Attr("rows", 10),
		app.Elem("div").Class("acts").Body(
			app.Elem("button").ID("import-go").Attr("type", "button").Class("btn small primary").OnClick(d.onPaste).Text("Use this text"),
			app.Elem("label").Class("btn small").Attr("for", "import-file").Text("Pick a file"),
			app.ElemSelfClosing("input").ID("import-file").Attr("type", "file").Class("sr").Attr("accept", ".yaml,.yml,.json,.txt").OnChange(d.onFile),
		),
		app.Elem("p").ID("import-failed").Class("failed").Role("alert").Hidden(d.VM.Failed == "").Text(d.VM.Failed),
		d.imported(),
	)
}

// imported lists what became of every key of the last import.
func (d *Dialogs) imported() app.UI {
	read := d.VM.Import
	if read == nil {
		return nil
	}
	var parts []app.UI
	for _, s := range [...]importer.Status{importer.Used, importer.NoEffect, importer.Unsupported, importer.Unknown} {
		var rows []app.UI
		for i := range read.Keys {
			k := &read.Keys[i]
			if k.Status != s || len(rows) >= 200 {
				continue
			}
			text := k.Why
			if k.Near != "" {
				text += " Did you mean " + k.Near + "?"
			}
			if s == importer.Used {
				text = k.Value
			}
			rows = append(rows, app.Elem("li").Body(app.Elem("code").Text(k.Path), app.Text(" "), app.Elem("span").Class("dim").Text(text)))
		}
		if len(rows) > 0 {
			title := [...]string{"used", "no effect here", "not supported", "unknown"}[s]
			parts = append(parts, app.Elem("details").Attr("open", s >= importer.Unsupported).Body(
				app.Elem("summary").Text(derive.Count(int64(len(rows)))+" "+title), app.Elem("ul").Class("keylist").Body(rows...)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return app.Elem("div").Class("imported").Role("status").Body(append([]app.UI{app.Elem("h3").Text("Imported as " + read.Kind.String())}, parts...)...)
}

func (d *Dialogs) onClose(app.Context, app.Event) {
	d.Mail.Post(state.DialogOpened{Dialog: state.NoDialog})
}

// onClosed follows the browser, which closes a dialog on Escape by itself.
func (d *Dialogs) onClosed(app.Context, app.Event) {
	if d.VM.Kind != state.NoDialog {
		d.Mail.Post(state.DialogOpened{Dialog: state.NoDialog})
	}
}

func (d *Dialogs) onBackdrop(ctx app.Context, e app.Event) {
	if e.Get("target").Equal(ctx.JSSrc()) {
		d.Mail.Post(state.DialogOpened{Dialog: state.NoDialog})
	}
}

func (d *Dialogs) onSelect(ctx app.Context, _ app.Event) { ctx.JSSrc().Call("select") }
func (d *Dialogs) onCopy(app.Context, app.Event)         { d.Mail.Post(state.ShareAsked{}) }

func (d *Dialogs) onPaste(app.Context, app.Event) {
	text := app.Window().Get("document").Call("getElementById", "import-text").Get("value").String()
	if text != "" {
		d.Mail.Post(state.Imported{Name: "Pasted text", Text: text})
	}
}

func (d *Dialogs) onFile(ctx app.Context, _ app.Event) {
	files := ctx.JSSrc().Get("files")
	if files.Length() > 0 {
		d.Mail.Post(state.FileChosen{File: files.Index(0)})
		ctx.JSSrc().Set("value", "")
	}
}
