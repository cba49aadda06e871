package canvas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/web/derive"
	"distopt/web/sample"
	"distopt/web/state"
)

func strip(class derive.Class, times ...int64) *derive.Strip {
	s := &derive.Strip{}
	for i := 0; i < len(times); i += 2 {
		s.Start, s.End = append(s.Start, times[i]), append(s.End, times[i+1])
		s.Class, s.Span = append(s.Class, class), append(s.Span, int32(i/2))
	}
	return s
}

func TestRasterShowsCoverage(t *testing.T) {
	var r Raster
	var colours [derive.NumClasses]uint32
	colours[derive.ClassForward] = 0xff0000ff // opaque red
	const ground = 0xffffffff
	dst := make([]uint32, 10)
	r.Row(dst, []*derive.Strip{strip(derive.ClassForward, 0, 10, 25, 30, 90, 100)}, 0, 100, &colours, ground)
	require.Equal(t, uint32(0xff0000ff), dst[0])
	require.Equal(t, uint32(0), dst[1], "nothing there: the ground shows through")
	require.InDelta(t, 127, dst[2]>>8&255, 2, "half covered")
	require.Equal(t, uint32(0xff0000ff), dst[9])

	thousands := strip(derive.ClassForward)
	for i := int64(0); i < 100_000; i++ { // 10,000 spans a pixel, each half as long as its share
		thousands.Start, thousands.End = append(thousands.Start, 2*i), append(thousands.End, 2*i+1)
		thousands.Class, thousands.Span = append(thousands.Class, derive.ClassForward), append(thousands.Span, int32(i))
	}
	r.Row(dst, []*derive.Strip{thousands}, 0, 200_000, &colours, ground)
	for x, c := range dst {
		require.InDelta(t, 127, c>>8&255, 3, "pixel %d", x)
	}

	r.Row(dst, []*derive.Strip{strip(derive.ClassForward, 50, 51)}, 0, 1e6, &colours, ground)
	require.NotZero(t, dst[0], "a span thinner than a pixel stays visible")

	r.Row(dst, []*derive.Strip{strip(derive.ClassForward, -1e12, 1e12)}, 0, 100, &colours, ground)
	for _, c := range dst {
		require.Equal(t, uint32(0xff0000ff), c)
	}
}

func TestRulerStepsAreRound(t *testing.T) {
	for _, c := range []struct {
		span float64
		step float64
	}{{196e6, 20e6}, {10e6, 1e6}, {1e6, 1e5}, {2e3, 200}} {
		require.Equal(t, c.step, RulerStep(c.span, 750))
	}
	require.Equal(t, "0 ms", RulerLabel(0, 20e6))
	require.Equal(t, "40", RulerLabel(40e6, 20e6))
	require.Equal(t, "0.5", RulerLabel(5e5, 1e5))
	require.Equal(t, "20 µs", RulerLabel(2e4, 1e4))
}

func picture(t *testing.T, stages int) *derive.Timeline {
	t.Helper()
	s, effects := state.Update(state.New(), state.Started{Docs: state.Opening()})
	for _, e := range effects {
		if e, ok := e.(state.Simulate); ok {
			s, _ = state.Update(s, state.Simulated{Slot: e.Slot, ID: e.ID, Result: sample.Result(stages, 6)})
		}
	}
	return new(derive.Cache).Page(&s).Timeline
}

func narrow(text string, f Font) float64 { return float64(len(text)) * 6 }

func TestFrameLabelsAndMarks(t *testing.T) {
	tl := picture(t, 1)
	p := tl.Picture
	v := View{T0: 0, T1: float64(p.End), W: 800, H: float64(p.Height), Pixels: 800}
	painter := Timeline{Measure: narrow}
	var d Display
	painter.Frame(&d, make([]uint32, len(p.Rows)*v.Pixels), p, v, tl.Marked)
	require.Contains(t, d.Text, "Backward, microbatch 0")
	require.Contains(t, d.Text, "Forward 0")
	require.GreaterOrEqual(t, count(&d, opOutline), 3, "selection and a related all-gather")

	v.T0, v.T1 = 30e6, 41e6 // one backward layer fills the view: its kernels are named
	d.Reset()
	painter.Frame(&d, make([]uint32, len(p.Rows)*v.Pixels), p, v, derive.Marked{Span: -1})
	require.Contains(t, d.Text, "dgrad")
	require.Contains(t, d.Text, "wgrad")
}

// count walks a display list as paint.js does.
func count(d *Display, op int) (n int) {
	size := map[int]int{opRect: 6, opHatch: 8, opOutline: 7, opLabel: 7, opClip: 5, opUnclip: 1, opDot: 5, opStrip: 6, opAlpha: 2, opLayer: 1}
	for i := 0; i < len(d.Ops); {
		k := int(d.Ops[i])
		if k == op {
			n++
		}
		if k == opPath {
			i += 4 + 2*int(d.Ops[i+1])
			continue
		}
		i += size[k]
	}
	return n
}

func TestHitFindsWhatIsDrawn(t *testing.T) {
	for _, stages := range []int{1, 3} {
		p := picture(t, stages).Picture
		v := View{T0: 0, T1: float64(p.End), W: 1000, H: float64(p.Height), Pixels: 1000}
		r := p.Results[0]
		for _, row := range p.Rows {
			if row.Kind != derive.RowPhase && row.Kind != derive.RowGradSync && row.Kind != derive.RowExposed {
				continue
			}
			s := row.Strips[0]
			for i := range s.Start {
				x := v.X(float64(s.Start[i]+s.End[i]) / 2)
				slot, span, _ := Hit(p, &v, x, float64(row.Y)+float64(row.H)/2)
				require.Equal(t, 0, slot)
				require.GreaterOrEqual(t, span, int32(0))
				if row.Kind == derive.RowExposed {
					require.Equal(t, r.Spans.Group[s.Span[i]], r.Spans.Group[span], "exposed time leads to its collective")
					require.NotEqual(t, report.LaneExposed, r.Spans.Lane[span])
				} else {
					require.Equal(t, s.Span[i], span)
				}
			}
		}
		_, span, _ := Hit(p, &v, 500, float64(p.Height)+50)
		require.Equal(t, int32(-1), span)
	}
}

func TestKeysWalkTheSpans(t *testing.T) {
	p := picture(t, 2).Picture
	r := p.Results[0]
	_, at := Step(p, 0, -1, "ArrowRight")
	require.Equal(t, report.LanePhase, r.Spans.Lane[at])
	_, next := Step(p, 0, at, "ArrowRight")
	require.Equal(t, at+1, next)
	_, back := Step(p, 0, next, "ArrowLeft")
	require.Equal(t, at, back)
	_, down := Step(p, 0, at, "ArrowDown")
	require.Equal(t, report.LaneCompute, r.Spans.Lane[down])
	_, bare := Step(p, 0, at, "]")
	require.Positive(t, int64(r.Collectives[r.Spans.Group[bare]].Exposed))
	_, same := Step(p, 0, bare, ",")
	require.NotEqual(t, bare, same)
}

func TestBucketPicturesStayInside(t *testing.T) {
	s, effects := state.Update(state.New(), state.Started{Docs: state.Opening()})
	for _, e := range effects {
		if e, ok := e.(state.Simulate); ok {
			s, _ = state.Update(s, state.Simulated{Slot: e.Slot, ID: e.ID, Result: sample.Result(1, 90)})
		}
	}
	p := new(derive.Cache).Page(&s)
	var d Display
	List(&d, p.Details.List, p.Details.Bucket.ID, 500, 300, 0, narrow)
	short := len(d.Ops)
	require.Contains(t, d.Text, "rank 0")
	require.NotContains(t, d.Text, "60", "rows out of view are not drawn")
	d.Reset()
	List(&d, p.Details.List, p.Details.Bucket.ID, 500, 3000, 0, narrow)
	require.Greater(t, len(d.Ops), short)
	d.Reset()
	Bar(&d, p.Details.Bucket, 0, float64(p.Details.Bucket.Size), 0, 600, narrow)
	require.Contains(t, d.Text, "L0.qkv.w")
	d.Reset()
	Buffers(&d, p.Details.Bucket, 600, narrow)
	require.Contains(t, d.Text, "bf16, fp8")
}

func BenchmarkRasterMillion(b *testing.B) {
	s := strip(derive.ClassForward)
	for i := int64(0); i < 1_000_000; i++ {
		s.Start, s.End = append(s.Start, 3*i), append(s.End, 3*i+2)
		s.Class, s.Span = append(s.Class, derive.ClassForward), append(s.Span, int32(i))
	}
	var r Raster
	var colours [derive.NumClasses]uint32
	dst := make([]uint32, 1200)
	for b.Loop() {
		r.Row(dst, []*derive.Strip{s}, 0, 3e6, &colours, 0)
	}
}

func TestRulerLabelsKeepApart(t *testing.T) {
	for _, span := range []float64{200, 5e3, 1e5, 1e6, 1e9, 6e10} {
		for _, from := range []float64{0, 80_730_700, 62_000_000_000} {
			v := View{T0: from, T1: from + span, W: 750}
			step := RulerStep(span, v.W)
			apart := float64(labelEvery(&v, step)) * step / span * v.W
			require.Greater(t, apart, narrow(RulerLabel(v.T1, step), FontLabel)+6, "%g ns at %g", span, from)
			require.Less(t, apart, 4*narrow(RulerLabel(v.T1, step), FontLabel)+200)
		}
	}
}
