package main

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"distopt/core/eval"
	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// drawn returns a scenario with random fields, mended as its errors say until it is valid. Integers
// are below 2^7.
func drawn(t *testing.T, rng *rand.Rand) scenario.Scenario {
	return draw(t, rng, func(*scenario.Field) int { return 1 << rng.IntN(7) })
}

// draw is drawn with integers of its own.
func draw(t *testing.T, rng *rand.Rand, integer func(*scenario.Field) int) scenario.Scenario {
	name := []string{scenario.NeMoAdam, scenario.NeMoAdam, scenario.PlainApex, scenario.MCoreAdam}[rng.IntN(4)]
	s := scenario.Default(name)
	for i := range scenario.Fields {
		f := &scenario.Fields[i]
		if f.Path == "model.optim.name" || rng.IntN(3) == 0 || !f.Applies(&s) && rng.IntN(8) > 0 {
			continue
		}
		text := strconv.Itoa(integer(f))
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
	// Sizes of every magnitude that the fields allow, of a few fields.
	wild := func(f *scenario.Field) int {
		if rng.IntN(4) > 0 {
			return 0 // out of range: the default stays
		}
		return int(math.Exp2(rng.Float64() * math.Log2(f.Max)))
	}
	for i := range 300 {
		var s scenario.Scenario
		if i%2 == 0 {
			s = drawn(t, rng)
		} else if s = draw(t, rng, wild); s.EstimateTasks() > 20_000 {
			continue
		}
		result, err := eval.Evaluate(&s)
		require.NoError(t, err, "%+v", s)
		require.Positive(t, result.Figures.StepTime)
		require.Equal(t, s.Parameters(), result.Figures.Parameters)
	}
}
