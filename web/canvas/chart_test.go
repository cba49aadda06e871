package canvas

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/web/derive"
)

func sevenWide(text string, _ Font) float64 { return 7 * float64(len([]rune(text))) }

// labels returns where each text of a display list stands.
func labels(d *Display) map[string][2]float64 {
	places := map[string][2]float64{}
	sizes := map[float32]int{opRect: 6, opHatch: 8, opOutline: 7, opLabel: 7, opClip: 5, opUnclip: 1, opDot: 5, opStrip: 6, opAlpha: 2}
	for i := 0; i < len(d.Ops); {
		if d.Ops[i] == opPath {
			i += 4 + 2*int(d.Ops[i+1])
			continue
		}
		if d.Ops[i] == opLabel {
			places[d.Text[int(d.Ops[i+3])]] = [2]float64{float64(d.Ops[i+1]), float64(d.Ops[i+2])}
		}
		i += sizes[d.Ops[i]]
	}
	return places
}

func TestChartNamesItsLinesApart(t *testing.T) {
	c := &derive.Chart{X: [2]float64{1, 48}, Y: [2]float64{0, 4}, YTicks: []derive.Tick{{At: 0, Text: "0"}, {At: 4, Text: "4"}}}
	for i, name := range []string{"FP32", "BF16", "FP8", "FP16"} {
		line := derive.Series{Name: name, Colour: "fp32", Mark: i}
		for k := range 48 {
			line.Y = append(line.Y, 3-float64(k)/48+float64(i)/1000)
		}
		c.Series = append(c.Series, line)
	}
	c.Series[2].Y[40] = math.NaN()
	for _, size := range [][2]float64{{400, 240}, {300, 104}, {200, 90}} {
		var d Display
		Chart(&d, c, size[0], size[1], sevenWide)
		at := labels(&d)
		var ys []float64
		for _, name := range []string{"FP16", "FP8", "BF16", "FP32"} {
			require.Contains(t, at, name)
			require.Less(t, at[name][0], size[0])
			ys = append(ys, at[name][1])
		}
		for i := 1; i < len(ys); i++ {
			require.GreaterOrEqual(t, ys[i]-ys[i-1], float64(labelHeight)-0.01)
		}
		require.LessOrEqual(t, ys[len(ys)-1], size[1])
		for i, x := range d.Ops {
			require.False(t, x != x, "NaN at %d", i)
		}
	}
}

func TestChartsOfNothing(t *testing.T) {
	for _, size := range [][2]float64{{0, 0}, {30, 30}, {400, 100}} {
		var d Display
		Chart(&d, &derive.Chart{X: [2]float64{1, 2}, Y: [2]float64{0, 1}, Series: []derive.Series{{Name: "FP32"}}}, size[0], size[1], sevenWide)
		Histogram(&d, &derive.Histogram{}, size[0], size[1], sevenWide)
		Histogram(&d, &derive.Histogram{Highest: 1, Bars: []derive.Bar{{Text: "0", Zero: true, Tick: 2, Count: 5}}}, size[0], size[1], sevenWide)
		for _, x := range d.Ops {
			require.False(t, x != x)
		}
	}
}

func TestHistogramsTicksDoNotTouch(t *testing.T) {
	h := &derive.Histogram{Highest: 9}
	for i := range 250 {
		h.Bars = append(h.Bars, derive.Bar{Text: derive.Plain(1000 + i), Count: i % 10, Tick: 1, Zero: i == 125})
	}
	var d Display
	Histogram(&d, h, 300, 104, sevenWide)
	var xs []float64
	for text, at := range labels(&d) {
		if len(text) == 4 {
			xs = append(xs, at[0])
		}
	}
	require.Greater(t, len(xs), 2)
	for i := range xs {
		for j := range i {
			require.GreaterOrEqual(t, math.Abs(xs[i]-xs[j]), 28.0)
		}
	}
}
