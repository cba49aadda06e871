package eval

import (
	"distopt/core/hw"
	"distopt/core/model"
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
		RMSNorm:          s.RMSNorm(), Bias: s.Model.Bias, Gated: s.Gated(), Tied: s.Model.Tied, QKNorm: s.Model.QKNorm,
		FP8: s.Precision.FP8, FP8Params: s.FP8Weights(), DType: s.ModelDType(),
		Experts: int64(s.Experts()), TopK: int64(s.Model.Experts.TopK), ExpertFFN: int64(s.Model.Experts.FFN), SharedFFN: int64(s.Model.Experts.SharedFFN),
		ExpertLayers: s.ExpertPattern(), FP32Router: s.Model.Experts.RouterDType == "fp32",
	}
}

// computed returns the same in the dtype that it computes in.
func computed(c model.Config, s *scenario.Scenario) model.Config {
	c.DType = s.ComputeDType()
	return c
}

// ep and etp are how experts are divided, 0 without any: then the settings have no effect.
func ep(s *scenario.Scenario) int {
	if s.Experts() == 0 {
		return 0
	}
	return s.Parallel.EP
}

func etp(s *scenario.Scenario) int {
	if s.Experts() == 0 {
		return 0
	}
	return s.ExpertTP()
}

// split returns the part of the model that a stage holds.
func split(s *scenario.Scenario, stage int) model.Split {
	return model.Split{TP: s.Parallel.TP, SP: s.SequenceParallel(), PP: s.Parallel.PP, Index: stage, VP: s.Chunks(), EP: ep(s), ETP: etp(s)}
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

// dispatchers maps moe_token_dispatcher_type.
var dispatchers = map[string]model.Dispatch{
	scenario.AllGather: model.AllGather, scenario.AllToAll: model.AllToAll, scenario.Flex: model.Flex,
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
		EP: int64(ep(s)), ETP: int64(etp(s)), Dispatch: dispatchers[s.Model.Experts.Dispatcher],
		Recompute: recompute[s.Recompute.Granularity], RecomputeLayers: recomputeLayers(s),
	}
}

// grid returns the rank grid.
func grid(s *scenario.Scenario) (parallel.Grid, error) {
	g, err := parallel.NewGrid(s.World(), s.Parallel.TP, s.Parallel.CP, s.Parallel.PP, s.Chunks(), s.Hardware.Devices)
	if err != nil {
		return g, err
	}
	g.Redundant = s.Redundant()
	if s.Experts() > 0 {
		return g.WithExperts(ep(s), etp(s))
	}
	return g, nil
}

// schedule returns what the schedule needs beside its stages.
func schedule(s *scenario.Scenario) step.Config {
	sequence := int64(s.Model.SeqLength) / int64(s.Parallel.CP)
	if s.SequenceParallel() {
		sequence /= int64(s.Parallel.TP)
	}
	c := step.Config{
		Microbatches: s.Microbatches(),
		Activation:   units.Elems(sequence * int64(s.Batch.Micro) * int64(s.Model.Hidden)),
		DType:        s.ComputeDType(),
		BatchP2P:     s.Parallel.BatchP2P && !s.OverlapP2P(),
		OverlapP2P:   s.OverlapP2P(),
		GradSync:     s.Optimizer().GradSync,
		WorldNorm:    !s.Plain() && s.Optim.ClipNorm > 0,

		RecomputeLayers: recomputeLayers(s),
	}
	if s.MCore() || s.DDP() {
		c.Megatron = true
		c.Group = s.MicrobatchGroup()
		c.Unaligned = s.DDP() || !s.Optim.OverlapGradSync || !s.Optim.MCore.AlignGradReduce
	}
	if s.Experts() > 0 {
		c.CommStreams = 2 // expert buffers have a communicator of their own
	}
	return c
}

// machine is what collectives and kernels run on.
func machine(s *scenario.Scenario) (*hw.GPU, *hw.Network) {
	return hw.Lookup(s.Hardware.GPU), hw.LookupNetwork(s.Hardware.Network)
}
