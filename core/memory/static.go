package memory

import (
	"fmt"

	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/units"
)

// StageInput is what one stage holds.
type StageInput struct {
	Model     *model.Stage
	Optimizer Optimizer
}

// Input is a job, as far as memory goes.
type Input struct {
	GPU       *hw.GPU
	Model     model.Config // in the dtype that it computes in
	Execution model.Execution
	Storage   model.Storage
	Stages    []StageInput

	Microbatches int  // per step and rank
	Megatron     bool // schedules of Megatron-LM in place of those that NeMo pins, as in step.Config
	Group        int  // likewise: microbatches of a group of the interleaved schedule; 0: as many as stages
	// Message is the tensor that stages hand on.
	Message units.Bytes
	// Communicators are those of NCCL that a rank works with.
	Communicators int
	// Deterministic: the environment fixes cuBLAS's workspaces, as deterministic algorithms need.
	Deterministic bool

	// Points bounds the points of a stage's series: each then stands for the most of a piece of the step.
	// 0: no bound.
	Points int
}

// check refuses what does not form one pipeline.
func (in *Input) check() error {
	if len(in.Stages) == 0 || in.GPU == nil {
		return fmt.Errorf("memory: got %d stages and GPU %v, want at least one stage and a GPU", len(in.Stages), in.GPU)
	}
	for s := range in.Stages {
		if m := in.Stages[s].Model; m == nil || m.Index != s || m.PP != len(in.Stages) || len(m.Chunks) != len(in.Stages[0].Model.Chunks) {
			return fmt.Errorf("memory: stage %d is not stage %d of %d with as many chunks as the others", s, s, len(in.Stages))
		}
	}
	if in.Microbatches < 1 {
		return fmt.Errorf("microbatches: got %d, want at least 1; raise the global batch size", in.Microbatches)
	}
	return nil
}

// held is what a stage holds throughout.
func (in *Input) held(s int) Amounts {
	st := &in.Stages[s]
	a := st.Optimizer.Held
	if len(in.Stages) > 1 {
		a[Messages] += messages * in.Message
	}
	a[Messages] += in.gathered(st.Model)
	a[Workspace] += in.workspace(in.GPU) + in.dummies(st.Model)
	a[Context] = in.outside()
	return a
}

// cache adds what the allocator holds beside the most that is in use.
func (a *Amounts) cache() { a[Reserved] = a.Allocated() * reserved / 1000 }

// Static returns the peak of every stage from the order of the schedule alone. Buckets that come and go are
// taken at their most: those of gradients are all there until the first is reduced, gathered ones from the
// first module that reads them to the last, and two beside them.
func Static(in *Input) (*Result, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &Result{Stages: make([]Stage, len(in.Stages))}
	for s := range in.Stages {
		out.Stages[s] = in.static(s)
	}
	return out.finish(in.GPU), nil
}

func (in *Input) static(s int) Stage {
	held := in.held(s)
	w := walker{in: in, profile: in.newProfile(in.Stages[s].Model), held: held}
	w.passing = in.Stages[s].Optimizer.passing(in.Stages[s].Model)
	w.exchange = in.Stages[s].Optimizer.Exchange
	w.read = make([]bool, len(w.profile.chunks))
	w.walk(s)
	peak := Peak{Phase: w.phase, Bytes: w.peak, Task: sched.None}
	held.Add(&w.passing.update)
	if held.Total() > peak.Bytes.Total() {
		peak.Bytes, peak.Phase = held, InUpdate
	}
	peak.Bytes.cache()
	out := Stage{Held: in.held(s), Peak: peak, InFlight: w.most}
	out.Held[Reserved] = peak.Bytes[Reserved]
	return out
}

// passing is what buckets take at most in each part of a step.
type passing struct {
	backward units.Bytes // gradients
	forward  units.Bytes // gathered, in the first pass of a chunk
	update   Amounts
}

func (o *Optimizer) passing(st *model.Stage) (p passing) {
	var grads, shards, shard, two, updates units.Bytes
	reading := make([]units.Bytes, len(st.Modules)+1) // changes at each module
	for i := range o.Buckets {
		b := &o.Buckets[i]
		grads += b.Grad
		shards += b.Shard
		shard = max(shard, b.Shard)
		two = max(two, b.Param+b.Update)
		updates += b.Update
		if len(b.Params) > 0 {
			first, last := len(st.Modules), 0
			for _, q := range b.Params {
				m := st.Params[q].Module
				first, last = min(first, m), max(last, m)
			}
			reading[first] += b.Param
			reading[last+1] -= b.Param
		}
	}
	if len(o.Buckets) > 1 {
		two *= 2
	}
	// The first bucket that is reduced has its shard beside all that are not yet.
	p.backward = max(grads+shard, shards)
	if !o.CopiedAtOnce {
		level, most := units.Bytes(0), units.Bytes(0)
		for _, n := range reading {
			level += n
			most = max(most, level)
		}
		p.forward = most + two + updates
	}
	p.update[Grads], p.update[Gathered] = shards, two+updates
	p.update[StepGrads], p.update[Temporaries] = o.StepGrads, o.Scratch
	return p
}

// walker follows one stage through its schedule.
type walker struct {
	in      *Input
	profile *profile
	held    Amounts

	passing  passing
	exchange units.Bytes // in backward passes
	read     []bool      // chunks that have been used in this step
	began    bool        // a backward pass has

	acts, logits units.Bytes
	flying, most int
	peak         Amounts
	phase        Phase
}

// walk runs the passes of a stage in the order of Megatron-core's schedules. After some microbatches the
// order repeats itself.
func (w *walker) walk(stage int) {
	stages, chunks, micros := len(w.in.Stages), len(w.profile.chunks), w.in.Microbatches
	group := w.in.group()
	total := micros * chunks
	warmup, period := min(stages-stage-1, micros), 1
	if chunks > 1 {
		warmup, period = min(2*(stages-stage-1)+(chunks-1)*group, total), group*chunks
		if !w.in.Megatron && micros == stages {
			warmup = total
		}
	}
	steady := total - warmup
	if micros%group == 0 {
		steady = min(steady, 2*period+steady%period)
	}
	for k := range warmup {
		w.forward(w.chunkOf(k))
	}
	for k := range steady {
		w.forward(w.chunkOf(warmup + k))
		w.backward(chunks - 1 - w.chunkOf(k))
	}
	for k := range warmup {
		w.backward(chunks - 1 - w.chunkOf(steady+k))
	}
}

// group returns Group with its default.
func (in *Input) group() int {
	if in.Group > 0 {
		return in.Group
	}
	return len(in.Stages)
}

// chunkOf returns the model chunk of forward pass k: groups of microbatches, the last of which may be
// smaller, go through one chunk after the other.
func (w *walker) chunkOf(k int) int {
	chunks, group := len(w.profile.chunks), w.in.group()
	block := k / (group * chunks)
	return (k - block*group*chunks) / min(group, w.in.Microbatches-block*group)
}

func (w *walker) forward(c int) {
	k := &w.profile.chunks[c]
	gathered := units.Bytes(0)
	if !w.read[c] {
		w.read[c], gathered = true, w.passing.forward
	}
	w.see(&k.forward, InForward, gathered)
	w.acts, w.logits = w.acts+k.acts, w.logits+k.logits
	w.flying++
	w.most = max(w.most, w.flying)
}

func (w *walker) backward(c int) {
	k := &w.profile.chunks[c]
	w.see(&k.backward, InBackward, 0)
	w.acts, w.logits = w.acts-k.acts, w.logits-k.logits
	w.flying--
}

// see compares the highest point of a pass with the peak so far.
func (w *walker) see(r *rise, p Phase, gathered units.Bytes) {
	a := w.held
	a[Activations] += w.acts + r.acts
	a[Logits] += w.logits + r.logits + r.surge.logits
	a[Temporaries] += r.surge.temps
	w.began = w.began || p == InBackward
	if w.began {
		a[Grads] += w.passing.backward
	}
	a[Gathered] += gathered
	if p == InBackward {
		a[Messages] += w.exchange
	}
	if a.Total() > w.peak.Total() {
		w.peak, w.phase = a, p
	}
}
