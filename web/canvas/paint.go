package canvas

import (
	"strings"
	"unsafe"

	"github.com/maxence-charriere/go-app/v9/pkg/app"
)

// painter hands display lists to paint.js. Outside a browser it does nothing.
type painter struct {
	api     app.Value
	palette Palette
	widths  [3]map[string]float64
	buffer  app.Value
	size    int
}

// shared is the one painter of the page: the palette and the widths of labels are the same
// for all pictures.
var shared painter

func (p *painter) ready() bool {
	if app.IsServer {
		return false
	}
	if p.api == nil {
		p.api = app.Window().Get("distoptPaint")
		p.recolour()
	}
	return p.api.Truthy()
}

// Recolour reads the tokens again after a change of theme or contrast.
func Recolour() { shared.recolour() }

func (p *painter) recolour() {
	if p.api == nil || !p.api.Truthy() {
		return
	}
	names := make([]any, numTokens)
	for i, n := range tokenNames {
		names[i] = n
	}
	pixels := p.api.Call("palette", app.ValueOf(names))
	raw := make([]byte, int(numTokens)*4)
	app.CopyBytesToGo(raw, pixels)
	for i := range p.palette {
		p.palette[i] = uint32(raw[4*i]) | uint32(raw[4*i+1])<<8 | uint32(raw[4*i+2])<<16 | uint32(raw[4*i+3])<<24
	}
	p.widths = [3]map[string]float64{{}, {}, {}}
}

// measure returns the width of a text, asking the browser once for each.
func (p *painter) measure(text string, f Font) float64 {
	known := p.widths[int(f)]
	if w, ok := known[text]; ok {
		return w
	}
	if len(known) > 20_000 {
		clear(known)
	}
	w := p.api.Call("widths", text, int(f)).Index(0).Float()
	known[text] = w
	return w
}

// The rasters that paint.js keeps.
const (
	rasterLanes = iota
	rasterMap
	rasterNone
)

// rows sends a raster of h rows.
func (p *painter) rows(raster int, pixels []uint32, w, h int) {
	if w == 0 || h == 0 {
		return
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&pixels[0])), w*h*4)
	app.CopyBytesToJS(p.api.Call("rows", raster, w, h), raw)
}

// frame draws a list on a canvas; its strips are rows of a raster.
func (p *painter) frame(canvas app.Value, raster int, d *Display) { p.draw("frame", canvas, raster, d) }

// layer draws a list of the size of a canvas and keeps the picture with the raster, for opLayer.
func (p *painter) layer(canvas app.Value, raster int, d *Display) { p.draw("layer", canvas, raster, d) }

func (p *painter) draw(how string, canvas app.Value, raster int, d *Display) {
	n := len(d.Ops) * 4
	if n == 0 {
		return
	}
	if p.size < n {
		p.size = 2 * n
		p.buffer = p.api.Call("buffer", p.size)
	}
	app.CopyBytesToJS(p.buffer, unsafe.Slice((*byte)(unsafe.Pointer(&d.Ops[0])), n))
	p.api.Call(how, canvas, raster, p.buffer, len(d.Ops), strings.Join(d.Text, "\x1f"))
}
