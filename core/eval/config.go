package eval

import (
	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/scenario"
	"distopt/core/step"
	"distopt/core/units"
)

// architecture returns the model that s describes.
func architecture(s *scenario.Scenario) model.Config {
	return model.Config{
		Layers: int64(s.Model.Layers), Hidden: int64(s.Model.Hidden), FFN: int64(s.FFN()),
		Heads: int64(s.Model.Heads), Groups: int64(s.QueryGroups()), KVChannels: int64(s.KVChannels()),
		Vocab: int64(s.PaddedVocab()), Seq: int64(s.Model.SeqLength),
		LearnedPositions: s.Model.Position == scenario.LearnedAbsolute,
		RMSNorm:          s.RMSNorm(), Bias: s.Model.Bias, Gated: s.Gated(), Tied: s.Model.Tied,
		FP8: s.Precision.FP8, FP8Params: s.FP8Weights(), DType: s.ModelDType(),
	}
}

// computed returns the same in the dtype that it computes in.
func computed(c model.Config, s *scenario.Scenario) model.Config {
	c.DType = s.ComputeDType()
	return c
}

// split returns the part of the model that a stage holds.
func split(s *scenario.Scenario, stage int) model.Split {
	return model.Split{TP: s.Parallel.TP, SP: s.SequenceParallel(), PP: s.Parallel.PP, Index: stage, VP: s.Chunks()}
}

// recompute maps activations_checkpoint_granularity.
var recompute = map[string]model.Recompute{
	"": model.NoRecompute, scenario.Selective: model.CoreAttention, scenario.Full: model.FullLayers,
}

// recomputeLayers returns the layers of each chunk that are recomputed, 0 if all are, or none.
func recomputeLayers(s *scenario.Scenario) int {
	if n := s.RecomputedLayers(); n < s.ChunkLayers() {
		return n
	}
	return 0
}

// execution returns how one rank runs the model.
func execution(s *scenario.Scenario) model.Execution {
	gpu, _ := machine(s)
	return model.Execution{
		Micro: int64(s.Batch.Micro), Microbatches: int64(s.Microbatches()),
		TP: int64(s.Parallel.TP), SP: s.SequenceParallel(), CP: int64(s.Parallel.CP),
		TPOverlap: s.TPOverlap(), Autocast: s.ComputeDType() != s.ModelDType(),
		GradDType: s.Optimizer().GradSync, GradFusion: s.GradFusion(),
		BF16Wgrad: s.Precision.FP8 && !s.Precision.FP8Wgrad,
		Dropout:   s.Model.HiddenDropout > 0, FusedRope: s.Model.RopeFusion, Attention: gpu.Arch.Attention(),
		Recompute: recompute[s.Recompute.Granularity], RecomputeLayers: recomputeLayers(s),
	}
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

// grid returns the rank grid.
func grid(s *scenario.Scenario) (parallel.Grid, error) {
	g, err := parallel.NewGrid(s.World(), s.Parallel.TP, s.Parallel.CP, s.Parallel.PP, s.Chunks(), s.Hardware.Devices)
	if err != nil {
		return g, err
	}
	g.Redundant = s.Redundant()
	return g, nil
}

// schedule returns what the schedule needs beside its stages.
func schedule(s *scenario.Scenario) step.Config {
	sequence := int64(s.Model.SeqLength) / int64(s.Parallel.CP)
	if s.SequenceParallel() {
		sequence /= int64(s.Parallel.TP)
	}
	return step.Config{
		Microbatches: s.Microbatches(),
		Activation:   units.Elems(sequence * int64(s.Batch.Micro) * int64(s.Model.Hidden)),
		DType:        s.ComputeDType(),
		BatchP2P:     s.Parallel.BatchP2P && !s.OverlapP2P(),
		OverlapP2P:   s.OverlapP2P(),
		GradSync:     s.Optimizer().GradSync,
		WorldNorm:    !s.Plain() && s.Optim.ClipNorm > 0,

		RecomputeLayers: recomputeLayers(s),
	}
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

// newOptimizer returns a constructor of the stage's optimizer, and where to find it afterwards.
func newOptimizer(s *scenario.Scenario, g parallel.Grid, stage int, l *apex.Layout) func(optim.Runtime, optim.Observer) (optim.Sharded, error) {
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

// machine is what collectives and kernels run on.
func machine(s *scenario.Scenario) (*hw.GPU, *hw.Network) {
	return hw.Lookup(s.Hardware.GPU), hw.LookupNetwork(s.Hardware.Network)
}
