package scenario

import (
	"fmt"
	"strings"

	"distopt/core/dtype"
	"distopt/core/hw"
)

// mcore checks what Megatron-Core and NeMo refuse of its distributed optimizer.
func (c *checker) mcore() {
	s, m := c.s, &c.s.Optim.MCore
	if !c.usable(pathName) || !s.MCore() {
		return
	}
	// needs reports a setting that asks for another one.
	needs := func(path string, on bool, other string, has bool) {
		if !on || has || !c.usable(path, other) {
			return
		}
		f, _ := ByPath(path)
		want := f.Default
		if f.Kind == Bool {
			want = "false"
		}
		c.fail(path, want+" without "+other[strings.LastIndexByte(other, '.')+1:], Edit{other, "true"})
	}
	sharded := func(path string, on bool) { needs(path, on, pathUseDistOpt, m.DistributedOptimizer) }
	gather, fp32 := s.Optim.OverlapParamSync, dtype.FP32.String()
	needs(pathOverlapParam, gather, pathOverlapGrad, s.Optim.OverlapGradSync)
	sharded(pathOverlapParam, gather && s.Optim.OverlapGradSync)
	sharded(pathInstances, m.Instances > 1)
	sharded(pathPrecisionAware, m.PrecisionAware)
	sharded(pathFP8Params, s.FP8Weights())
	needs(pathMainParams, m.MainParams != fp32, pathPrecisionAware, m.PrecisionAware)
	needs(pathExpAvg, m.ExpAvg != fp32, pathPrecisionAware, m.PrecisionAware)
	needs(pathExpAvgSq, m.ExpAvgSq != fp32, pathPrecisionAware, m.PrecisionAware)
	if c.usable(pathAverage) && m.AverageInCollective {
		switch {
		case c.usable(pathPerToken) && m.PerTokenLoss:
			c.fail(pathAverage, "false with calculate_per_token_loss", Edit{pathAverage, "false"})
		case c.usable(pathFP32Accum, pathGradSync) && s.FP32Accumulation():
			c.fail(pathAverage, "false with ddp_reduce_scatter_with_fp32_accumulation, which sums", Edit{pathAverage, "false"})
		}
	}
	if c.usable(pathFP32Accum, pathInstances) && s.FP32Accumulation() && m.Instances > 1 {
		c.fail(pathFP32Accum, "false with optimizer instances", edit(pathInstances, 1))
	}
	if c.usable(pathBucketSize, pathNumBuckets) && m.BucketSize > 0 && m.NumBuckets > 0 {
		c.fail(pathNumBuckets, "null with ddp_bucket_size", Edit{pathNumBuckets, Null})
	}
	if c.usable(pathGradSync, pathFP32Grads, pathPrecision, pathO2) && m.FP32Grads != "" && s.GradDType() == dtype.FP32 {
		c.fail(pathFP32Grads, "null with fp32 gradients", Edit{pathFP32Grads, Null})
	}
	c.gatherWithStep()
	c.instances()
	c.mxfp8()
	c.microbatchGroup()
	c.connections()
	c.mcoreNotes()
}

// gatherWithStep checks overlap_param_gather_with_optimizer_step.
func (c *checker) gatherWithStep() {
	s := c.s
	if !c.usable(pathWithStep, pathOverlapParam, pathOverlapGrad, pathVP, pathReuse) || !s.Optim.MCore.GatherWithStep {
		return
	}
	want := ""
	switch {
	case !s.Optim.OverlapParamSync:
		want = "false without overlap_param_sync"
	case s.Parallel.VP <= 1:
		want = "false without model chunks"
	case s.Optim.MCore.ReuseGradBuffer:
		want = "false with reuse_grad_buf_for_mxfp8_param_ag"
	default:
		return
	}
	c.fail(pathWithStep, want, Edit{pathWithStep, "false"})
}

// instances checks that the data-parallel ranks divide into optimizer instances.
func (c *checker) instances() {
	s, m := c.s, &c.s.Optim.MCore
	n := s.Process()
	if m.Instances <= 1 || n == 0 || !c.usable(pathInstances, pathEP, pathETP) {
		return
	}
	experts := n
	if s.SeparateExperts() && s.ExpertProcess() > 0 {
		experts = s.ExpertProcess()
	}
	if n%m.Instances == 0 && experts%m.Instances == 0 {
		return
	}
	near := nearestFit(min(m.Instances, n), n, func(i int) bool { return n%i == 0 && experts%i == 0 })
	want := fmt.Sprintf("a divisor of the data-parallel ranks (%d)", n)
	if experts != n {
		want = fmt.Sprintf("a divisor of the data-parallel ranks (%d) and of the expert-data-parallel ones (%d)", n, experts)
	}
	c.fail(pathInstances, want, edit(pathInstances, near))
}

// mxfp8 checks how MXFP8 weights are gathered.
func (c *checker) mxfp8() {
	s, m := c.s, &c.s.Optim.MCore
	if !c.usable(pathReuse, pathRecipe, pathFP8, pathFP8Params) {
		return
	}
	if m.FP8Recipe == MXFP8 && s.Precision.FP8 && c.usable(pathGPU) && beforeBlackwell(s.Hardware.GPU) {
		c.fail(pathRecipe, "another one than mxfp8 before Blackwell GPUs", Edit{pathRecipe, Delayed})
	}
	switch {
	case m.ReuseGradBuffer && !s.FP8Weights():
		c.fail(pathReuse, "false without fp8_params", Edit{pathReuse, "false"})
	case m.ReuseGradBuffer && m.FP8Recipe != MXFP8:
		c.note(pathReuse, "No effect: fp8_recipe is not mxfp8.")
	case s.FP8Weights() && m.FP8Recipe == MXFP8 && !m.ReuseGradBuffer:
		c.warn(pathRecipe, "Megatron-LM warns: MXFP8 parameters without reuse_grad_buf_for_mxfp8_param_ag take more memory.", Edit{pathReuse, "true"})
	}
}

// microbatchGroup checks the group size of the interleaved schedule.
func (c *checker) microbatchGroup() {
	s, n := c.s, c.s.Optim.MCore.MicrobatchGroup
	if !c.usable(pathGroupSize, pathVP, pathPP) || n == 0 {
		return
	}
	switch rest := s.Microbatches() % n; {
	case s.Parallel.VP <= 1:
		c.note(pathGroupSize, "No effect without virtual_pipeline_model_parallel_size.")
	case n < s.Parallel.PP:
		c.fail(pathGroupSize, fmt.Sprintf("at least pipeline_model_parallel_size (%d)", s.Parallel.PP), edit(pathGroupSize, s.Parallel.PP))
	case c.usable(pathGlobal, pathMicro) && rest > 0 && rest < s.Parallel.PP:
		c.fail(pathGroupSize, fmt.Sprintf("%d microbatches to leave none, or at least as many as stages (%d), not %d", s.Microbatches(), s.Parallel.PP, rest),
			Edit{pathGroupSize, Null})
	}
}

// connections checks CUDA_DEVICE_MAX_CONNECTIONS as Megatron-LM's training code does.
func (c *checker) connections() {
	s, m := c.s, &c.s.Optim.MCore
	if m.TrainingCode && m.MaxConnections != 1 && c.usable(pathConnections, pathTP, pathCP, pathGPU) &&
		(s.Parallel.TP > 1 || s.Parallel.CP > 1) && beforeBlackwell(s.Hardware.GPU) {
		c.fail(pathConnections, "1 with tensor or context parallelism before Blackwell GPUs", edit(pathConnections, 1))
	}
}

// mcoreNotes remarks on settings that are switched off or do nothing.
func (c *checker) mcoreNotes() {
	s, m := c.s, &c.s.Optim.MCore
	for _, n := range []struct {
		path string
		on   bool
		text string
	}{
		{pathBucketSize, m.BucketSize > 0 && !s.Optim.OverlapGradSync, "No effect without overlap_grad_sync: one bucket holds everything."},
		{pathNumBuckets, m.NumBuckets > 0 && !s.Optim.OverlapGradSync, "No effect without overlap_grad_sync: one bucket holds everything."},
		{pathPadBuckets, m.PadBuckets && !m.DistributedOptimizer, "No effect without use_distributed_optimizer, which pads."},
		{pathAlignParam, m.AlignParamGather && s.Parallel.VP <= 1, "Megatron-Core turns align_param_gather off without model chunks."},
		{pathMCoreRemainders, !m.StoreRemainders && !m.PrecisionAware, "No effect without use_precision_aware_optimizer."},
		{pathRecipe, m.FP8Recipe != Delayed && !s.Precision.FP8, "No effect without fp8."},
		{pathFP32Accum, m.FP32Accumulation && s.GradDType() == dtype.FP32, "Megatron-Core turns this off: gradients are fp32 anyway."},
		{pathGradSync, s.Optim.GradSync != "" && !s.GradReduceInFP32() && s.Optim.GradSync != s.ModelDType().String(),
			"Gradients have the dtype of the parameters (" + s.ModelDType().String() + ") unless this is fp32."},
	} {
		if n.on && c.usable(n.path) {
			c.note(n.path, n.text)
		}
	}
}

// torchDDP checks what PyTorch DDP is simulated with.
func (c *checker) torchDDP() {
	s := c.s
	if !c.usable(pathName) || !s.DDP() {
		return
	}
	if c.usable(pathPP) && s.Parallel.PP > 1 {
		c.fail(pathPP, "1 with torch_ddp: pipelines have code of their own", edit(pathPP, 1))
	}
	if c.usable(pathEP) && s.Parallel.EP > 1 {
		c.fail(pathEP, "1 with torch_ddp, which reduces all parameters over all ranks", edit(pathEP, 1))
	}
	if c.usable(pathFP8Params) && s.Precision.FP8Params {
		c.fail(pathFP8Params, "false with torch_ddp: its Adam updates the parameters themselves", Edit{pathFP8Params, "false"})
	}
	if c.usable(pathSP, pathTP) && s.SequenceParallel() {
		c.fail(pathSP, "false with torch_ddp: its all-reduce is NeMo's or Megatron's", Edit{pathSP, "false"})
	}
}

// beforeBlackwell reports whether a GPU is older than that.
func beforeBlackwell(id string) bool {
	g := hw.Lookup(id)
	return g != nil && g.Arch < hw.Blackwell
}
