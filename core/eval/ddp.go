package eval

import (
	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/report"
	"distopt/core/scenario"
)

// ddpStage lays out a stage for PyTorch's DistributedDataParallel, with the buckets that it has from
// its second step on.
func ddpStage(s *scenario.Scenario, g parallel.Grid, st *model.Stage) (laidOut, error) {
	d := &s.Optim.DDP
	l, err := ddp.Build(ddp.Options{
		World: s.Process(), ExpertWorld: expertProcess(s),
		CapMB: d.BucketCapMB, FindUnused: d.FindUnused, StaticGraph: d.StaticGraph, BucketView: d.GradAsBucketView,
		MainParams: s.Precision.O2, State: dtype.FP32, NormDecay: s.Optim.OneParamGroup,
	}, st.Params, ddp.StageArrival(st))
	if err != nil {
		return laidOut{}, err
	}
	c := ddp.Config{
		Tensor: s.Parallel.TP, Pipeline: s.Parallel.PP, MaxNorm: s.Optim.ClipNorm,
		GradScaler: s.Precision.Trainer == scenario.FP16, Warm: true,
	}
	if s.Model.Tied {
		c.EmbeddingSize = g.Group(parallel.Embedding, g.Representative(st.Index)).Size
	}
	return laidOut{
		stage: st, ddp: l,
		construct: func(rt optim.Runtime, ob optim.Observer) (optim.Sharded, error) {
			c := c
			c.Runtime, c.Observer = rt, ob
			return ddp.NewSharded(l, c)
		},
		holds: func() report.StageInput {
			return report.StageInput{Model: st, Params: l.Params, Buckets: l.Buckets, Sets: l.Sets()}
		},
	}, nil
}

// expertProcess returns the ranks that hold the same experts, 0 if those are not apart.
func expertProcess(s *scenario.Scenario) int {
	if !s.SeparateExperts() {
		return 0
	}
	return s.ExpertProcess()
}
