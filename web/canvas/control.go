package canvas

import (
	"math"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/report"
	"distopt/web/derive"
)

// Events are what the timeline tells the page.
type Events struct {
	Picked func(slot int, span int32) // span −1: nothing
	Moved  func(t0, t1 float64)       // the view came to rest
	Sized  func(room int)
	Opened func(key string) // a stage's gutter
	Key    func(key string, shift bool) bool
	Drawn  func()
}

// Control is the timeline in the browser: it owns the view, listens to pointer and keys, and
// draws one frame per animation frame at most. Fast events stay here; the page hears of what
// they led to.
type Control struct {
	Events Events

	plot, lanes, overview, scroller, hover app.Value
	listeners                              []app.Func
	frameFunc, restFunc                    app.Func
	pending                                bool
	restTimer                              app.Value

	timeline    Timeline
	overviewMap Overview
	display     Display
	pixels      []uint32

	shown *derive.Timeline
	view  View
	end   float64
	pinch map[int][2]float64
	drag  dragState
	at    [2]float64 // last pointer position over the lanes, −1: outside

	hoverFunc  app.Func
	hoverTimer app.Value // until the card of what is under the pointer shows
}

// hoverDelay is how long the pointer must rest before the card shows, ms. While a card is shown it
// follows at once.
const hoverDelay = 80

type dragState struct {
	on      bool
	moved   bool
	x, y    float64
	t0, t1  float64
	edge    int // of the minimap: −1 left, 1 right, 2 body, 0 lanes
	pointer int
}

// smallestView is the shortest time the view can show, ns.
const smallestView = 200

// Attach binds the control to the elements of the timeline.
func (c *Control) Attach(plot, lanes, overview, scroller, hover app.Value) {
	if app.IsServer {
		return
	}
	c.plot, c.lanes, c.overview, c.scroller, c.hover = plot, lanes, overview, scroller, hover
	c.pinch = map[int][2]float64{}
	c.at = [2]float64{-1, -1}
	c.frameFunc = app.FuncOf(func(app.Value, []app.Value) any {
		c.pending = false
		c.draw()
		return nil
	})
	c.restFunc = app.FuncOf(func(app.Value, []app.Value) any {
		c.restTimer = nil
		c.Events.Moved(c.view.T0, c.view.T1)
		return nil
	})
	c.hoverFunc = app.FuncOf(func(app.Value, []app.Value) any {
		c.hoverTimer = nil
		if c.at[0] >= 0 && !c.drag.on {
			c.onHover(c.at[0], c.at[1])
		}
		return nil
	})
	c.listen(lanes, "wheel", c.onWheel)
	c.listen(lanes, "pointerdown", c.onDown)
	c.listen(lanes, "pointermove", c.onMove)
	c.listen(lanes, "pointerup", c.onUp)
	c.listen(lanes, "pointercancel", c.onUp)
	c.listen(lanes, "pointerleave", func(app.Value) { c.at = [2]float64{-1, -1}; c.showHover(false) })
	c.listen(lanes, "dblclick", func(e app.Value) { c.zoomAt(e.Get("offsetX").Float(), 0.4) })
	c.listen(overview, "pointerdown", c.onMapDown)
	c.listen(overview, "pointermove", c.onMapMove)
	c.listen(overview, "pointerup", func(app.Value) { c.drag.on = false })
	c.listen(overview, "dblclick", func(app.Value) { c.Whole() })
	c.listen(scroller, "scroll", func(app.Value) { c.Redraw() })
	c.listen(plot, "keydown", c.onKey)
	resize := app.FuncOf(func(app.Value, []app.Value) any {
		c.size()
		return nil
	})
	c.listeners = append(c.listeners, resize)
	app.Window().Get("ResizeObserver").New(resize).Call("observe", scroller)
	c.size()
}

func (c *Control) listen(target app.Value, name string, f func(e app.Value)) {
	fn := app.FuncOf(func(_ app.Value, args []app.Value) any {
		f(args[0])
		return nil
	})
	c.listeners = append(c.listeners, fn)
	target.Call("addEventListener", name, fn, map[string]any{"passive": false})
}

// Release gives the listeners back.
func (c *Control) Release() {
	for _, f := range c.listeners {
		f.Release()
	}
	c.listeners = nil
}

func (c *Control) size() {
	h := c.scroller.Get("clientHeight").Float()
	w := c.scroller.Get("clientWidth").Float()
	if h == 0 || w == 0 {
		return
	}
	c.lanes.Get("style").Call("setProperty", "height", itoa(int(h))+"px")
	c.view.H = h
	c.view.W = c.lanes.Get("clientWidth").Float()
	ratio := app.Window().Get("devicePixelRatio").Float()
	c.view.Pixels = int(math.Round(c.view.W * max(ratio, 1)))
	c.Events.Sized(int(h))
	c.Redraw()
}

// Show takes a new picture in. The view stays unless it was the whole step.
func (c *Control) Show(t *derive.Timeline) {
	whole := c.shown == nil || c.isWhole()
	c.shown = t
	if t.Picture != nil {
		c.end = float64(t.Picture.End) * 1.004
	}
	if whole || c.view.T1 <= c.view.T0 {
		c.view.T0, c.view.T1 = 0, max(c.end, smallestView)
	}
	c.clamp()
	c.view.Fade = t.Fade
	c.Redraw()
}

func (c *Control) isWhole() bool { return c.view.T0 <= 0 && c.view.T1 >= c.end*0.999 }

// Whole shows the whole step.
func (c *Control) Whole() { c.Move(0, c.end) }

// Move shows the step from t0 to t1; both 0 shows all of it.
func (c *Control) Move(t0, t1 float64) {
	if t1 <= t0 {
		t0, t1 = 0, c.end
	}
	c.view.T0, c.view.T1 = t0, t1
	c.moved()
}

func (c *Control) moved() {
	c.clamp()
	c.Redraw()
	if app.IsServer || c.restFunc == nil {
		return
	}
	if c.restTimer != nil {
		app.Window().Call("clearTimeout", c.restTimer)
	}
	c.restTimer = app.Window().Call("setTimeout", c.restFunc, 200)
}

// clamp keeps the view inside the step.
func (c *Control) clamp() {
	span := min(max(c.view.T1-c.view.T0, smallestView), max(c.end, smallestView))
	if c.view.T0 < 0 {
		c.view.T0 = 0
	}
	if c.view.T0+span > c.end {
		c.view.T0 = max(c.end-span, 0)
	}
	c.view.T1 = c.view.T0 + span
}

// Zoom scales the view about the pointer, or its middle.
func (c *Control) Zoom(factor float64) {
	x := c.at[0]
	if x < 0 {
		x = c.view.W / 2
	}
	c.zoomAt(x, factor)
}

func (c *Control) zoomAt(x, factor float64) {
	t := c.view.T(x)
	c.view.T0 = t - (t-c.view.T0)*factor
	c.view.T1 = t + (c.view.T1-t)*factor
	if c.view.T1-c.view.T0 < smallestView {
		c.view.T0, c.view.T1 = t-smallestView/2, t+smallestView/2
	}
	c.moved()
}

// Pan shifts the view by a share of its width.
func (c *Control) Pan(share float64) {
	d := (c.view.T1 - c.view.T0) * share
	if c.view.T0+d < 0 {
		d = -c.view.T0
	}
	if c.view.T1+d > c.end {
		d = c.end - c.view.T1
	}
	c.view.T0 += d
	c.view.T1 += d
	c.moved()
}

// Reveal scrolls and pans so that a span is in view.
func (c *Control) Reveal(slot int, span int32) {
	if c.shown == nil || c.shown.Picture == nil {
		return
	}
	r := c.shown.Picture.Results[slot]
	if r == nil || span < 0 || int(span) >= r.Spans.Len() {
		return
	}
	a, b := float64(r.Spans.Start[span]), float64(r.Spans.End[span])
	if width := c.view.T1 - c.view.T0; b < c.view.T0 || a > c.view.T1 {
		c.view.T0 = (a+b)/2 - width/2
		c.view.T1 = c.view.T0 + width
		c.moved()
	}
	if app.IsServer || c.scroller == nil {
		return
	}
	if box, ok := spanBox(c.shown.Picture, &c.view, slot, span); ok && (box.y < 0 || box.y+box.h > c.view.H) {
		c.scroller.Set("scrollTop", c.view.Scroll+box.y-c.view.H/2)
	}
}

// Redraw asks for one frame.
func (c *Control) Redraw() {
	if c.pending || app.IsServer || c.frameFunc == nil {
		return
	}
	c.pending = true
	app.Window().Call("requestAnimationFrame", c.frameFunc)
}

func (c *Control) draw() {
	if c.shown == nil || c.shown.Picture == nil || c.view.W < 1 || !shared.ready() {
		return
	}
	p := c.shown.Picture
	c.view.Scroll = c.scroller.Get("scrollTop").Float()
	c.timeline.Palette, c.timeline.Measure = shared.palette, shared.measure
	c.overviewMap.Palette = shared.palette
	n := len(p.Rows) * c.view.Pixels
	if cap(c.pixels) < n {
		c.pixels = make([]uint32, n)
	}
	pixels := c.pixels[:n]
	c.display.Reset()
	rows := c.timeline.Frame(&c.display, pixels, p, c.view, c.shown.Marked)
	shared.rows(rasterLanes, pixels, c.view.Pixels, rows)
	shared.frame(c.lanes, rasterLanes, &c.display)
	if rows := len(Rows(p)); rows > 0 {
		c.display.Reset()
		top := c.pixels[:rows*c.view.Pixels]
		if c.overviewMap.Frame(&c.display, top, p, c.view) {
			shared.rows(rasterMap, top, c.view.Pixels, rows)
			shared.layer(c.overview, rasterMap, &c.overviewMap.Steps)
		}
		shared.frame(c.overview, rasterMap, &c.display)
	}
	if c.Events.Drawn != nil {
		c.Events.Drawn()
	}
}

// hit finds the span at a point of the lanes.
func (c *Control) hit(x, y float64) (slot int, span int32, part string) {
	if c.shown == nil || c.shown.Picture == nil {
		return 0, -1, ""
	}
	return Hit(c.shown.Picture, &c.view, x, y)
}

// Hit finds the span at a point, and the part of a layer pass if one is drawn there.
func Hit(p *derive.Picture, v *View, x, y float64) (slot int, span int32, part string) {
	t := v.T(x)
	slack := int64(v.T(x+3) - t)
	for i := range p.Rows {
		row := &p.Rows[i]
		top := float64(row.Y) - v.Scroll
		if row.Kind == derive.RowHead || y < top-1 || y > top+float64(row.H)+1 {
			continue
		}
		for _, s := range row.Strips {
			j := s.At(int64(t), slack)
			if j < 0 || s.Class[j] == derive.ClassBubble {
				continue
			}
			r := p.Results[row.Slot]
			span := s.Span[j]
			if s.Parts != nil || row.Kind == derive.RowLayer {
				part = partAt(r, span, t, s.Parts != nil)
				if s.Parts != nil && part == "" {
					continue
				}
			}
			return row.Slot, collectiveOf(r, span), part
		}
	}
	return 0, -1, ""
}

// collectiveOf leads from a made-up span of exposed or hidden time to its collective.
func collectiveOf(r *report.Result, span int32) int32 {
	s := &r.Spans
	if l := s.Lane[span]; l == report.LaneExposed || l == report.LaneHidden {
		if g := s.Group[span]; g >= 0 && int(g) < len(r.Collectives) {
			return r.Collectives[g].Span
		}
		return -1
	}
	return span
}

// partAt names the part of a pass that runs at t.
func partAt(r *report.Result, span int32, t float64, tensor bool) string {
	w := r.Spans.Work[span]
	if w < 0 || int(w) >= len(r.Works) {
		return ""
	}
	a, b := float64(r.Spans.Start[span]), float64(r.Spans.End[span])
	at := (t - a) / (b - a) * 65536
	for _, p := range r.Works[w].Parts {
		if (p.Lane == report.LaneTensor) == tensor && at >= float64(p.Start) && at < float64(p.End) {
			return p.Name
		}
	}
	return ""
}

func itoa(n int) string { return derive.Plain(n) }
