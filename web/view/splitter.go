package view

import (
	"math"
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/storage"
)

// Splitter is the line between two panes. Dragging it, or the arrow keys on it, set a length of the
// style sheet; a double click or Delete takes the setting away. The size is kept in the browser, and
// is no part of the configuration.
type Splitter struct {
	app.Compo
	ID       string
	Property string // of the style sheet: "--w-config"
	Label    string
	Across   bool // the line lies across the page and moves up and down
	Pane     string
	Min, Max int // px; a pane never gets more than Max nor more than 70 % of the window
}

// Render places the line; a screen reader hears it as a separator with a value.
func (s *Splitter) Render() app.UI {
	class, orientation := "splitter", "vertical"
	if s.Across {
		class, orientation = "splitter across", "horizontal"
	}
	return app.Elem("div").ID(s.ID).Class(class).Role("separator").TabIndex(0).Title(s.Label+": drag or use the arrow keys, double click for the usual size").
		Aria("label", s.Label).Aria("orientation", orientation).Aria("controls", s.Pane).
		Aria("valuemin", strconv.Itoa(s.Min)).Aria("valuemax", strconv.Itoa(s.Max)).
		On("pointerdown", s.onDown).On("pointermove", s.onMove).On("pointerup", s.onUp).On("dblclick", s.onReset).On("keydown", s.onKey)
}

// OnMount brings back the size of the last visit.
func (s *Splitter) OnMount(app.Context) {
	if px, err := strconv.ParseFloat(storage.Browser.Get(s.key()), 64); err == nil {
		s.set(px, false)
	} else if line := app.Window().GetElementByID(s.ID); line.Truthy() {
		line.Call("setAttribute", "aria-valuenow", strconv.Itoa(int(s.size())))
	}
}

func (s *Splitter) key() string { return "distopt.size" + s.Property }

// size is the length of the pane in px.
func (s *Splitter) size() float64 {
	pane := app.Window().GetElementByID(s.Pane)
	if !pane.Truthy() {
		return float64(s.Min)
	}
	if s.Across {
		return pane.Get("offsetHeight").Float()
	}
	return pane.Get("offsetWidth").Float()
}

func (s *Splitter) set(px float64, keep bool) {
	w, h := app.Window().Size()
	most := 0.7 * float64(w)
	if s.Across {
		most = 0.7 * float64(h)
	}
	px = math.Round(max(float64(s.Min), min(px, float64(s.Max), most)))
	text := strconv.Itoa(int(px))
	app.Window().Get("document").Get("documentElement").Get("style").Call("setProperty", s.Property, text+"px")
	if line := app.Window().GetElementByID(s.ID); line.Truthy() {
		line.Call("setAttribute", "aria-valuenow", text)
	}
	if keep {
		storage.Browser.Set(s.key(), text)
	}
}

// at is where the pointer lies along the splitter's way.
func (s *Splitter) at(e app.Event) float64 {
	if s.Across {
		return e.Get("clientY").Float()
	}
	return e.Get("clientX").Float()
}

func (s *Splitter) onDown(ctx app.Context, e app.Event) {
	if e.Get("button").Int() != 0 {
		return
	}
	line := ctx.JSSrc()
	line.Call("setPointerCapture", e.Get("pointerId"))
	line.Get("dataset").Set("from", s.size()-s.at(e))
}

func (s *Splitter) onMove(ctx app.Context, e app.Event) {
	line := ctx.JSSrc()
	if !line.Call("hasPointerCapture", e.Get("pointerId")).Bool() {
		return
	}
	from, err := strconv.ParseFloat(line.Get("dataset").Get("from").String(), 64)
	if err == nil {
		s.set(from+s.at(e), false)
	}
}

func (s *Splitter) onUp(ctx app.Context, e app.Event) {
	if ctx.JSSrc().Call("hasPointerCapture", e.Get("pointerId")).Bool() {
		ctx.JSSrc().Call("releasePointerCapture", e.Get("pointerId"))
		s.set(s.size(), true)
	}
}

func (s *Splitter) onReset(ctx app.Context, _ app.Event) {
	app.Window().Get("document").Get("documentElement").Get("style").Call("removeProperty", s.Property)
	ctx.JSSrc().Call("setAttribute", "aria-valuenow", strconv.Itoa(int(s.size())))
	storage.Browser.Remove(s.key())
}

func (s *Splitter) onKey(ctx app.Context, e app.Event) {
	less, more := "ArrowLeft", "ArrowRight"
	if s.Across {
		less, more = "ArrowUp", "ArrowDown"
	}
	step := 16.0
	if e.Get("shiftKey").Bool() {
		step = 64
	}
	switch e.Get("key").String() {
	case less:
		s.set(s.size()-step, true)
	case more:
		s.set(s.size()+step, true)
	case "Home":
		s.set(float64(s.Min), true)
	case "End":
		s.set(float64(s.Max), true)
	case "Delete", "Enter":
		s.onReset(ctx, e)
	default:
		return
	}
	e.PreventDefault()
	e.Call("stopPropagation")
}
