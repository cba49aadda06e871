package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Versions is the table that takes the two changes apart.
type Versions struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.FourVersions
}

// Render places one row per framework version.
func (v *Versions) Render() app.UI {
	vm := v.VM
	if vm == nil || len(vm.Rows) == 0 {
		text := "Four versions of the configuration are simulated."
		if vm != nil && vm.Failure != "" {
			text = vm.Failure
		}
		return app.Elem("p").Class("empty").Text(text)
	}
	rows := make([]app.UI, len(vm.Rows))
	for i := range vm.Rows {
		r := &vm.Rows[i]
		rows[i] = v.row(r,
			app.Elem("td").Class("num").Text(r.Exposed), app.Elem("td").Class("num").Text(r.Amax),
			app.Elem("td").Class(when(r.Overlaps, "yes")).Text(r.Overlap),
		)
	}
	return app.Elem("div").Class(class("versions", when(vm.Busy || vm.Stale, "stale"))).Body(
		app.Elem("p").Class("outcome").Body(app.Elem("b").Text(vm.Summary)),
		app.Elem("table").ID(ids.FourTable).Class("rows").Body(
			app.Elem("caption").Class("sr").Text("The configuration under four framework versions"),
			app.Elem("thead").Body(app.Elem("tr").Body(
				app.Elem("th").Attr("scope", "col").Text("Framework version"), app.Elem("th").Attr("scope", "col").Class("num").Text("Step time, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("to BEFORE"),
				app.Elem("th").Attr("scope", "col").Class("num").Text("Exposed param sync, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("Amax reductions"),
				app.Elem("th").Attr("scope", "col").Text("First all-gather beside Adam"), app.Elem("th").Attr("scope", "col").Text(""),
			)),
			app.Elem("tbody").Body(rows...),
		),
		v.others(),
		app.Elem("p").Class("dim note").Text("The shown configuration with framework.version set to each value, simulated. The change came in two parts, one in NeMo and one in Apex; the rows between BEFORE and AFTER have one part each."),
	)
}

// row is one version: name, step time and change, three cells more, or why there is no result.
func (v *Versions) row(r *derive.VersionRow, more ...app.UI) app.UI {
	cells := []app.UI{
		app.Elem("th").Attr("scope", "row").Class("wrap").Body(app.Elem("b").Text(r.Name), app.Text(" "), app.Elem("span").Class("dim").Text(r.What)),
	}
	if r.Error != "" {
		cells = append(cells, app.Elem("td").Attr("colspan", 2+len(more)).Class("wrap").Text(r.Error))
	} else {
		cells = append(cells,
			app.Elem("td").Class("num").Text(r.Step),
			app.Elem("td").Class("num").Body(app.Elem("span").Class(class("delta", better(r.Better))).Text(r.Change), hidden(betterWord(r.Better))),
		)
		cells = append(cells, more...)
	}
	cells = append(cells, app.Elem("td").Body(app.Elem("button").Attr("type", "button").Class("inline").DataSet("version", r.Version).OnClick(v.onCompare).Text("Compare")))
	return app.Elem("tr").DataSet("version", r.Version).Body(cells...)
}

// others is the same model on other frameworks.
func (v *Versions) others() app.UI {
	rows := make([]app.UI, len(v.VM.Others))
	for i := range v.VM.Others {
		r := &v.VM.Others[i]
		rows[i] = v.row(r,
			app.Elem("td").Class("num").Text(r.Parts[0]), app.Elem("td").Class("num").Text(r.Parts[1]), app.Elem("td").Class("num").Text(r.Parts[2]),
		)
	}
	return app.Elem("table").ID(ids.FrameTable).Class("rows").Hidden(len(rows) == 0).Body(
		app.Elem("caption").Class("sr").Text("The configuration on other frameworks"),
		app.Elem("thead").Body(app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "col").Text("Framework"), app.Elem("th").Attr("scope", "col").Class("num").Text("Step time, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("to BEFORE"),
			app.Elem("th").Attr("scope", "col").Class("num").Text("Exposed, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("Buckets"), app.Elem("th").Attr("scope", "col").Class("num").Text("Filled"), app.Elem("th").Attr("scope", "col").Text(""),
		)),
		app.Elem("tbody").Body(rows...),
	)
}

func (v *Versions) onCompare(ctx app.Context, _ app.Event) {
	v.Mail.Post(state.VersionPicked{Version: data(ctx, "version")})
}
