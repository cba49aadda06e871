package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

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
