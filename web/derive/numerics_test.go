package derive

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/lab"
	"distopt/web/state"
)

// labRun is the page with the tab Numerics after a run, set up by some messages.
func labRun(t *testing.T, messages ...state.Msg) state.State {
	t.Helper()
	_, s := page(t, 1)
	for _, m := range append([]state.Msg{
		state.DetailPicked{Tab: state.Numerics}, state.LabFieldEdited{Path: "steps", Text: "6"}, state.LabFieldEdited{Path: "hidden", Text: "8"},
		state.LabFieldEdited{Path: "ffn", Text: "8"}, state.LabFieldEdited{Path: "window", Text: "8"},
	}, messages...) {
		s, _ = state.Update(s, m)
	}
	s, effects := state.Update(s, state.LabRun{})
	var session *lab.Session
	for len(effects) > 0 {
		ask, ok := effects[len(effects)-1].(state.AskLab)
		require.True(t, ok)
		var frame *lab.Frame
		var err error
		session, frame, err = lab.Answer(session, ask.Request, nil)
		require.NoError(t, err)
		s, effects = state.Update(s, state.LabAnswered{ID: ask.ID, Frame: frame, Milliseconds: 100})
	}
	return s
}

func TestNumericsShowsARun(t *testing.T) {
	s := labRun(t)
	n := new(Cache).Page(&s).Details.Numerics
	require.Equal(t, "Step 6 of 6", n.Progress)
	require.Equal(t, LabCheck{State: "good", Text: "All 4 ranks hold identical parameters after step 6.", Note: "0 elements differ in 6 steps × 4 variants"}, n.Checks[0])
	require.Equal(t, "good", n.Checks[1].State)
	require.Equal(t, "BEFORE and AFTER: no difference.", n.Checks[1].Text)
	require.Contains(t, n.Checks[1].Note, "0 elements differ in 6 steps × 3 variants. Not compared: FP8, scaled fp16 state (")
	require.Len(t, n.Rows, 4)
	looks := map[string]bool{}
	for i, line := range n.Loss.Series {
		require.Len(t, line.Y, 6)
		require.False(t, looks[line.Colour] || looks[Marks[line.Mark]], "told apart with colour and without")
		looks[line.Colour], looks[Marks[line.Mark]] = true, true
		for _, y := range line.Y {
			require.LessOrEqual(t, n.Loss.Y[0], y)
			require.LessOrEqual(t, y, n.Loss.Y[1])
		}
		require.Equal(t, Marks[line.Mark], n.Rows[i].Mark)
	}
	require.Contains(t, n.Loss.Label, "FP32 from 3.")
	require.Contains(t, n.Bins.Title, "on the grid of E4M3", "an FP8 weight of an FP8 variant is shown first")
	total := 0
	for _, b := range n.Bins.Bars {
		total += b.Count
	}
	require.Equal(t, n.Bins.Facts[0].Value, Count(int64(total)))
	require.NotEmpty(t, n.Journey.Stops)
	require.Empty(t, n.Wrongly)
	require.False(t, n.Stale)
	require.Nil(t, n.Table)

	s, _ = state.Update(s, state.TableToggled{})
	s, _ = state.Update(s, state.LabFieldEdited{Path: "seed", Text: "2"})
	s, _ = state.Update(s, state.LabElementEdited{Text: "-1"})
	n = new(Cache).Page(&s).Details.Numerics
	require.Len(t, n.Table.Rows, 24)
	require.True(t, n.Stale)
	require.Contains(t, n.Wrongly, `got "-1", want 0 to `)
}

func TestNumericsExplainsWhatIsUseless(t *testing.T) {
	s := labRun(t, state.LabFieldEdited{Path: "lr", Text: "1e38"})
	n := new(Cache).Page(&s).Details.Numerics
	useless := 0
	for _, r := range n.Rows {
		if r.Health == string(lab.Useless) {
			useless++
			require.NotEmpty(t, r.Note, "no NaN without an explanation")
		}
	}
	require.Positive(t, useless)
	for _, c := range []*Chart{n.Loss, n.Amax, n.Scale, n.Lost} {
		require.False(t, math.IsNaN(c.Y[0]+c.Y[1]) || math.IsInf(c.Y[0]+c.Y[1], 0))
		require.Less(t, c.Y[0], c.Y[1])
		require.LessOrEqual(t, len(c.YTicks), 12)
	}
}

// A variant that was stopped was compared in its own steps, and ranks are counted as ranks.
func TestNumericsCountsWhatItSays(t *testing.T) {
	variant := func(stopped int, before bool) lab.VariantStatus {
		return lab.VariantStatus{Stopped: stopped, Before: lab.Check{Checked: before}, Agree: lab.Check{Checked: true}}
	}
	for _, c := range []struct {
		variants      []lab.VariantStatus
		agree, before string
	}{
		{[]lab.VariantStatus{variant(0, true), variant(0, true)}, "0 elements differ in 48 steps × 2 variants", "0 elements differ in 48 steps × 2 variants"},
		{[]lab.VariantStatus{variant(0, true), variant(2, true)}, "0 elements differ in 50 steps of 2 variants together", "0 elements differ in 50 steps of 2 variants together"},
		{[]lab.VariantStatus{variant(48, true)}, "0 elements differ in 48 steps × 1 variant", "0 elements differ in 48 steps × 1 variant"},
		{[]lab.VariantStatus{variant(0, true), variant(1, false)}, "0 elements differ in 49 steps of 2 variants together", "0 elements differ in 48 steps × 1 variant. Not"},
	} {
		checks := labChecks(&state.Lab{Config: lab.Config{Ranks: 4}, Frame: &lab.Frame{Step: 48, Variants: c.variants}})
		require.Equal(t, c.agree, checks[0].Note)
		require.True(t, strings.HasPrefix(checks[1].Note, c.before), checks[1].Note)
	}
	f := &lab.Frame{Variants: []lab.VariantStatus{{EmptyShards: 57, Health: lab.Early}}}
	row := labRows(f, labMarks([]lab.Variant{{ID: "fp32", Params: "fp32"}}), 64)[0]
	require.Equal(t, "57 ranks of 64 own no element.", row.Note)
	for _, h := range []lab.Health{lab.Healthy, lab.Suspect, lab.Useless, lab.Starting, lab.Early} {
		require.NotEmpty(t, healthWords[h])
	}
}

func TestNumericsErrorsStandAtTheirFields(t *testing.T) {
	_, s := page(t, 1)
	for _, m := range []state.Msg{
		state.DetailPicked{Tab: state.Numerics}, state.LabFieldEdited{Path: "ranks", Text: "65"}, state.LabFieldEdited{Path: "beta2", Text: "1"},
		state.LabNumberEdited{Text: "abc"},
	} {
		s, _ = state.Update(s, m)
	}
	n := new(Cache).Page(&s).Details.Numerics
	require.False(t, n.Ready)
	require.True(t, n.More, "an error is never hidden")
	for _, f := range n.Fields {
		switch f.Path {
		case "ranks":
			require.Equal(t, "got 65, want 1 to 64; set it to 64", f.Error)
		case "beta2":
			require.Contains(t, f.Error, "want 0 to 0.9999999")
		default:
			require.Empty(t, f.Error, f.Path)
		}
	}
	require.Contains(t, n.Number.Error, `got "abc"`)
	require.Empty(t, n.Number.Rows)
	s, _ = state.Update(s, state.LabVariantPicked{ID: "fp16"})
	s, _ = state.Update(s, state.LabFieldEdited{Path: "ranks", Text: "4"})
	s, _ = state.Update(s, state.LabFieldEdited{Path: "beta2", Text: "0.98"})
	require.Contains(t, new(Cache).Page(&s).Details.Numerics.Wrong, "variants: got 5, want 1 to 4")
}

func TestNumberInEveryFormat(t *testing.T) {
	v := numberView("0.1", "fp32")
	require.Len(t, v.Rows, 5)
	require.Equal(t, NumberRow{
		Format: "BF16", Bits: "0x3dcd", Sign: "0", Exponent: "01111011", Mantissa: "1001101", Value: "0.100097656", Error: "9.77e−5", Relative: "0.0977\u202f%",
		Below: "0.099609375", Above: "0.100097656", ULP: "0.0004883", Kind: "normal", Colour: "bf16",
	}, v.Rows[1])
	require.Equal(t, "−448", numberView("−1000", "fp32").Rows[3].Value)
	require.Equal(t, "NaN", numberView("0x7f", "e4m3").Rows[0].Value)
	zero, inf, last := numberView("-0", "fp32"), numberView("inf", "fp32"), numberView("65504", "fp32")
	require.Equal(t, [2]string{"−0", "−0"}, [2]string{zero.Exact, zero.Rows[0].Value})
	require.Equal(t, [4]string{"–", "−∞", "448", "–"}, [4]string{inf.Rows[3].Relative, inf.Rows[3].Error, inf.Rows[3].Below, inf.Rows[3].Above})
	require.Equal(t, [2]string{"65472", "–"}, [2]string{last.Rows[2].Below, last.Rows[2].Above})
}

func TestNumerals(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{{0, 4, "0"}, {0.1, 4, "0.1"}, {-2.5, 3, "−2.5"}, {448, 3, "448"}, {65536, 3, "65536"}, {1e-9, 3, "1e−9"}, {1.7014118e38, 4, "1.701e38"}, {math.NaN(), 3, "NaN"}, {math.Inf(-1), 3, "−∞"}, {12345.678, 3, "1.23e4"}} {
		require.Equal(t, c.want, numeral(c.x, c.digits))
	}
}

func TestChartsHoldAnything(t *testing.T) {
	for _, y := range [][]float64{nil, {math.NaN()}, {math.Inf(1), 1}, {3, 3, 3}, {0}, {-1e300, 1e300}, {1e-300, 1e300}, {-5}} {
		for _, log := range []bool{false, true} {
			for _, zero := range []bool{false, true} {
				c := &Chart{Log: log, Series: []Series{{Y: y}}}
				c.scale(len(y), zero)
				require.Less(t, c.Y[0], c.Y[1], "%v %v", y, log)
				require.LessOrEqual(t, len(c.YTicks), 12)
				require.LessOrEqual(t, len(c.XTicks), 12)
			}
		}
	}
}
