package step_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/sched"
	"distopt/core/step"
)

// idle is an optimizer that does nothing.
type idle struct{ optim.Sharded }

func (idle) ZeroGrad()                          {}
func (idle) PreForward(bucket.ParamID)          {}
func (idle) PostBackward(bucket.ParamID)        {}
func (idle) PostBackwardAll([]bucket.ParamID)   {}
func (idle) NoSync(bool)                        {}
func (idle) GradSyncFunc(int)                   {}
func (idle) ParamSyncFunc(int)                  {}
func (idle) AfterBackward()                     {}
func (idle) ClipGradNorm()                      {}
func (idle) Step()                              {}
func (idle) PendingForward(bucket.ParamID) bool { return false }
func (idle) QuietBackward() bool                { return true }
func (idle) Err() error                         { return nil }

func newIdle(optim.Runtime, optim.Observer) (optim.Sharded, error) { return idle{}, nil }

// pipeline returns stages of a small model.
func pipeline(t testing.TB, stages, chunks int) []step.StageInput {
	in := make([]step.StageInput, stages)
	for p := range in {
		m, err := model.BuildStage(model.Config{
			Layers: int64(stages * chunks), Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 128, Seq: 16,
			LearnedPositions: true, Bias: true, DType: dtype.BF16,
		}, model.Split{TP: 1, PP: stages, Index: p, VP: chunks})
		require.NoError(t, err)
		in[p] = step.StageInput{Model: m, New: newIdle}
	}
	return in
}

func config(micros int, overlapP2P bool) step.Config {
	return step.Config{Microbatches: micros, Activation: 1024, DType: dtype.BF16, GradSync: dtype.BF16, BatchP2P: !overlapP2P, OverlapP2P: overlapP2P}
}

// place runs a recording in which only compute takes time: a unit for every layer's forward and two
// for its backward, nothing for what is outside the layers.
func place(t *testing.T, rec *step.Recording) []sched.Span {
	const unit = 1000
	for i := range rec.Program.Tasks {
		task, l := &rec.Program.Tasks[i], &rec.Labels[i]
		switch {
		case l.Kind == step.Forward && l.Layer >= 0:
			task.Work = unit
		case l.Kind == step.Backward && l.Layer >= 0:
			task.Work = 2 * unit
		}
	}
	spans := make([]sched.Span, len(rec.Program.Tasks))
	var e sched.Engine
	require.NoError(t, e.Run(&rec.Program, spans, nil))
	return spans
}

// The fraction of a step that a pipeline idles is (P-1)/(V*m) of its work, less what the first
// stage of the next step need not wait for.
func TestBubble(t *testing.T) {
	for _, c := range []struct{ stages, chunks, micros int }{
		{1, 1, 1}, {1, 1, 7}, {2, 1, 2}, {2, 1, 5}, {4, 1, 8}, {4, 1, 4}, {5, 1, 13}, {8, 1, 32},
		{3, 2, 6}, {4, 2, 8}, {4, 3, 12}, {4, 2, 4}, {3, 4, 3}, {8, 2, 32},
	} {
		for _, overlap := range []bool{false, true} {
			if overlap && c.chunks == 1 {
				continue
			}
			rec, err := step.Record(pipeline(t, c.stages, c.chunks), config(c.micros, overlap))
			require.NoError(t, err)
			spans := place(t, rec)
			first, second := spans[rec.StepStart[0][1]].Start, spans[rec.StepStart[0][2]].Start
			work := 3000 * c.micros * c.chunks
			bubble := 3000 * (c.stages - 1)
			require.Equal(t, work+bubble, int(second-first), "%+v overlap %v", c, overlap)
		}
	}
}

// Every message has two ends on neighbouring stages, and what a stage issues depends on nothing
// that comes later.
func TestMessagesPairUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		stages, chunks := 2+rnd.IntN(6), 1+rnd.IntN(4)
		micros := 1 + rnd.IntN(20)
		overlap := false
		if chunks > 1 {
			micros = stages * (1 + rnd.IntN(4))
			overlap = rnd.IntN(2) == 0
		}
		rec, err := step.Record(pipeline(t, stages, chunks), config(micros, overlap))
		require.NoError(t, err)
		open := 0
		for i, m := range rec.Program.Messages {
			if m.From == sched.None || m.To == sched.None {
				open++
				continue
			}
			from, to := rec.Labels[m.From], rec.Labels[m.To]
			require.Equal(t, from.Step, to.Step, "message %d", i)
			apart := (int(to.Stage) - int(from.Stage) + stages) % stages
			if from.Kind == step.Exchange {
				require.Contains(t, []int{1, stages - 1}, apart)
			}
		}
		require.LessOrEqual(t, open, 4*stages, "only the tail has messages with one end")
		for i, task := range rec.Program.Tasks {
			for _, d := range rec.Program.Deps[task.Deps[0]:task.Deps[1]] {
				require.Less(t, int(d), i)
			}
		}
		place(t, rec) // without a deadlock
	}
}
