package oracle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/mcore"
	"distopt/core/optim"
	"distopt/core/step"
	"distopt/core/units"
)

// The schedules of package step drive the optimizer as the recorded ones did: the same events of the
// optimizer, in the same order, between the same passes.
func TestMegatronUnderStep(t *testing.T) {
	for _, name := range []string{"pp2_stage0_tied_1f1b_mb4", "pp2_stage1_tied_1f1b_mb4_aligned", "pp2_vp2_stage0_aligned_mb4", "pp2_vp2_stage0_ag_with_step_mb4"} {
		var in struct {
			Case   MegatronCase
			Params [][]json.RawMessage
			Events []map[string]any
		}
		require.NoError(t, json.Unmarshal(unpack(t, "testdata/mcore_trace/"+name+".json.gz"), &in))
		var listed []int
		for _, rows := range in.Params {
			listed = append(listed, len(rows))
		}
		l, stage, err := in.Case.Layout(listed)
		require.NoError(t, err)
		w := &stepWatch{l: l}
		c := mcore.Config{MaxNorm: defaultClip}
		if stage.Config.Tied {
			c.EmbeddingSize = 2
		}
		input := step.StageInput{Model: stage, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
			c.Runtime, c.Observer = rt, obs
			s, err := mcore.NewSharded(l, c)
			return s, err
		}}
		cfg := step.Config{Microbatches: in.Case.Microbatches, Activation: units.Elems(64), BatchP2P: true, Megatron: true}
		world := in.Case.DP * l.Options.Pipeline
		require.NoError(t, step.RunStage(input, cfg, step.Replay{Rank: 0, World: world, Steps: max(in.Case.Steps, 2), Observer: w}))

		var want []string
		for _, e := range in.Events {
			op := text(e["op"])
			d := map[string]any{"op": op}
			for _, key := range []string{"g", "b", "co", "n", "noop", "opt", "pending"} {
				if v, ok := e[key]; ok {
					d[key] = v
				}
			}
			want = append(want, show(d))
		}
		require.GreaterOrEqual(t, len(w.got), len(want)*2/3)
		n := min(len(want), len(w.got)) // one whole step fewer than recorded may have run
		require.Equal(t, want[:n], w.got[:n], name)
	}
}

// stepWatch writes down passes and the optimizer's events, not their places.
type stepWatch struct {
	l   *mcore.Layout
	got []string
}

func (w *stepWatch) Event(_ step.At, e *optim.Event) {
	d := megatronEvent(w.l, e)
	switch e.Op {
	case "forward_step":
		d = map[string]any{"op": "chunk_fwd"}
	case "backward_step":
		d = map[string]any{"op": "chunk_bwd"}
	case optim.OpZeroGrad, optim.OpStartGradSync, optim.OpFinishGradSync, optim.OpStartParamSync, optim.OpFinishParamSync,
		optim.OpReduceScatter, optim.OpAllGather, optim.OpAllReduce, optim.OpWait, optim.OpAdam, optim.OpStepBegin, optim.OpStepEnd:
		for _, key := range []string{"dt", "by", "gr", "gs", "asyn", "rop", "nt", "dispatched"} {
			delete(d, key)
		}
	default:
		return
	}
	w.got = append(w.got, show(d))
}
