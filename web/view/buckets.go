package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

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
			app.Elem("div").Class("brows").DataSet("css", "height:"+derive.Plain(b.List.Len()*canvas.BucketRowHeight+4)+"px").Body(b.rows()...),
			app.Elem("div").ID("bucket-current").Role("img").Aria("label", describe(d)).Class("sr").DataSet("bucket", int(d.ID)),
		),
		app.Elem("div").Class("bclose").Body(
			app.Elem("header").Body(app.Elem("h3").DataSet("bucket", int(d.ID)).DataSet("lit", "1").Text(d.Title), app.Elem("span").Class("dim").Text(d.Sub), app.Elem("span").Class("grow"), app.Elem("span").Class("tags").Body(tags...)),
			app.Elem("canvas").ID("bucket-bar").Aria("hidden", "true"),
			app.Elem("dl").Class("facts three").Body(facts...),
			app.Elem("p").ID("bucket-rule").Class("dim note").Hidden(d.Rule == "").Text(d.Rule),
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
	first := max(min(b.First, b.List.Len()-rowsInPage), 0)
	last := min(first+rowsInPage, b.List.Len())
	rows := make([]app.UI, 0, last-first)
	for i := first; i < last; i++ {
		r := b.List.Row(i)
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
