package view

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Figures is the strip of key figures, with the formula of one of them below.
type Figures struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Figures
}

// Render places the tiles.
func (f *Figures) Render() app.UI {
	tiles := make([]app.UI, 0, len(f.VM.Tiles))
	for i := range f.VM.Tiles {
		tiles = append(tiles, f.tile(&f.VM.Tiles[i]))
	}
	return app.Elem("section").ID(ids.Figures).Class(class("figures", when(f.VM.Stale, "stale"))).Aria("label", "Key figures").Body(
		app.Elem("div").Class("kpis").Body(tiles...),
		f.formula(),
	)
}

func (f *Figures) tile(t *derive.Figure) app.UI {
	sub := []app.UI{app.Text(t.Sub)}
	if t.Other != "" {
		sub = []app.UI{app.Text(t.Other + " "), app.Elem("span").Class(class("delta", better(t.Better))).Text(t.Change), hidden(betterWord(t.Better))}
	}
	return app.Elem("button").ID(t.ID).Attr("type", "button").Class(class("kpi", when(t.Hot, "hot"), when(t.Open, "open"))).
		Aria("expanded", boolText(t.Open)).Aria("label", t.Spoken).Title("How this figure comes about").DataSet("value", t.Value).DataSet("id", t.ID).OnClick(f.onOpen).Body(
		app.Elem("span").Class("lab").Text(t.Label),
		app.Elem("span").Class("val").Body(app.Text(t.Number), app.Elem("small").Text(t.Unit), app.Elem("span").Class("second").Text(t.Second)),
		app.Elem("span").Class("sub").Body(sub...),
	)
}

func hidden(text string) app.UI { return app.Elem("span").Class("sr").Text(text) }

func better(b int) string {
	switch {
	case b > 0:
		return "better"
	case b < 0:
		return "worse"
	}
	return ""
}

func betterWord(b int) string {
	if w := better(b); w != "" {
		return ", " + w
	}
	return ""
}

func (f *Figures) formula() app.UI {
	o := f.VM.Open
	if o == nil {
		return nil
	}
	rows := make([]app.UI, 0, 2*len(o.Rows))
	for _, r := range o.Rows {
		rows = append(rows, app.Elem("dt").Text(r[0]), app.Elem("dd").Text(r[1]))
	}
	return app.Elem("div").Class("formula").Role("region").Aria("label", o.Title).Body(
		app.Elem("h3").Text(o.Title),
		app.Elem("p").Text(o.Text),
		app.Elem("dl").Body(rows...),
		app.Elem("p").Class("dim").Text(o.Note),
		iconButton("formula-close", "close", "Close", f.onClose),
	)
}

func (f *Figures) onOpen(ctx app.Context, _ app.Event) {
	f.Mail.Post(state.FigureOpened{ID: data(ctx, "id")})
}

func (f *Figures) onClose(app.Context, app.Event) { f.Mail.Post(state.FigureOpened{}) }
