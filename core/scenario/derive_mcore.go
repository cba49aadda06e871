package scenario

import (
	"strings"

	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/units"
)

// Experts returns the experts of a layer, 0 if it has one MLP.
func (s *Scenario) Experts() int { return s.Model.Experts.Count }

// ExpertPattern says which layers have experts, 1 or 0 for each and repeated over the layers; "": all.
func (s *Scenario) ExpertPattern() string {
	if s.Model.Experts.LayerFreq == "1" {
		return ""
	}
	pattern, _ := model.ExpertPattern(s.Model.Experts.LayerFreq)
	return pattern
}

// expertLayers counts the layers of the whole model that have experts.
func (s *Scenario) expertLayers() int {
	pattern := s.ExpertPattern()
	switch {
	case s.Experts() == 0:
		return 0
	case pattern == "":
		return s.Model.Layers
	}
	layers := max(s.Model.Layers, 0)
	rest := layers % len(pattern)
	return layers/len(pattern)*strings.Count(pattern, "1") + strings.Count(pattern[:rest], "1")
}

// ExpertFFN returns moe_ffn_hidden_size.
func (s *Scenario) ExpertFFN() int {
	if s.Model.Experts.FFN == 0 {
		return s.FFN()
	}
	return s.Model.Experts.FFN
}

// ExpertTP returns the ranks that share an expert's matrices.
func (s *Scenario) ExpertTP() int {
	if s.Parallel.ETP == 0 {
		return s.Parallel.TP
	}
	return s.Parallel.ETP
}

// ExpertProcess returns the ranks that hold the same experts (expert-data-parallel size), or 0 if
// those of a stage do not divide.
func (s *Scenario) ExpertProcess() int {
	if s.Experts() == 0 {
		return s.Process()
	}
	stage, part := s.Parallel.TP*s.Process(), s.ExpertTP()*s.Parallel.EP
	if part < 1 || stage%part != 0 {
		return 0
	}
	return stage / part
}

// SeparateExperts reports whether experts are reduced over other ranks than the rest.
func (s *Scenario) SeparateExperts() bool {
	return s.Experts() > 0 && (s.Parallel.EP > 1 || s.ExpertTP() != s.Parallel.TP)
}

// mcoreDistributed returns over how many of a group of n ranks Megatron-Core shards the state.
func (s *Scenario) mcoreDistributed(n int) int {
	m := &s.Optim.MCore
	switch {
	case !m.DistributedOptimizer:
		return min(1, n)
	case m.Instances < 1 || n%m.Instances != 0:
		return 0
	}
	return n / m.Instances
}

// GradDType returns the dtype in which Megatron-Core or PyTorch DDP keeps and reduces gradients:
// the parameters', unless Megatron-Core is asked for fp32.
func (s *Scenario) GradDType() dtype.DType {
	if s.GradReduceInFP32() {
		return dtype.FP32
	}
	return s.ModelDType()
}

// GradReduceInFP32 reports whether Megatron-Core accumulates and reduces gradients in fp32, which
// it does unless another dtype is asked for.
func (s *Scenario) GradReduceInFP32() bool {
	return s.MCore() && (s.Optim.GradSync == "" || s.Optim.GradSync == dtype.FP32.String())
}

// AlignParamGather reports whether the schedule starts parameter gathers: only with model chunks.
func (s *Scenario) AlignParamGather() bool {
	return s.Optim.MCore.AlignParamGather && s.Parallel.VP > 1
}

// FP32Accumulation reports whether shards are summed in fp32 after an all-to-all: Megatron-Core
// turns that off for gradients that are fp32 anyway.
func (s *Scenario) FP32Accumulation() bool {
	return s.Optim.MCore.FP32Accumulation && s.GradDType() != dtype.FP32
}

// MicrobatchGroup returns the microbatches that pass a model chunk before the next chunk's turn.
func (s *Scenario) MicrobatchGroup() int {
	if s.MCore() && s.Optim.MCore.MicrobatchGroup > 0 {
		return s.Optim.MCore.MicrobatchGroup
	}
	return s.Parallel.PP
}

// Quant returns how the weights of linear layers are stored.
func (s *Scenario) Quant() mcore.Quant {
	switch {
	case !s.FP8Weights():
		return mcore.Plain
	case s.Optim.MCore.FP8Recipe == MXFP8:
		return mcore.MXFP8
	case s.Optim.MCore.FP8Recipe == Blockwise:
		return mcore.BlockFP8
	}
	return mcore.FP8
}

// MCoreOptions returns the settings of Megatron-Core's optimizer on a pipeline stage.
func (s *Scenario) MCoreOptions(stage int) mcore.Options {
	m := &s.Optim.MCore
	o := mcore.Options{
		World: s.Process(), Data: s.DP(), Expert: s.Parallel.EP, ExpertWorld: s.ExpertProcess(), Instances: m.Instances,
		Pipeline: s.Parallel.PP, Stage: stage,
		DistributedOptimizer: m.DistributedOptimizer,
		OverlapGradReduce:    s.Optim.OverlapGradSync,
		OverlapParamGather:   s.Optim.OverlapParamSync,
		GatherWithStep:       m.GatherWithStep,
		AlignGradReduce:      m.AlignGradReduce,
		AlignParamGather:     s.AlignParamGather(),
		GradReduceInFP32:     s.GradReduceInFP32(),
		AverageInCollective:  m.AverageInCollective,
		PerTokenLoss:         m.PerTokenLoss,
		FP32Accumulation:     s.FP32Accumulation(),
		HighBusBandwidth:     m.PadBuckets,
		ReuseGradBuffer:      m.ReuseGradBuffer,
		BucketSize:           units.Elems(m.BucketSize),
		NumBuckets:           m.NumBuckets,
		Library:              !m.TrainingCode,
	}
	if m.FP32Grads != "" {
		o.FP32Patterns = []string{m.FP32Grads}
	}
	return o
}

// DDPRebuilds reports whether PyTorch DDP makes its buckets anew from the order in which gradients
// arrive.
func (s *Scenario) DDPRebuilds() bool { return !s.Optim.DDP.FindUnused || s.Optim.DDP.StaticGraph }
