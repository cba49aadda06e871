package step_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/optim"
	"distopt/core/step"
)

// caller writes down when synchronization is allowed, and what the schedule asks for.
type caller struct {
	idle
	noSync bool
	ready  map[bucket.ParamID]int // gradients that came outside no_sync
	calls  []int                  // chunks of grad_sync_func
}

func (c *caller) NoSync(on bool)         { c.noSync = on }
func (c *caller) QuietBackward() bool    { return c.noSync }
func (c *caller) GradSyncFunc(chunk int) { c.calls = append(c.calls, chunk) }
func (c *caller) PostBackward(p bucket.ParamID) {
	if !c.noSync {
		c.ready[p]++
	}
}

// Without grad_sync_func every gradient is ready once a step, in the last backward pass of its chunk,
// on every stage; with it only the first stage of a pipeline without chunks lets hooks do it.
func TestUnalignedGradients(t *testing.T) {
	for _, c := range []struct{ stages, chunks, micros, group int }{
		{1, 1, 3, 0}, {2, 1, 4, 0}, {4, 1, 2, 0}, {2, 2, 4, 0}, {3, 2, 3, 0}, {2, 3, 6, 3}, {2, 2, 8, 4}, {2, 2, 7, 5},
	} {
		for _, unaligned := range []bool{false, true} {
			for p, in := range pipeline(t, c.stages, c.chunks) {
				seen := &caller{ready: map[bucket.ParamID]int{}}
				in.New = func(optim.Runtime, optim.Observer) (optim.Sharded, error) { return seen, nil }
				cfg := config(c.micros, false)
				cfg.Megatron, cfg.Unaligned, cfg.Group = true, unaligned, c.group
				require.NoError(t, step.RunStage(in, cfg, step.Replay{World: c.stages, Steps: 1}))
				name := fmt.Sprintf("%+v, stage %d, unaligned %v", c, p, unaligned)
				switch {
				case unaligned || c.stages == 1 || c.chunks == 1 && p == 0:
					require.Empty(t, seen.calls, name)
					require.Len(t, seen.ready, len(in.Model.Params), name)
					for _, n := range seen.ready {
						require.Equal(t, 1, n, name)
					}
				default:
					require.Empty(t, seen.ready, name)
					require.Len(t, seen.calls, c.chunks, name)
				}
			}
		}
	}
}

// Whatever the group of microbatches, messages meet and every pass runs once. A larger group has a
// longer way to the first gradient: the bubble does not shrink.
func TestMicrobatchGroups(t *testing.T) {
	for _, c := range []struct{ stages, chunks, micros, group int }{
		{2, 2, 4, 2}, {2, 2, 4, 4}, {2, 2, 8, 3}, {2, 2, 7, 5}, {3, 2, 11, 4}, {4, 2, 8, 8}, {4, 3, 12, 6}, {2, 2, 2, 0}, {4, 2, 4, 0},
	} {
		cfg := config(c.micros, false)
		cfg.Megatron, cfg.Group = true, c.group
		rec, err := step.Record(pipeline(t, c.stages, c.chunks), cfg)
		require.NoError(t, err, "%+v", c)
		spans := place(t, rec)
		length := int(spans[rec.StepStart[0][2]].Start - spans[rec.StepStart[0][1]].Start)
		require.GreaterOrEqual(t, length, 3000*(c.micros*c.chunks+c.stages-1), "%+v", c)
	}
	cfg := config(7, false)
	cfg.Megatron, cfg.Group = true, 6
	_, err := step.Record(pipeline(t, 4, 2), cfg)
	require.ErrorContains(t, err, "microbatches: got 7")
	cfg.Group = 2
	_, err = step.Record(pipeline(t, 4, 2), cfg)
	require.ErrorContains(t, err, "microbatch_group_size_per_vp_stage: got 2, want at least")
}
