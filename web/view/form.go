package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

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
