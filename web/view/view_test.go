package view

import (
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
