// Package web is the page.
package web

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/wasm/bridge"
	"distopt/web/worker"
)

// Run mounts the page and returns only when the program ends.
func Run() {
	app.RouteWithRegexp(".*", &root{})
	app.RunWhenOnBrowser()
}

type root struct {
	app.Compo
	simulator *worker.Client
	answer    string
}

func (r *root) OnMount(ctx app.Context) {
	// go-app would take every same-origin link and parse every hash.
	app.Window().Set("onclick", app.Null())
	app.Window().Set("onpopstate", app.Null())

	r.simulator = worker.New()
	r.simulator.Request(bridge.Request{Op: "ping"}, func(answer worker.Response) {
		ctx.Dispatch(func(app.Context) { r.answer = string(answer.Head) })
	})
}

func (r *root) Render() app.UI { return app.Main().Text(r.answer) }
