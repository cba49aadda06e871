// Package optim is what every sharded optimizer shares: the calls that a training step makes
// (Sharded), the effects that it has (Runtime), the events that it reports (Observer), and the
// statuses of its buckets. A framework's control flow, core/apex first, is written once over them.
// Beside that stands the arithmetic that an effect on numbers needs: the element update of Adam, the
// norm, scaled states, delayed FP8 scales.
//
// Sizes are elements or bytes, as their types say. Words and rules follow Apex's
// DistributedFusedAdam, rounding for rounding; nothing here knows time.
package optim

import "distopt/core/bucket"

// Sharded is a distributed optimizer as a training step sees it: hooks, callbacks and calls.
// It decides who is launched when; every effect goes through Runtime, every event to Observer, the
// firing of a hook and the two ends of a callback included; NoSync is silent. No method looks at a
// number or a clock. Parameters are those of one rank, all chunks.
//
// A method that meets a state in which the real code raises does nothing and leaves the reason in
// Err; every later call then does nothing either.
type Sharded interface {
	// ZeroGrad begins a step: gradient buffers are cleared.
	ZeroGrad()
	// PreForward is a parameter's access in a forward pass (the pre-forward hook of Apex's parameter, of
	// Megatron-Core's module). It has no effect unless PendingForward(p), and then it is one-shot in Apex.
	PreForward(p bucket.ParamID)
	// PostBackward says that autograd has accumulated the gradient of p.
	PostBackward(p bucket.ParamID)
	// PostBackwardAll is PostBackward for each of params in order, with one effect for all of them
	// where they only accumulate: cheap in the microbatches that do not synchronize.
	PostBackwardAll(params []bucket.ParamID)
	// NoSync enters (true) or leaves (false) the context in which backward does not synchronize.
	NoSync(on bool)
	// GradSyncFunc and ParamSyncFunc are Megatron's callbacks for the parameters of a model chunk.
	GradSyncFunc(chunk int)
	ParamSyncFunc(chunk int)
	// AfterBackward is what the framework's training step does between the schedule and clipping:
	// in NeMo the all-reduce of sequence-parallel gradients, the wait for gradient syncs in flight,
	// the all-reduce of tied embedding gradients; in Megatron-Core finalize_model_grads; in plain Apex
	// nothing.
	AfterBackward()
	// ClipGradNorm computes the gradient norm (synchronizing what is left) and clips by it. It does
	// nothing where clipping is off, or where Step does it, as in Megatron-Core.
	ClipGradNorm()
	// Step updates the parameters and starts or does their gathering.
	Step()
	// PendingForward reports whether the pre-forward hook of p would do something: a step may
	// treat a module without pending parameters as pure compute.
	PendingForward(p bucket.ParamID) bool
	// QuietBackward reports that PostBackward only accumulates, for every parameter, at present.
	QuietBackward() bool
	// Err is the first error met: what the real code would have raised.
	Err() error
}
