package bridge

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/lab"
)

func ask(t testing.TB, r Request) []byte {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return text
}

func smallLab() lab.Config {
	c := lab.Default(lab.Transformer)
	c.Hidden, c.FFN, c.Window, c.Steps = 8, 8, 8, 12
	return c
}

// A run that is asked for in pieces, by several workers, is the run that is asked for at once.
func TestLabStreams(t *testing.T) {
	element := 3
	last := lab.Request{Config: smallLab(), From: 9, Steps: 3, Watch: lab.Watch{Tensor: 1, Part: lab.Grad}, Element: &element}
	fresh, _, err := new(Bridge).Handle(ask(t, Request{Op: Lab, Lab: &last}), func(float64) {})
	require.NoError(t, err)

	var b Bridge
	var told []float64
	var steps []lab.StepRecord
	for from := 0; from < 9; from += 3 {
		r := lab.Request{Config: smallLab(), From: from, Steps: 3}
		head, _, err := b.Handle(ask(t, Request{Op: Lab, Lab: &r}), func(done float64) { told = append(told, done) })
		require.NoError(t, err)
		var f lab.Frame
		require.NoError(t, json.Unmarshal(head, &f))
		require.Equal(t, from+3, f.Step)
		require.False(t, f.Done)
		steps = append(steps, f.Steps...)
	}
	require.Len(t, told, 9)
	streamed, _, err := b.Handle(ask(t, Request{Op: Lab, Lab: &last}), func(float64) {})
	require.NoError(t, err)
	require.Equal(t, string(fresh), string(streamed))
	var f lab.Frame
	require.NoError(t, json.Unmarshal(streamed, &f))
	require.True(t, f.Done)
	require.Len(t, f.Journeys, 4)
	for i, s := range append(steps, f.Steps...) {
		require.Equal(t, i+1, s.Step)
	}
}

func TestLabRefuses(t *testing.T) {
	c := smallLab()
	c.Ranks = 0
	for _, k := range []struct {
		r    Request
		want string
	}{
		{Request{Op: Lab}, "lab: got nothing"},
		{Request{Op: Inspect}, "inspect: got nothing"},
		{Request{Op: Lab, Lab: &lab.Request{Config: c}}, "ranks: got 0, want 1 to 64; set ranks to 1"},
		{Request{Op: Lab, Lab: &lab.Request{Config: smallLab(), Steps: 1000}}, "steps: got 1000, want 0 to 50 in one request"},
		{Request{Op: Lab, Lab: &lab.Request{Config: smallLab(), Watch: lab.Watch{Tensor: 99}}}, "watch.tensor: got 99"},
		{Request{Op: Lab, Lab: &lab.Request{Config: smallLab(), Watch: lab.Watch{Part: "x"}}}, "watch.part: got \"x\""},
	} {
		_, _, err := new(Bridge).Handle(ask(t, k.r), func(float64) {})
		require.ErrorContains(t, err, k.want)
		require.Empty(t, Report(err))
	}
}

func TestInspect(t *testing.T) {
	head, _, err := new(Bridge).Handle(ask(t, Request{Op: Inspect, Inspect: &lab.Question{Number: "0.1"}}), nil)
	require.NoError(t, err)
	var a lab.Inspection
	require.NoError(t, json.Unmarshal(head, &a))
	require.Len(t, a.Formats, 5)
}
