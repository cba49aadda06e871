package bridge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/lab"
	"distopt/core/report"
	"distopt/core/scenario"
)

func request(t testing.TB, text string) []byte {
	t.Helper()
	r, err := json.Marshal(Request{Op: Eval, A: text})
	require.NoError(t, err)
	return r
}

func TestEvalAnswersAResult(t *testing.T) {
	var told []float64
	head, spans, err := new(Bridge).Handle(request(t, scenario.Presets()[0].Text), func(done float64) { told = append(told, done) })
	require.NoError(t, err)
	var result report.Result
	require.NoError(t, json.Unmarshal(head, &result))
	require.Positive(t, result.Figures.StepTime)
	require.NoError(t, spans.Check())
	require.NotEmpty(t, spans.Start)
	for _, done := range told {
		require.True(t, 0 <= done && done <= 1, "%v", done)
	}
	require.IsNonDecreasing(t, append([]float64{0}, told...))
}

func TestEvalRefusesADocumentWithErrors(t *testing.T) {
	_, _, err := new(Bridge).Handle(request(t, "model:\n  hidden_size: -1\n"), func(float64) {})
	require.ErrorContains(t, err, "line 2, column")
	require.Empty(t, Report(err))
}

// An answer depends on its request alone, not on what was asked before.
func TestMemoryIsNotRemembered(t *testing.T) {
	var b Bridge
	for _, p := range scenario.Presets() {
		if strings.Contains(p.ID, "1t") {
			continue // the same code, and half a second
		}
		head, spans, err := b.Handle(request(t, p.Text), func(float64) {})
		require.NoError(t, err, p.ID)
		freshHead, freshSpans, err := new(Bridge).Handle(request(t, p.Text), func(float64) {})
		require.NoError(t, err, p.ID)
		require.Equal(t, string(freshHead), string(head), p.ID)
		require.Equal(t, freshSpans, spans, p.ID)
	}
}

// TestDigests writes a digest of the answer to every preset, and of runs of the lab, to the file named
// in DIGESTS, for comparison with the same on another architecture (.ci/determinism).
func TestDigests(t *testing.T) {
	var b Bridge
	var out strings.Builder
	for _, p := range scenario.Presets() {
		head, spans, err := b.Handle(request(t, p.Text), func(float64) {})
		require.NoError(t, err, p.ID)
		fmt.Fprintf(&out, "%s head %x spans %x\n", p.ID, sha256.Sum256(head), sha256.Sum256(spans.Encode()))
	}
	element := 5
	for _, model := range []string{lab.Transformer, lab.MLP} {
		for i := 0; i < len(lab.Variants()); i += lab.MaxVariants {
			c := lab.Default(model)
			c.Variants = lab.Variants()[i:min(i+lab.MaxVariants, len(lab.Variants()))]
			for _, part := range lab.Parts {
				r := lab.Request{Config: c, Steps: 15, Watch: lab.Watch{Tensor: 3, Part: part}, Element: &element}
				head, _, err := b.Handle(ask(t, Request{Op: Lab, Lab: &r}), func(float64) {})
				require.NoError(t, err)
				fmt.Fprintf(&out, "lab %s %s %s %x\n", model, c.Variants[0].ID, part, sha256.Sum256(head))
			}
		}
	}
	if path := os.Getenv("DIGESTS"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
}

func BenchmarkEval(b *testing.B) {
	for _, p := range scenario.Presets() {
		b.Run(p.ID, func(b *testing.B) {
			var bridge Bridge
			r := request(b, p.Text)
			for b.Loop() {
				_, _, err := bridge.Handle(r, func(float64) {})
				require.NoError(b, err)
			}
		})
	}
}

// What the page puts together from the parts is what the worker has taken apart.
func TestArraysAreTheBlock(t *testing.T) {
	_, spans, err := new(Bridge).Handle(request(t, scenario.Presets()[0].Text), func(float64) {})
	require.NoError(t, err)
	block := spans.Header()
	for _, a := range Arrays(spans) {
		block = append(block, a...)
	}
	require.Equal(t, spans.Encode(), block)
	got, err := report.Empty(block, len(block))
	require.NoError(t, err)
	rest := block[len(spans.Header()):]
	for _, a := range Arrays(&got) {
		rest = rest[copy(a, rest):]
	}
	require.Empty(t, rest)
	require.Equal(t, *spans, got)
}
