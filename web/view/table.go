package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
	"distopt/web/ids"
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

// tableRows is how many rows are put into the page at once.
const tableRows = 400

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
	shown := min(len(vm.Rows), tableRows)
	rows := make([]app.UI, shown)
	for i := range shown {
		rows[i] = t.row(i)
	}
	note := ""
	if more := len(vm.Rows) - shown + vm.More; more > 0 {
		note = derive.Count(int64(more)) + " more rows. The CSV holds " + derive.Count(int64(len(vm.Rows))) + "."
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
	for i, r := range vm.Rows {
		result := []app.UI{
			app.Elem("td").Class("num").Text(r.Step),
			app.Elem("td").Class("num").Body(app.Elem("span").Class(class("delta", better(r.Better))).Text(r.Change), hidden(betterWord(r.Better))),
			app.Elem("td").Class("num").Text(r.Exposed), app.Elem("td").Class("num").Text(r.Amax),
			app.Elem("td").Class(when(r.Overlaps, "yes")).Text(r.Overlap),
		}
		if r.Error != "" {
			result = []app.UI{app.Elem("td").Attr("colspan", 5).Class("wrap").Text(r.Error)}
		}
		cells := append([]app.UI{
			app.Elem("th").Attr("scope", "row").Body(app.Elem("b").Text(r.Name), app.Text(" "), app.Elem("span").Class("dim").Text(r.What)),
		}, result...)
		cells = append(cells, app.Elem("td").Body(app.Elem("button").Attr("type", "button").Class("inline").DataSet("version", r.Version).OnClick(v.onCompare).Text("Compare")))
		rows[i] = app.Elem("tr").DataSet("version", r.Version).Body(cells...)
	}
	return app.Elem("div").Class(class("versions", when(vm.Busy || vm.Stale, "stale"))).Body(
		app.Elem("p").Class("outcome").Body(app.Elem("b").Text(vm.Summary)),
		app.Elem("table").ID(ids.FourTable).Class("rows").Body(
			app.Elem("caption").Class("sr").Text("The configuration under four framework versions"),
			app.Elem("thead").Body(app.Elem("tr").Body(
				app.Elem("th").Attr("scope", "col").Text("Framework version"), app.Elem("th").Attr("scope", "col").Class("num").Text("Step time, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("to BEFORE"),
				app.Elem("th").Attr("scope", "col").Class("num").Text("Param sync exposed, ms"), app.Elem("th").Attr("scope", "col").Class("num").Text("Amax reductions"),
				app.Elem("th").Attr("scope", "col").Text("First all-gather runs beside Adam"), app.Elem("th").Attr("scope", "col").Text(""),
			)),
			app.Elem("tbody").Body(rows...),
		),
		app.Elem("p").Class("dim note").Text("The shown configuration with framework.version set to each value, simulated. The change came in two parts, one in NeMo and one in Apex; the rows between BEFORE and AFTER have one part each."),
	)
}

func (v *Versions) onCompare(ctx app.Context, _ app.Event) {
	v.Mail.Post(state.VersionPicked{Version: data(ctx, "version")})
}
