package canvas

import (
	"cmp"
	"math"
	"slices"

	"distopt/web/derive"
)

// chartTokens gives a series' colour its token.
var chartTokens = map[string]Token{
	"fp32": FP32, "bf16": BF16, "fp16": FP16, "fp8": FP8, "optimizer": Optimizer, "grad": Grad, "tp": Tensor,
}

// labelHeight is the room of one line of text.
const labelHeight = 13

// Chart draws lines over steps, with the name of each at its end.
func Chart(d *Display, c *derive.Chart, w, h float64, measure Measure) {
	left, right := 0.0, 0.0
	for _, t := range c.YTicks {
		left = max(left, measure(t.Text, FontLabel))
	}
	for _, s := range c.Series {
		right = max(right, measure(s.Name, FontLabel))
	}
	left += 8
	right = min(right+20, w*0.42)
	top, bottom := 8.0, h-18
	if w-left-right < 40 || bottom-top < 20 {
		return
	}
	width := w - left - right
	x := func(at float64) float64 { return left + (at-c.X[0])/(c.X[1]-c.X[0])*width }
	y := func(at float64) float64 {
		if c.Log {
			at = math.Log2(at)
		}
		return bottom - (at-c.Y[0])/(c.Y[1]-c.Y[0])*(bottom-top)
	}
	for _, t := range c.YTicks {
		at := math.Round(bottom - (t.At-c.Y[0])/(c.Y[1]-c.Y[0])*(bottom-top))
		d.rect(left, at, width, 1, Line)
		d.label(left-6, at, t.Text, Text3, FontLabel, AlignRight)
	}
	d.rect(left, bottom, width, 1, Line2)
	end := math.Inf(-1)
	for _, t := range c.XTicks {
		at, half := x(t.At), measure(t.Text, FontLabel)/2
		d.rect(math.Round(at), bottom, 1, 4, Line2)
		if at-half > end+6 {
			d.label(at, bottom+11, t.Text, Text3, FontLabel, AlignCentre)
			end = at + half
		}
	}
	type name struct {
		series int
		at     float64
	}
	var names []name
	for i := range c.Series {
		last := drawSeries(d, &c.Series[i], i, len(c.Series), x, y, c.Log)
		if last == last {
			names = append(names, name{i, last})
		}
	}
	// Names keep apart, in the order of their lines.
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(a.at, b.at) })
	places := make([]float64, len(names))
	for i, n := range names {
		places[i] = min(max(n.at, top), bottom)
		if i > 0 {
			places[i] = max(places[i], places[i-1]+labelHeight)
		}
	}
	limit := bottom
	for i := len(places) - 1; i >= 0; i-- {
		places[i] = min(places[i], limit)
		limit = places[i] - labelHeight
	}
	for i, n := range names {
		s := &c.Series[n.series]
		d.marker(w-right+10, places[i], s.Mark, chartTokens[s.Colour], 3)
		d.label(w-right+18, places[i], cut(s.Name, right-20, measure), Text2, FontLabel, AlignLeft)
	}
}

// drawSeries draws a line with some marks on it and returns where it ends, NaN if it has no point.
func drawSeries(d *Display, s *derive.Series, index, all int, x, y func(float64) float64, log bool) float64 {
	token := chartTokens[s.Colour]
	var run []float64
	flush := func() {
		if len(run) >= 4 {
			d.path(token, 1.75, run...)
		}
		run = run[:0]
	}
	last, lastX, lastY := math.NaN(), 0.0, 0.0
	every := max(len(s.Y)/6, 1)
	phase := every * index / max(all, 1)
	for i, v := range s.Y {
		if v-v != 0 || log && v <= 0 {
			flush()
			continue
		}
		lastX, lastY = x(float64(i+1)), y(v)
		last = lastY
		run = append(run, lastX, lastY)
		if i%every == phase && len(s.Y) > 8 {
			d.marker(lastX, lastY, s.Mark, token, 3)
		}
	}
	flush()
	if last == last {
		d.marker(lastX, lastY, s.Mark, token, 3.5)
	}
	return last
}

// marker draws one of derive.Marks about a point.
func (d *Display) marker(x, y float64, shape int, c Token, r float64) {
	switch shape {
	case 1:
		d.rect(x-r+0.5, y-r+0.5, 2*r-1, 2*r-1, c)
	case 2:
		d.path(c, 0, x, y-r-0.5, x+r+0.5, y+r-0.5, x-r-0.5, y+r-0.5)
	case 3:
		d.path(c, 0, x, y-r-1, x+r+1, y, x, y+r+1, x-r-1, y)
	case 4:
		d.path(c, 1.5, x-r, y-r, x+r, y+r)
		d.path(c, 1.5, x-r, y+r, x+r, y-r)
	default:
		d.dot(x, y, r, c)
	}
}

// cut shortens a text to room from its right.
func cut(text string, room float64, measure Measure) string {
	if measure(text, FontLabel) <= room {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 0; n-- {
		if short := string(runes[:n]) + "…"; measure(short, FontLabel) <= room {
			return short
		}
	}
	return ""
}

// Histogram draws a tensor's values: a bar for each value or range that the format has, all of one
// width, since that is the format's grid.
func Histogram(d *Display, g *derive.Histogram, w, h float64, measure Measure) {
	if len(g.Bars) == 0 {
		return
	}
	top, bottom := 10.0, h-18
	highest := derive.Count(int64(g.Highest))
	left := measure(highest, FontLabel) + 8
	width := w - left - 4
	if width < 40 || bottom-top < 20 {
		return
	}
	d.rect(left, top, width, 1, Line)
	d.label(left-6, top, highest, Text3, FontLabel, AlignRight)
	d.label(left-6, bottom, "0", Text3, FontLabel, AlignRight)
	each := width / float64(len(g.Bars))
	gap := 0.0
	if each > 3 {
		gap = 1
	}
	for i, b := range g.Bars {
		if b.Count == 0 {
			continue
		}
		share := min(float64(b.Count)/float64(g.Highest), 1)
		tall := max(share*(bottom-top), 1)
		x := left + float64(i)*each
		switch {
		case b.Zero:
			d.hatch(x, bottom-tall, max(each-gap, 1), tall, Text2, none, 4)
			d.outline(x+0.5, bottom-tall+0.5, max(each-gap-1, 1), tall, Text2, 1)
		case b.Edge:
			d.rect(x, bottom-tall, max(each-gap, 1), tall, Warn)
		default:
			d.rect(x, bottom-tall, max(each-gap, 1), tall, BF16)
		}
	}
	d.rect(left, bottom, width, 1, Line2)
	// Ticks by worth; those that would touch one that is there are left out.
	var taken [][2]float64
	for worth := 2; worth >= 1; worth-- {
		for i, b := range g.Bars {
			if b.Tick != worth {
				continue
			}
			at, half := left+(float64(i)+0.5)*each, measure(b.Text, FontLabel)/2+5
			at = min(max(at, left-4+half), w-half)
			if slices.ContainsFunc(taken, func(t [2]float64) bool { return at-half < t[1] && at+half > t[0] }) {
				continue
			}
			taken = append(taken, [2]float64{at - half, at + half})
			d.rect(math.Round(left+(float64(i)+0.5)*each), bottom, 1, 4, Line2)
			d.label(at, bottom+11, b.Text, Text3, FontLabel, AlignCentre)
		}
	}
}
