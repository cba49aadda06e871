package lab

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
)

// The first numbers of PCG-XSH-RR with seed 42 and stream 54, as its author's demo prints them.
func TestRandomIsPCG(t *testing.T) {
	r := newRandom(42, 54)
	for _, want := range []uint32{0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e} {
		require.Equal(t, want, r.next())
	}
}

func TestNormal(t *testing.T) {
	r := newRandom(1, 2)
	var mean, square float64
	const n = 20000
	for range n {
		x := float64(r.normal())
		mean += x / n
		square += x * x / n
	}
	require.InDelta(t, 0, mean, 0.03)
	require.InDelta(t, 1, square, 0.03)
}

// draw returns any small run that passes Check.
func draw(r *random) Config {
	for {
		c := Default([]string{Transformer, MLP}[r.below(2)])
		c.Layers, c.Heads, c.FFN, c.Window = 1+r.below(3), 1+r.below(3), 1+r.below(20), 1+r.below(6)
		c.Hidden = c.Heads * (1 + r.below(5))
		c.Ranks, c.Batch, c.Steps, c.Seed = 1+r.below(9), 1+r.below(3), 1+r.below(4), int64(r.next())
		c.BucketCapMB = []float64{1e-6, 0.0005, 0.002, 0.02, 100}[r.below(5)]
		c.AmaxHistory, c.MostRecent, c.Margin = 1+r.below(4), r.below(2) == 0, r.below(9)-4
		c.LR = []float64{0, 1e-4, 0.01, 1, 1e20, 3e38}[r.below(6)]
		c.Eps = []float64{0, 1e-8, 1}[r.below(3)]
		c.LossScale, c.ScaleWindow = []float64{1, 65536, 0x1p60}[r.below(3)], 1+r.below(3)
		c.Variants = nil
		formats := []string{"fp32", "bf16", "fp16", "fp8"}
		for range 1 + r.below(2) {
			c.Variants = append(c.Variants, Variant{
				ID: string(rune('a' + len(c.Variants))), Params: formats[r.below(4)], State: formats[r.below(3)],
				GradSync: formats[r.below(3)], Scaled: r.below(3) == 0,
			})
		}
		if c.Check() == nil {
			return c
		}
	}
}

// Any combination that is accepted runs without an error, ranks agree, both versions of the optimizer
// agree to the bit or it is said why not, and whatever is not finite is explained.
func TestRandomRuns(t *testing.T) {
	r := newRandom(1771, 8221)
	for range 120 {
		c := draw(r)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		s, f := finish(t, c)
		for i, v := range f.Variants {
			require.Zero(t, v.Agree.Different, "%s: %s", text, v.Agree.First)
			if v.Before.Reason == "" {
				require.Zero(t, v.Before.Different, "%s: %s", text, v.Before.First)
			}
			for _, step := range f.Steps {
				if x := step.Variants[i]; !x.Loss.Finite() || x.Skipped {
					require.NotEmpty(t, x.Event+v.Note, "%s", text)
				}
			}
			if v.Health == Useless || v.Health == Suspect {
				require.NotEmpty(t, v.Note, "%s", text)
			}
		}
		p := bucket.ParamID(r.below(len(s.tensors)))
		element := r.below(s.tensors[p].Numel)
		for _, part := range Parts {
			_, err := s.Frame(0, Watch{p, part}, &element)
			require.NoError(t, err, "%s", text)
		}
		for _, run := range s.runs { // forward passes see what the arrays hold
			run.after.ranks.ParamValues(0, p, run.params[p])
			require.Len(t, run.params[p], s.tensors[p].Numel)
		}
	}
}

// The way of data does not depend on other ranks or steps.
func TestDataIsItsOwn(t *testing.T) {
	c := Default(Transformer)
	want := c.data(7, 2, 17)
	c.Ranks, c.Steps = 1, 9
	require.Equal(t, want, c.data(7, 2, 17))
	require.NotEqual(t, want, c.data(7, 1, 17))
	require.NotEqual(t, want, c.data(6, 2, 17))
	s, err := c.architecture(dtype.FP32, false)
	require.NoError(t, err)
	require.Equal(t, c.initial(s), c.initial(s))
}
