package step

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/sched"
)

// scenario is a small training run.
type scenario struct {
	stages, chunks, layers, micros, tp, dp int
	overlapP2P, batch                      bool
	fused, clip                            bool
	options                                func(o *apex.Options)
}

// inputs builds the stages of a scenario as NeMo does.
func (s scenario) inputs(t testing.TB) []StageInput {
	in := make([]StageInput, s.stages)
	for p := range in {
		m, err := model.BuildStage(model.Config{
			Layers: int64(s.stages * s.chunks * s.layers), Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 128, Seq: 16,
			LearnedPositions: true, Bias: true, Tied: true, FP8: true, FP8Params: true, DType: dtype.BF16,
		}, model.Split{TP: s.tp, SP: s.tp > 1, PP: s.stages, Index: p, VP: s.chunks})
		require.NoError(t, err)
		o := apex.DefaultOptions(s.dp)
		o.NewApex, o.NewNeMo, o.O2 = true, true, true
		o.GradSync = dtype.BF16
		o.BucketCapMB = 0.125
		o.OverlapGradSync, o.OverlapParamSync, o.ContiguousGradBuffer = true, true, true
		o.SetNeMo(dtype.BF16, true)
		if s.options != nil {
			s.options(&o)
		}
		in[p] = StageInput{Model: m, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
			l, err := apex.Build(o, m)
			if err != nil {
				return nil, err
			}
			c := apex.Config{World: s.dp * s.tp * s.stages, Tensor: s.tp, FusedWgrad: s.fused, Runtime: rt, Observer: obs}
			if s.clip {
				c.MaxNorm = 1
			}
			if s.stages > 1 && (p == 0 || p == s.stages-1) {
				c.EmbeddingSize = 2
			}
			return apex.NewSharded(l, c)
		}}
	}
	return in
}

func (s scenario) config() Config {
	return Config{
		Microbatches: s.micros, Activation: 1024, DType: dtype.BF16, GradSync: dtype.BF16,
		BatchP2P: s.batch, OverlapP2P: s.overlapP2P,
	}
}

func random(rnd *rand.Rand) scenario {
	s := scenario{
		stages: 1 + rnd.IntN(4), chunks: 1, layers: 1 + rnd.IntN(3), micros: 1 + rnd.IntN(7), tp: 1 + rnd.IntN(2), dp: []int{1, 2, 4}[rnd.IntN(3)],
		batch: rnd.IntN(3) > 0, fused: rnd.IntN(2) == 0, clip: rnd.IntN(4) > 0,
	}
	if s.stages > 1 && rnd.IntN(2) == 0 {
		s.chunks = 2 + rnd.IntN(2)
		s.micros = s.stages * (1 + rnd.IntN(3))
		s.overlapP2P = !s.batch
	}
	grad, param, old, before, view := rnd.IntN(4) > 0, rnd.IntN(4) > 0, rnd.IntN(4) == 0, rnd.IntN(3) == 0, rnd.IntN(3) == 0
	s.options = func(o *apex.Options) {
		o.OverlapGradSync, o.OverlapParamSync, o.ContiguousParamBuffer = grad, param, view
		o.NewApex, o.NewNeMo = !old, !before
	}
	return s
}

type nobody struct{}

func (nobody) Event(At, *optim.Event) {}

// Shortened passes leave the same tasks as those in which every hook fires, and so does used memory.
func TestShortenedPassesChangeNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	again := &Recording{}
	for range 40 {
		s := random(rnd)
		s.micros *= 2
		name := fmt.Sprintf("%+v", s)
		short, err := Record(s.inputs(t), s.config())
		require.NoError(t, err, name)
		long := &Recording{}
		require.NoError(t, record(long, s.inputs(t), s.config(), wholeSteps, nobody{}), name)
		require.NoError(t, RecordInto(again, s.inputs(t), s.config()), name)
		require.Equal(t, short, again, name)
		require.Equal(t, len(long.Labels), len(short.Labels), name)
		for i, want := range long.Labels {
			got := short.Labels[i]
			require.Equal(t, long.Works[want.Work], short.Works[got.Work], "%s: task %d", name, i)
			got.Work = want.Work
			require.Equal(t, want, got, "%s: task %d", name, i)
			require.Equal(t, long.Program.Tasks[i], short.Program.Tasks[i], "%s: task %d", name, i)
		}
		require.Equal(t, long.Program.Deps, short.Program.Deps, name)
		require.Equal(t, long.Program.Messages, short.Program.Messages, name)
		require.Equal(t, long.BucketIDs, short.BucketIDs, name)
		require.Equal(t, long.StepStart, short.StepStart, name)
	}
}

// What holds of every recording: dependencies point backwards on their own device, collectives
// between stages wait for what every stage has done before, streams of a device are its own, all
// ends of messages meet, and nothing waits for itself.
func TestRecordings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		s := random(rnd)
		name := fmt.Sprintf("%+v", s)
		rec, err := Record(s.inputs(t), s.config())
		require.NoError(t, err, name)
		p := &rec.Program
		require.Len(t, rec.Labels, len(p.Tasks))
		require.Less(t, len(rec.Works), 300)
		last := make([]sched.TaskID, p.Comms)
		counts := map[Kind]int{}
		for i, task := range p.Tasks {
			l := rec.Labels[i]
			counts[l.Kind]++
			require.Equal(t, int32(l.Stage), p.Streams[task.Stream].Device)
			require.Equal(t, rec.Works[l.Work].Kind, l.Kind)
			across := 0
			for _, d := range p.Deps[task.Deps[0]:task.Deps[1]] {
				if rec.Labels[d].Stage != l.Stage {
					across++
					continue
				}
				require.Less(t, int(d), i, name)
				require.NotEqual(t, p.Tasks[d].Stream, task.Stream, "%s: in order anyway", name)
			}
			if l.Kind != NormAllReduce && l.Kind != EmbeddingAllReduce {
				require.Zero(t, across, name)
			} else if s.stages > 1 {
				require.NotZero(t, across, name)
			}
			if task.Comm != sched.None {
				require.GreaterOrEqual(t, i, int(last[task.Comm]))
				last[task.Comm] = sched.TaskID(i)
			}
		}
		for st, starts := range rec.StepStart {
			require.Len(t, starts, 3, name)
			for k, start := range starts {
				l := rec.Labels[start]
				require.Equal(t, Label{
					Kind: Forward, Stage: int16(st), Step: int8(k), Layer: l.Layer, Work: l.Work, Buckets: l.Buckets, Module: l.Module,
				}, l, name)
			}
		}
		spans := make([]sched.Span, len(p.Tasks))
		for i := range p.Tasks {
			p.Tasks[i].Work, p.Tasks[i].Launch = 10, 1
		}
		var e sched.Engine
		require.NoError(t, e.Run(p, spans, nil), name)

		// Every pass computes every module once.
		modules := 0
		for i, l := range rec.Labels {
			if (l.Kind == Forward || l.Kind == Backward) && l.Step == 1 {
				modules += int(l.Module[1] - l.Module[0])
				require.Len(t, rec.Works[rec.Labels[i].Work].Passes, int(l.Module[1]-l.Module[0]))
			}
		}
		want := 0
		for _, in := range s.inputs(t) {
			want += 2 * s.micros * len(in.Model.Modules)
		}
		require.Equal(t, want, modules, name)
		if s.clip && s.stages > 1 {
			require.Equal(t, wholeSteps*s.stages, counts[NormAllReduce], name)
		}
		if s.stages > 1 {
			require.Equal(t, wholeSteps*2, counts[EmbeddingAllReduce], name)
			require.Equal(t, wholeSteps*2, counts[LossSend], name)
		}
		if s.dp > 1 {
			require.NotZero(t, counts[ReduceScatter], name)
			require.NotZero(t, counts[AllGather], name)
			require.NotZero(t, counts[AmaxAllReduce], name)
			require.NotZero(t, counts[Adam], name)
			require.NotZero(t, counts[Cast], name)
		} else {
			require.Zero(t, counts[ReduceScatter]+counts[AllGather]+counts[AmaxAllReduce], name)
		}
	}
}

// The second step is in steady state: later ones take as long on every stage, a shorter first step
// changes nothing, and the tail of a third ends it as the whole third step does.
func TestSecondStepIsSteady(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	shortened := 0
	for range 150 {
		s := random(rnd)
		s.micros *= 1 + rnd.IntN(4)
		name := fmt.Sprintf("%+v", s)
		salt := rnd.IntN(1000)
		c := s.config()
		long := &Recording{}
		require.NoError(t, record(long, s.inputs(t), c, 4, nil), name)
		c.WorldNorm = s.clip
		short, err := Record(s.inputs(t), c)
		require.NoError(t, err, name)
		if c.firstMicrobatches(s.stages) < s.micros {
			shortened++
		}
		begun, ended := firstForwards(t, long, salt), firstForwards(t, short, salt)
		for p := range begun {
			require.Equal(t, begun[p][1]-begun[0][1], ended[p][1]-ended[0][1], name)
			require.Equal(t, begun[p][2]-begun[0][1], ended[p][2]-ended[0][1], name)
			// A host that is slower than its device here and faster there may take longer to settle,
			// unless messages make it wait.
			for k := 2; k < 4 && (s.batch && s.stages > 1 || salt%10 >= 5); k++ {
				require.Equal(t, begun[p][2]-begun[p][1], begun[p][k+1]-begun[p][k], "%s: step %d", name, k)
			}
		}
	}
	require.Greater(t, shortened, 20)
}

// firstForwards runs a recording at prices that depend on works, stages and salt, and returns when
// each stage begins each step.
func firstForwards(t *testing.T, rec *Recording, salt int) [][]sched.Time {
	price := func(id WorkID, stage int16) sched.Time {
		w := &rec.Works[id]
		n := salt + 7*int(w.Kind) + 31*len(w.Passes) + 11*len(w.Kernels) + int(w.Bytes+w.Memory)%97 + 17*int(stage)
		return sched.Time(1 + n*n%101)
	}
	p := &rec.Program
	for i := range p.Tasks {
		length := price(rec.Labels[i].Work, rec.Labels[i].Stage)
		p.Tasks[i].Work, p.Tasks[i].Launch = length, 1+length/sched.Time(1+salt%10)
	}
	for i := range p.Messages {
		p.Messages[i].Work = price(rec.MessageWork[i], 0)
	}
	spans := make([]sched.Span, len(p.Tasks))
	var e sched.Engine
	require.NoError(t, e.Run(p, spans, nil))
	at := make([][]sched.Time, len(rec.StepStart))
	for st, starts := range rec.StepStart {
		for _, task := range starts {
			at[st] = append(at[st], spans[task].Start)
		}
	}
	return at
}
