package canvas

// Display is a display list: what paint.js draws, in order. Numbers are CSS pixels.
type Display struct {
	Ops  []float32
	Text []string
}

// The operations and their arguments, as paint.js reads them.
const (
	opRect    = 1 + iota // x y w h colour
	opHatch              // x y w h colour ground(-1: none) gap
	opOutline            // x y w h colour width
	opLabel              // x y text colour font align
	opPath               // n colour width(0: fill) x y ...
	opClip               // x y w h
	opUnclip             // -
	opDot                // x y radius colour
	opStrip              // row x y w h: one row of the raster, stretched
	opAlpha              // value
	opLayer              // -: what layer has drawn
)

// Font picks one of three fonts of a picture.
type Font float32

// The fonts: 11 px, 11 px medium, 12 px bold.
const (
	FontLabel Font = iota
	FontStrong
	FontTitle
)

// Align places a label.
type Align float32

// The alignments of a label about its x.
const (
	AlignLeft Align = iota
	AlignCentre
	AlignRight
)

// Reset empties the list and keeps its memory.
func (d *Display) Reset() {
	d.Ops = d.Ops[:0]
	d.Text = d.Text[:0]
}

func (d *Display) rect(x, y, w, h float64, c Token) {
	d.Ops = append(d.Ops, opRect, float32(x), float32(y), float32(w), float32(h), float32(c))
}

// hatch fills with diagonal lines of colour c; ground is drawn below them unless it is none.
func (d *Display) hatch(x, y, w, h float64, c Token, ground int, gap float64) {
	d.Ops = append(d.Ops, opHatch, float32(x), float32(y), float32(w), float32(h), float32(c), float32(ground), float32(gap))
}

const none = -1

func (d *Display) outline(x, y, w, h float64, c Token, width float64) {
	d.Ops = append(d.Ops, opOutline, float32(x), float32(y), float32(w), float32(h), float32(c), float32(width))
}

func (d *Display) label(x, y float64, text string, c Token, f Font, a Align) {
	d.Ops = append(d.Ops, opLabel, float32(x), float32(y), float32(len(d.Text)), float32(c), float32(f), float32(a))
	d.Text = append(d.Text, text)
}

func (d *Display) path(c Token, width float64, points ...float64) {
	d.Ops = append(d.Ops, opPath, float32(len(points)/2), float32(c), float32(width))
	for _, p := range points {
		d.Ops = append(d.Ops, float32(p))
	}
}

func (d *Display) clip(x, y, w, h float64) {
	d.Ops = append(d.Ops, opClip, float32(x), float32(y), float32(w), float32(h))
}

func (d *Display) unclip() { d.Ops = append(d.Ops, opUnclip) }

func (d *Display) dot(x, y, r float64, c Token) {
	d.Ops = append(d.Ops, opDot, float32(x), float32(y), float32(r), float32(c))
}

func (d *Display) strip(row int, x, y, w, h float64) {
	d.Ops = append(d.Ops, opStrip, float32(row), float32(x), float32(y), float32(w), float32(h))
}

func (d *Display) alpha(a float64) { d.Ops = append(d.Ops, opAlpha, float32(a)) }

func (d *Display) layer() { d.Ops = append(d.Ops, opLayer) }
