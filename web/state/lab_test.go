package state

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/lab"
)

// small makes the lab's run a short one.
func small(s State) State {
	for path, text := range map[string]string{"steps": "6", "hidden": "8", "ffn": "8", "window": "8"} {
		s, _ = Update(s, LabFieldEdited{Path: path, Text: text})
	}
	return s
}

// answer does what the simulator does with the request among the effects.
func answer(t *testing.T, s State, effects []Effect) (State, []Effect) {
	t.Helper()
	for _, e := range effects {
		if ask, ok := e.(AskLab); ok {
			_, frame, err := lab.Answer(nil, ask.Request, nil)
			require.NoError(t, err)
			return Update(s, LabAnswered{ID: ask.ID, Frame: frame, Milliseconds: 100})
		}
	}
	t.Fatalf("nothing was asked: %v", effects)
	return s, nil
}

func asks(effects []Effect) bool {
	for _, e := range effects {
		if _, ok := e.(AskLab); ok {
			return true
		}
	}
	return false
}

func TestLabRunsToItsEnd(t *testing.T) {
	s := small(opened(t))
	require.Equal(t, LabIdle, s.Lab.Mode, "nothing runs until asked")
	s, effects := Update(s, LabRun{})
	require.Equal(t, LabRunning, s.Lab.Mode)
	rounds := 0
	for ; s.Lab.Mode == LabRunning; rounds++ {
		s, effects = answer(t, s, effects)
	}
	require.Equal(t, LabDone, s.Lab.Mode)
	require.Greater(t, rounds, 1, "a run is asked for in pieces")
	require.Len(t, s.Lab.Records, 6)
	for i, r := range s.Lab.Records {
		require.Equal(t, i+1, r.Step)
	}
	require.True(t, s.Lab.Frame.Tensors[s.Lab.Watch.Tensor].GEMM, "an FP8 weight tells most")
	require.Contains(t, s.Live, "All 4 ranks hold identical parameters. BEFORE and AFTER do not differ.")
}

func TestLabPausesAndGoesOn(t *testing.T) {
	s := small(opened(t))
	s, effects := Update(s, LabRun{})
	s, _ = Update(s, LabPause{})
	s, more := answer(t, s, effects)
	require.Len(t, s.Lab.Records, 1, "what was on its way is taken in")
	require.Equal(t, LabPaused, s.Lab.Mode)
	if asks(more) { // another look at the same step
		s, more = answer(t, s, more)
	}
	require.False(t, asks(more))
	require.Len(t, s.Lab.Records, 1)

	s, effects = Update(s, LabPartPicked{Part: lab.Grad})
	require.True(t, asks(effects), "a rest is the time to look around")
	s, _ = answer(t, s, effects)
	require.Equal(t, lab.Grad, s.Lab.Seen.Watch.Part)

	s, effects = Update(s, LabResume{})
	require.True(t, asks(effects))
	s, _ = answer(t, s, effects)
	require.Greater(t, len(s.Lab.Records), 1)
}

func TestLabCancels(t *testing.T) {
	s := small(opened(t))
	s, effects := Update(s, LabRun{})
	s, _ = answer(t, s, effects)
	late := s.Lab.Request
	frame := s.Lab.Frame
	s, stop := Update(s, LabCancel{})
	require.Equal(t, []Effect{StopLab{}}, stop)
	require.Equal(t, LabCancelled, s.Lab.Mode)
	require.Len(t, s.Lab.Records, 1, "what was computed stays")
	s, _ = Update(s, LabAnswered{ID: late, Frame: frame})
	require.Len(t, s.Lab.Records, 1, "a late answer does not")
	s, effects = Update(s, LabCancel{})
	require.Empty(t, effects)
	s, effects = Update(s, LabRun{})
	require.True(t, asks(effects))
	require.Empty(t, s.Lab.Records)
}

func TestLabRefusesWithTheBound(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"ranks", "0", "ranks: got 0, want 1 to 64; set ranks to 1"},
		{"ranks", "65", "ranks: got 65, want 1 to 64; set ranks to 64"},
		{"steps", "99999999999999999999", "steps: got 99999999999999999999, want 1 to 2,000; set steps to 2000"},
		{"steps", "2.5", `steps: got "2.5", want a whole number; set steps to 48`},
		{"seed", "-1", "seed: got -1, want 0 to 9007199254740991; set seed to 1"},
		{"lr", "1e999", "lr: got 1e999, want 0 to"},
		{"lr", "NaN", "lr: got NaN, want 0 to"},
		{"lr", "", `lr: got "", want a number; set lr to 0.01`},
		{"lr", strings.Repeat("x", 5000), "xxx…\", want a number"},
		{"hidden", "30", "heads: got 4, want a divisor of the hidden size (30)"},
		{"steps", "1,999", ""},
	} {
		s := opened(t)
		s, _ = Update(s, LabFieldEdited{Path: c.path, Text: c.text})
		s, effects := Update(s, LabRun{})
		if c.want == "" {
			require.True(t, asks(effects), "%s %s", c.path, c.text)
			continue
		}
		require.Empty(t, effects, "%s %s", c.path, c.text)
		require.Equal(t, LabIdle, s.Lab.Mode)
		require.Contains(t, s.Live, c.want)
	}
}

func TestLabTakesUpToFourVariants(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, LabVariantPicked{ID: "config"})
	s, effects := Update(s, LabRun{})
	require.Empty(t, effects)
	require.Contains(t, s.Live, "variants: got 5, want 1 to 4")
	s, _ = Update(s, LabVariantPicked{ID: "fp32"})
	c, wrong := s.Lab.Setup.Config(s.Current().Read)
	require.Empty(t, wrong)
	require.Equal(t, "this configuration", c.Variants[3].Name)
}

func TestLabModelBringsItsOwnSizes(t *testing.T) {
	s := opened(t)
	s, _ = Update(s, LabFieldEdited{Path: "window", Text: "12"})
	s, _ = Update(s, LabModelPicked{Model: lab.MLP})
	c, wrong := s.Lab.Setup.Config(s.Current().Read)
	require.Empty(t, wrong)
	require.Equal(t, lab.Default(lab.MLP).Hidden, c.Hidden)
	require.Equal(t, 12, c.Window, "what was typed stays")
	s, _ = Update(s, LabModelPicked{Model: "other"})
	require.Equal(t, lab.MLP, s.Lab.Setup.Model)
}

func TestLabSaysWhyItEnded(t *testing.T) {
	s := small(opened(t))
	s, _ = Update(s, LabRun{})
	s, _ = Update(s, LabRefused{ID: s.Lab.Request, Text: "The simulator stopped: exit code 2", Report: "stack"})
	require.Equal(t, LabFailed, s.Lab.Mode)
	require.Contains(t, s.Live, "exit code 2")
	s, effects := Update(s, LabPartPicked{Part: lab.Grad})
	require.Empty(t, effects, "there is nothing to look at")
	_, effects = Update(s, LabRun{})
	require.True(t, asks(effects))
}
