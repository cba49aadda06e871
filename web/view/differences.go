package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Differences is the table of Compare.
type Differences struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Differences
}

// Render places the outcome and the figures of both.
func (d *Differences) Render() app.UI {
	vm := d.VM
	if vm == nil {
		return app.Elem("p").Class("empty").Text("Both configurations must be simulated first.")
	}
	rows := make([]app.UI, len(vm.Rows))
	for i, r := range vm.Rows {
		rows[i] = app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "row").Class(when(r.Indent, "indent")).Body(app.Text(r.Name+" "), app.Elem("span").Class("dim").Text(r.Unit)),
			app.Elem("td").Class("num").Text(r.A), app.Elem("td").Class("num").Text(r.B), app.Elem("td").Class("num").Text(r.Delta),
			app.Elem("td").Class("num").Body(app.Elem("span").Class(class("delta", better(r.Better))).Text(r.Change), hidden(betterWord(r.Better))),
			app.Elem("td").Class("bars").Body(app.Elem("div").Class("diffbar").Aria("hidden", "true").Body(app.Elem("i").Class(better(r.Better)).Hidden(r.Bar == "").DataSet("css", r.Bar))),
		)
	}
	return app.Elem("div").Class("differences").Body(
		app.Elem("p").Class("outcome").Body(
			app.Elem("b").Text(vm.Text), app.Text(" "),
			app.Elem("button").Attr("type", "button").Class("inline").OnClick(d.onVersions).Text("The four versions, changes taken apart"),
		),
		app.Elem("table").ID(ids.DiffTable).Class("rows").Body(
			app.Elem("caption").Class("sr").Text("A and B compared"),
			app.Elem("thead").Body(app.Elem("tr").Body(
				app.Elem("th").Attr("scope", "col").Text("Figure"), app.Elem("th").Attr("scope", "col").Class("num").Title(vm.A).Text("A"), app.Elem("th").Attr("scope", "col").Class("num").Title(vm.B).Text("B"),
				app.Elem("th").Attr("scope", "col").Class("num").Text("B − A"), app.Elem("th").Attr("scope", "col").Class("num").Text("Change"), app.Elem("th").Attr("scope", "col").Text("smaller | larger"),
			)),
			app.Elem("tbody").Body(rows...),
		),
		d.moved(),
	)
}

// moved is the table of decisions that came out differently.
func (d *Differences) moved() app.UI {
	if len(d.VM.Moved) == 0 {
		return nil
	}
	rows := make([]app.UI, len(d.VM.Moved))
	for i, m := range d.VM.Moved {
		rows[i] = app.Elem("tr").Body(app.Elem("th").Attr("scope", "row").Class("wrap").Text(m[0]), app.Elem("td").Class("wrap").Text(m[1]), app.Elem("td").Class("wrap").Text(m[2]))
	}
	return app.Elem("table").Class("rows moved").Body(
		app.Elem("caption").Class("sr").Text("Decisions that came out differently"),
		app.Elem("thead").Body(app.Elem("tr").Body(app.Elem("th").Attr("scope", "col").Text("What moved"), app.Elem("th").Attr("scope", "col").Text("A"), app.Elem("th").Attr("scope", "col").Text("B"))),
		app.Elem("tbody").Body(rows...),
	)
}

func (d *Differences) onVersions(app.Context, app.Event) {
	d.Mail.Post(state.DetailPicked{Tab: state.FourVersions})
}
