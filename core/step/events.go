package step

import "distopt/core/optim"

// At says where in training an event happens.
type At struct {
	Step         int // from 0; -1 before the first
	Phase        Phase
	Micro, Chunk int // -1: none
}

// Phase is a part of a step.
type Phase uint8

// The phases.
const (
	Init     Phase = iota
	Begin          // gradients cleared, embeddings touched
	InFwd          // inside a forward step
	InBwd          // inside a backward step
	Pipe           // in the schedule, outside both
	AfterBwd       // between the schedule and clipping
	Clip
	Opt // the optimizer's step
)

var phaseNames = [...]string{"init", "begin", "fwd", "bwd", "pipe", "after_bwd", "clip", "opt"}

// String returns the word of the reference traces.
func (p Phase) String() string { return phaseNames[p] }

// Observer sees every event of a stage, those of its optimizer included. An event's Micro and
// Chunk are filled in; a message's are those of the tensor that travels.
type Observer interface{ Event(at At, e *optim.Event) }

// Event passes an event of the optimizer on; it makes the runner an optim.Observer.
func (r *runner) Event(e *optim.Event) {
	e.Micro, e.Chunk = r.at.Micro, r.at.Chunk
	r.obs.Event(r.at, e)
}

// event reports an event without fields of its own.
func (r *runner) event(op optim.Op) {
	if r.obs != nil {
		r.plainEvent(op)
	}
}

func (r *runner) plainEvent(op optim.Op) { r.Event(&optim.Event{Op: op, Param: -1}) }

// moduleEvent reports that a module starts its computation.
func (r *runner) moduleEvent(op optim.Op, module int32) {
	if r.obs != nil {
		r.Event(&optim.Event{Op: op, Param: -1, Module: r.model.Modules[module].Name})
	}
}

// countEvent reports an event with one number: no_sync, p2p_wait, send_loss, recv_loss.
func (r *runner) countEvent(e optim.Event) {
	if r.obs != nil {
		e.Param = -1
		r.Event(&e)
	}
}

// messageEvent reports a message; batch or request is 0.
func (r *runner) messageEvent(m message, batch, request int) {
	if r.obs != nil {
		r.obs.Event(r.at, &optim.Event{
			Op: m.op(), Param: -1, N: int64(r.cfg.Activation), Bytes: int64(r.cfg.messageBytes()),
			Micro: int(m.micro), Chunk: int(m.chunk), Batch: batch, Request: request,
		})
	}
}
