package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/state"
)

// Table is the text twin of a picture: sortable, and a row selects what it stands for.
type Table struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Table
	ID   string
	Of   string // which sort order it has: "details", "spans", "fragments"
	Slot int
}

// Render places head and rows.
func (t *Table) Render() app.UI {
	vm := t.VM
	head := make([]app.UI, len(vm.Columns))
	for i, c := range vm.Columns {
		mark := ""
		switch c.Sorted {
		case 1:
			mark = " ↑"
		case -1:
			mark = " ↓"
		}
		sorting := c.Sorting
		if sorting == "" {
			sorting = "none"
		}
		head[i] = app.Elem("th").Attr("scope", "col").Class(when(c.Number, "num")).Aria("sort", sorting).Body(
			app.Elem("button").Attr("type", "button").DataSet("column", i).OnClick(t.onSort).Text(c.Title + mark),
		)
	}
	rows := make([]app.UI, len(vm.Rows))
	for i := range rows {
		rows[i] = t.row(i)
	}
	note := ""
	if more := vm.Total - len(rows) + vm.More; more > 0 {
		note = derive.Count(int64(more)) + " more rows. The CSV holds " + derive.Count(int64(vm.Total)) + "."
	}
	return app.Elem("div").Class("tablewrap").Body(
		app.Elem("table").ID(t.ID).Class("rows").Body(
			app.Elem("caption").Class("sr").Text(vm.Caption),
			app.Elem("thead").Body(app.Elem("tr").Body(head...)),
			app.Elem("tbody").Body(rows...),
		),
		app.Elem("p").Class("dim note").Hidden(note == "").Text(note),
	)
}

func (t *Table) row(i int) app.UI {
	r := &t.VM.Rows[i]
	cells := make([]app.UI, len(r.Cells))
	for k, text := range r.Cells {
		number := t.VM.Columns[k].Number
		cell := app.Elem("td").Class(class(when(number, "num"), when(r.Hot && t.VM.Columns[k].Title == "Exposed", "hot"), when(t.VM.Columns[k].Title == "Cause", "wrap")))
		if k == t.named() {
			cell.Body(app.Elem("i").Class(class("sw", when(r.Colour != "", "c-"+r.Colour))).Hidden(r.Colour == ""), app.Elem("span").Text(text))
		} else {
			cell.Text(text)
		}
		cells[k] = cell
	}
	row := app.Elem("tr").Body(cells...)
	if r.Span < 0 && r.Bucket < 0 {
		return row
	}
	if r.Lit {
		row.Aria("current", "true")
	}
	return row.Class(class("pickable", when(r.Lit, "sel"))).TabIndex(0).DataSet("span", int(r.Span)).DataSet("bucket", int(r.Bucket)).DataSet("stage", r.Stage).
		DataSet("lit", when(r.Lit, "1")).OnClick(t.onRow).OnKeyDown(t.onRowKey)
}

// named is the column that names the row and carries its colour.
func (t *Table) named() int {
	for i, c := range t.VM.Columns {
		if !c.Number {
			return i
		}
	}
	return 0
}

func (t *Table) onSort(ctx app.Context, _ app.Event) {
	n := number(ctx, "column")
	switch t.Of {
	case "spans":
		t.Mail.Post(state.SpanSortPicked{Column: n})
	case "fragments":
		t.Mail.Post(state.FragmentSortPicked{Column: n})
	default:
		t.Mail.Post(state.SortPicked{Column: n})
	}
}

func (t *Table) onRow(ctx app.Context, _ app.Event) { t.pick(ctx) }

func (t *Table) onRowKey(ctx app.Context, e app.Event) {
	if k := e.Get("key").String(); k == "Enter" || k == " " {
		e.PreventDefault()
		t.pick(ctx)
	}
}

func (t *Table) pick(ctx app.Context) {
	span, _ := strconv.Atoi(data(ctx, "span"))
	if span >= 0 {
		t.Mail.Post(state.SpanPicked{Slot: t.Slot, Span: int32(span)})
		t.Mail.Post(state.SpanShown{Slot: t.Slot, Span: int32(span)})
		return
	}
	t.Mail.Post(state.BucketPicked{Slot: t.Slot, Stage: number(ctx, "stage"), Bucket: int32(number(ctx, "bucket"))})
}
