package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/lab"
	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// Numerics is the lab: the real optimizer on a small model.
type Numerics struct {
	app.Compo
	Mail   *Mailbox
	VM     *derive.Numerics
	Charts *canvas.Charts // one for the page's life
}

// Render places the bar, and below it what the run shows.
func (n *Numerics) Render() app.UI {
	return app.Elem("div").ID(ids.Lab).Class("lab").Body(
		&LabBar{Mail: n.Mail, VM: n.VM},
		n.checks(),
		n.invitation(),
		&LabWatch{Mail: n.Mail, VM: n.VM},
		n.pictures(),
		n.tables(),
		n.rows(),
		&LabLook{Mail: n.Mail, Shown: len(n.VM.Rows) > 0, Running: n.VM.Mode == state.LabRunning, Element: n.VM.Element, Wrong: n.VM.Wrongly, Journey: n.VM.Journey, Number: n.VM.Number},
	)
}

func (n *Numerics) invitation() app.UI {
	vm := n.VM
	text := ""
	switch {
	case vm.Failure != "":
	case vm.Mode == state.LabIdle:
		text = "Trains a small character-level model with this optimizer, for real: data split over ranks, parameters in buckets, up to four precisions side by side. Nothing runs until you press Run; the configuration can be edited meanwhile."
	case len(vm.Rows) == 0:
		text = "Building the model and taking the first step."
	}
	return app.Elem("div").Class("labsay").Body(
		app.Elem("p").Class("empty").Hidden(text == "").Text(text),
		app.Elem("p").Class("failed").Role("alert").Hidden(vm.Failure == "").Text(vm.Failure),
		app.Elem("details").Class("more-chips").Hidden(vm.Report == "").Body(app.Elem("summary").Text("Report"), app.Elem("pre").Text(vm.Report)),
	)
}

func (n *Numerics) checks() app.UI {
	items := make([]app.UI, len(n.VM.Checks))
	signs := map[string]string{"good": "✓", "bad": "✕", "note": "!", "none": "–"}
	for i, c := range n.VM.Checks {
		items[i] = app.Elem("li").Class("check "+c.State).DataSet("check", c.State).Body(
			app.Elem("b").Class("sign").Aria("hidden", "true").Text(signs[c.State]),
			app.Elem("b").Text(c.Text), app.Text(" "), app.Elem("span").Class("dim").Text(c.Note),
		)
	}
	return app.Elem("ul").ID(ids.LabChecks).Class("checks").Aria("label", "Checks after every step").Hidden(len(items) == 0).Body(items...)
}

// pictures are the charts. Each has its words for screen readers, and all of them a table.
func (n *Numerics) pictures() app.UI {
	vm := n.VM
	shown := len(vm.Rows) > 0 && !vm.AsTable
	chart := func(id, size string, c *derive.Chart) app.UI {
		title, label := "", ""
		if c != nil {
			title, label = c.Title, c.Label
		}
		return picture(id, size, title, label, nil)
	}
	bins, label := "", ""
	var facts []app.UI
	if vm.Bins != nil {
		bins, label = vm.Bins.Title, vm.Bins.Label
		for _, f := range vm.Bins.Facts {
			facts = append(facts, app.Elem("span").Body(app.Elem("span").Class("dim").Text(f.Name+" "), app.Text(f.Value)))
		}
	}
	return app.Elem("div").Class("charts").Hidden(!shown).Body(
		app.Elem("div").Class("column").Body(chart(canvas.ChartLoss, "tall", vm.Loss)),
		app.Elem("div").Class("column").Body(chart(canvas.ChartAmax, "low", vm.Amax), chart(canvas.ChartScale, "low", vm.Scale)),
		app.Elem("div").Class("column").Body(chart(canvas.ChartLost, "low", vm.Lost), picture(canvas.ChartBins, "low", bins, label, facts)),
	)
}

func picture(id, size, title, label string, facts []app.UI) app.UI {
	return app.Elem("figure").Class("chart "+size).Body(
		app.Elem("figcaption").Body(app.Elem("h4").Text(title), app.Elem("p").Class("binfacts").Hidden(len(facts) == 0).Body(facts...)),
		app.Elem("div").Role("img").Aria("label", label).Body(app.Elem("canvas").ID(id).Aria("hidden", "true")),
	)
}

// tables are the pictures as text.
func (n *Numerics) tables() app.UI {
	vm := n.VM
	if vm.Table == nil || !vm.AsTable {
		return app.Elem("div").Hidden(true)
	}
	var rows []app.UI
	if vm.Bins != nil {
		for _, b := range vm.Bins.Bars {
			if b.Count > 0 {
				rows = append(rows, app.Elem("tr").Body(app.Elem("td").Class("num").Text(b.Range), app.Elem("td").Class("num").Text(derive.Count(int64(b.Count)))))
			}
		}
	}
	title := ""
	if vm.Bins != nil {
		title = vm.Bins.Title
	}
	return app.Elem("div").Class("labtables").Body(
		&Table{Mail: n.Mail, VM: vm.Table, ID: "lab-table"},
		app.Elem("div").Class("tablewrap").Body(app.Elem("table").ID("lab-bins-table").Class("rows").Body(
			app.Elem("caption").Text(title),
			app.Elem("thead").Body(app.Elem("tr").Body(app.Elem("th").Attr("scope", "col").Class("num").Text("Value"), app.Elem("th").Attr("scope", "col").Class("num").Text("Count"))),
			app.Elem("tbody").Body(rows...),
		)),
	)
}

// rows say how each variant goes.
func (n *Numerics) rows() app.UI {
	vm := n.VM
	rows := make([]app.UI, 0, 2*len(vm.Rows))
	for i := range vm.Rows {
		r := &vm.Rows[i]
		number := func(text string) app.UI { return app.Elem("td").Class("num").Text(text) }
		rows = append(rows, app.Elem("tr").DataSet("health", r.Health).Body(
			app.Elem("th").Attr("scope", "row").Body(app.Elem("span").Class("markof k-"+r.Colour).Aria("hidden", "true").Text(r.Mark), app.Text(r.Name), app.Elem("span").Class("dim formats").Text(r.Formats)),
			app.Elem("td").Body(app.Elem("b").Class("health "+r.Health).Text(r.Word)),
			number(r.First), number(r.Last), number(r.Change), number(r.Skipped), number(r.Buckets), number(r.State),
		))
		rows = append(rows, app.Elem("tr").Class("saying").Hidden(r.Note == "").Body(app.Elem("td").Attr("colspan", 8).Class("wrap").Text(r.Note)))
	}
	head := func(title string) app.UI { return app.Elem("th").Attr("scope", "col").Class("num").Text(title) }
	return app.Elem("div").Class("tablewrap").Hidden(len(rows) == 0).Body(app.Elem("table").ID(ids.LabRows).Class("rows").Body(
		app.Elem("caption").Class("sr").Text("How each variant goes"),
		app.Elem("thead").Body(app.Elem("tr").Body(
			app.Elem("th").Attr("scope", "col").Text("Variant"), app.Elem("th").Attr("scope", "col").Text("Run"),
			head("First loss"), head("Last loss"), head("of the first"), head("Skipped steps"), head("Buckets"), head("State a rank"),
		)),
		app.Elem("tbody").Body(rows...),
	), app.Elem("p").Class("dim note").Text(n.VM.Size))
}

// OnMount, OnUpdate and OnDismount bind the pictures to their canvases.
func (n *Numerics) OnMount(app.Context)  { n.Charts.Show(n.VM) }
func (n *Numerics) OnUpdate(app.Context) { n.Charts.Show(n.VM) }
func (n *Numerics) OnDismount()          { n.Charts.Detach() }

// LabBar is where a run is set up, begun and ended.
type LabBar struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Numerics
}

// Render places fields, variants and buttons.
func (b *LabBar) Render() app.UI {
	vm := b.VM
	var main, more []app.UI
	for i := range vm.Fields {
		f := &LabInput{Mail: b.Mail, VM: vm.Fields[i]}
		if vm.Fields[i].More {
			more = append(more, f)
		} else {
			main = append(main, f)
		}
	}
	more = append(more, app.Elem("label").Class("tick").Body(
		app.ElemSelfClosing("input").ID("lab-recent").Attr("type", "checkbox").Attr("checked", vm.Recent).OnChange(b.onRecent), app.Text("Scales follow the newest amax alone")),
		app.Elem("button").Attr("type", "button").Class("link").OnClick(b.onReset).Text("Reset all"))
	model := func(id, name string) app.UI {
		return app.Elem("button").Attr("type", "button").Aria("pressed", boolText(vm.Model == id)).DataSet("model", id).OnClick(b.onModel).Text(name)
	}
	variants := make([]app.UI, len(vm.Variants))
	for i := range vm.Variants {
		variants[i] = &LabTick{Mail: b.Mail, VM: vm.Variants[i]}
	}
	running, paused := vm.Mode == state.LabRunning, vm.Mode == state.LabPaused
	run := "Run"
	if vm.Mode != state.LabIdle && !running && !paused {
		run = "Run again"
	}
	pause := "Pause"
	if paused {
		pause = "Resume"
	}
	said := map[state.LabMode]string{state.LabPaused: ", paused", state.LabDone: ", done", state.LabCancelled: ", cancelled", state.LabFailed: ", ended"}[vm.Mode]
	if vm.Busy && !running {
		said += ", looking"
	}
	return app.Elem("div").Class("labbar").Body(
		app.Elem("div").Class("labfields").Body(append(append([]app.UI{
			app.Elem("div").Class("seg small").Role("group").Aria("label", "Model").Body(model(lab.Transformer, "Transformer"), model(lab.MLP, "MLP")),
		}, main...),
			app.Elem("button").Attr("type", "button").Class("link").Aria("expanded", boolText(vm.More)).Aria("controls", "lab-more").OnClick(b.onMore).Text("More"),
			app.Elem("span").Class("grow"),
			app.Elem("span").Class("labdone").Hidden(vm.Progress == "").Body(
				app.Elem("span").Class("stale").Hidden(!vm.Stale).Text("Changed since this run"),
				app.Elem("progress").ID("lab-meter").Aria("label", "Steps").Attr("max", strconv.Itoa(max(vm.Steps, 1))).Attr("value", strconv.Itoa(vm.Done)),
				app.Elem("span").ID(ids.LabProgress).DataSet("value", vm.Done).Text(vm.Progress+said)),
			app.Elem("button").ID(ids.LabCancel).Attr("type", "button").Class("btn small").Hidden(!running && !paused && !vm.Busy).OnClick(b.onCancel).Text("Cancel"),
			app.Elem("button").ID(ids.LabPause).Attr("type", "button").Class("btn small").Hidden(!running && !paused).OnClick(b.onPause).Text(pause),
			app.Elem("button").ID(ids.LabRun).Attr("type", "button").Class("btn small primary").Hidden(running || paused).OnClick(b.onRun).Text(run),
		)...),
		app.Elem("div").ID("lab-more").Class("labfields labmore").Hidden(!vm.More).Body(more...),
		app.Elem("div").Class("labticks").Role("group").Aria("label", "Variants, up to four").Body(variants...),
		app.Elem("p").Class("fnote").ID("lab-wrong").Hidden(vm.Wrong == "").Text(vm.Wrong),
	)
}

func (b *LabBar) onModel(ctx app.Context, _ app.Event) {
	b.Mail.Post(state.LabModelPicked{Model: data(ctx, "model")})
}
func (b *LabBar) onRecent(app.Context, app.Event) { b.Mail.Post(state.LabRecentToggled{}) }
func (b *LabBar) onReset(app.Context, app.Event)  { b.Mail.Post(state.LabReset{}) }
func (b *LabBar) onMore(app.Context, app.Event)   { b.Mail.Post(state.LabMoreToggled{}) }
func (b *LabBar) onRun(app.Context, app.Event)    { b.Mail.Post(state.LabRun{}) }
func (b *LabBar) onCancel(app.Context, app.Event) { b.Mail.Post(state.LabCancel{}) }
func (b *LabBar) onPause(app.Context, app.Event) {
	if b.VM.Mode == state.LabPaused {
		b.Mail.Post(state.LabResume{})
		return
	}
	b.Mail.Post(state.LabPause{})
}
