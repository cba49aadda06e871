package eval

import (
	"fmt"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/report"
	"distopt/core/scenario"
)

// apexStage lays out a stage for NeMo or for Apex by itself.
func apexStage(s *scenario.Scenario, g parallel.Grid, st *model.Stage) (laidOut, error) {
	l, err := buildLayout(s, st)
	if err != nil {
		return laidOut{}, err
	}
	return laidOut{
		stage: st, apex: l, construct: newApex(s, g, st.Index, l),
		holds: func() report.StageInput { return apexHolds(st, l) },
	}, nil
}

// options returns what the optimizer's constructor is given.
func options(s *scenario.Scenario) apex.Options {
	a := s.Optimizer()
	o := apex.Options{
		Distributed: s.Distributed(), Redundant: s.Redundant(),
		State: a.State, GradSync: a.GradSync, ParamSync: a.ParamSync,
		BucketCapMB:           s.Optim.BucketCapMB,
		AverageGradSync:       s.Optim.AverageGradSync,
		OverlapGradSync:       s.Optim.OverlapGradSync,
		OverlapParamSync:      s.Optim.OverlapParamSync,
		ContiguousGradBuffer:  s.Optim.ContiguousGradBuffer,
		ContiguousParamBuffer: s.Optim.ContiguousParamBuffer,
		StoreParams:           a.StoreParams,
		StoreParamRemainders:  a.StoreParamRemainders,
		WithScaledStates:      s.Optim.WithScaledStates,
		NormDecay:             s.Optim.OneParamGroup,
		NewApex:               s.NewApex(),
	}
	if !s.Plain() {
		o.NeMo, o.NewNeMo, o.O2 = true, s.NewNeMo(), s.Precision.O2
		o.Later = apex.Later{
			StageBuckets:       s.Framework.Later.StageBuckets,
			FP32EmbeddingGrads: s.Framework.Later.FP32EmbeddingGrads,
		}
	}
	return o
}

// buildLayout returns the buckets of a stage before its first step. Plain Apex that places
// parameters lazily has none yet: its hooks make them in the first backward pass.
func buildLayout(s *scenario.Scenario, st *model.Stage) (*apex.Layout, error) {
	l, err := apex.Build(options(s), st)
	if err != nil || !s.Plain() {
		return l, err
	}
	switch s.Optim.Plain.Init {
	case scenario.InitExplicit:
		l.InitParams(nil)
	case scenario.InitReversed:
		all := make([]bucket.ParamID, len(l.Params))
		for i := range all {
			all[i] = bucket.ParamID(len(all) - 1 - i)
		}
		l.InitParams(all)
	}
	return l, nil
}

// newApex returns a constructor of the stage's optimizer.
func newApex(s *scenario.Scenario, g parallel.Grid, stage int, l *apex.Layout) construct {
	c := apex.Config{
		World: s.World(), Tensor: s.Parallel.TP,
		MaxNorm:    s.Optim.ClipNorm,
		GradScaler: s.Precision.Trainer == scenario.FP16,
		FusedWgrad: s.GradFusion(),
	}
	if s.Model.Tied { // else the group exists and is not used
		c.EmbeddingSize = g.Group(parallel.Embedding, g.Representative(stage)).Size
	}
	return func(rt optim.Runtime, ob optim.Observer) (optim.Sharded, error) {
		c := c
		c.Runtime, c.Observer = rt, ob
		return apex.NewSharded(l, c)
	}
}

// apexHolds describes a stage for the report, once the step has placed what it places lazily.
func apexHolds(st *model.Stage, l *apex.Layout) report.StageInput {
	in := report.StageInput{Model: st, Params: l.Params, Buckets: l.Buckets, Sets: l.Sets()}
	for _, b := range l.Buffers() {
		out := report.Buffer{Key: b.DTypes.String(), Length: int64(b.Length)}
		if l.Options.ContiguousGradBuffer {
			in.GradBuffers = append(in.GradBuffers, out)
		}
		if l.Options.ContiguousParamBuffer {
			in.ParamBuffers = append(in.ParamBuffers, out)
		}
	}
	if l.WarnsOfPadding() {
		filled, size := l.Use()
		in.Notes = append(in.Notes, report.Note{
			Path: "model.optim.bucket_cap_mb",
			Text: fmt.Sprintf("Apex warns: buckets of stage %d are used to %.1f %%, less than 70 %%", st.Index, 100*float64(filled)/float64(size)),
		})
	}
	return in
}
