package step

import (
	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
)

// runner is the host of one stage: it runs the schedule, fires the optimizer's hooks in module
// order and leaves tasks in the recorder. No decision of it looks at a clock.
type runner struct {
	cfg    *Config
	model  *model.Stage
	stage  int
	stages int
	opt    optim.Sharded
	rec    *recorder
	obs    Observer
	order  func(at At, backward bool, items []Item) []Item
	at     At

	chunks []chunk
	synced []bool // chunks whose grad_sync_func was called in this step

	micros     int         // of this step
	iterations []iteration // of the interleaved schedule

	noSync   bool
	batch    int // batched calls so far
	request  int // single requests so far
	forwards int // in this step

	tail     bool // the last, partial step: it ends before its first backward,
	tailCall bool // or with the first call after its first forward
	done     bool // the partial step has ended

	world int // ranks of the job
}

// Item is one event of a pass in host order: a hook of Param, or, with Param -1, the start of
// Module's computation.
type Item struct {
	Module int32
	Param  bucket.ParamID
}

// chunk is what a pass through a model chunk consists of.
type chunk struct {
	forward, backward []Item
	params            []bucket.ParamID // in the order in which backward finishes them
	touched           bool             // since the step: no pre-forward hook is pending
	settled           int              // quiet backward passes since the last change
}

func newRunner(in StageInput, cfg *Config) *runner {
	m := in.Model
	r := &runner{cfg: cfg, model: m, stage: m.Index, stages: m.PP, at: At{-1, Init, -1, -1}}
	r.chunks = make([]chunk, len(m.Chunks))
	r.synced = make([]bool, len(m.Chunks))
	for c := range r.chunks {
		r.chunks[c] = newChunk(m, m.Chunks[c].Modules)
	}
	return r
}

// newChunk lists the items of a chunk's passes. Forward reads a module's parameters, then
// computes; backward computes in reverse module order and then has the module's gradients.
func newChunk(m *model.Stage, modules [2]int) chunk {
	var c chunk
	for i := modules[0]; i < modules[1]; i++ {
		for _, p := range m.Modules[i].Params {
			c.forward = append(c.forward, Item{int32(i), p})
		}
		c.forward = append(c.forward, Item{int32(i), -1})
	}
	for i := modules[1] - 1; i >= modules[0]; i-- {
		c.backward = append(c.backward, Item{int32(i), -1})
		for _, p := range m.Modules[i].Params {
			c.backward = append(c.backward, Item{int32(i), p})
			c.params = append(c.params, p)
		}
	}
	return c
}

// step runs step k, from zero_grad to the optimizer's step.
func (r *runner) step(k, micros int, loss lossRole) error {
	r.rec.beginStep(k)
	r.forwards, r.done = 0, false
	r.micros = micros
	for c := range r.chunks {
		r.chunks[c].touched, r.chunks[c].settled = false, 0
	}
	r.at = At{k, Begin, -1, -1}
	r.opt.ZeroGrad()
	r.touchEmbeddings()
	r.at.Phase = Pipe
	r.schedule()
	if !r.done {
		r.at.Phase = AfterBwd
		r.opt.AfterBackward()
		r.moveLoss(loss)
		r.at.Phase = Clip
		r.opt.ClipGradNorm()
		r.at.Phase = Opt
		r.opt.Step()
	}
	return r.opt.Err()
}

// touchEmbeddings reads every embedding parameter before the first forward, as NeMo does: the
// lookup itself bypasses the pre-forward hook.
func (r *runner) touchEmbeddings() {
	if r.cfg.Megatron {
		return
	}
	for i := range r.model.Modules {
		if k := r.model.Modules[i].Kind; k == model.Embedding || k == model.EmbeddingOut {
			for _, p := range r.model.Modules[i].Params {
				r.access(p)
			}
		}
	}
}

// access reads a parameter in forward.
func (r *runner) access(p bucket.ParamID) {
	if r.opt.PendingForward(p) {
		r.opt.PreForward(p)
	}
}

// forward runs a microbatch through a chunk.
func (r *runner) forward(micro, c int) {
	if r.done {
		return
	}
	r.at = At{r.at.Step, InFwd, micro, c}
	r.event("forward_step")
	r.rec.beginPass(micro, c, false)
	ch := &r.chunks[c]
	if ch.touched && r.obs == nil {
		r.rec.wholePass(c)
	} else {
		for _, it := range r.items(ch.forward, false) {
			if it.Param >= 0 {
				r.access(it.Param)
				continue
			}
			r.moduleEvent("fwd", it.Module)
			r.rec.module(it.Module)
		}
		ch.touched = true
	}
	r.rec.endPass()
	r.event("forward_step_end")
	r.forwards++
	r.at = At{r.at.Step, Pipe, -1, -1}
}

// backward runs a microbatch backward through a chunk. While hooks only accumulate, a pass repeats
// the one before: the optimizer sees the first two since the last change, which settle whether
// accumulation needs kernels.
func (r *runner) backward(micro, c int) {
	if r.done = r.done || r.tail; r.done {
		return
	}
	r.at = At{r.at.Step, InBwd, micro, c}
	r.event("backward_step")
	r.rec.beginPass(micro, c, true)
	ch := &r.chunks[c]
	if r.obs == nil && r.opt.QuietBackward() {
		if ch.settled < 2 {
			ch.settled++
			r.rec.beginAccumulation(c)
			r.opt.PostBackwardAll(ch.params)
			r.rec.endAccumulation(c)
		}
		r.rec.wholePass(c)
	} else {
		ch.settled = 0
		for _, it := range r.items(ch.backward, true) {
			if it.Param >= 0 {
				r.opt.PostBackward(it.Param)
				continue
			}
			if !r.silent(it.Module) {
				r.moduleEvent("bwd", it.Module)
			}
			r.rec.module(it.Module)
		}
	}
	r.rec.endPass()
	r.event("backward_step_end")
	r.at = At{r.at.Step, Pipe, -1, -1}
}

// items returns the items of a pass in the order to replay.
func (r *runner) items(items []Item, backward bool) []Item {
	if r.order != nil {
		return r.order(r.at, backward, items)
	}
	return items
}

// silent reports modules whose backward the reference traces do not announce.
func (r *runner) silent(module int32) bool {
	k := r.model.Modules[module].Kind
	return k == model.Embedding || k == model.FinalNorm
}

// setNoSync enters or leaves no_sync, unless it is so already.
func (r *runner) setNoSync(on bool) {
	if r.done || r.noSync == on {
		return
	}
	r.noSync = on
	e := optim.Event{Op: "no_sync"}
	if on {
		e.On = 1
	}
	r.countEvent(e)
	r.opt.NoSync(on)
	r.unsettle()
}

// unsettle makes the next backward passes call the optimizer again.
func (r *runner) unsettle() {
	for c := range r.chunks {
		r.chunks[c].settled = 0
	}
}

// gradSync is grad_sync_func for the parameters of a chunk.
func (r *runner) gradSync(c int) {
	if r.done {
		return
	}
	r.at.Chunk = c
	r.opt.GradSyncFunc(c)
	r.at.Chunk = -1
	r.unsettle()
}

// paramSync is param_sync_func for the parameters of a chunk.
func (r *runner) paramSync(c int) {
	if r.done {
		return
	}
	r.at.Chunk = c
	r.opt.ParamSyncFunc(c)
	r.at.Chunk = -1
}

// lossRole says what a rank does with the mean loss, which the last global rank sends to rank 0.
type lossRole uint8

const (
	noLoss lossRole = iota
	sendsLoss
	receivesLoss
)

func (r *runner) moveLoss(l lossRole) {
	if r.stages == 1 || l == noLoss {
		return
	}
	if l == sendsLoss {
		r.countEvent(optim.Event{Op: "send_loss"})
	} else {
		r.countEvent(optim.Event{Op: "recv_loss", Peer: r.world - 1})
	}
	r.rec.loss(l == sendsLoss)
}
