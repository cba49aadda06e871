package scenario

import (
	"distopt/core/apex"
	"distopt/core/dtype"
)

// OptimizerArgs are the arguments of the optimizer's constructor that are not switches of the
// document itself: dtypes, and what is stored for main parameters.
type OptimizerArgs struct {
	State, GradSync, ParamSync dtype.DType
	StoreParams                bool // shards hold main parameters
	StoreParamRemainders       bool // shards hold the low 16 bits of bf16 parameters
}

// Optimizer returns the constructor's arguments of the framework that Optim.Name picks. Beside
// Apex only its dtypes of communication mean something.
func (s *Scenario) Optimizer() OptimizerArgs {
	switch s.Family() {
	case FamilyApex:
		return s.plainOptimizer()
	case FamilyMCore, FamilyDDP:
		return OptimizerArgs{State: dtype.FP32, GradSync: s.GradDType(), ParamSync: s.ModelDType()}
	}
	return s.NeMoOptimizer()
}

// NeMoOptimizer returns what NeMo passes: it overrides param_sync_dtype with the model's dtype
// and decides by itself what is stored. fp8_params stores main parameters even when fp8 is off.
func (s *Scenario) NeMoOptimizer() OptimizerArgs {
	a := s.dtypes()
	a.ParamSync = s.ModelDType()
	switch {
	case s.Precision.FP8Params:
		a.StoreParams = true
	case a.State == a.ParamSync: // the parameters themselves are the main parameters
	case a.State == dtype.FP32 && a.ParamSync == dtype.BF16:
		a.StoreParamRemainders = true
	default:
		a.StoreParams = true
	}
	return a
}

// plainOptimizer returns what the document asks Apex's class for.
func (s *Scenario) plainOptimizer() OptimizerArgs {
	a := s.dtypes()
	a.ParamSync = a.State
	if d, ok := dtype.Parse(s.Optim.Plain.ParamSync); ok {
		a.ParamSync = d
	}
	a.StoreParams = s.Optim.Plain.StoreParams
	a.StoreParamRemainders = s.Optim.Plain.StoreParamRemainders
	return a
}

// dtypes returns the state dtype and the grad-sync dtype, which follows it unless it is given.
func (s *Scenario) dtypes() OptimizerArgs {
	a := OptimizerArgs{State: dtype.FP32}
	if d, ok := dtype.Parse(s.Optim.State); ok {
		a.State = d
	}
	a.GradSync = a.State
	if d, ok := dtype.Parse(s.Optim.GradSync); ok {
		a.GradSync = d
	}
	return a
}

// bucketOptions are the options that decide the size of a bucket.
func (s *Scenario) bucketOptions() apex.Options {
	return apex.Options{
		Distributed: s.Distributed(),
		GradSync:    s.Optimizer().GradSync,
		BucketCapMB: s.Optim.BucketCapMB,
	}
}

// NewNeMo reports whether NeMo PR 8221 is in.
func (s *Scenario) NewNeMo() bool {
	return s.Framework.Version == After || s.Framework.Version == AfterOldApex
}

// NewApex reports whether Apex PR 1771 is in.
func (s *Scenario) NewApex() bool {
	return s.Framework.Version == After || s.Framework.Version == BeforeNewApex
}
