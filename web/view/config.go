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
	return app.Elem("aside").Class(class("config", when(c.Shown, "open"))).Aria("label", "Configuration").Body(
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

// Form is the seven groups of fields.
type Form struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Form
	Hide bool
}

// Render places the groups.
func (f *Form) Render() app.UI {
	groups := make([]app.UI, 0, len(f.VM.Groups)+1)
	groups = append(groups, app.Elem("p").Class("broken-note").Role("status").Hidden(f.VM.Broken == "").Text(f.VM.Broken))
	for i := range f.VM.Groups {
		groups = append(groups, f.group(&f.VM.Groups[i]))
	}
	return app.Elem("div").ID(formPanel).Class(class("scroll", when(f.VM.Broken != "", "disabled"))).Role("tabpanel").Aria("labelledby", ids.TabForm).Hidden(f.Hide).Body(groups...)
}

func (f *Form) group(g *derive.FormGroup) app.UI {
	rows := make([]app.UI, 0, len(g.Rows)+len(g.Rare)+2)
	rows = append(rows, app.Elem("h3").Body(app.Text(g.Name), app.Elem("span").Text(g.Note)))
	for i := range g.Rows {
		rows = append(rows, &Field{Mail: f.Mail, Row: g.Rows[i]})
	}
	if n := len(g.Rare); n > 0 {
		text := "More (" + derive.Count(int64(n)) + ")"
		if g.RareOpen {
			text = "Fewer"
		}
		rows = append(rows, app.Elem("button").Attr("type", "button").Class(class("more", when(g.RareSet > 0, "set"))).Aria("expanded", boolText(g.RareOpen)).
			DataSet("group", g.Key).OnClick(f.onMore).Text(text))
		if g.RareOpen {
			for i := range g.Rare {
				rows = append(rows, &Field{Mail: f.Mail, Row: g.Rare[i]})
			}
		}
	}
	return app.Elem("section").Class("fgroup").Aria("label", g.Name).Body(rows...)
}

func (f *Form) onMore(ctx app.Context, _ app.Event) {
	f.Mail.Post(state.MoreToggled{Group: data(ctx, "group")})
}

// Editor is the text. The custom element keeps its own document; text and marks are set as
// properties.
type Editor struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Editor
	Hide bool
}

// Render places the element.
func (e *Editor) Render() app.UI {
	return app.Elem("div").ID(editorPanel).Class("editor").Role("tabpanel").Aria("labelledby", ids.TabYAML).Hidden(e.Hide).Body(
		app.Elem(ids.EditorTag).ID(ids.Editor).On(ids.EventDocChange, e.onChange).On(ids.EventDocSubmit, e.onSubmit).On(ids.EventDocUndo, e.onUndo).On(ids.EventDocRedo, e.onRedo),
	)
}

// OnMount and OnUpdate hand text, marks and key names over.
func (e *Editor) OnMount(app.Context)  { e.write(true) }
func (e *Editor) OnUpdate(app.Context) { e.write(false) }

func (e *Editor) write(first bool) {
	if app.IsServer {
		return
	}
	el := app.Window().Get("document").Call("getElementById", ids.Editor)
	if !el.Truthy() {
		return
	}
	if el.Get("value").String() != e.VM.Text {
		el.Set("value", e.VM.Text)
	}
	el.Set("diagnostics", e.VM.Diagnostics)
	if first {
		el.Set("completions", e.VM.Completions)
	}
}

func (e *Editor) onChange(_ app.Context, ev app.Event) {
	e.Mail.Post(state.TextEdited{Text: ev.Get("detail").String()})
}

func (e *Editor) onSubmit(app.Context, app.Event) { e.Mail.Post(state.SimulateNow{}) }

func (e *Editor) onUndo(_ app.Context, ev app.Event) {
	ev.PreventDefault()
	e.Mail.Post(state.Undone{})
}

func (e *Editor) onRedo(_ app.Context, ev app.Event) {
	ev.PreventDefault()
	e.Mail.Post(state.Redone{})
}

// Problems is the list at the foot of the configuration.
type Problems struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Problems
}

// Render places the problems, errors first.
func (p *Problems) Render() app.UI {
	items := make([]app.UI, len(p.VM.Items))
	for i := range p.VM.Items {
		item := &p.VM.Items[i]
		kind := "warning"
		if item.Error {
			kind = "error"
		}
		items[i] = app.Elem("li").Class(when(!item.Error, "warn")).DataSet("problem", kind).Body(
			app.Elem("button").Attr("type", "button").Class("goto").DataSet("line", item.Line).OnClick(p.onGo).Body(
				app.Elem("b").Text(item.Path), app.Text(separator(item.Path)+item.Text+" "), app.Elem("span").Class("where").Text(item.Where),
			),
			app.Elem("button").Attr("type", "button").Class("btn small").Hidden(item.Fix == "").DataSet("index", item.Index).OnClick(p.onFix).Text(item.Fix),
		)
	}
	return app.Elem("section").Class("problems").Aria("label", "Problems").Hidden(len(items) == 0).Body(
		app.Elem("h3").Text(p.VM.Title),
		app.Elem("ul").ID(ids.Problems).Body(items...),
	)
}

func separator(path string) string {
	if path == "" {
		return ""
	}
	return ": "
}

func (p *Problems) onGo(ctx app.Context, _ app.Event) {
	p.Mail.Post(state.ProblemGone{Line: number(ctx, "line")})
}

func (p *Problems) onFix(ctx app.Context, _ app.Event) {
	p.Mail.Post(state.FixApplied{Index: number(ctx, "index")})
}
