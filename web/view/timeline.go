package view

import (
	"strings"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Timeline is the picture of one step, or of two on one axis.
type Timeline struct {
	app.Compo
	Mail    *Mailbox
	VM      *derive.Timeline
	Control *canvas.Control // one for the page's life
}

// Render places tool bar, gutter and canvases; the control paints them.
func (t *Timeline) Render() app.UI {
	vm := t.VM
	legend := make([]app.UI, 0, len(vm.Legend))
	for _, l := range vm.Legend {
		legend = append(legend, app.Elem("span").Body(app.Elem("i").Class("sw c-"+l.Colour), app.Text(l.Name)))
	}
	return app.Elem("section").Class("tl").Aria("label", "Timeline").Body(
		app.Elem("div").Class("bar").Body(
			app.Elem("div").Class("titles").Body(app.Elem("h2").Text("Timeline"), app.Elem("span").Class("dim scope").Text(vm.Scope)),
			app.Elem("span").Class("legend").Body(legend...),
			app.Elem("span").Class("sep"),
			app.Elem("button").Attr("type", "button").Class("link").Hidden(vm.Table == nil).OnClick(t.onCSV).Text("CSV"),
			app.Elem("button").ID("timeline-table").Attr("type", "button").Class("icon").Aria("label", "Table of operations").Title("Table (T)").Aria("pressed", boolText(vm.Table != nil)).OnClick(t.onTable).Body(icon("table")),
			iconButton("zoom-out", "out", "Zoom out (S)", t.onOut),
			iconButton("zoom-in", "in", "Zoom in (W)", t.onIn),
			iconButton("zoom-fit", "fit", "Whole step (0)", t.onFit),
		),
		app.Elem("div").Class("plot").ID(ids.Timeline).TabIndex(0).Role("application").
			Aria("label", "Timeline of one training step. Press T for the table.").Aria("activedescendant", "timeline-current").Hidden(vm.Table != nil).Body(
			app.Elem("div").Class("tl-top").Body(
				app.Elem("span").Class("tl-step").Text("Step"),
				app.Elem("canvas").ID("timeline-overview").Aria("hidden", "true"),
			),
			app.Elem("div").Class("tl-scroll").ID("timeline-scroll").Body(
				app.Elem("div").Class("tl-inner").DataSet("css", "height:"+derive.Plain(height(vm.Picture))+"px").Body(
					app.Elem("canvas").ID(ids.Canvas).Aria("hidden", "true"),
					app.Elem("div").Class("gutter").Body(t.gutter()...),
				),
			),
			app.Elem("div").Role("img").ID("timeline-current").Class("sr").Aria("label", vm.Current),
			app.Elem("div").ID("timeline-hover").Class("hover").Hidden(true).Aria("hidden", "true"),
			&BusyCard{Mail: t.Mail, VM: vm.Busy, Empty: vm.Empty},
		),
		t.table(),
	)
}

func height(p *derive.Picture) int {
	if p == nil {
		return 0
	}
	return p.Height
}

func (t *Timeline) gutter() []app.UI {
	p := t.VM.Picture
	if p == nil {
		return nil
	}
	var rows []app.UI
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Label == "" {
			continue
		}
		h := r.H
		if r.Kind == derive.RowPhase && !r.Button {
			h += 12
			if i+1 < len(p.Rows) && p.Rows[i+1].Kind == derive.RowLayer {
				h = r.H + p.Rows[i+1].H
			}
		}
		note := app.Elem("span").Class(when(r.Hot, "hot")).Text(r.Note)
		css := "top:" + derive.Plain(r.Y-max(0, (14-h)/2)) + "px;height:" + derive.Plain(max(h, 14)) + "px"
		if r.Button {
			key := string(rune('A'+r.Slot)) + derive.Plain(r.Stage)
			rows = append(rows, app.Elem("button").Attr("type", "button").Class("stage").DataSet("css", css).DataSet("key", key).Aria("expanded", boolText(r.Open)).
				Title("Open or close this stage").OnClick(t.onStage).Body(app.Text(r.Label), note))
			continue
		}
		name := "lane"
		switch r.Kind {
		case derive.RowHead:
			name = "lane head"
		case derive.RowSync, derive.RowMessages:
			name = "lane minor"
		}
		rows = append(rows, app.Elem("div").Class(name).DataSet("css", css).Body(app.Text(r.Label), note))
	}
	return rows
}

func (t *Timeline) table() app.UI {
	if t.VM.Table == nil {
		return nil
	}
	return app.Elem("div").ID(ids.TimelineTable).Class("tl-table").TabIndex(0).Role("region").Aria("label", "Operations of the step. Press T for the picture.").Body(
		&Table{Mail: t.Mail, VM: t.VM.Table, ID: "operation-table", Of: "spans", Slot: t.VM.Slot})
}

// OnMount binds the control to the elements.
func (t *Timeline) OnMount(ctx app.Context) {
	if app.IsServer {
		return
	}
	document := app.Window().Get("document")
	get := func(id string) app.Value { return document.Call("getElementById", id) }
	t.Control.Events = canvas.Events{
		Picked: func(slot int, span int32) {
			if span < 0 {
				t.Mail.Post(state.Deselected{})
			} else {
				t.Mail.Post(state.SpanPicked{Slot: slot, Span: span})
			}
		},
		Moved: func(t0, t1 float64) { t.Mail.Post(state.ViewMoved{T0: t0, T1: t1}) },
		Sized: func(room int) { t.Mail.Post(state.Resized{Room: room}) },
		Key:   t.onKey,
	}
	t.Control.Attach(get(ids.Timeline), get(ids.Canvas), get("timeline-overview"), get("timeline-scroll"), get("timeline-hover"))
	t.Control.Show(t.VM)
}

// OnUpdate shows the new picture.
func (t *Timeline) OnUpdate(app.Context) { t.Control.Show(t.VM) }

// onKey handles the keys that select; false: not one of them.
func (t *Timeline) onKey(key string, shift bool) bool {
	vm := t.VM
	switch key {
	case "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "[", "]", ",", ".", "r", "R":
		if vm.Picture == nil {
			return true
		}
		slot, span := canvas.Step(vm.Picture, vm.Marked.Slot, vm.Marked.Span, key)
		if span >= 0 {
			t.Mail.Post(state.SpanPicked{Slot: slot, Span: span})
			t.Control.Reveal(slot, span)
		}
	case "f":
		t.Mail.Post(state.ZoomToSpan{Span: vm.Marked.Span})
	case "Escape":
		t.Mail.Post(state.Deselected{})
		return false // the page may have more to close
	case "t", "T":
		t.Mail.Post(state.SpanTableToggled{Keys: true})
	default:
		return false
	}
	return true
}

func (t *Timeline) onIn(app.Context, app.Event)    { t.Control.Zoom(0.6) }
func (t *Timeline) onOut(app.Context, app.Event)   { t.Control.Zoom(1 / 0.6) }
func (t *Timeline) onFit(app.Context, app.Event)   { t.Control.Whole() }
func (t *Timeline) onTable(app.Context, app.Event) { t.Mail.Post(state.SpanTableToggled{}) }
func (t *Timeline) onCSV(app.Context, app.Event) {
	if table := t.VM.Table; table != nil {
		t.Mail.Post(state.CSVAsked{Name: table.Name + ".csv", Text: derive.CSV(table)})
	}
}
func (t *Timeline) onStage(ctx app.Context, _ app.Event) {
	t.Mail.Post(state.StageToggled{Key: data(ctx, "key")})
}

// BusyCard lies over the timeline while a simulation runs, and says when it can't.
type BusyCard struct {
	app.Compo
	Mail  *Mailbox
	VM    *derive.Busy
	Empty bool
}

// Render places both cards; at most one is shown.
func (b *BusyCard) Render() app.UI {
	vm := b.VM
	if vm == nil {
		vm = &derive.Busy{}
	}
	return app.Elem("div").Body(
		app.Elem("div").Class("overlay").Hidden(!vm.Cancel).Body(
			app.Elem("div").ID(ids.Busy).Class("card").Role("group").Aria("label", "Simulating").Hidden(!vm.Cancel).Body(
				app.Elem("h3").Text(vm.Title),
				app.Elem("p").Text(vm.Percent),
				app.Elem("div").Class("prog").Hidden(vm.Share == "").Body(app.Elem("i").DataSet("css", vm.Share)),
				app.Elem("button").ID(ids.Cancel).Attr("type", "button").Class("btn small").OnClick(b.onCancel).Text("Cancel"),
			),
		),
		app.Elem("div").Class("overlay").Hidden(!vm.Restart).Body(
			app.Elem("div").ID(ids.WorkerStop).Class("card").Role("group").Aria("label", "The simulator stopped").Hidden(!vm.Restart).Body(
				app.Elem("h3").Text(vm.Title),
				app.Elem("p").Text(vm.Text),
				app.Elem("button").ID(ids.Restart).Attr("type", "button").Class("btn small primary").OnClick(b.onRestart).Text("Restart"),
				app.Elem("details").Hidden(vm.Report == "").Body(app.Elem("summary").Text("Report"), app.Elem("pre").Text(strings.TrimSpace(vm.Report))),
			),
		),
	)
}

func (b *BusyCard) onCancel(app.Context, app.Event)  { b.Mail.Post(state.Halt{}) }
func (b *BusyCard) onRestart(app.Context, app.Event) { b.Mail.Post(state.Restarted{}) }
