// Package memory is what a rank of each pipeline stage holds on its device: bytes by kind over the drawn
// step, the peak and what is in it, and whether it fits.
//
// Of walks the tasks of a recording with their times. Static needs neither: it walks the order of the
// schedule, with the same footprints, and finds the same peak of activations. Footprints of modules come from
// package model, the optimizer's pieces from adapters of its layouts, constants are in constants.go, each
// with its source.
//
// Units are bytes. Sources: Korthikanti et al. (arXiv:2205.05198) for what a layer keeps, the code of
// Megatron-Core, Apex, Transformer Engine and PyTorch for the rest, as docs/memory.md says. Not modelled:
// fragmentation beside a constant share, tensors that wait for another stream, activations in host memory,
// what FSDP shards.
package memory

import (
	"distopt/core/hw"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// Kind says what memory is for.
type Kind uint8

// The kinds, in the order in which they are stacked.
const (
	Params      Kind = iota // model parameters, parameter buffers with their padding
	Quantized               // of FP8 weights: transposes, second copies, scales
	Main                    // main parameters
	Remainders              // their low 16 bits, where the high ones are the parameters
	Moments                 // both, with their scales
	Grads                   // gradient buckets, buffers with their padding, reduced shards
	StepGrads               // fp32 copies of gradients for the update
	Gathered                // parameter buckets between their update and the copy into parameters
	Activations             // kept for the backward pass
	Temporaries             // inside a pass: gradients of activations, what is computed again
	Logits                  // and what the loss makes of them
	Messages                // between stages, and what is gathered for a product
	Workspace               // of libraries, inside the allocator
	Reserved                // cached by the allocator, not in use
	Context                 // of CUDA, kernels and NCCL, outside the allocator
	NumKinds
)

var kindNames = [NumKinds]string{
	"parameters", "FP8 copies", "main parameters", "remainders", "moments", "gradients", "fp32 gradient copies",
	"gathered parameters", "activations", "temporaries", "logits", "messages", "workspaces", "allocator", "CUDA and NCCL",
}

// String returns the name for the reader.
func (k Kind) String() string { return kindNames[k] }

// Amounts is bytes by kind.
type Amounts [NumKinds]units.Bytes

// Total is all of it.
func (a *Amounts) Total() (n units.Bytes) {
	for _, b := range a {
		n += b
	}
	return n
}

// Allocated is what tensors take: torch.cuda.memory_allocated.
func (a *Amounts) Allocated() units.Bytes { return a.Total() - a[Reserved] - a[Context] }

// Add adds b.
func (a *Amounts) Add(b *Amounts) {
	for k := range a {
		a[k] += b[k]
	}
}

// Point is a step of the function of time: Bytes hold from At on, until the next point.
type Point struct {
	At    sched.Time // since the drawn step began
	Bytes Amounts
}

// Phase is a part of the step, for a peak that has no time.
type Phase uint8

// The phases.
const (
	InForward Phase = iota
	InBackward
	InUpdate
)

// Peak is the moment of the most memory.
type Peak struct {
	Bytes Amounts
	At    sched.Time // since the drawn step began; 0 of a static form
	Phase Phase
	// Task is what runs on the main stream; None: nothing. Only of a simulation.
	Task sched.TaskID
}

// Stage is the memory of one pipeline stage's rank.
type Stage struct {
	Held   Amounts // throughout
	Series []Point // over the drawn step; nil of a static form
	Peak   Peak
	// InFlight is the most microbatch passes of model chunks whose activations are held at once.
	InFlight int
}

// Result is the memory of every stage.
type Result struct {
	Stages   []Stage
	Worst    int         // the stage of the highest peak
	Capacity units.Bytes // of the GPU, for one process
}

// Fits reports whether the worst stage's peak stays within the GPU's memory, and what is left (or missing,
// below 0).
func (r *Result) Fits() (ok bool, left units.Bytes) {
	left = r.Capacity - r.Stages[r.Worst].Peak.Bytes.Total()
	return left >= 0, left
}

// finish names the worst stage.
func (r *Result) finish(g *hw.GPU) *Result {
	r.Capacity = g.Usable
	for s := range r.Stages {
		if r.Stages[s].Peak.Bytes.Total() > r.Stages[r.Worst].Peak.Bytes.Total() {
			r.Worst = s
		}
	}
	return r
}

// phase of a task of the main stream.
func phase(k step.Kind) Phase {
	switch k {
	case step.Forward:
		return InForward
	case step.Backward:
		return InBackward
	}
	return InUpdate
}
