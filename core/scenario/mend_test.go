package scenario

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// apply makes edits.
func apply(t *testing.T, s Scenario, edits []Edit) Scenario {
	t.Helper()
	for _, e := range edits {
		f, ok := ByPath(e.Path)
		require.True(t, ok, e.Path)
		require.Nil(t, f.Set(&s, e.Value), "%v", e)
	}
	return s
}

// The edits of an error mend it and cause no other error, whatever else is wrong.
func TestEditsCauseNoErrors(t *testing.T) { bothWays(t, editsCauseNoErrors) }

func editsCauseNoErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	edited := 0
	for range 200 {
		s := random(rng)
		if rng.IntN(2) == 0 { // a few things wrong with a good one
			s = good()
			for range 1 + rng.IntN(3) {
				f := &Fields[rng.IntN(len(Fields))]
				other := random(rng)
				if f.Set(&s, f.Get(&other)) != nil { // out of range
					switch v := f.at(&s).(type) {
					case *int:
						*v = *f.at(&other).(*int)
					case *float64:
						*v = *f.at(&other).(*float64)
					}
				}
			}
		}
		errs, _ := s.Validate()
		was := map[string]bool{}
		for _, e := range errs {
			was[e.Path] = true
		}
		for _, e := range errs {
			if len(e.Edits) == 0 {
				continue
			}
			edited++
			mended := apply(t, s, e.Edits)
			after, _ := mended.Validate()
			for _, x := range after {
				require.NotEqual(t, e.Path, x.Path, "%v\n%v", e, x)
				require.True(t, was[x.Path], "%v\ncauses %v", e, x)
			}
		}
	}
	require.Greater(t, edited, 500)
}

// What is far beyond every limit is mended at once, too.
func TestEditsOfHugeValues(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *Scenario)
		want string
	}{
		{"microbatch", func(s *Scenario) { s.Batch.Micro = maxBatch },
			"set model.micro_batch_size to 1"},
		{"context", func(s *Scenario) { s.Parallel.CP = 1 << 20 }, ""},
		{"TP", func(s *Scenario) { s.Parallel.TP = 1 << 20 }, ""},
		{"hidden", func(s *Scenario) { s.Model.Hidden, s.Model.FFN = 1<<20, 0 }, ""},
		{"layers", func(s *Scenario) { s.Model.Layers = 10_000 }, ""},
		{"batch", func(s *Scenario) { s.Batch.Global = maxBatch - 1 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good()
			c.do(&s)
			errs, _ := s.Validate()
			require.NotEmpty(t, errs)
			if c.want != "" {
				require.Equal(t, c.want, errs[0].Fix)
			}
			for len(errs) > 0 {
				n := len(errs)
				s = apply(t, s, errs[0].Edits)
				errs, _ = s.Validate()
				require.Less(t, len(errs), n)
			}
		})
	}
}

// An edit of a value that could not be read is completed like any other.
func TestCompleteOfUnread(t *testing.T) {
	s := good()
	vp, _ := ByPath(pathVP)
	e := vp.Set(&s, "1000")
	require.NotNil(t, e)
	errs, _ := s.Validate(pathVP)
	require.Empty(t, errs)
	s.Complete(e, errs, pathVP)
	require.Equal(t, []Edit{{pathVP, "6"}}, e.Edits)
	require.Equal(t, "set model.virtual_pipeline_model_parallel_size to 6", e.Fix)
}
