// Package web is the page: state and what is derived from it are pure Go, views are thin, and
// this package runs what only a browser can do.
package web

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
	"distopt/web/storage"
	"distopt/web/view"
	"distopt/web/worker"
)

// Run mounts the page and returns only when the program ends.
func Run() {
	app.RouteWithRegexp(".*", newRoot())
	app.RunWhenOnBrowser()
}

// root holds the state, delivers messages and runs effects.
type root struct {
	app.Compo
	ctx   app.Context
	state state.State
	cache *derive.Cache
	mail  *view.Mailbox

	timeline  *canvas.Control
	buckets   *canvas.BucketPictures
	charts    *canvas.Charts
	clients   [3]*worker.Client // A, B, and the four versions
	lab       *worker.Client    // of the tab Numerics
	opening   [2]string         // texts of a first visit: they need no link
	said      string            // what the live region says
	saying    string            // what it will say next
	addresses int               // counts changes of the address, to write only the last of a run
	going     bool              // G was pressed: the next key says where
}

func newRoot() *root { return &root{} }

// OnInit prepares what rendering needs; go-app makes the component without a constructor.
func (r *root) OnInit() {
	r.state = state.New()
	r.cache = &derive.Cache{}
	r.mail = &view.Mailbox{Send: r.send}
	r.timeline = &canvas.Control{}
	r.buckets = &canvas.BucketPictures{}
	r.charts = &canvas.Charts{}
}

// OnMount takes the page over and opens what the address, the storage or the presets say.
func (r *root) OnMount(ctx app.Context) {
	r.ctx = ctx
	window := app.Window()
	// go-app would take every same-origin link and parse every hash.
	window.Set("onclick", app.Null())
	window.Set("onpopstate", app.Null())
	r.listen()
	r.start()
}

// send gives a message to the state and runs what follows.
func (r *root) send(m state.Msg) {
	if texts, ok := state.Texts(&r.state, m); ok {
		for i, text := range texts {
			storage.Tab.Set(storageKeys[i], text)
		}
	}
	next, effects := state.Update(r.state, m)
	r.state = next
	for _, e := range effects {
		r.run(e)
	}
	r.announce()
	if r.ctx != nil {
		r.ctx.Dispatch(func(app.Context) {})
	}
}

// Render places the regions of the page.
func (r *root) Render() app.UI {
	s := &r.state
	p := r.cache.Page(s)
	page := "page"
	if s.Compare {
		page += " comparing"
	}
	if s.NoConfig {
		page += " noconfig"
	}
	page += [...]string{" sheet-result", " sheet-config", " sheet-more"}[s.Sheet]
	return app.Elem("div").Class(page).ID("page").Body(
		&view.Header{Mail: r.mail, VM: p.Header},
		&view.Config{Mail: r.mail, Tab: p.ConfigTab, Form: p.Form, Editor: p.Editor, Problems: p.Problems, Shown: s.Sheet == state.ConfigSheet},
		&view.Splitter{ID: ids.SplitConfig, Property: "--w-config", Label: "Width of the configuration", Pane: ids.ConfigPane, Min: 240, Max: 640},
		app.Elem("main").Class("main").Body(
			&view.Banner{Mail: r.mail, VM: p.Banner},
			&view.Figures{Mail: r.mail, VM: p.Figures},
			app.Elem("div").ID(ids.TimelinePane).Class("timeline").Body(
				&view.Timeline{Mail: r.mail, VM: p.Timeline, Control: r.timeline},
				&view.Inspector{Mail: r.mail, VM: p.Inspector, Slot: s.Select.Slot, ID: ids.Inspector},
			),
			&view.Splitter{ID: ids.SplitTimeline, Property: "--h-timeline", Label: "Height of the timeline", Across: true, Pane: ids.TimelinePane, Min: 200, Max: 1600},
			&view.Details{Mail: r.mail, VM: p.Details, Inspector: p.Inspector, Slot: s.Select.Slot, Pictures: r.buckets, Charts: r.charts},
		),
		&view.Status{VM: p.Status},
		&view.PhoneNav{Mail: r.mail, Sheet: s.Sheet, Errors: p.Problems.Errors},
		&view.More{Mail: r.mail, Shown: s.Sheet == state.MoreSheet},
		&view.Dialogs{Mail: r.mail, VM: p.Dialog},
		app.Elem("div").ID(ids.Live).Class("sr").Role("status").Aria("live", "polite").Text(r.said),
	)
}
