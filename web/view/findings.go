package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Findings is the list of what the rules found.
type Findings struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Findings
}

// Render places cost, sentence and change, the dearest first.
func (f *Findings) Render() app.UI {
	vm := f.VM
	if vm == nil || len(vm.Rows) == 0 {
		text := "Findings appear with a result."
		if vm != nil {
			text = vm.Empty
		}
		return app.Elem("p").Class("empty").Text(text)
	}
	rows := make([]app.UI, len(vm.Rows))
	for i := range vm.Rows {
		r := &vm.Rows[i]
		mend := app.UI(nil)
		if r.Change != "" {
			mend = app.Elem("button").Attr("type", "button").Class("inline").DataSet("rule", r.Rule).OnClick(f.onApply).Text(r.Change)
		}
		rows[i] = app.Elem("li").DataSet("rule", r.Rule).Body(
			app.Elem("span").Class(class("cost num", when(r.Exposed, "exposed"))).Text(r.Cost),
			app.Elem("div").Class("say").Body(app.Elem("p").Text(r.Text), app.Elem("p").Class("dim").Text(r.Key)),
			app.Elem("div").Class("mend").Body(mend),
		)
	}
	return app.Elem("ol").ID(ids.Findings).Class("findings").Body(rows...)
}

func (f *Findings) onApply(ctx app.Context, _ app.Event) {
	f.Mail.Post(state.FindingApplied{Rule: data(ctx, "rule")})
}
