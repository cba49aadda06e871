package step_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/step"
)

// What Megatron refuses, and what would not fit, is refused with the limit named.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		stages, chunks int
		change         func(c *step.Config)
		want           string
	}{
		{2, 1, func(c *step.Config) { c.Microbatches = 0 }, "microbatches: got 0, want at least 1"},
		{3, 2, func(c *step.Config) { c.Microbatches = 7 }, "microbatches: got 7, want a multiple of pipeline_model_parallel_size (3)"},
		{3, 2, func(c *step.Config) { c.OverlapP2P = true }, "overlap_p2p_comm: got true together with batch_p2p_comm"},
		{3, 1, func(c *step.Config) { c.OverlapP2P, c.BatchP2P = true, false }, "overlap_p2p_comm: got true without virtual stages"},
		{1, 2, func(c *step.Config) {}, "virtual_pipeline_model_parallel_size: got 2 with one pipeline stage"},
		{2, 1, func(c *step.Config) { c.Microbatches = 1 << 30 }, "want at most 4194304"},
		{2, 1, func(c *step.Config) { c.CommStreams = 9 }, "pipeline_size: got 9"},
	} {
		c := config(6, false)
		tt.change(&c)
		_, err := step.Record(pipeline(t, tt.stages, tt.chunks), c)
		require.ErrorContains(t, err, tt.want)
	}
	_, err := step.Record(nil, config(1, false))
	require.ErrorContains(t, err, "no stages")
	in := pipeline(t, 3, 1)
	_, err = step.Record(in[:2], config(1, false))
	require.ErrorContains(t, err, "stage 0 of 3")
}

// The bytes of a message are those of one activation.
func TestMessageWork(t *testing.T) {
	c := config(4, false)
	c.Activation, c.DType = 1000, dtype.FP32
	rec, err := step.Record(pipeline(t, 2, 1), c)
	require.NoError(t, err)
	kinds := map[step.Kind]int{}
	for i := range rec.Program.Messages {
		w := rec.Works[rec.MessageWork[i]]
		kinds[w.Kind]++
		if w.Kind == step.Exchange {
			require.EqualValues(t, 4000, w.Bytes)
		}
	}
	// Two steps of 4 microbatches there and back and the first forward of the third; the loss of
	// both steps.
	require.Equal(t, map[step.Kind]int{step.Exchange: 2*2*4 + 1, step.LossSend: 2}, kinds)
}
