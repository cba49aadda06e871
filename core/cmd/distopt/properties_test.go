package main

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"distopt/core/eval"
	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// drawn returns a scenario with random fields, mended as its errors say until it is valid.
func drawn(t *testing.T, rng *rand.Rand) scenario.Scenario {
	name := scenario.NeMoAdam
	if rng.IntN(3) == 0 {
		name = scenario.PlainApex
	}
	s := scenario.Default(name)
	for i := range scenario.Fields {
		f := &scenario.Fields[i]
		if f.Path == "model.optim.name" || rng.IntN(3) == 0 {
			continue
		}
		text := strconv.Itoa(1 << rng.IntN(7))
		switch f.Kind {
		case scenario.Float:
			text = strconv.FormatFloat(float64(1+rng.IntN(400))/16, 'f', -1, 64)
		case scenario.Bool:
			text = strconv.FormatBool(rng.IntN(2) == 0)
		case scenario.Choice:
			text = f.Choices[rng.IntN(len(f.Choices))]
		}
		if err := f.Set(&s, text); err != nil {
			continue // out of its range
		}
	}
	for range 40 {
		errs, _ := s.Validate()
		if len(errs) == 0 {
			return s
		}
		for _, e := range errs {
			if len(e.Edits) == 0 {
				continue
			}
			for _, x := range e.Edits {
				f, ok := scenario.ByPath(x.Path)
				require.True(t, ok)
				require.Nil(t, f.Set(&s, x.Value))
			}
			break
		}
	}
	t.Fatalf("no valid scenario in 40 edits: %+v", s)
	return s
}

// What validation lets pass can be simulated: no later pass refuses it or breaks down.
func TestValidScenariosEvaluate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 150 {
		s := drawn(t, rng)
		result, err := eval.Evaluate(&s)
		require.NoError(t, err, "%+v", s)
		require.Positive(t, result.Figures.StepTime)
		require.Equal(t, s.Parameters(), result.Figures.Parameters)
	}
}
