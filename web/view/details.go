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
}

// Render places the tabs and the pane of the chosen one.
func (d *Details) Render() app.UI {
	vm := d.VM
	tabs := make([]app.UI, 0, len(vm.Tabs))
	for _, t := range vm.Tabs {
		tabs = append(tabs, app.Button().ID(t.ID).Type("button").Role("tab").Class(when(t.Narrow, "narrow-tab")).Aria("selected", boolText(t.Tab == vm.Tab)).
			Aria("controls", "pane").DataSet("tab", int(t.Tab)).OnClick(d.onTab).Body(app.Text(t.Name), app.Span().Class("count").Hidden(t.Count == "").Text(t.Count)))
	}
	stages := make([]app.UI, 0, len(vm.Stages))
	for _, o := range vm.Stages {
		stages = append(stages, app.Option().Value(o.Value).Selected(o.Selected).Text(o.Label))
	}
	hasTable := vm.Tab == state.Collectives || vm.Tab == state.Buckets
	return app.Section().Class("detail").Aria("label", "Details").Body(
		app.Div().Class("bar tabs").Role("tablist").Aria("label", "Details").Body(append(tabs,
			app.Span().Class("grow"),
			app.Span().Class("legend").Hidden(vm.Tab != state.Buckets || vm.AsTable).Body(groupLegend()...),
			app.Span().Class("pick small").Hidden(vm.Tab != state.Buckets || len(stages) < 2).Body(
				app.Select().ID("bucket-stage").Aria("label", "Stage").OnChange(d.onStage).Body(stages...), icon("down")),
			app.Div().Class("seg small").Role("group").Aria("label", "Show as").Hidden(!vm.Picks).Body(
				app.Button().ID("as-picture").Type("button").Aria("pressed", boolText(!vm.AsTable)).OnClick(d.onPicture).Text("Picture"),
				app.Button().ID("as-table").Type("button").Aria("pressed", boolText(vm.AsTable)).OnClick(d.onTable).Text("Table"),
			),
			app.Button().Type("button").Class("link").Hidden(!hasTable).OnClick(d.onCSV).Text("CSV"),
		)...),
		app.Div().Class("pane").ID("pane").Role("tabpanel").Aria("label", "Details").Body(d.pane()),
	)
}

func groupLegend() []app.UI {
	return []app.UI{
		app.Span().Body(app.I().Class("sw c-attn"), app.Text("attention")),
		app.Span().Body(app.I().Class("sw c-mlp"), app.Text("MLP")),
		app.Span().Body(app.I().Class("sw c-embed"), app.Text("embedding")),
		app.Span().Body(app.I().Class("sw c-small"), app.Text("bias, norm")),
		app.Span().Body(app.I().Class("sw c-padding"), app.Text("padding")),
	}
}

func (d *Details) pane() app.UI {
	vm := d.VM
	switch vm.Tab {
	case state.Differences:
		return app.Div().Class("paned").Body(&Differences{Mail: d.Mail, VM: vm.Differences})
	case state.FourVersions:
		return app.Div().Class("paned").Body(&Versions{Mail: d.Mail, VM: vm.Versions})
	case state.SelectionTab:
		return app.Div().Class("paned").Body(&Inspector{Mail: d.Mail, VM: d.Inspector, Slot: d.Slot, ID: "selection"})
	}
	if vm.Empty {
		return app.Div().Class("paned").Body(app.P().Class("empty").Text("Pick a preset, or paste or drop a NeMo configuration."))
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
		return app.Div().Class("paned").Body(&Table{Mail: d.Mail, VM: vm.Table, ID: id, Slot: slot})
	}
	return app.Div().Class("paned fill").Body(&Buckets{Mail: d.Mail, List: vm.List, Bucket: vm.Bucket, Fragments: vm.Fragments, Pictures: d.Pictures, First: vm.Scroll})
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
	if t == nil {
		t = d.VM.Fragments
	}
	if t != nil {
		d.Mail.Post(state.CSVAsked{Name: t.Name + ".csv", Text: derive.CSV(t)})
	}
}

// Buckets is the picture of all buckets, and of one.
type Buckets struct {
	app.Compo
	Mail      *Mailbox
	List      *derive.BucketList
	Bucket    *derive.BucketDetail
	Fragments *derive.Table
	Pictures  *canvas.BucketPictures
	First     int // row about which the list is scrolled
}

// Render places the list on the left and the selected bucket on the right.
func (b *Buckets) Render() app.UI {
	d := b.Bucket
	if b.List == nil || d == nil || d.Index < 0 {
		return app.P().Class("empty").Text("This stage has no buckets.")
	}
	tags := make([]app.UI, 0, len(d.Tags))
	for _, t := range d.Tags {
		tags = append(tags, app.Span().Class("tag").Body(app.I().Class("sw c-"+t[1]), app.Text(t[0]+" "+t[1])))
	}
	facts := make([]app.UI, 0, 2*len(d.Facts))
	for _, f := range d.Facts {
		facts = append(facts, app.Dt().Text(f.Name), app.Dd().Text(f.Value))
	}
	return app.Div().Class("buckets").Body(
		app.Div().Class("bover").ID(ids.Buckets).TabIndex(0).Role("application").Aria("label", "Buckets of the stage. Arrow keys select.").Aria("activedescendant", "bucket-current").Body(
			app.Canvas().ID("bucket-list").Aria("hidden", "true"),
			app.Div().Class("brows").DataSet("css", "height:"+derive.Plain(len(b.List.Rows)*canvas.BucketRowHeight+4)+"px").Body(b.rows()...),
			app.Div().ID("bucket-current").Role("option").Aria("selected", "true").Class("sr").DataSet("bucket", int(d.ID)).Text(describe(d)),
		),
		app.Div().Class("bclose").Body(
			app.Header().Body(app.H3().DataSet("bucket", int(d.ID)).DataSet("lit", "1").Text(d.Title), app.Span().Class("dim").Text(d.Sub), app.Span().Class("grow"), app.Span().Class("tags").Body(tags...)),
			app.Canvas().ID("bucket-bar").Aria("hidden", "true"),
			app.Dl().Class("facts three").Body(facts...),
			app.H4().Hidden(len(d.Buffers) == 0).Text("Contiguous buffers, to scale"),
			app.Canvas().ID("bucket-buffers").Aria("hidden", "true").Hidden(len(d.Buffers) == 0).DataSet("css", "height:"+derive.Plain(max(len(d.Buffers), 1)*canvas.BufferRowHeight)+"px"),
			&Table{Mail: b.Mail, VM: b.Fragments, ID: "fragment-table", Of: "fragments"},
			b.also(),
		),
	)
}

// rowsInPage is how many rows of the list are elements at once; the rest is a picture.
const rowsInPage = 120

// rows are what a click on the picture of the list meets.
func (b *Buckets) rows() []app.UI {
	first := max(min(b.First, len(b.List.Rows)-rowsInPage), 0)
	last := min(first+rowsInPage, len(b.List.Rows))
	rows := make([]app.UI, 0, last-first)
	for i := first; i < last; i++ {
		r := &b.List.Rows[i]
		lit := r.ID == b.Bucket.ID
		rows = append(rows, app.Div().Class("brow").DataSet("css", "top:"+derive.Plain(i*canvas.BucketRowHeight)+"px").DataSet("bucket", int(r.ID)).
			DataSet("lit", when(lit, "1")).Title("Bucket "+derive.Plain(int(r.ID))+", "+r.Utilisation+" filled").OnClick(b.onRow))
	}
	return rows
}

func (b *Buckets) onRow(ctx app.Context, _ app.Event) {
	b.Mail.Post(state.BucketPicked{Slot: b.List.Slot, Stage: b.List.Stage, Bucket: int32(number(ctx, "bucket"))})
}

func describe(d *derive.BucketDetail) string {
	text := d.Title
	for _, f := range d.Facts {
		text += ", " + f.Name + " " + f.Value
	}
	return text + "."
}

// chips is how many parameters are named that a bucket only waits for.
const chips = 12

func (b *Buckets) also() app.UI {
	all := b.Bucket.Also
	if len(all) == 0 {
		return nil
	}
	parts := []app.UI{app.Span().Class("dim").Text("Also waits for")}
	for _, name := range all[:min(chips, len(all))] {
		parts = append(parts, app.Span().Class("chip").Text(name))
	}
	if n := len(all) - chips; n > 0 {
		parts = append(parts, app.Details().Class("more-chips").Body(app.Summary().Text(derive.Count(int64(n))+" more"), app.P().Text(join(all[chips:]))))
	}
	return app.Div().Class("chips").Body(parts...)
}

func join(names []string) string {
	const most = 2000
	text := ""
	for i, n := range names {
		if i > 0 {
			text += ", "
		}
		if i == most {
			return text + "…"
		}
		text += n
	}
	return text
}

// OnMount, OnUpdate and OnDismount bind the pictures to their canvases.
func (b *Buckets) OnMount(app.Context) {
	b.Pictures.Picked = func(slot, stage int, id int32) {
		b.Mail.Post(state.BucketPicked{Slot: slot, Stage: stage, Bucket: id})
	}
	b.Pictures.Scrolled = func(first int) { b.Mail.Post(state.Scrolled{First: first}) }
	b.Pictures.Attach()
	b.Pictures.Show(b.List, b.Bucket)
}

func (b *Buckets) OnUpdate(app.Context) { b.Pictures.Show(b.List, b.Bucket) }
func (b *Buckets) OnDismount()          { b.Pictures.Detach() }
