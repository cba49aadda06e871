package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/state"
)

// Inspector describes the selection, or where the step goes.
type Inspector struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Inspector
	Slot int
	ID   string
}

// Render places what there is to say.
func (in *Inspector) Render() app.UI {
	vm := in.VM
	var body []app.UI
	add := func(ok bool, parts ...app.UI) {
		if ok {
			body = append(body, parts...)
		}
	}
	add(len(vm.Shares) > 0, in.shares())
	add(vm.Intro != "" && len(vm.Shares) == 0, app.Elem("p").Text(vm.Intro))
	add(len(vm.Rows) > 0, in.rows())
	add(len(vm.Facts) > 0, in.facts())
	add(len(vm.Why) > 0 && len(vm.Facts) > 0, app.Elem("h4").Text("Why did this start now?"))
	add(len(vm.Why) > 0, in.why())
	add(len(vm.Hides) > 0, app.Elem("h4").Text("What hides it?"), app.Elem("p").Body(in.sentence(vm.Hides)...))
	add(len(vm.Waits) > 0, app.Elem("h4").Text(vm.WaitsTitle), in.links(vm.Waits, ""))
	add(len(vm.Worst) > 0, app.Elem("h4").Text("Most exposed"), in.links(vm.Worst, "hot"))
	add(vm.Intro != "" && len(vm.Shares) > 0, app.Elem("p").Class("dim").Text(vm.Intro))
	add(vm.Zoom >= 0, app.Elem("div").Class("acts").Body(
		app.Elem("button").Attr("type", "button").Class("btn small").DataSet("span", int(vm.Zoom)).OnClick(in.onZoom).Text("Zoom to"),
		app.Elem("button").Attr("type", "button").Class("btn small").Hidden(!vm.Bucket).OnClick(in.onBuckets).Text("Buckets"),
	))
	return app.Elem("section").ID(in.ID).Class("inspect").Aria("label", "Selection").Body(
		app.Elem("header").Body(
			app.Elem("span").Class(class("sw", when(vm.Colour != "", "c-"+vm.Colour))).Hidden(vm.Colour == ""),
			app.Elem("h2").Title(vm.Title).Text(vm.Title),
			app.Elem("span").Class("grow"),
			app.Elem("button").Attr("type", "button").Class("icon").Aria("label", "Clear the selection").Hidden(!vm.Close).OnClick(in.onClose).Body(icon("close")),
		),
		app.Elem("div").Class("in").Body(body...),
	)
}

func (in *Inspector) shares() app.UI {
	bar := make([]app.UI, 0, len(in.VM.Shares))
	rows := make([]app.UI, 0, len(in.VM.Shares))
	for _, s := range in.VM.Shares {
		bar = append(bar, app.Elem("i").Class("c-"+s.Colour).DataSet("css", s.Width))
		rows = append(rows, app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "row").Body(app.Elem("i").Class("sw c-"+s.Colour), app.Text(s.Name)),
			app.Elem("td").Class("num").Text(s.Value), app.Elem("td").Class("num dim").Text(s.Percent),
		))
	}
	return app.Elem("div").Class("shares").Body(
		app.Elem("div").Class("sharebar").Aria("hidden", "true").Body(bar...),
		app.Elem("table").Class("plain").Body(app.Elem("tbody").Body(rows...)),
	)
}

func (in *Inspector) rows() app.UI {
	rows := make([]app.UI, 0, len(in.VM.Rows))
	for _, r := range in.VM.Rows {
		rows = append(rows, app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "row").Text(r.Name), app.Elem("td").Class("num").Text(r.A), app.Elem("td").Class("num").Text(r.B), app.Elem("td").Class("num strong").Text(r.Delta),
		))
	}
	return app.Elem("table").Class("plain").Body(
		app.Elem("thead").Body(app.Elem("tr").Body(app.Elem("th").Attr("scope", "col").Text("ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("A"), app.Elem("th").Attr("scope", "col").Class("num").Text("B"), app.Elem("th").Attr("scope", "col").Class("num").Text("B − A"))),
		app.Elem("tbody").Body(rows...),
	)
}

func (in *Inspector) facts() app.UI {
	list := make([]app.UI, 0, 2*len(in.VM.Facts))
	for _, f := range in.VM.Facts {
		list = append(list, app.Elem("dt").Text(f.Name), app.Elem("dd").Class(class(when(f.Hot, "hot"), when(f.Wide, "wide"))).Title(f.Value).Text(f.Value))
	}
	return app.Elem("dl").Class("facts").Body(list...)
}

func (in *Inspector) why() app.UI {
	items := make([]app.UI, 0, len(in.VM.Why))
	for _, w := range in.VM.Why {
		items = append(items, app.Elem("li").Class(when(w.Binding, "bind")).Body(in.sentence(w.Text)...))
	}
	return app.Elem("ul").Class("why").Body(items...)
}

func (in *Inspector) sentence(s derive.Sentence) []app.UI {
	parts := make([]app.UI, 0, len(s))
	for _, p := range s {
		if p.Span < 0 {
			parts = append(parts, app.Elem("span").Text(p.Text))
			continue
		}
		parts = append(parts, app.Elem("button").Attr("type", "button").Class("inline").DataSet("span", int(p.Span)).OnClick(in.onSpan).Text(p.Text))
	}
	return parts
}

func (in *Inspector) links(links []derive.Link, hot string) app.UI {
	rows := make([]app.UI, 0, len(links))
	for _, l := range links {
		rows = append(rows, app.Elem("li").Body(
			app.Elem("button").Attr("type", "button").Class("inline").DataSet("span", int(l.Span)).OnClick(in.onSpan).Text(l.Text),
			app.Elem("span").Class(class("num", hot)).Text(l.Value),
		))
	}
	return app.Elem("ul").Class("links").Body(rows...)
}

func (in *Inspector) onSpan(ctx app.Context, _ app.Event) {
	if n, err := strconv.Atoi(data(ctx, "span")); err == nil {
		in.Mail.Post(state.SpanPicked{Slot: in.Slot, Span: int32(n)})
		in.Mail.Post(state.SpanShown{Slot: in.Slot, Span: int32(n)})
	}
}

func (in *Inspector) onZoom(ctx app.Context, _ app.Event) {
	in.Mail.Post(state.ZoomToSpan{Span: int32(number(ctx, "span"))})
}

func (in *Inspector) onBuckets(app.Context, app.Event) {
	in.Mail.Post(state.DetailPicked{Tab: state.Buckets})
}

func (in *Inspector) onClose(app.Context, app.Event) { in.Mail.Post(state.Deselected{}) }
