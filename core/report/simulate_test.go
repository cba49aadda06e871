package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/cost"
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/report"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// run is a scenario of these tests.
type run struct {
	layers, hidden, heads int64
	tp, pp, vp, dp        int
	micros                int
	cap                   float64
	fp8                   bool
	newNeMo, newApex      bool
	noGradOverlap         bool
	noParamOverlap        bool
	overlapP2P            bool
}

// preset5B is GPT-3 5B in FP8 on one node of 8 H100.
func preset5B() run {
	return run{layers: 24, hidden: 4096, heads: 32, tp: 1, pp: 1, vp: 1, dp: 8, micros: 2, cap: 400, fp8: true, newNeMo: true, newApex: true}
}

// simulate records, prices and places a run.
func (r run) simulate(t testing.TB) *report.Input {
	c := model.Config{
		Layers: r.layers, Hidden: r.hidden, FFN: 4 * r.hidden, Heads: r.heads, Groups: r.heads, KVChannels: r.hidden / r.heads,
		Vocab: 50304 * int64(r.tp) / int64(r.tp), Seq: 2048, LearnedPositions: true, Bias: true, Tied: true,
		FP8: r.fp8, FP8Params: r.fp8, DType: dtype.BF16,
	}
	e := model.Execution{
		Micro: 1, Microbatches: int64(r.micros), TP: int64(r.tp), SP: r.tp > 1, CP: 1,
		GradDType: dtype.BF16, GradFusion: true, Dropout: true,
	}
	grid, err := parallel.NewGrid(r.tp*r.pp*r.dp, r.tp, 1, r.pp, r.vp, 8)
	require.NoError(t, err)
	cfg := step.Config{
		Microbatches: r.micros, Activation: units.Elems(2048 * r.hidden / int64(r.tp)), DType: dtype.BF16,
		BatchP2P: !r.overlapP2P, OverlapP2P: r.overlapP2P, GradSync: dtype.BF16,
	}
	in := &report.Input{
		Name: "test", ModelVersion: "1", Tokens: int64(r.dp*r.micros) * 2048, Parameters: 1,
		Peak: 1979e12, PeakName: "FP8 dense, H100 SXM",
		OverlapGradSync: !r.noGradOverlap, OverlapParamSync: !r.noParamOverlap,
		Grid: report.Grid{World: grid.World(), TP: r.tp, CP: 1, PP: r.pp, VP: r.vp, DP: r.dp, Distributed: r.dp, Redundant: 1, Micro: r.micros},
	}
	_, in.ModelFLOPs = c.ModelFLOPs(int64(r.dp * r.micros))
	stages := make([]step.StageInput, r.pp)
	for p := range stages {
		m, err := model.BuildStage(c, model.Split{TP: r.tp, SP: r.tp > 1, PP: r.pp, Index: p, VP: r.vp})
		require.NoError(t, err)
		o := apex.DefaultOptions(r.dp)
		o.GradSync, o.BucketCapMB = dtype.BF16, r.cap
		o.OverlapGradSync, o.OverlapParamSync = !r.noGradOverlap, !r.noParamOverlap
		o.ContiguousGradBuffer, o.ContiguousParamBuffer = true, true
		o.NewNeMo, o.NewApex, o.O2 = r.newNeMo, r.newApex, true
		o.SetNeMo(dtype.BF16, r.fp8)
		l, err := apex.Build(o, m)
		require.NoError(t, err)
		ac := apex.Config{World: grid.World(), Tensor: r.tp, MaxNorm: 1, FusedWgrad: true}
		ac.EmbeddingSize = grid.Group(parallel.Embedding, grid.Representative(p)).Size
		stages[p] = step.StageInput{Model: m, New: func(rt optim.Runtime, ob optim.Observer) (optim.Sharded, error) {
			ac := ac
			ac.Runtime, ac.Observer = rt, ob
			return apex.NewSharded(l, ac)
		}}
		in.Stages = append(in.Stages, report.StageInput{Model: m, Params: l.Params, Buckets: l.Buckets, Sets: l.Sets()})
	}
	in.Recording, err = step.Record(stages, cfg)
	require.NoError(t, err)
	machine := cost.NewMachine(hw.Lookup("h100"), hw.LookupNetwork("ndr"), c, e, grid)
	for g := range in.GroupSizes {
		in.GroupSizes[g] = machine.Groups[g].Ranks
	}
	in.Priced = cost.Price(in.Recording, machine)
	p := &in.Recording.Program
	in.Spans, in.Meets = make([]sched.Span, len(p.Tasks)), make([]sched.Time, len(p.Messages))
	require.NoError(t, new(sched.Engine).Run(p, in.Spans, in.Meets))
	return in
}

func (r run) report(t testing.TB) *report.Result {
	out, err := report.Make(r.simulate(t))
	require.NoError(t, err)
	return out
}
