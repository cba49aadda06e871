package memory

import (
	"cmp"
	"fmt"
	"slices"

	"distopt/core/bucket"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// Of returns the memory of every stage over the drawn step of a recording: from stage 0's first forward of
// the last whole step to its next. Spans are those of all tasks.
func Of(in *Input, rec *step.Recording, spans []sched.Span) (*Result, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	starts := rec.StepStart
	if len(spans) != len(rec.Labels) || len(starts) != len(in.Stages) || len(starts[0]) < 2 {
		return nil, fmt.Errorf("memory: %d spans of %d tasks, %d stages of %d: want equal numbers, and two steps", len(spans), len(rec.Labels), len(starts), len(in.Stages))
	}
	drawn := starts[0][len(starts[0])-2:]
	out := &Result{Stages: make([]Stage, len(in.Stages))}
	t := timeline{in: in, rec: rec, spans: spans, from: spans[drawn[0]].Start, to: spans[drawn[1]].Start}
	at := 0
	for s := range in.Stages {
		first := at
		at, _ = slices.BinarySearchFunc(rec.Labels, s+1, func(l step.Label, s int) int { return int(l.Stage) - s })
		if at < first {
			return nil, fmt.Errorf("memory: tasks of different stages are mixed, want tasks listed stage by stage")
		}
		t.begin(s)
		for i := first; i < at; i++ {
			t.task(sched.TaskID(i))
		}
		out.Stages[s] = t.finish(s)
	}
	return out.finish(in.GPU), nil
}

// change is bytes more, or less, from an instant on.
type change struct {
	at    sched.Time
	bytes units.Bytes
	kind  Kind
	phase Phase
	task  sched.TaskID // of the main stream, that starts here; None: none does
}

// timeline turns one stage's tasks into changes. Tasks come in the order in which the host issues them,
// which decides what a bucket is used for; instants are those of the simulation.
type timeline struct {
	in       *Input
	rec      *step.Recording
	spans    []sched.Span
	from, to sched.Time

	profile *profile
	opt     *Optimizer
	chunks  [][2]int
	changes []change // of the main stream, in order
	beside  []change // of buckets
	flying  int
	most    int

	step    int8
	updated bool // this step
	state   []bucketState
	uses    [][]int32 // of each module: buckets that hold its parameters
	used    []bool    // modules, since the update
	users   []int32   // of each bucket: modules
	pending int       // buckets with updated or gathered values
}

// bucketState is what exists of a bucket.
type bucketState struct {
	grad, shard, param, update bool
	unused                     int32 // modules that have not read it since the update
	gathered                   sched.Time
}

// begin prepares for the tasks of a stage.
func (t *timeline) begin(s int) {
	st := t.in.Stages[s].Model
	t.profile, t.opt = t.in.newProfile(st), &t.in.Stages[s].Optimizer
	t.changes, t.beside = t.changes[:0], t.beside[:0]
	t.flying, t.most, t.step, t.updated, t.pending = 0, 0, 0, false, 0
	t.chunks = t.chunks[:0]
	for c := range st.Chunks {
		t.chunks = append(t.chunks, st.Chunks[c].Modules)
	}
	n := len(t.opt.Buckets)
	t.state, t.users = make([]bucketState, n), make([]int32, n)
	t.uses, t.used = make([][]int32, len(st.Modules)), make([]bool, len(st.Modules))
	for b := range n {
		for _, p := range t.opt.Buckets[b].Params {
			m := st.Params[p].Module
			if uses := t.uses[m]; len(uses) == 0 || uses[len(uses)-1] != int32(b) {
				t.uses[m] = append(uses, int32(b))
				t.users[b]++
			}
		}
	}
}

// change is one beside the main stream.
func (t *timeline) change(at sched.Time, k Kind, bytes units.Bytes) {
	if bytes != 0 {
		t.beside = append(t.beside, change{at, bytes, k, InUpdate, sched.None})
	}
}

// main is one of the main stream, in order.
func (t *timeline) main(at sched.Time, k Kind, bytes units.Bytes) {
	if bytes != 0 {
		t.changes = append(t.changes, change{at, bytes, k, InUpdate, sched.None})
	}
}

// task looks at the next task.
func (t *timeline) task(i sched.TaskID) {
	l, span := &t.rec.Labels[i], t.spans[i]
	if l.Step != t.step && (l.Kind == step.ZeroGrad || l.Kind == step.Forward) {
		t.step = l.Step
		t.clear(span.Start)
	}
	switch l.Kind {
	case step.Forward, step.Backward:
		t.pass(i, l, span)
	case step.ReduceScatter:
		t.reduce(t.ids(l), span)
	case step.Adam:
		t.changes = append(t.changes, change{at: span.Start, task: i, phase: InUpdate})
		t.main(span.Start, Temporaries, t.opt.Scratch)
		t.main(span.End, Temporaries, -t.opt.Scratch)
		t.update(t.ids(l), span.Start)
	case step.AllGather:
		t.gather(t.ids(l), span)
	case step.ParamCopy:
		if t.opt.CopiedAtOnce {
			t.copied(span)
		}
	}
}

func (t *timeline) ids(l *step.Label) []bucket.ID { return t.rec.BucketIDs[l.Buckets[0]:l.Buckets[1]] }

// pass is a run of modules in one direction.
func (t *timeline) pass(i sched.TaskID, l *step.Label, span sched.Span) {
	p, first, last := t.profile, int(l.Module[0]), int(l.Module[1])
	acts, logits := p.acts[last]-p.acts[first], p.logits[last]-p.logits[first]
	atFirst := first == t.chunks[max(l.Chunk, 0)][0]
	t.changes = append(t.changes, change{at: span.Start, task: i, phase: phase(l.Kind)})
	if l.Kind == step.Forward {
		s := p.forward(first, last)
		t.main(span.Start, Activations, acts)
		t.main(span.Start, Temporaries, s.temps)
		t.main(span.Start, Logits, logits+s.logits)
		t.main(span.End, Temporaries, -s.temps)
		t.main(span.End, Logits, -s.logits)
		if atFirst {
			t.flying++
			t.most = max(t.most, t.flying)
		}
		if t.pending > 0 {
			t.read(first, last, span.Start)
		}
		return
	}
	s := p.backward(first, last)
	t.main(span.Start, Temporaries, s.temps)
	t.main(span.Start, Logits, s.logits)
	t.main(span.End, Activations, -acts)
	t.main(span.End, Temporaries, -s.temps)
	t.main(span.End, Logits, -logits-s.logits)
	if atFirst {
		t.flying--
	}
	t.gradients(first, last, span.Start)
}

// gradients allocates the buckets that modules add gradients to.
func (t *timeline) gradients(first, last int, at sched.Time) {
	for m := first; m < last; m++ {
		for _, b := range t.uses[m] {
			if s := &t.state[b]; !s.grad {
				s.grad = true
				t.change(at, Grads, t.opt.Buckets[b].Grad)
			}
		}
	}
}

// reduce gives buckets their shards and frees what was reduced.
func (t *timeline) reduce(ids []bucket.ID, span sched.Span) {
	t.change(span.Start, Messages, t.opt.Exchange)
	t.change(span.End, Messages, -t.opt.Exchange)
	for _, id := range ids {
		if int(id) >= len(t.state) {
			continue
		}
		s, b := &t.state[id], &t.opt.Buckets[id]
		if !s.shard {
			s.shard = true
			t.change(span.Start, Grads, b.Shard)
		}
		if !s.grad {
			t.change(span.Start, Grads, b.Grad)
		}
		s.grad = false
		t.change(span.End, Grads, -b.Grad)
	}
}

// update makes copies of gradients and updated shards.
func (t *timeline) update(ids []bucket.ID, at sched.Time) {
	if !t.updated {
		t.updated = true
		t.change(at, StepGrads, t.opt.StepGrads)
		t.drop(at)
		clear(t.used)
	}
	for _, id := range ids {
		if int(id) < len(t.state) && !t.state[id].update {
			t.state[id].update, t.state[id].unused = true, t.users[id]
			t.pending++
			t.change(at, Gathered, t.opt.Buckets[id].Update)
		}
	}
}

// gather allocates whole buckets; their shards go when it ends.
func (t *timeline) gather(ids []bucket.ID, span sched.Span) {
	for _, id := range ids {
		if int(id) >= len(t.state) {
			continue
		}
		s, b := &t.state[id], &t.opt.Buckets[id]
		if s.update {
			s.update = false
			t.pending--
			t.change(span.End, Gathered, -b.Update)
		}
		if !s.param {
			s.param, s.gathered = true, span.End
			t.pending++
			t.change(span.Start, Gathered, b.Param)
		}
	}
}

// read frees the buckets whose last parameters are copied out for these modules.
func (t *timeline) read(first, last int, at sched.Time) {
	if t.opt.CopiedAtOnce {
		t.drop(at)
		return
	}
	for m := first; m < last; m++ {
		if t.used[m] {
			continue
		}
		t.used[m] = true
		for _, b := range t.uses[m] {
			if s := &t.state[b]; s.unused > 0 {
				if s.unused--; s.unused == 0 {
					t.dropBucket(b, at)
				}
			}
		}
	}
}

// copied frees the buckets that were gathered before parameters were copied out in the optimizer's step.
func (t *timeline) copied(span sched.Span) {
	for b := range t.state {
		if s := &t.state[b]; s.param && s.gathered <= span.Start {
			t.dropBucket(int32(b), span.End)
		}
	}
}

// drop frees all values that are still to be copied.
func (t *timeline) drop(at sched.Time) {
	for b := range t.state {
		t.dropBucket(int32(b), at)
	}
}

func (t *timeline) dropBucket(b int32, at sched.Time) {
	s := &t.state[b]
	if s.update {
		t.pending--
		t.change(at, Gathered, -t.opt.Buckets[b].Update)
	}
	if s.param {
		t.pending--
		t.change(at, Gathered, -t.opt.Buckets[b].Param)
	}
	s.update, s.param = false, false
}

// clear is the beginning of a step: gradients go.
func (t *timeline) clear(at sched.Time) {
	if t.updated {
		t.change(at, StepGrads, -t.opt.StepGrads)
	}
	t.updated = false
	for b := range t.state {
		s := &t.state[b]
		if s.shard {
			t.change(at, Grads, -t.opt.Buckets[b].Shard)
		}
		if s.grad {
			t.change(at, Grads, -t.opt.Buckets[b].Grad)
		}
		s.shard, s.grad = false, false
	}
}

// finish adds the changes up.
func (t *timeline) finish(stage int) Stage {
	slices.SortStableFunc(t.beside, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	level := t.in.held(stage)
	s := summer{level: level, total: level.Total(), width: 1, task: sched.None, phase: InUpdate}
	if n := sched.Time(t.in.Points); n > 0 {
		s.width, s.bounded = max((t.to-t.from+n-1)/n, 1), true
	}
	lists := [2][]change{t.changes, t.beside}
	until := func(end sched.Time) { // applies what happens before
		for i := range lists {
			n := 0
			for n < len(lists[i]) && lists[i][n].at < end {
				s.apply(&lists[i][n])
				n++
			}
			lists[i] = lists[i][n:]
		}
	}
	until(t.from + 1)
	s.see(0)
	for {
		at := t.to
		for i := range lists {
			if len(lists[i]) > 0 {
				at = min(at, lists[i][0].at)
			}
		}
		if at == t.to {
			break
		}
		s.carry(at - t.from)
		until(at + 1)
		s.see(at - t.from)
	}
	out := Stage{Held: t.in.held(stage), Series: s.points, Peak: s.peak, InFlight: t.most}
	out.Peak.Bytes.cache()
	out.Held[Reserved] = out.Peak.Bytes[Reserved]
	for i := range out.Series {
		out.Series[i].Bytes[Reserved] = out.Held[Reserved]
	}
	return out
}

// summer walks changes in order of time.
type summer struct {
	level Amounts
	total units.Bytes
	task  sched.TaskID
	phase Phase

	width   sched.Time // of a point
	bounded bool       // more than an instant
	points  []Point
	peak    Peak
}

func (s *summer) apply(c *change) {
	if c.task != sched.None {
		s.task, s.phase = c.task, c.phase
		return
	}
	s.level[c.kind] += c.bytes
	s.total += c.bytes
}

// see takes the level that holds from an instant on into its point, which has the highest of its piece.
func (s *summer) see(at sched.Time) {
	if len(s.points) == 0 || s.total > s.peak.Bytes.Total() {
		s.peak = Peak{Bytes: s.level, At: at, Phase: s.phase, Task: s.task}
	}
	if n := len(s.points); n > 0 && s.points[n-1].At == at/s.width*s.width {
		if last := &s.points[n-1]; s.total > last.Bytes.Total() {
			last.Bytes = s.level
		}
		return
	}
	s.points = append(s.points, Point{at / s.width * s.width, s.level})
}

// carry gives pieces that begin before an instant the level that they begin with.
func (s *summer) carry(at sched.Time) {
	if !s.bounded {
		return
	}
	begin, next := at/s.width*s.width, s.points[len(s.points)-1].At+s.width
	if next < begin {
		s.see(next)
	}
	if next <= begin && begin < at {
		s.see(begin)
	}
}
