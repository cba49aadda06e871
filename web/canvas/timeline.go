package canvas

import (
	"math"
	"slices"

	"distopt/core/report"
	"distopt/web/derive"
)

// View is what part of the picture is shown, and where.
type View struct {
	T0, T1 float64 // ns
	W, H   float64 // of the lane area
	Scroll float64 // of the rows
	Pixels int     // device pixels across
	Fade   bool    // while a newer result is computed
}

// X places an instant.
func (v *View) X(t float64) float64 { return (t - v.T0) / (v.T1 - v.T0) * v.W }

// T is the instant at x.
func (v *View) T(x float64) float64 { return v.T0 + x/v.W*(v.T1-v.T0) }

// Measure returns the width of a text in one of the fonts.
type Measure func(text string, f Font) float64

// detailLimit is how many spans may be in view for gaps, labels and parts to be drawn.
const detailLimit = 2000

// Timeline draws the lanes of a picture. Rows are rastered, everything else goes into the display
// list.
type Timeline struct {
	Raster  Raster
	Palette Palette
	Measure Measure
}

// Frame draws p into d; pixels receives one raster row of v.Pixels entries for each row of p in
// view, from the first. It returns how many those are.
func (tl *Timeline) Frame(d *Display, pixels []uint32, p *derive.Picture, v View, m derive.Marked) (rows int) {
	tl.ground(d, p, &v)
	colours := tl.Palette.colours()
	visible := 0
	for i := range p.Rows {
		row := &p.Rows[i]
		y := float64(row.Y) - v.Scroll
		if row.Kind == derive.RowHead || y > v.H || y+float64(row.H) < 0 {
			continue
		}
		dst := pixels[rows*v.Pixels : (rows+1)*v.Pixels]
		tl.Raster.Row(dst, row.Strips, v.T0, v.T1, &colours, tl.Palette[Surface])
		if row.Kind == derive.RowHidden {
			r := p.Results[row.Slot]
			a, b := max(v.X(0), 0), min(v.X(float64(r.Figures.StepTime)), v.W)
			d.rect(a, y, b-a, float64(row.H), Surface3)
		}
		d.strip(rows, 0, y, v.W, float64(row.H))
		rows++
		visible += inView(row.Strips, &v)
	}
	if visible < detailLimit {
		for i := range p.Rows {
			row := &p.Rows[i]
			if y := float64(row.Y) - v.Scroll; row.Kind != derive.RowHead && y <= v.H && y+float64(row.H) >= 0 {
				tl.detail(d, p, row, &v)
			}
		}
	}
	tl.ends(d, p, &v)
	tl.marks(d, p, &v, m)
	if v.Fade {
		d.alpha(0.84)
		d.rect(0, 0, v.W, v.H, Surface)
		d.alpha(1)
	}
	return rows
}

func inView(strips []*derive.Strip, v *View) int {
	n := 0
	for _, s := range strips {
		n += s.FirstFrom(int64(math.Ceil(v.T1))) - s.FirstVisible(int64(v.T0))
	}
	return n
}

// ground draws grid lines and the pale columns of exposed time behind the lanes.
func (tl *Timeline) ground(d *Display, p *derive.Picture, v *View) {
	step := RulerStep(v.T1-v.T0, v.W)
	for t := math.Ceil(v.T0/step) * step; t <= v.T1; t += step {
		d.rect(math.Round(v.X(t)), 0, 1, v.H, Line)
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		y := float64(row.Y) - v.Scroll
		switch {
		case row.Kind == derive.RowHead && i > 0:
			d.rect(0, y, v.W, 1, Line)
		case row.Kind == derive.RowExposed:
			bottom := y + float64(row.H)
			for j := i; j < len(p.Rows) && p.Rows[j].Stage == row.Stage && p.Rows[j].Slot == row.Slot; j++ {
				bottom = float64(p.Rows[j].Y+p.Rows[j].H) - v.Scroll
			}
			if y > v.H || bottom < 0 {
				continue
			}
			s := row.Strips[0]
			for k := s.FirstVisible(int64(v.T0)); k < s.Len() && float64(s.Start[k]) < v.T1; k++ {
				if s.Class[k] == derive.ClassBubble {
					continue
				}
				a, b := clampX(v, s.Start[k], s.End[k])
				if b-a > 1 {
					d.rect(a, y, b-a, bottom-y+2, ExposedWash)
				}
			}
		}
	}
}

func clampX(v *View, start, end int64) (a, b float64) {
	return max(v.X(float64(start)), -4), min(v.X(float64(end)), v.W+4)
}

// detail draws what a raster can't: gaps, dividers, hatches, parts and labels.
func (tl *Timeline) detail(d *Display, p *derive.Picture, row *derive.Row, v *View) {
	y, h := float64(row.Y)-v.Scroll, float64(row.H)
	r := p.Results[row.Slot]
	for _, s := range row.Strips {
		for i := s.FirstVisible(int64(v.T0)); i < s.Len() && float64(s.Start[i]) < v.T1; i++ {
			a, b := clampX(v, s.Start[i], s.End[i])
			w := b - a
			class := s.Class[i]
			switch {
			case class == derive.ClassExposedBubble && w > 1:
				d.hatch(a, y, w, h, Exposed, int(ExposedWash), 4)
			case class == derive.ClassBubble && w > 1:
				d.rect(a, y, w, h, Surface)
				d.hatch(a, y, w, h, Bubble, none, 4)
				continue
			}
			if s.Parts != nil {
				tl.parts(d, r, s, i, v, y, h)
				continue
			}
			last := i+1 >= s.Len() || s.Span[i+1] != s.Span[i]
			if w > 3 && last && row.Kind != derive.RowHidden && row.Kind != derive.RowExposed && v.X(float64(s.End[i])) <= v.W {
				d.rect(b-1, y, 1, h, Surface)
			}
			if row.Kind == derive.RowHidden || row.Kind == derive.RowExposed || h < 11 {
				continue
			}
			if row.Kind == derive.RowLayer && w > 120 && tl.kernels(d, r, s, i, v, y, h) {
				continue
			}
			if first := i == 0 || s.Span[i-1] != s.Span[i]; first {
				tl.spanLabel(d, r, s, i, v, y, h)
			}
		}
	}
}

// spanLabel draws the dividers of a coalesced group and the name of a span that may be cut
// into several segments.
func (tl *Timeline) spanLabel(d *Display, r *report.Result, s *derive.Strip, i int, v *View, y, h float64) {
	span := s.Span[i]
	end, widest := s.End[i], i
	for j := i + 1; j < s.Len() && s.Span[j] == span; j++ {
		end = s.End[j]
		if s.End[j]-s.Start[j] > s.End[widest]-s.Start[widest] {
			widest = j
		}
	}
	x0, x1 := v.X(float64(s.Start[i])), v.X(float64(end))
	ink := inks[s.Class[widest]]
	if g := r.Spans.Group[span]; g >= 0 && int(g) < len(r.Collectives) {
		ids := r.Collectives[g].Buckets
		if n := float64(len(ids)); n > 1 && (x1-x0)/n > 4 {
			for k := 1.0; k < n; k++ {
				if x := x0 + (x1-x0)*k/n; x > 0 && x < v.W {
					d.rect(math.Round(x), y, 1, h, Surface)
				}
			}
			if (x1-x0)/n > 22 {
				for k, id := range ids {
					tl.fit(d, []string{derive.Runs([]int32{id})}, x0+(x1-x0)*float64(k)/n, (x1-x0)/n, v, y, h, ink, FontLabel)
				}
				return
			}
		}
	}
	if x1-x0 < 12 {
		return
	}
	font := FontLabel
	if s.Class[i] <= derive.ClassBackward {
		font = FontStrong
	}
	tl.fit(d, derive.Labels(r, span), x0, x1-x0, v, y, h, ink, font)
}

// fit draws the longest of labels that has room between x and x+w, keeping it in view.
func (tl *Timeline) fit(d *Display, labels []string, x, w float64, v *View, y, h float64, ink Token, f Font) {
	if x < 0 {
		w, x = w+x, 0
	}
	w = min(w, v.W-x)
	for _, l := range labels {
		if l == "" {
			continue
		}
		width := tl.Measure(l, f)
		margin := 8.0
		if len(l) < 4 {
			margin = 3
		}
		if width+margin > w {
			continue
		}
		if w < width+14 {
			x += (w - width) / 2
		} else {
			x += 6
		}
		d.label(x, y+h/2+0.5, l, ink, f, AlignLeft)
		return
	}
}

// kernels draws the kernels of a layer pass; false when it has none.
func (tl *Timeline) kernels(d *Display, r *report.Result, s *derive.Strip, i int, v *View, y, h float64) bool {
	work := r.Spans.Work[s.Span[i]]
	if work < 0 || int(work) >= len(r.Works) || len(r.Works[work].Parts) == 0 || h < 22 {
		return false
	}
	x0, x1 := v.X(float64(s.Start[i])), v.X(float64(s.End[i]))
	half := math.Floor(h / 2)
	tl.fit(d, derive.Labels(r, s.Span[i]), x0, x1-x0, v, y, half, inks[s.Class[i]], FontStrong)
	for _, p := range r.Works[work].Parts {
		if p.Lane != report.LaneCompute {
			continue
		}
		a, b := x0+(x1-x0)*float64(p.Start)/65536, x0+(x1-x0)*float64(p.End)/65536
		if b < 0 || a > v.W {
			continue
		}
		d.rect(a, y+half, max(b-a, 0.5), 1, Surface)
		if b-a > 2 {
			d.rect(b-0.5, y+half, 0.5, h-half, Surface)
		}
		if b-a > 24 {
			tl.fit(d, []string{p.Name}, a, b-a, v, y+half, h-half, inks[s.Class[i]], FontLabel)
		}
	}
	return true
}

// parts draws labels on the parts of a pass that lie on another lane than the pass.
func (tl *Timeline) parts(d *Display, r *report.Result, s *derive.Strip, i int, v *View, y, h float64) {
	if h < 11 {
		return
	}
	x0, x1 := v.X(float64(s.Start[i])), v.X(float64(s.End[i]))
	for _, p := range s.Parts[s.Work[i]] {
		a, b := x0+(x1-x0)*float64(p.Start)/65536, x0+(x1-x0)*float64(p.End)/65536
		if b-a > 24 && b > 0 && a < v.W {
			tl.fit(d, []string{r.Works[s.Work[i]].Parts[p.Part].Name}, a, b-a, v, y, h, TensorInk, FontLabel)
		}
	}
}

// ends marks the end of each result's step and the difference between two.
func (tl *Timeline) ends(d *Display, p *derive.Picture, v *View) {
	var end [2]float64
	for slot, r := range p.Results {
		if r == nil {
			continue
		}
		end[slot] = float64(r.Figures.StepTime)
		top, bottom := math.Inf(1), 0.0
		for i := range p.Rows {
			if p.Rows[i].Slot == slot {
				top = min(top, float64(p.Rows[i].Y))
				bottom = max(bottom, float64(p.Rows[i].Y+p.Rows[i].H))
			}
		}
		if x := math.Round(v.X(end[slot])); x >= 0 && x <= v.W {
			d.rect(min(x, v.W-1), top-v.Scroll+2, 1, bottom-top, Text2)
		}
	}
	if p.Results[0] == nil || p.Results[1] == nil {
		return
	}
	a, b := v.X(min(end[0], end[1])), v.X(max(end[0], end[1]))
	for i := range p.Rows {
		if p.Rows[i].Slot != 1 {
			continue
		}
		y := float64(p.Rows[i].Y) - v.Scroll + 11
		d.rect(math.Round(a), y-6, 1, 12, Text2)
		d.path(Text, 1.25, a+1, y, b, y)
		text := derive.Difference(int64(end[1] - end[0]))
		if a-12 > tl.Measure(text, FontTitle) {
			d.label(a-6, y+0.5, text, Text, FontTitle, AlignRight)
		} else {
			d.label(min(a+6, v.W-tl.Measure(text, FontTitle)-4), y-8, text, Text, FontTitle, AlignLeft)
		}
		return
	}
}

// marks outlines the selection and what belongs to it, and draws what released it.
func (tl *Timeline) marks(d *Display, p *derive.Picture, v *View, m derive.Marked) {
	for slot, related := range m.Related {
		for _, span := range related {
			if slot == m.Slot && span == m.Span {
				continue
			}
			if b, ok := spanBox(p, v, slot, span); ok && b.w < v.W+16 {
				d.outline(b.x-1, b.y-1, b.w+2, b.h+2, Accent, 2)
			}
		}
	}
	if m.Span < 0 || p.Results[m.Slot] == nil || int(m.Span) >= len(p.Results[m.Slot].Spans.Start) {
		return
	}
	box, ok := spanBox(p, v, m.Slot, m.Span)
	if !ok {
		return
	}
	by := p.Results[m.Slot].Spans.By[m.Span]
	if by >= 0 {
		if from, ok := spanBox(p, v, m.Slot, by); ok {
			tl.arrow(d, from, box)
		}
	}
	d.outline(box.x-0.5, box.y-0.5, box.w+1, box.h+1, Surface, 1)
	d.outline(box.x-2, box.y-2, box.w+4, box.h+4, Text, 2)
}

type box struct{ x, y, w, h float64 }

// spanBox finds where a span is drawn; false when its stage doesn't show it.
func spanBox(p *derive.Picture, v *View, slot int, span int32) (box, bool) {
	r := p.Results[slot]
	if r == nil || span < 0 || int(span) >= len(r.Spans.Start) {
		return box{}, false
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		if row.Slot != slot || row.Stage != int(r.Spans.Stage[span]) || row.Kind == derive.RowHidden || row.Kind == derive.RowHead {
			continue
		}
		for _, s := range row.Strips {
			if s.Parts != nil || !holds(s, span, r.Spans.Start[span]) {
				continue
			}
			a, b := clampX(v, r.Spans.Start[span], r.Spans.End[span])
			return box{a, float64(row.Y) - v.Scroll, max(b-a, 1), float64(row.H)}, true
		}
	}
	return box{}, false
}

// holds reports whether a segment of the span is in s.
func holds(s *derive.Strip, span int32, start int64) bool {
	i, _ := slices.BinarySearch(s.Start, start)
	for ; i < s.Len() && s.Start[i] == start; i++ {
		if s.Span[i] == span {
			return true
		}
	}
	return false
}

// arrow leads from the end of what released a span to its start.
func (tl *Timeline) arrow(d *Display, from, to box) {
	xa, xb := from.x+from.w-1, to.x+3
	ya, yb := from.y+from.h-4, to.y-4
	if to.y < from.y {
		ya, yb = from.y+4, to.y+to.h+4
	}
	mid := (ya + yb) / 2
	d.path(Text, 1.25, xa, ya, xa, mid, xb, mid, xb, yb)
	d.dot(xa, ya, 2.5, Text)
	tip := 4.0
	if to.y < from.y {
		tip = -4
	}
	d.path(Text, 0, xb-3, yb-1, xb+3, yb-1, xb, yb+tip-1)
}
