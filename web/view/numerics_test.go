package view

import (
	"testing"

	"github.com/maxence-charriere/go-app/v9/pkg/app"
	"github.com/stretchr/testify/require"

	"distopt/core/lab"
	"distopt/web/canvas"
	"distopt/web/derive"
	"distopt/web/ids"
	"distopt/web/state"
)

// frame is a short run's.
func frame(t *testing.T) *lab.Frame {
	t.Helper()
	c := lab.Default(lab.Transformer)
	c.Hidden, c.FFN, c.Window, c.Steps = 8, 8, 8, 2
	element := 0
	_, f, err := lab.Answer(nil, lab.Request{Config: c, Steps: 2, Element: &element}, nil)
	require.NoError(t, err)
	return f
}

func TestNumericsRenders(t *testing.T) {
	opened := state.DetailPicked{Tab: state.Numerics}
	for name, c := range map[string]struct {
		messages []state.Msg
		want     string
	}{
		"idle":     {nil, "Nothing runs until you press Run"},
		"more":     {[]state.Msg{state.LabMoreToggled{}}, "lab-field-window"},
		"wrong":    {[]state.Msg{state.LabFieldEdited{Path: "ranks", Text: "65"}}, "got 65, want 1 to 64"},
		"starting": {[]state.Msg{state.LabRun{}}, "Building the model"},
		"failed":   {[]state.Msg{state.LabRun{}, state.LabRefused{ID: 4, Text: "The simulator stopped", Report: "stack"}}, "The simulator stopped"},
		"run":      {[]state.Msg{state.LabRun{}, state.LabAnswered{ID: 4, Frame: frame(t)}}, "All 4 ranks hold identical parameters after step 2."},
		"table":    {[]state.Msg{state.LabRun{}, state.LabAnswered{ID: 4, Frame: frame(t)}, state.TableToggled{}}, "lab-bins-table"},
		"paused":   {[]state.Msg{state.LabRun{}, state.LabPause{}}, "Resume"},
	} {
		t.Run(name, func(t *testing.T) {
			p, mail, _ := shown(t, append([]state.Msg{opened}, c.messages...)...)
			require.NotNil(t, p.Details.Numerics)
			text := render(t, &Details{Mail: mail, VM: p.Details, Inspector: p.Inspector, Pictures: &canvas.BucketPictures{}, Charts: &canvas.Charts{}})
			require.Contains(t, text, c.want)
			require.NotContains(t, text, ` style=`, "the Content-Security-Policy refuses it")
		})
	}
}

func TestPauseBecomesResume(t *testing.T) {
	for mode, want := range map[state.LabMode]state.Msg{state.LabRunning: state.LabPause{}, state.LabPaused: state.LabResume{}} {
		var posted []state.Msg
		b := &LabBar{Mail: &Mailbox{Send: func(m state.Msg) { posted = append(posted, m) }}, VM: &derive.Numerics{Mode: mode}}
		require.Contains(t, render(t, b), ids.LabPause)
		b.onPause(nil, app.Event{})
		require.Equal(t, []state.Msg{want}, posted)
	}
}
