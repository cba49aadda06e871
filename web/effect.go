package web

import (
	"errors"
	"fmt"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/report"
	"distopt/wasm/bridge"
	"distopt/web/canvas"
	"distopt/web/ids"
	"distopt/web/state"
	"distopt/web/storage"
	"distopt/web/worker"
)

// run does what only a browser can do.
func (r *root) run(e state.Effect) {
	if app.IsServer {
		return
	}
	switch e := e.(type) {
	case state.Simulate:
		r.simulate(e)
	case state.Cancel:
		r.client(e.Slot).Cancel()
	case state.Restart:
		r.client(e.Slot).Restart()
	case state.AskLab:
		r.askLab(e)
	case state.StopLab:
		r.stopLab()
	case state.AskVersions:
		r.askVersions(e)
	case state.Later:
		after(e.Milliseconds, func() { r.send(e.Msg) })
	case state.Save:
		storage.Tab.Set(storageKeys[e.Slot], e.Text)
	case state.SetTheme:
		r.setTheme(e.Theme)
	case state.RevealLine:
		after(30, func() { // the editor may just have become visible
			if el := element(ids.Editor); el.Truthy() {
				el.Call("reveal", e.Line)
			}
		})
	case state.ShowSpan:
		r.timeline.Move(e.T0, e.T1)
	case state.RevealSpan:
		r.timeline.Reveal(e.Slot, e.Span)
	case state.MakeLink:
		r.share()
	case state.WriteAddress:
		r.writeAddress()
	case state.Download:
		download(e.Name, e.Text)
	case state.OpenDialog:
		openDialog(e.Dialog)
	case state.ReadFile:
		r.readFile(e.File.(app.Value))
	case state.FocusTimeline:
		id := ids.Timeline
		if e.Table {
			id = ids.TimelineTable
		}
		soon(func() bool { return focusFirst(id) })
	case state.Drawn:
		frames(2, func() {
			root := app.Window().Get("document").Get("documentElement")
			root.Call("setAttribute", ids.AttrShown, e.Count)
		})
	default:
		panic(fmt.Sprintf("web: effect %T", e))
	}
}

var storageKeys = [2]string{ids.StorageA, ids.StorageB}

// client returns the simulator of a slot, and starts it when it is first needed.
func (r *root) client(slot int) *worker.Client {
	if r.clients[slot] == nil {
		c := worker.New()
		if slot < 2 {
			c.OnProgress = func(done float64) { r.send(state.Progressed{Slot: slot, Done: done}) }
		}
		c.OnStopped = func(reason, report string) {
			if slot < 2 {
				r.send(state.WorkerStopped{Slot: slot, Text: reason, Report: report})
				return
			}
			r.send(state.VersionsDone{ID: r.state.Versions.Request, Failure: "The simulator stopped: " + reason})
		}
		r.clients[slot] = c
	}
	return r.clients[slot]
}

func (r *root) simulate(e state.Simulate) {
	r.client(e.Slot).Request(bridge.Request{Op: bridge.Eval, A: e.Text}, func(answer worker.Response) {
		result, err := decode(answer)
		if err != nil {
			refused := state.Refused{Slot: e.Slot, ID: e.ID, Text: err.Error()}
			if failure, ok := err.(*worker.Failure); ok {
				refused.Report = failure.Report
			}
			r.send(refused)
			return
		}
		r.send(state.Simulated{Slot: e.Slot, ID: e.ID, Result: result})
	})
}

func decode(answer worker.Response) (*report.Result, error) {
	if answer.Err != nil {
		return nil, answer.Err
	}
	result, err := report.DecodeHead(answer.Head)
	if err != nil {
		return nil, fmt.Errorf("the simulator's answer could not be read: %w", err)
	}
	if answer.Spans == nil {
		return nil, errors.New("the simulator's answer could not be read: it has no spans")
	}
	result.Spans = *answer.Spans
	return result, nil
}

// askVersions evaluates the texts one after the other.
func (r *root) askVersions(e state.AskVersions) {
	rows := make([]state.VersionRow, 0, len(e.Texts))
	var next func()
	next = func() {
		i := len(rows)
		if i == len(e.Texts) {
			r.send(state.VersionsDone{ID: e.ID, Rows: rows})
			return
		}
		r.client(2).Request(bridge.Request{Op: bridge.Eval, A: e.Texts[i]}, func(answer worker.Response) {
			row := state.VersionRow{Version: state.VersionNames[i]}
			result, err := decode(answer)
			if err != nil {
				row.Err = err.Error()
			}
			row.Result = result
			rows = append(rows, row)
			next()
		})
	}
	next()
}

func (r *root) setTheme(t state.Theme) {
	name := [...]string{"", "light", "dark"}[t]
	html := app.Window().Get("document").Get("documentElement")
	if name == "" {
		html.Call("removeAttribute", "data-theme")
	} else {
		html.Call("setAttribute", "data-theme", name)
	}
	storage.Browser.Set(storageTheme, name)
	r.recolour()
}

const storageTheme = "distopt.theme"

func (r *root) recolour() {
	canvas.Recolour()
	r.timeline.Redraw()
	r.buckets.Redraw()
	r.charts.Redraw()
}
