package web

import (
	"encoding/json"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/lab"
	"distopt/wasm/bridge"
	"distopt/web/state"
	"distopt/web/worker"
)

// askLab takes a run of the lab further, in a worker of its own: simulations go on beside it.
func (r *root) askLab(e state.AskLab) {
	if r.lab == nil {
		r.lab = worker.New()
		r.lab.OnStopped = func(reason, report string) {
			r.send(state.LabRefused{ID: r.state.Lab.Request, Text: "The simulator stopped: " + reason, Report: report})
		}
	}
	began := milliseconds()
	r.lab.Request(bridge.Request{Op: bridge.Lab, Lab: &e.Request}, func(answer worker.Response) {
		if failure, ok := answer.Err.(*worker.Failure); ok {
			r.send(state.LabRefused{ID: e.ID, Text: failure.Text, Report: failure.Report})
			return
		}
		frame := &lab.Frame{}
		if err := json.Unmarshal(answer.Head, frame); err != nil {
			r.send(state.LabRefused{ID: e.ID, Text: "the simulator's answer could not be read: " + err.Error()})
			return
		}
		r.send(state.LabAnswered{ID: e.ID, Frame: frame, Milliseconds: int(milliseconds() - began)})
	})
}

func (r *root) stopLab() {
	if r.lab != nil {
		r.lab.Cancel()
	}
}

func milliseconds() float64 { return app.Window().Get("performance").Call("now").Float() }
