package apex

import (
	"fmt"

	"distopt/core/dtype"
)

// DefaultOptions are those of Apex's constructor for a distributed group of w ranks: after PR #1771,
// fp32 everywhere, main parameters stored.
func DefaultOptions(w int) Options {
	return Options{
		Distributed: w, Redundant: 1,
		State: dtype.FP32, GradSync: dtype.FP32, ParamSync: dtype.FP32,
		BucketCapMB:     100,
		AverageGradSync: true,
		OverlapGradSync: true,
		StoreParams:     true,
		NewApex:         true,
	}
}

// SetNeMo turns o into what NeMo passes on: the parameters' dtype is gathered, FP8 parameters are
// stored as main parameters, bf16 ones beside an fp32 state as 16-bit remainders.
func (o *Options) SetNeMo(params dtype.DType, fp8Params bool) {
	o.NeMo = true
	o.ParamSync = params
	o.StoreParams, o.StoreParamRemainders = false, false
	switch {
	case fp8Params:
		o.StoreParams = true
	case o.State == params:
	case o.State == dtype.FP32 && params == dtype.BF16:
		o.StoreParamRemainders = true
	default:
		o.StoreParams = true
	}
}

// Check refuses what Apex's constructor refuses.
func (o Options) Check() error {
	if _, _, err := o.BucketSize(); err != nil {
		return err
	}
	refuse := func(path string, got any, want, fix string) error {
		return fmt.Errorf("%s: got %v, want %s; %s", path, got, want, fix)
	}
	switch {
	case !o.State.Float():
		return refuse("dtype", o.State, "fp32, fp16 or bf16", "set it to fp32")
	case !o.GradSync.Float():
		return refuse("grad_sync_dtype", o.GradSync, "fp32, fp16 or bf16", "set it to bf16")
	case o.StoreParams && o.StoreParamRemainders:
		return refuse("store_param_remainders", true, "false when store_params is true", "turn one of them off")
	case o.StoreParamRemainders && (o.State != dtype.FP32 || o.ParamSync != dtype.BF16):
		return refuse("store_param_remainders", true, "fp32 state and bf16 param sync", "turn it off")
	case o.WithScaledStates && !o.StoreParams:
		return refuse("with_scaled_states", true, "store_params true", "turn store_params on")
	case o.WithScaledStates && o.State == dtype.FP32:
		return refuse("with_scaled_states", true, "a state dtype of fp16 or bf16", "set dtype to fp16")
	case o.WithScaledStates && o.ParamSync == dtype.FP32:
		return refuse("with_scaled_states", true, "a param_sync_dtype other than fp32", "set it to bf16")
	}
	return nil
}
