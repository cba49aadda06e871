package step_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/step"
)

// If only the first layers of each chunk are recomputed, their backward passes are works of their
// own, and nothing else differs: neither tasks nor their order nor forward passes.
func TestRecomputedLayersAreTheirOwnWork(t *testing.T) {
	const stages, chunks, layers = 3, 2, 4 // per chunk
	in := make([]step.StageInput, stages)
	for p := range in {
		m, err := model.BuildStage(model.Config{
			Layers: stages * chunks * layers, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 128, Seq: 16,
			LearnedPositions: true, Bias: true, DType: dtype.BF16,
		}, model.Split{TP: 1, PP: stages, Index: p, VP: chunks})
		require.NoError(t, err)
		in[p] = step.StageInput{Model: m, New: newIdle}
	}
	alike, err := step.Record(in, config(6, false))
	require.NoError(t, err)
	for _, recomputed := range []int{1, 3} {
		cfg := config(6, false)
		cfg.RecomputeLayers = recomputed
		rec, err := step.Record(in, cfg)
		require.NoError(t, err)
		require.Equal(t, alike.Program, rec.Program)
		require.Len(t, rec.Works, len(alike.Works)+1)
		for i := range rec.Labels {
			l := &rec.Labels[i]
			if l.Layer < 0 || l.Kind != step.Forward && l.Kind != step.Backward {
				continue
			}
			want := 0
			if l.Kind == step.Backward && int(l.Layer) >= recomputed {
				want = recomputed
			}
			for _, p := range rec.Works[l.Work].Passes {
				require.Equal(t, want, p.Layer, "layer %d", l.Layer)
			}
		}
	}
}
