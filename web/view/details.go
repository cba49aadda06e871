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
		tabs = append(tabs, app.Elem("button").ID(t.ID).Attr("type", "button").Role("tab").Class(when(t.Narrow, "narrow-tab")).Aria("selected", boolText(t.Tab == vm.Tab)).
			Aria("controls", "pane").DataSet("tab", int(t.Tab)).OnClick(d.onTab).Body(app.Text(t.Name), app.Elem("span").Class("count").Hidden(t.Count == "").Text(t.Count)))
	}
	stages := make([]app.UI, 0, len(vm.Stages))
	for _, o := range vm.Stages {
		stages = append(stages, app.Elem("option").Attr("value", o.Value).Attr("selected", o.Selected).Text(o.Label))
	}
	hasTable := vm.Tab == state.Collectives || vm.Tab == state.Buckets
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
		return app.Elem("p").Class("empty").Text("This stage has no buckets.")
	}
	tags := make([]app.UI, 0, len(d.Tags))
	for _, t := range d.Tags {
		tags = append(tags, app.Elem("span").Class("tag").Body(app.Elem("i").Class("sw c-"+t[1]), app.Text(t[0]+" "+t[1])))
	}
	facts := make([]app.UI, 0, 2*len(d.Facts))
	for _, f := range d.Facts {
		facts = append(facts, app.Elem("dt").Text(f.Name), app.Elem("dd").Text(f.Value))
	}
	return app.Elem("div").Class("buckets").Body(
		app.Elem("div").Class("bover").ID(ids.Buckets).TabIndex(0).Role("application").Aria("label", "Buckets of the stage. Arrow keys select.").Aria("activedescendant", "bucket-current").Body(
			app.Elem("canvas").ID("bucket-list").Aria("hidden", "true"),
			app.Elem("div").Class("brows").DataSet("css", "height:"+derive.Plain(len(b.List.Rows)*canvas.BucketRowHeight+4)+"px").Body(b.rows()...),
			app.Elem("div").ID("bucket-current").Role("img").Aria("label", describe(d)).Class("sr").DataSet("bucket", int(d.ID)),
		),
		app.Elem("div").Class("bclose").Body(
			app.Elem("header").Body(app.Elem("h3").DataSet("bucket", int(d.ID)).DataSet("lit", "1").Text(d.Title), app.Elem("span").Class("dim").Text(d.Sub), app.Elem("span").Class("grow"), app.Elem("span").Class("tags").Body(tags...)),
			app.Elem("canvas").ID("bucket-bar").Aria("hidden", "true"),
			app.Elem("dl").Class("facts three").Body(facts...),
			app.Elem("h4").Hidden(len(d.Buffers) == 0).Text("Contiguous buffers, to scale"),
			app.Elem("canvas").ID("bucket-buffers").Aria("hidden", "true").Hidden(len(d.Buffers) == 0).DataSet("css", "height:"+derive.Plain(max(len(d.Buffers), 1)*canvas.BufferRowHeight)+"px"),
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
		rows = append(rows, app.Elem("div").Class("brow").DataSet("css", "top:"+derive.Plain(i*canvas.BucketRowHeight)+"px").DataSet("bucket", int(r.ID)).
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
	parts := []app.UI{app.Elem("span").Class("dim").Text("Also waits for")}
	for _, name := range all[:min(chips, len(all))] {
		parts = append(parts, app.Elem("span").Class("chip").Text(name))
	}
	if n := len(all) - chips; n > 0 {
		parts = append(parts, app.Elem("details").Class("more-chips").Body(app.Elem("summary").Text(derive.Count(int64(n))+" more"), app.Elem("p").Text(join(all[chips:]))))
	}
	return app.Elem("div").Class("chips").Body(parts...)
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
