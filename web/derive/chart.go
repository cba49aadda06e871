package derive

import (
	"math"
	"strconv"
	"strings"
)

// Chart is lines over steps.
type Chart struct {
	Title  string
	Label  string // for screen readers: what the lines say
	X      [2]float64
	Y      [2]float64
	Log    bool // the vertical axis, in powers of two: where there are several
	XTicks []Tick
	YTicks []Tick
	Series []Series
}

// Tick is a mark of an axis.
type Tick struct {
	At   float64
	Text string
}

// Series is one line. Colour and Mark tell it from the others: Mark without colour.
type Series struct {
	Name   string // at the end of the line
	Colour string
	Mark   int       // 0 circle, 1 square, 2 triangle, 3 diamond, 4 cross
	Y      []float64 // by step from 1; NaN where there is none
}

// Marks are the marks of series as characters.
var Marks = [...]string{"●", "■", "▲", "◆", "✕"}

// numeral writes a number of any magnitude with some significant digits.
func numeral(x float64, digits int) string {
	switch {
	case x != x:
		return "NaN"
	case math.IsInf(x, 1):
		return "∞"
	case math.IsInf(x, -1):
		return minus + "∞"
	case x == 0:
		return "0"
	}
	text := strconv.FormatFloat(x, 'g', digits, 64)
	if a := math.Abs(x); a >= 1e-4 && a < 1e7 && (a < math.Pow(10, float64(digits)) || x == math.Trunc(x)) {
		text = strconv.FormatFloat(x, 'f', max(digits-1-int(math.Floor(math.Log10(a))), 0), 64)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
	}
	text = strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(text)
	return strings.ReplaceAll(text, "-", minus)
}

// scale sets the axes of a chart to hold its series and n steps.
func (c *Chart) scale(steps int, fromZero bool) {
	low, high, positive := math.Inf(1), math.Inf(-1), true
	for _, s := range c.Series {
		for _, y := range s.Y {
			if y-y == 0 {
				low, high, positive = min(low, y), max(high, y), positive && y > 0
			}
		}
	}
	c.X = [2]float64{1, float64(max(steps, 2))}
	for at, step := 0.0, roundStep(float64(steps), 5); at <= c.X[1]; at += max(step, 1) {
		if at >= 1 {
			c.XTicks = append(c.XTicks, Tick{at, numeral(at, 5)})
		}
	}
	if low > high {
		low, high = 0, 1
	}
	c.Log = c.Log && positive && high/low > 8 // else a linear axis tells more
	if c.Log {
		a, b := math.Floor(math.Log2(low)), math.Ceil(math.Log2(high))
		if a == b {
			a, b = a-1, b+1
		}
		c.Y = [2]float64{a, b}
		every := max(math.Ceil((b-a)/4), 1)
		for at := math.Ceil(a/every) * every; at <= b; at += every {
			c.YTicks = append(c.YTicks, Tick{at, numeral(math.Exp2(at), 4)})
		}
		return
	}
	if fromZero {
		low = min(low, 0)
	}
	if few := 4e-3 * max(math.Abs(low), math.Abs(high), 1e-3); !(high-low > few) { // else ticks would read alike
		low, high = low-few, high+few
		if fromZero {
			low, high = 0, max(high, 1)
		}
	}
	step := roundStep(high-low, 4)
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	c.Y = [2]float64{low, high}
	for i := 0; i < 12; i++ {
		if at := low + float64(i)*step; at <= high+step/2 {
			c.YTicks = append(c.YTicks, Tick{at, numeral(math.Round(at/step)*step, 4)})
		}
	}
}

// roundStep is a step of 1, 2 or 5 times a power of ten that divides span into about n.
func roundStep(span float64, n float64) float64 {
	if !(span > 0) || math.IsInf(span, 0) {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(span/n)))
	for _, k := range [...]float64{1, 2, 5, 10} {
		if span/(step*k) <= n {
			return step * k
		}
	}
	return step * 10
}

// Histogram is a tensor on the grid of its format.
type Histogram struct {
	Title   string
	Label   string
	Bars    []Bar
	Highest int
	Facts   []Fact
}

// Bar is one bin: a code of FP8, a power of two of wider formats, or zero.
type Bar struct {
	Text  string // its value, or where it begins
	Range string
	Count int
	Zero  bool
	Edge  bool // the largest finite values: what saturates ends here
	Tick  int  // how much its text is worth as a tick: 2 first, 1, 0 never
}
