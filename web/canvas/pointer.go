package canvas

import (
	"math"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
)

func point(e app.Value) (x, y float64) { return e.Get("offsetX").Float(), e.Get("offsetY").Float() }

func (c *Control) onWheel(e app.Value) {
	dx, dy := e.Get("deltaX").Float(), e.Get("deltaY").Float()
	if e.Get("deltaMode").Int() == 1 {
		dx, dy = dx*16, dy*16
	}
	e.Call("preventDefault")
	if e.Get("shiftKey").Bool() || math.Abs(dx) > math.Abs(dy) {
		c.Pan((dx + dy*boolean(math.Abs(dx) <= math.Abs(dy))) / c.view.W)
		return
	}
	x, _ := point(e)
	c.zoomAt(x, math.Exp(min(max(dy, -240), 240)*0.0022))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (c *Control) onDown(e app.Value) {
	x, y := point(e)
	id := e.Get("pointerId").Int()
	c.pinch[id] = [2]float64{x, y}
	c.lanes.Call("setPointerCapture", id)
	c.drag = dragState{on: true, x: x, y: y, t0: c.view.T0, t1: c.view.T1, pointer: id}
	c.showHover(false)
	c.plot.Call("focus", map[string]any{"preventScroll": true, "focusVisible": false})
}

func (c *Control) onMove(e app.Value) {
	x, y := point(e)
	id := e.Get("pointerId").Int()
	c.at = [2]float64{x, y}
	if len(c.pinch) == 2 {
		c.onPinch(id, x, y)
		return
	}
	if !c.drag.on {
		if !c.hover.Get("hidden").Bool() {
			c.onHover(x, y)
			return
		}
		if c.hoverTimer != nil {
			app.Window().Call("clearTimeout", c.hoverTimer)
		}
		c.hoverTimer = app.Window().Call("setTimeout", c.hoverFunc, hoverDelay)
		return
	}
	if !c.drag.moved && math.Abs(x-c.drag.x) < 4 {
		return
	}
	c.drag.moved = true
	d := (c.drag.x - x) / c.view.W * (c.drag.t1 - c.drag.t0)
	d = min(max(d, -c.drag.t0), c.end-c.drag.t1)
	c.view.T0, c.view.T1 = c.drag.t0+d, c.drag.t1+d
	c.moved()
}

// onPinch zooms by the distance of two fingers about their middle.
func (c *Control) onPinch(id int, x, y float64) {
	other := [2]float64{}
	for k, p := range c.pinch {
		if k != id {
			other = p
		}
	}
	before := math.Hypot(c.pinch[id][0]-other[0], c.pinch[id][1]-other[1])
	after := math.Hypot(x-other[0], y-other[1])
	c.pinch[id] = [2]float64{x, y}
	c.drag.moved = true
	if before > 8 && after > 8 {
		c.zoomAt((x+other[0])/2, before/after)
	}
}

func (c *Control) onUp(e app.Value) {
	x, y := point(e)
	delete(c.pinch, e.Get("pointerId").Int())
	was := c.drag
	c.drag.on = len(c.pinch) > 0
	if was.on && !was.moved && e.Get("type").String() == "pointerup" {
		slot, span, _ := c.hit(x, y)
		c.Events.Picked(slot, span)
	}
	if len(c.pinch) > 0 {
		for id, p := range c.pinch {
			c.drag = dragState{on: true, moved: true, x: p[0], y: p[1], t0: c.view.T0, t1: c.view.T1, pointer: id}
		}
	}
}

// onHover shows the card of what is under the pointer.
func (c *Control) onHover(x, y float64) {
	slot, span, part := c.hit(x, y)
	if span < 0 {
		c.showHover(false)
		return
	}
	r := c.shown.Picture.Results[slot]
	lines := derive.Hover(r, span, part)
	c.hover.Set("textContent", "")
	document := app.Window().Get("document")
	for i, l := range lines {
		tag := "span"
		if i == 0 {
			tag = "b"
		}
		el := document.Call("createElement", tag)
		el.Set("textContent", l)
		c.hover.Call("append", el)
	}
	left := x + 14
	if left+240 > c.view.W {
		left = max(x-254, 0)
	}
	style := c.hover.Get("style")
	style.Call("setProperty", "left", "calc(var(--w-gutter) + "+itoa(int(left))+"px)")
	style.Call("setProperty", "top", itoa(int(y)+MinimapHeight+RulerHeight+16)+"px")
	c.showHover(true)
}

func (c *Control) showHover(on bool) {
	if c.hover == nil {
		return
	}
	c.hover.Set("hidden", !on)
}

// The minimap: drag the edges of the window or its body; a press outside centres it.
func (c *Control) onMapDown(e app.Value) {
	x, y := point(e)
	if y > MinimapHeight {
		y = MinimapHeight
	}
	whole := View{T0: 0, T1: c.end, W: c.view.W}
	a, b := whole.X(c.view.T0), whole.X(c.view.T1)
	edge := 2
	switch {
	case math.Abs(x-a) < 6:
		edge = -1
	case math.Abs(x-b) < 6:
		edge = 1
	case x < a || x > b:
		half := (c.view.T1 - c.view.T0) / 2
		t := whole.T(x)
		c.view.T0, c.view.T1 = t-half, t+half
		c.moved()
	}
	c.overview.Call("setPointerCapture", e.Get("pointerId").Int())
	c.drag = dragState{on: true, x: x, t0: c.view.T0, t1: c.view.T1, edge: edge}
}

func (c *Control) onMapMove(e app.Value) {
	if !c.drag.on || c.drag.edge == 0 {
		return
	}
	x, _ := point(e)
	d := (x - c.drag.x) / c.view.W * c.end
	switch c.drag.edge {
	case -1:
		c.view.T0 = min(max(c.drag.t0+d, 0), c.view.T1-smallestView)
	case 1:
		c.view.T1 = max(min(c.drag.t1+d, c.end), c.view.T0+smallestView)
	default:
		d = min(max(d, -c.drag.t0), c.end-c.drag.t1)
		c.view.T0, c.view.T1 = c.drag.t0+d, c.drag.t1+d
	}
	c.moved()
}

// onKey handles the keys that only move the view; the rest goes to the page.
func (c *Control) onKey(e app.Value) {
	if e.Get("ctrlKey").Bool() || e.Get("metaKey").Bool() || e.Get("altKey").Bool() {
		return
	}
	key, shift := e.Get("key").String(), e.Get("shiftKey").Bool()
	coarse := 1.0
	if shift {
		coarse = 4
	}
	switch key {
	case "w", "W":
		c.Zoom(math.Pow(0.8, coarse))
	case "s", "S":
		c.Zoom(math.Pow(1.25, coarse))
	case "a", "A":
		c.Pan(-0.1 * coarse)
	case "d", "D":
		c.Pan(0.1 * coarse)
	case "0":
		c.Whole()
	case "F":
		c.Whole()
	default:
		if !c.Events.Key(key, shift) {
			return
		}
	}
	e.Call("preventDefault")
}
