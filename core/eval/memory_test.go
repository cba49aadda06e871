package eval

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/memory"
	"distopt/core/scenario"
)

// Of every preset: what is simulated never exceeds what the schedule alone tells, and comes close to it.
func TestMemoryOfPresets(t *testing.T) {
	var x Simulator
	for _, p := range scenario.Presets() {
		s := preset(t, p.ID)
		static, err := Memory(s)
		require.NoError(t, err, p.ID)
		r, err := x.Memory(s, 200)
		require.NoError(t, err, p.ID)
		require.Equal(t, s.Parallel.PP, len(r.Stages))
		for i := range r.Stages {
			got, bound := &r.Stages[i].Peak.Bytes, &static.Stages[i].Peak.Bytes
			require.GreaterOrEqual(t, bound.Total(), got.Total(), "%s stage %d", p.ID, i)
			require.InEpsilon(t, float64(bound.Total()), float64(got.Total()), 0.1, "%s stage %d", p.ID, i)
			require.Positive(t, r.Stages[i].InFlight, p.ID)
			require.Positive(t, got[memory.Moments], p.ID)
			require.LessOrEqual(t, len(r.Stages[i].Series), 200)
		}
		fits, left := r.Fits()
		t.Logf("%s: stage %d, peak %v of %v, fits %v, left %v; by the schedule %v", p.ID, r.Worst, r.Stages[r.Worst].Peak.Bytes.Total(), r.Capacity, fits, left, static.Stages[static.Worst].Peak.Bytes.Total())
	}
}

func TestMemoryRefusesWhatCannotRun(t *testing.T) {
	s := *preset(t, scenario.Presets()[0].ID)
	s.Batch.Micro = -1
	_, err := Memory(&s)
	require.Error(t, err)
	_, err = new(Simulator).Memory(&s, 0)
	require.Error(t, err)
}
