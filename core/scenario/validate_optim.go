package scenario

import (
	"fmt"

	"distopt/core/dtype"
)

// optimizer checks what NeMo and Apex refuse in model.optim.
func (c *checker) optimizer() {
	s, o := c.s, &c.s.Optim
	if s.Family() == FamilyNeMo && c.usable(pathO2, pathContigGrad) && s.Precision.O2 && !o.ContiguousGradBuffer {
		c.fail(pathContigGrad, "true with megatron_amp_O2", Edit{pathContigGrad, "true"})
	}
	if !s.Plain() && !s.DDP() && c.usable(pathGradFusion, pathO2) && s.Precision.GradFusion && !s.Precision.O2 {
		c.note(pathGradFusion, "NeMo turns gradient_accumulation_fusion off without megatron_amp_O2.")
	}
	if c.usable(pathScaled) && o.WithScaledStates && !s.MCore() && !s.DDP() {
		c.scaledStates()
	}
	c.withoutEffect()
	if c.usable(pathName) && !simulated[s.Family()] {
		c.fail(pathName, NeMoAdam+" or "+PlainApex+": "+s.Family().String()+" is not simulated yet", Edit{pathName, NeMoAdam})
	}
}

// withoutEffect remarks on fields that the optimizer does not read.
func (c *checker) withoutEffect() {
	if c.quiet {
		return
	}
	for i := range Fields {
		if f := &Fields[i]; !f.Applies(c.s) && c.usable(f.Path) && f.Path != pathExperts && f.Get(c.s) != f.Default {
			c.note(f.Path, "No effect: "+f.WithoutEffect(c.s)+".")
		}
	}
}

// scaledStates checks with_scaled_states.
func (c *checker) scaledStates() {
	s, a := c.s, c.s.Optimizer()
	off := Edit{pathScaled, "false"}
	if !c.usable(pathState, pathVersion, pathPrecision, pathO2, pathFP8Params, pathName, pathParamSync, pathStore, pathRemainders) {
		return
	}
	if !s.NewApex() {
		c.fail(pathScaled, "false with the old Apex, which does not have it", off)
		return
	}
	half := Edit{pathState, "fp16"}
	if !s.Plain() && s.ModelDType() == dtype.FP16 { // NeMo stores no main parameters in the model's own dtype
		half.Value = "bf16"
	}
	if a.State == dtype.FP32 {
		c.fail(pathState, "fp16 or bf16 with with_scaled_states", half)
		return
	}
	switch {
	case a.StoreParamRemainders:
		c.fail(pathScaled, "false with store_param_remainders", off)
	case !a.StoreParams:
		c.fail(pathScaled, fmt.Sprintf("false unless main parameters are stored (here the state and the model are both %v)", a.State), off)
	case a.ParamSync == dtype.FP32:
		c.fail(pathScaled, "false with fp32 param sync", off)
	case a.State == dtype.BF16 && half.Value == "bf16":
		c.warn(pathScaled, "A bf16 state gives NaN as soon as a scale becomes subnormal.")
	case a.State == dtype.BF16:
		c.warn(pathScaled, "A bf16 state gives NaN as soon as a scale becomes subnormal; fp16 does not.", half)
	}
}

// plainOptimizer checks what only Apex's class by itself is asked for.
func (c *checker) plainOptimizer() {
	s, p := c.s, &c.s.Optim.Plain
	if !c.usable(pathName) || !s.Plain() {
		return
	}
	if c.usable(pathPP) && s.Parallel.PP > 1 {
		c.fail(pathPP, "1 with apex_distributed_fused_adam: pipeline callbacks are NeMo's", edit(pathPP, 1))
	}
	if c.usable(pathFP8Params) && s.Precision.FP8Params {
		c.fail(pathFP8Params, "false with apex_distributed_fused_adam: FP8 parameters are NeMo's", Edit{pathFP8Params, "false"})
	}
	if c.usable(pathSP, pathTP) && s.SequenceParallel() {
		c.fail(pathSP, "false with apex_distributed_fused_adam: its all-reduce is NeMo's", Edit{pathSP, "false"})
	}
	if c.usable(pathStore, pathRemainders) && p.StoreParams && p.StoreParamRemainders {
		c.fail(pathRemainders, "false with store_params", Edit{pathStore, "false"})
	}
	if c.usable(pathState, pathParamSync, pathRemainders, pathPrecision, pathO2) {
		a := s.Optimizer()
		switch {
		case !p.StoreParamRemainders:
		case a.State != dtype.FP32:
			c.fail(pathRemainders, "false unless dtype is fp32", Edit{pathRemainders, "false"})
		case s.ModelDType() != dtype.BF16:
			c.fail(pathRemainders, "false unless the parameters are bf16", Edit{pathRemainders, "false"})
		case a.ParamSync != dtype.BF16:
			c.fail(pathRemainders, "false unless param_sync_dtype is bf16", Edit{pathParamSync, "bf16"})
		}
		if c.usable(pathContigParam) && s.Optim.ContiguousParamBuffer && a.ParamSync != s.ModelDType() {
			c.fail(pathContigParam, fmt.Sprintf("false unless param_sync_dtype is the parameters' dtype (%v)", s.ModelDType()),
				Edit{pathParamSync, s.ModelDType().String()})
		}
	}
	if n := s.Process(); c.usable(pathDistributed, pathOneRank) && p.DistributedSize > 0 && n > 0 && n%p.DistributedSize != 0 {
		near := nearestFit(min(p.DistributedSize, n), n, func(d int) bool { return n%d == 0 })
		c.fail(pathDistributed, fmt.Sprintf("a divisor of the data-parallel size (%d)", n), edit(pathDistributed, near))
	}
}

// versions remarks on changes that cannot show.
func (c *checker) versions() {
	s := c.s
	if !c.usable(pathVersion, pathVP, pathName) || s.MCore() || s.DDP() {
		return
	}
	for _, l := range []struct {
		path string
		on   bool
	}{{pathLaterBuckets, s.Framework.Later.StageBuckets}, {pathLaterFP32, s.Framework.Later.FP32EmbeddingGrads}} {
		switch {
		case !l.on || !c.usable(l.path):
		case s.Plain():
			c.note(l.path, "No effect: a change of NeMo, which apex_distributed_fused_adam leaves out.")
		case !s.NewNeMo():
			c.warn(l.path, "No effect: a change made after NeMo PR 8221, and the version is before it.", Edit{pathVersion, After})
		case s.Parallel.VP <= 1:
			c.note(l.path, "No effect without virtual_pipeline_model_parallel_size.")
		}
	}
}
