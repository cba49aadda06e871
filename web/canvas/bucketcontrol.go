package canvas

import (
	"math"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/derive"
)

// BucketPictures draws the list of buckets, one bucket and the contiguous buffers, and listens
// on them.
type BucketPictures struct {
	Picked   func(slot, stage int, id int32)
	Scrolled func(first int) // the list, by many rows

	list, bar, buffers, scroller app.Value
	listeners                    []listener
	observer                     app.Value
	frameFunc                    app.Func
	pending                      bool
	display                      Display

	vm     *derive.BucketList
	detail *derive.BucketDetail
	e0, e1 float64 // elements of the bucket in view
	rank   int
	drag   bool
	lastX  float64
	first  int
	unseen bool // the selected row has to be brought into view, with the next frame: it asks for a layout
}

// Attach finds the canvases and binds the listeners to them. The listeners are made once: an
// event or a frame may still be on its way when the canvases are gone.
func (b *BucketPictures) Attach() {
	if app.IsServer {
		return
	}
	b.Detach()
	document := app.Window().Get("document")
	get := func(id string) app.Value { return document.Call("getElementById", id) }
	b.list, b.bar, b.buffers, b.scroller = get("bucket-list"), get("bucket-bar"), get("bucket-buffers"), get("buckets")
	if !b.list.Truthy() || !b.bar.Truthy() {
		b.list = nil
		return
	}
	if b.frameFunc == nil {
		b.makeListeners()
	}
	for _, l := range b.listeners {
		target := b.bar
		if l.list {
			target = b.scroller
		}
		target.Call("addEventListener", l.name, l.call, map[string]any{"passive": false})
	}
	b.observer.Call("observe", b.scroller)
	b.observer.Call("observe", b.bar)
}

// listener is a function for an event of the list or of the bar.
type listener struct {
	list bool
	name string
	call app.Func
}

func (b *BucketPictures) makeListeners() {
	b.frameFunc = app.FuncOf(func(app.Value, []app.Value) any {
		b.pending = false
		b.draw()
		return nil
	})
	add := func(list bool, name string, f func(e app.Value)) {
		b.listeners = append(b.listeners, listener{list, name, app.FuncOf(func(_ app.Value, args []app.Value) any {
			if b.list != nil {
				f(args[0])
			}
			return nil
		})})
	}
	add(true, "scroll", func(app.Value) { b.scrolled() })
	add(true, "keydown", b.onKey)
	add(false, "wheel", b.onWheel)
	add(false, "dblclick", func(app.Value) { b.whole(); b.Redraw() })
	add(false, "pointerdown", func(e app.Value) {
		b.drag, b.lastX = true, e.Get("offsetX").Float()
		b.bar.Call("setPointerCapture", e.Get("pointerId"))
		b.pickRank(b.lastX, e.Get("offsetY").Float())
	})
	add(false, "pointermove", func(e app.Value) {
		if x := e.Get("offsetX").Float(); b.drag {
			b.pan((b.lastX - x) / b.bar.Get("clientWidth").Float())
			b.lastX = x
		}
	})
	add(false, "pointerup", func(app.Value) { b.drag = false })
	b.observer = app.Window().Get("ResizeObserver").New(app.FuncOf(func(app.Value, []app.Value) any {
		b.Redraw()
		return nil
	}))
}

// Detach lets the canvases go.
func (b *BucketPictures) Detach() {
	if b.observer != nil {
		b.observer.Call("disconnect")
	}
	b.list = nil
}

// Show takes in what to draw and keeps the selected row in view.
func (b *BucketPictures) Show(l *derive.BucketList, d *derive.BucketDetail) {
	moved := b.detail == nil || d == nil || b.detail.ID != d.ID || b.detail.Stage != d.Stage || b.detail.Size != d.Size
	b.vm, b.detail = l, d
	if d == nil || app.IsServer {
		return
	}
	if b.list == nil || !b.list.Get("isConnected").Bool() {
		b.Attach()
	}
	if moved {
		b.whole()
		b.unseen = true
	}
	b.Redraw()
}

func (b *BucketPictures) whole() {
	if b.detail != nil {
		b.e0, b.e1 = 0, float64(b.detail.Size)
	}
}

func (b *BucketPictures) reveal() {
	if b.list == nil {
		return
	}
	top, h := b.scroller.Get("scrollTop").Float(), b.scroller.Get("clientHeight").Float()-listHead
	if h <= 0 {
		return
	}
	y := float64(b.detail.Index * BucketRowHeight)
	if y < top || y+BucketRowHeight > top+h {
		b.scroller.Set("scrollTop", max(y-h/2, 0))
	}
}

// scrolled tells the page when the rows that are elements leave the view.
func (b *BucketPictures) scrolled() {
	b.Redraw()
	first := int(b.scroller.Get("scrollTop").Float()/BucketRowHeight) - 20
	if first < 0 {
		first = 0
	}
	if d := first - b.first; d > 15 || d < -15 {
		b.first = first
		b.Scrolled(first)
	}
}

// Redraw asks for one frame.
func (b *BucketPictures) Redraw() {
	if b.pending || app.IsServer || b.frameFunc == nil {
		return
	}
	b.pending = true
	app.Window().Call("requestAnimationFrame", b.frameFunc)
}

func (b *BucketPictures) draw() {
	if b.vm == nil || b.detail == nil || b.list == nil || !shared.ready() {
		return
	}
	if b.unseen {
		b.unseen = false
		b.reveal()
	}
	h := b.scroller.Get("clientHeight").Float()
	b.list.Get("style").Call("setProperty", "height", itoa(int(h))+"px")
	b.display.Reset()
	List(&b.display, b.vm, b.detail.ID, b.list.Get("clientWidth").Float(), h, b.scroller.Get("scrollTop").Float(), shared.measure)
	shared.frame(b.list, rasterNone, &b.display)
	if w := b.bar.Get("clientWidth").Float(); w > 0 {
		b.display.Reset()
		Bar(&b.display, b.detail, b.e0, b.e1, b.rank, w, shared.measure)
		shared.frame(b.bar, rasterNone, &b.display)
	}
	if w := b.buffers.Get("clientWidth").Float(); w > 0 {
		b.display.Reset()
		Buffers(&b.display, b.detail, w, shared.measure)
		shared.frame(b.buffers, rasterNone, &b.display)
	}
}

func (b *BucketPictures) pickRow(i int) {
	if b.vm != nil && i >= 0 && i < b.vm.Len() {
		b.Picked(b.vm.Slot, b.vm.Stage, b.vm.ID(i))
	}
}

func (b *BucketPictures) pickRank(x, y float64) {
	if b.detail == nil || b.detail.Ranks < 1 || y > barTop {
		return
	}
	e := b.e0 + x/b.bar.Get("clientWidth").Float()*(b.e1-b.e0)
	b.rank = min(max(int(e/float64(b.detail.Size)*float64(b.detail.Ranks)), 0), b.detail.Ranks-1)
	b.Redraw()
}

func (b *BucketPictures) onWheel(e app.Value) {
	if b.detail == nil {
		return
	}
	e.Call("preventDefault")
	dx, dy := e.Get("deltaX").Float(), e.Get("deltaY").Float()
	w := b.bar.Get("clientWidth").Float()
	if e.Get("shiftKey").Bool() || math.Abs(dx) > math.Abs(dy) {
		b.pan((dx + dy) / w)
		return
	}
	b.zoom(e.Get("offsetX").Float()/w, math.Exp(min(max(dy, -240), 240)*0.0022))
}

func (b *BucketPictures) zoom(at, factor float64) {
	e := b.e0 + (b.e1-b.e0)*at
	size := float64(b.detail.Size)
	b.e0, b.e1 = max(e-(e-b.e0)*factor, 0), min(e+(b.e1-e)*factor, size)
	if least := min(64, size); b.e1-b.e0 < least {
		b.e0 = min(b.e0, size-least)
		b.e1 = b.e0 + least
	}
	b.Redraw()
}

func (b *BucketPictures) pan(share float64) {
	if b.detail == nil {
		return
	}
	d := (b.e1 - b.e0) * share
	d = min(max(d, -b.e0), float64(b.detail.Size)-b.e1)
	b.e0, b.e1 = b.e0+d, b.e1+d
	b.Redraw()
}

func (b *BucketPictures) onKey(e app.Value) {
	if b.detail == nil || e.Get("ctrlKey").Bool() || e.Get("metaKey").Bool() || e.Get("altKey").Bool() {
		return
	}
	switch e.Get("key").String() {
	case "ArrowDown":
		b.pickRow(b.detail.Index + 1)
	case "ArrowUp":
		b.pickRow(b.detail.Index - 1)
	case "PageDown":
		b.pickRow(min(b.detail.Index+10, b.vm.Len()-1))
	case "PageUp":
		b.pickRow(max(b.detail.Index-10, 0))
	case "Home":
		b.pickRow(0)
	case "End":
		b.pickRow(b.vm.Len() - 1)
	case "w", "W":
		b.zoom(0.5, 0.8)
	case "s", "S":
		b.zoom(0.5, 1.25)
	case "a", "A":
		b.pan(-0.1)
	case "d", "D":
		b.pan(0.1)
	case "0", "F":
		b.whole()
		b.Redraw()
	default:
		return
	}
	e.Call("preventDefault")
}
