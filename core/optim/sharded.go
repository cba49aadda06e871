package optim

import "distopt/core/bucket"

// Sharded is a distributed optimizer as a training step sees it: hooks, callbacks and calls.
// It decides who is launched when; every effect goes through Runtime, every event to Observer.
// No method looks at a number or a clock. Parameters are those of one rank, all chunks.
type Sharded interface {
	// ZeroGrad begins a step: gradient buffers are cleared.
	ZeroGrad()
	// PreForward is a parameter's first access in a forward pass (the one-shot pre-forward hook).
	PreForward(p bucket.ParamID)
	// PostBackward says that autograd has accumulated the gradient of p.
	PostBackward(p bucket.ParamID)
	// NoSync enters (true) or leaves (false) the context in which backward does not synchronize.
	NoSync(on bool)
	// GradSyncFunc and ParamSyncFunc are Megatron's callbacks for the parameters of a model chunk.
	GradSyncFunc(chunk int)
	ParamSyncFunc(chunk int)
	// FinishGradSync waits for gradient syncs in flight, after the schedule.
	FinishGradSync()
	// ClipGradNorm computes the gradient norm (synchronizing what is left).
	ClipGradNorm()
	// Step updates the parameters and starts or does their gathering.
	Step()
	// PendingForward reports whether any pre-forward hook of p would do something: a step may
	// treat a module without pending parameters as pure compute.
	PendingForward(p bucket.ParamID) bool
	// QuietBackward reports that PostBackward only accumulates, for every parameter, at present.
	QuietBackward() bool
}
