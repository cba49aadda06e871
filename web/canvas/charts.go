package canvas

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
)

// The canvases of the lab's pictures.
const (
	ChartLoss  = "lab-loss"
	ChartAmax  = "lab-amax"
	ChartScale = "lab-scale"
	ChartLost  = "lab-lost"
	ChartBins  = "lab-bins"
)

var chartNames = [...]string{ChartLoss, ChartAmax, ChartScale, ChartLost, ChartBins}

// Charts draws the lab's pictures.
type Charts struct {
	vm        *derive.Numerics
	canvases  [len(chartNames)]app.Value
	observer  app.Value
	frameFunc app.Func
	pending   bool
	display   Display
}

// Show takes in what to draw.
func (c *Charts) Show(vm *derive.Numerics) {
	c.vm = vm
	if app.IsServer {
		return
	}
	if c.frameFunc == nil {
		c.frameFunc = app.FuncOf(func(app.Value, []app.Value) any {
			c.pending = false
			c.draw()
			return nil
		})
		c.observer = app.Window().Get("ResizeObserver").New(app.FuncOf(func(app.Value, []app.Value) any {
			c.Redraw()
			return nil
		}))
	}
	document := app.Window().Get("document")
	for i, id := range chartNames {
		if known := c.canvases[i]; known != nil && known.Get("isConnected").Bool() {
			continue
		}
		c.canvases[i] = nil
		if el := document.Call("getElementById", id); el.Truthy() {
			c.canvases[i] = el
			c.observer.Call("observe", el)
		}
	}
	c.Redraw()
}

// Detach lets the canvases go.
func (c *Charts) Detach() {
	if c.observer != nil {
		c.observer.Call("disconnect")
	}
	c.vm, c.canvases = nil, [len(chartNames)]app.Value{}
}

// Redraw asks for one frame.
func (c *Charts) Redraw() {
	if c.pending || app.IsServer || c.frameFunc == nil {
		return
	}
	c.pending = true
	app.Window().Call("requestAnimationFrame", c.frameFunc)
}

func (c *Charts) draw() {
	if c.vm == nil || !shared.ready() {
		return
	}
	for i, canvas := range c.canvases {
		if canvas == nil {
			continue
		}
		w, h := canvas.Get("clientWidth").Float(), canvas.Get("clientHeight").Float()
		if w <= 0 || h <= 0 {
			continue
		}
		c.display.Reset()
		if chartNames[i] == ChartBins {
			if c.vm.Bins != nil {
				Histogram(&c.display, c.vm.Bins, w, h, shared.measure)
			}
		} else if chart := [...]*derive.Chart{c.vm.Loss, c.vm.Amax, c.vm.Scale, c.vm.Lost}[i]; chart != nil {
			Chart(&c.display, chart, w, h, shared.measure)
		}
		shared.frame(canvas, rasterNone, &c.display)
	}
}
