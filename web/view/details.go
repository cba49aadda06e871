package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Details is the lower pane.
type Details struct {
	app.Compo
	Mail      *Mailbox
	VM        *derive.Details
	Inspector *derive.Inspector
	Slot      int
	Pictures  *canvas.BucketPictures // one for the page's life
	Charts    *canvas.Charts         // likewise
}

// Render places the tabs and the pane of the chosen one.
func (d *Details) Render() app.UI {
	vm := d.VM
	tabs := make([]app.UI, 0, len(vm.Tabs))
	for _, t := range vm.Tabs {
		tabs = append(tabs, app.Elem("button").ID(t.ID).Attr("type", "button").Role("tab").Class(when(t.Narrow, "narrow-tab")).Aria("selected", boolText(t.Tab == vm.Tab)).
			Aria("controls", "pane").DataSet("tab", int(t.Tab)).OnClick(d.onTab).Body(app.Text(t.Name), app.Elem("span").Class("count").Hidden(t.Count == "").Text(t.Count)))
	}
	stages := make([]app.UI, 0, len(vm.Stages))
	for _, o := range vm.Stages {
		stages = append(stages, app.Elem("option").Attr("value", o.Value).Attr("selected", o.Selected).Text(o.Label))
	}
	hasTable := vm.Tab == state.Collectives || vm.Tab == state.Buckets || vm.Tab == state.Numerics && vm.Numerics != nil && vm.Numerics.Table != nil
	return app.Elem("section").Class("detail").Aria("label", "Details").Body(
		app.Elem("div").Class("bar tabs").Body(
			app.Elem("div").Class("tablist").Role("tablist").Aria("label", "Details").Body(tabs...),
			app.Elem("span").Class("grow"),
			app.Elem("span").Class("legend").Hidden(vm.Tab != state.Buckets || vm.AsTable).Body(groupLegend()...),
			app.Elem("span").Class("pick small").Hidden(vm.Tab != state.Buckets || len(stages) < 2).Body(
				app.Elem("select").ID("bucket-stage").Aria("label", "Stage").OnChange(d.onStage).Body(stages...), icon("down")),
			app.Elem("div").Class("seg small").Role("group").Aria("label", "Show as").Hidden(!vm.Picks).Body(
				app.Elem("button").ID("as-picture").Attr("type", "button").Aria("pressed", boolText(!vm.AsTable)).OnClick(d.onPicture).Text("Picture"),
				app.Elem("button").ID("as-table").Attr("type", "button").Aria("pressed", boolText(vm.AsTable)).OnClick(d.onTable).Text("Table"),
			),
			app.Elem("button").Attr("type", "button").Class("link").Hidden(!hasTable).OnClick(d.onCSV).Text("CSV"),
		),
		app.Elem("div").Class("pane").ID("pane").Role("tabpanel").Aria("label", "Details").Body(d.pane()),
	)
}

func groupLegend() []app.UI {
	return []app.UI{
		app.Elem("span").Body(app.Elem("i").Class("sw c-attn"), app.Text("attention")),
		app.Elem("span").Body(app.Elem("i").Class("sw c-mlp"), app.Text("MLP")),
		app.Elem("span").Body(app.Elem("i").Class("sw c-embed"), app.Text("embedding")),
		app.Elem("span").Body(app.Elem("i").Class("sw c-small"), app.Text("bias, norm")),
		app.Elem("span").Body(app.Elem("i").Class("sw c-padding"), app.Text("padding")),
	}
}

func (d *Details) pane() app.UI {
	vm := d.VM
	switch vm.Tab {
	case state.Differences:
		return app.Elem("div").Class("paned").Body(&Differences{Mail: d.Mail, VM: vm.Differences})
	case state.FourVersions:
		return app.Elem("div").Class("paned").Body(&Versions{Mail: d.Mail, VM: vm.Versions})
	case state.Findings:
		return app.Elem("div").Class("paned").Body(&Findings{Mail: d.Mail, VM: vm.Findings})
	case state.Numerics:
		if vm.Numerics != nil {
			return app.Elem("div").Class("paned").Body(&Numerics{Mail: d.Mail, VM: vm.Numerics, Charts: d.Charts})
		}
	case state.SelectionTab:
		return app.Elem("div").Class("paned").Body(&Inspector{Mail: d.Mail, VM: d.Inspector, Slot: d.Slot, ID: "selection"})
	}
	if vm.Empty {
		return app.Elem("div").Class("paned").Body(app.Elem("p").Class("empty").Text("Pick a preset, or paste or drop a NeMo configuration."))
	}
	if vm.Table != nil {
		id := ids.BucketTable
		if vm.Tab == state.Collectives {
			id = ids.CollTable
		}
		slot := 0
		if vm.List != nil {
			slot = vm.List.Slot
		}
		return app.Elem("div").Class("paned").Body(&Table{Mail: d.Mail, VM: vm.Table, ID: id, Slot: slot})
	}
	return app.Elem("div").Class("paned fill").Body(&Buckets{Mail: d.Mail, List: vm.List, Bucket: vm.Bucket, Fragments: vm.Fragments, Pictures: d.Pictures, First: vm.Scroll})
}

func (d *Details) onTab(ctx app.Context, _ app.Event) {
	d.Mail.Post(state.DetailPicked{Tab: state.DetailTab(number(ctx, "tab"))})
}

func (d *Details) onStage(ctx app.Context, _ app.Event) {
	n, _ := strconv.Atoi(ctx.JSSrc().Get("value").String())
	d.Mail.Post(state.StagePicked{Stage: n})
}

func (d *Details) onPicture(app.Context, app.Event) {
	if d.VM.AsTable {
		d.Mail.Post(state.TableToggled{})
	}
}

func (d *Details) onTable(app.Context, app.Event) {
	if !d.VM.AsTable {
		d.Mail.Post(state.TableToggled{})
	}
}

func (d *Details) onCSV(app.Context, app.Event) {
	t := d.VM.Table
	if t == nil && d.VM.Numerics != nil {
		t = d.VM.Numerics.Table
	}
	if t == nil {
		t = d.VM.Fragments
	}
	if t != nil {
		d.Mail.Post(state.CSVAsked{Name: t.Name + ".csv", Text: derive.CSV(t)})
	}
}
