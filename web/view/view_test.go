package view

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/maxence-charriere/go-app/v9/pkg/app"
	"github.com/stretchr/testify/require"

	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/sample"
	"distopt/web/state"
)

// shown returns the page after some messages, and a mailbox that keeps what is posted.
func shown(t *testing.T, messages ...state.Msg) (derive.Page, *Mailbox, *[]state.Msg) {
	t.Helper()
	s, effects := state.Update(state.New(), state.Started{Docs: state.Opening()})
	for _, e := range effects {
		if e, ok := e.(state.Simulate); ok {
			s, _ = state.Update(s, state.Simulated{Slot: e.Slot, ID: e.ID, Result: sample.Result(2, 4)})
		}
	}
	for _, m := range messages {
		s, _ = state.Update(s, m)
	}
	posted := &[]state.Msg{}
	return new(derive.Cache).Page(&s), &Mailbox{Send: func(m state.Msg) { *posted = append(*posted, m) }}, posted
}

func render(t *testing.T, c app.UI) string {
	t.Helper()
	d := app.NewClientTester(c)
	defer d.Close()
	d.Consume()
	return app.HTMLString(c)
}

func TestEveryRegionRenders(t *testing.T) {
	for name, messages := range map[string][]state.Msg{
		"opening":     nil,
		"compare":     {state.ComparePicked{}},
		"collectives": {state.DetailPicked{Tab: state.Collectives}},
		"table":       {state.TableToggled{}},
		"spans":       {state.SpanTableToggled{}},
		"versions":    {state.DetailPicked{Tab: state.FourVersions}, state.VersionsDone{ID: 4, Rows: []state.VersionRow{{Version: "before", Result: sample.Result(1, 2)}, {Version: "after", Err: "no"}}}},
		"broken":      {state.TextEdited{Text: "model: ["}},
		"figure":      {state.FigureOpened{ID: ids.Exposed}},
		"stopped":     {state.WorkerStopped{Slot: 0, Text: "exit code 2", Report: "goroutine"}},
		"imported":    {state.Imported{Name: "x.yaml", Text: "model:\n  foo: 1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, mail, _ := shown(t, messages...)
			for _, c := range []app.UI{
				&Header{Mail: mail, VM: p.Header},
				&Config{Mail: mail, Tab: p.ConfigTab, Form: p.Form, Editor: p.Editor, Problems: p.Problems},
				&Banner{Mail: mail, VM: p.Banner},
				&Figures{Mail: mail, VM: p.Figures},
				&Timeline{Mail: mail, VM: p.Timeline, Control: &canvas.Control{}},
				&Inspector{Mail: mail, VM: p.Inspector, ID: ids.Inspector},
				&Details{Mail: mail, VM: p.Details, Inspector: p.Inspector, Pictures: &canvas.BucketPictures{}},
				&Status{VM: p.Status},
				&PhoneNav{Mail: mail}, &More{Mail: mail},
				&Dialogs{Mail: mail, VM: p.Dialog},
			} {
				require.NotEmpty(t, render(t, c))
			}
		})
	}
}

func TestNoViewSetsAStyleAttribute(t *testing.T) {
	p, mail, _ := shown(t, state.ComparePicked{})
	for _, c := range []app.UI{
		&Figures{Mail: mail, VM: p.Figures}, &Timeline{Mail: mail, VM: p.Timeline, Control: &canvas.Control{}},
		&Details{Mail: mail, VM: p.Details, Inspector: p.Inspector, Pictures: &canvas.BucketPictures{}}, &Inspector{Mail: mail, VM: p.Inspector},
	} {
		require.NotContains(t, render(t, c), " style=", "the Content-Security-Policy refuses it")
	}
}

func TestErrorsAreTiedToTheirFields(t *testing.T) {
	p, mail, _ := shown(t, state.FieldEdited{Path: "model.global_batch_size", Text: "20"})
	html := render(t, &Config{Mail: mail, Form: p.Form, Editor: p.Editor, Problems: p.Problems})
	require.Contains(t, html, `id="f-model-global_batch_size-error"`)
	require.Contains(t, html, `aria-describedby="f-model-global_batch_size-error"`)
	require.Contains(t, html, `data-problem="error"`)
	require.Contains(t, html, `data-field="model.optim.bucket_cap_mb"`)
}

func TestNumbersTypedDifferentlyAreTheSame(t *testing.T) {
	require.True(t, same("1.", "1"))
	require.True(t, same("50_304", "50304"))
	require.False(t, same("16", "1"))
	require.True(t, same("1,000", "1000"))
	require.True(t, same(" x ", "x"), "what is typed stays as typed")
	require.False(t, same("x", "y"))
}

// Text has a contrast of 4.5 on every ground that it stands on, in both themes.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("../static/style.css")
	require.NoError(t, err)
	tokens, _, _ := strings.Cut(string(css), "--lane-fwd:")
	colours := func(name string) (out [2][3]float64) {
		_, rest, ok := strings.Cut(tokens, "\n  --"+name+": light-dark(")
		require.True(t, ok, name)
		both, _, _ := strings.Cut(rest, ")")
		for i, text := range strings.Split(both, ", ") {
			n, err := strconv.ParseUint(text[1:], 16, 32)
			require.NoError(t, err)
			for k := range out[i] {
				out[i][k] = float64(n>>(16-8*k)&255) / 255
			}
		}
		return out
	}
	luminance := func(c [3]float64) float64 { // WCAG 2.2
		for i, x := range c {
			if c[i] = math.Pow((x+0.055)/1.055, 2.4); x <= 0.04045 {
				c[i] = x / 12.92
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	for _, text := range []string{"text", "text-2", "exposed", "error", "warn", "good", "accent"} {
		for _, ground := range []string{"bg", "surface", "surface-2", "overlay", "accent-wash"} {
			a, b := colours(text), colours(ground)
			for theme := range a {
				x, y := luminance(a[theme]), luminance(b[theme])
				require.GreaterOrEqual(t, (max(x, y)+0.05)/(min(x, y)+0.05), 4.5, "%s on %s, theme %d", text, ground, theme)
			}
		}
	}
}
