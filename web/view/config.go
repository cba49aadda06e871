package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Config is the configuration: form, text, problems.
type Config struct {
	app.Compo
	Mail     *Mailbox
	Tab      state.ConfigTab
	Form     *derive.Form
	Editor   *derive.Editor
	Problems *derive.Problems
	Shown    bool // on a page where it is a drawer or a sheet
}

// Render places tabs, the two views of the text, and the problems at the foot.
func (c *Config) Render() app.UI {
	return app.Elem("aside").ID(ids.ConfigPane).Class(class("config", when(c.Shown, "open"))).Aria("label", "Configuration").Body(
		app.Elem("div").Class("bar tabs").Body(
			app.Elem("div").Class("tablist").Role("tablist").Aria("label", "Configuration as").Body(
				c.tab(ids.TabForm, "Form", formPanel, state.Form),
				c.tab(ids.TabYAML, "YAML", editorPanel, state.YAML),
			),
			app.Elem("span").Class("grow"),
			app.Elem("button").ID(ids.Import).Attr("type", "button").Class("link").OnClick(c.onImport).Text("Import"),
		),
		&Form{Mail: c.Mail, VM: c.Form, Hide: c.Tab != state.Form},
		&Editor{Mail: c.Mail, VM: c.Editor, Hide: c.Tab != state.YAML},
		&Problems{Mail: c.Mail, VM: c.Problems},
	)
}

func (c *Config) tab(id, name, panel string, tab state.ConfigTab) app.UI {
	errors := ""
	if tab == state.YAML && c.Problems.Errors > 0 {
		errors = derive.Count(int64(c.Problems.Errors))
	}
	return app.Elem("button").ID(id).Attr("type", "button").Role("tab").Aria("selected", boolText(c.Tab == tab)).Aria("controls", panel).DataSet("tab", int(tab)).OnClick(c.onTab).Body(
		app.Text(name),
		app.Elem("span").Class("count err").Hidden(errors == "").Text(errors),
	)
}

func (c *Config) onTab(ctx app.Context, _ app.Event) {
	tab := state.ConfigTab(number(ctx, "tab"))
	c.Mail.Post(state.ConfigPicked{Tab: tab})
	if app.IsServer {
		return
	}
	// Shown now and not with the next update, so that focus can go to it at once.
	document := app.Window().Get("document")
	document.Call("getElementById", formPanel).Set("hidden", tab != state.Form)
	document.Call("getElementById", editorPanel).Set("hidden", tab != state.YAML)
}

// Ids of the two views of the text.
const (
	formPanel   = "form-panel"
	editorPanel = "editor-panel"
)

func (c *Config) onImport(app.Context, app.Event) {
	c.Mail.Post(state.DialogOpened{Dialog: state.ImportDialog})
}
