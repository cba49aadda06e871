package canvas

import (
	"math"

	"distopt/web/derive"
)

// RulerStep is the distance of the ruler's lines in ns: 1, 2 or 5 times a power of ten, at
// least 62 px apart.
func RulerStep(span, width float64) float64 {
	least := span / width * 62
	power := math.Pow(10, math.Floor(math.Log10(max(least, 1))))
	for _, k := range [...]float64{1, 2, 5} {
		if k*power >= least {
			return k * power
		}
	}
	return 10 * power
}

// RulerLabel writes an instant of the ruler: ms, or µs when lines are closer than 0.1 ms.
func RulerLabel(t, step float64) string {
	if t == 0 {
		t = 0 // not −0
	}
	if step < 1e5 {
		decimals := 0
		if step < 1e3 {
			decimals = 3
		}
		return derive.Fixed(t/1e3, decimals) + " µs"
	}
	decimals := 0
	if step < 1e6 {
		decimals = 1
	}
	if t == 0 {
		return "0 ms"
	}
	return derive.Fixed(t/1e6, decimals)
}

// Minimap and ruler heights.
const (
	MinimapHeight = 30
	RulerHeight   = 20
)

// Overview draws the minimap with the window in view, and the ruler below it.
type Overview struct {
	Raster  Raster
	Palette Palette

	// Steps is what doesn't change while the window moves. Frame draws it as the layer below.
	Steps   Display
	picture *derive.Picture
	of      Palette
	pixels  int
	width   float64
}

// overviewRows is how many stages the minimap tells apart.
const overviewRows = 16

// Rows lists the rows of the minimap: the phases of every stage with exposed time over them.
func Rows(p *derive.Picture) []*derive.Row {
	var phase []*derive.Row
	for i := range p.Rows {
		if p.Rows[i].Kind == derive.RowPhase {
			phase = append(phase, &p.Rows[i])
		}
	}
	if n := len(phase); n > overviewRows {
		for i := range overviewRows {
			phase[i] = phase[i*n/overviewRows]
		}
		phase = phase[:overviewRows]
	}
	return phase
}

// Frame draws the overview. pixels has one raster row per row of Rows(p); it and Steps are filled,
// and fresh is true, only when the picture, its size or the colours have changed.
func (o *Overview) Frame(d *Display, pixels []uint32, p *derive.Picture, v View) (fresh bool) {
	whole := View{T0: 0, T1: float64(p.End) * 1.004, W: v.W}
	if o.picture != p || o.pixels != v.Pixels || o.width != v.W || o.of != o.Palette {
		o.picture, o.pixels, o.width, o.of = p, v.Pixels, v.W, o.Palette
		o.Steps.Reset()
		o.steps(&o.Steps, pixels, p, &whole, v.Pixels)
		fresh = true
	}
	d.layer()
	end := whole.T1
	a, b := whole.X(max(v.T0, 0)), whole.X(min(v.T1, end))
	d.alpha(0.72)
	d.rect(0, 0, a, MinimapHeight, Surface2)
	d.rect(b, 0, v.W-b, MinimapHeight, Surface2)
	d.alpha(1)
	a, b = math.Round(a), math.Round(b)
	d.outline(a+0.5, 2.5, max(b-a-1, 2), MinimapHeight-5, Text3, 1)
	d.rect(max(a-1, 0), MinimapHeight/2-5, 3, 10, Text3)
	d.rect(min(b-1, v.W-3), MinimapHeight/2-5, 3, 10, Text3)
	d.rect(0, MinimapHeight-1, v.W, 1, Line)
	o.ruler(d, &v)
	return fresh
}

// steps draws the steps themselves, one row for each stage.
func (o *Overview) steps(d *Display, pixels []uint32, p *derive.Picture, whole *View, w int) {
	rows := Rows(p)
	colours := o.Palette.colours()
	for c := range derive.ClassExposed {
		colours[c] = mix(colours[c], o.Palette[Surface2], 200)
	}
	d.rect(0, 0, whole.W, MinimapHeight, Surface2)
	each := float64(MinimapHeight-12) / float64(max(len(rows), 1))
	for i, row := range rows {
		strips := row.Strips
		if opt := rowOf(p, row, derive.RowOptimizer); opt != nil {
			strips = append(strips[:len(strips):len(strips)], opt.Strips...)
		}
		o.Raster.Row(pixels[i*w:(i+1)*w], strips, 0, whole.T1, &colours, o.Palette[Surface2])
		y := 6 + float64(i)*each
		d.strip(i, 0, y, whole.W, max(each-1, 1))
		if ex := rowOf(p, row, derive.RowExposed); ex != nil {
			o.exposed(d, ex.Strips[0], whole, y, max(each-1, 1))
		}
	}
}

// exposed keeps at least one pixel for every exposed span.
func (o *Overview) exposed(d *Display, s *derive.Strip, v *View, y, h float64) {
	last := -1.0
	for i := range s.Len() {
		if s.Class[i] != derive.ClassExposed {
			continue
		}
		a, b := v.X(float64(s.Start[i])), v.X(float64(s.End[i]))
		if b = max(b, a+1); b <= last {
			continue
		}
		d.rect(max(a, last), y, b-max(a, last), h, Exposed)
		last = b
	}
}

func (o *Overview) ruler(d *Display, v *View) {
	step := RulerStep(v.T1-v.T0, v.W)
	bottom := float64(MinimapHeight + RulerHeight)
	every := labelEvery(v, step)
	d.clip(0, MinimapHeight, v.W, RulerHeight)
	for t := math.Ceil(v.T0/step) * step; t <= v.T1; t += step {
		x := math.Round(v.X(t))
		d.rect(x, bottom-6, 1, 6, Line2)
		if x+30 < v.W && int64(math.Round(t/step))%every == 0 {
			d.label(x+4, MinimapHeight+RulerHeight/2, RulerLabel(t, step), Text3, FontLabel, AlignLeft)
		}
	}
	d.rect(0, bottom-1, v.W, 1, Line)
	d.unclip()
}

// labelWidth is what a character of a label takes at most, px.
const labelWidth = 7

// labelEvery is which of the ruler's lines have a label, so that labels keep apart: the deeper the
// zoom, the longer they are.
func labelEvery(v *View, step float64) int64 {
	widest := float64(len(RulerLabel(v.T1, step))*labelWidth + 12)
	return int64(max(math.Ceil(widest/(step/(v.T1-v.T0)*v.W)), 1))
}

func rowOf(p *derive.Picture, like *derive.Row, kind derive.RowKind) *derive.Row {
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Slot == like.Slot && r.Stage == like.Stage && r.Kind == kind {
			return r
		}
	}
	return nil
}
