package step

import "distopt/core/sched"

// Passes become one task per layer, or several where something intervenes.

func (r *recorder) beginPass(micro, chunk int, back bool) {
	r.flush()
	r.micro, r.chunk, r.back = int32(micro), int8(chunk), back
}

func (r *recorder) endPass() {
	r.flush()
	r.micro, r.chunk, r.back = -1, -1, false
}

// module adds a module to the open run, or opens another one.
func (r *recorder) module(i int32) {
	layer := int16(r.model.Modules[i].Layer)
	r.flushCopies()
	if r.open.last > r.open.first && r.open.layer == layer && (i == r.open.last || i == r.open.first-1) {
		r.open.first, r.open.last = min(r.open.first, i), max(r.open.last, i+1)
		return
	}
	r.flush()
	r.open = run{i, i + 1, layer, 0}
}

// flush makes tasks of what is open: whatever comes next must not overtake it.
func (r *recorder) flush() {
	if len(r.copies) > 0 || r.open.last > r.open.first {
		r.close()
	}
}

func (r *recorder) close() {
	r.flushCopies()
	if o := r.open; o.last > o.first {
		r.open = run{}
		o.work = r.works.compute(r.model, o, r.back, r.adds)
		r.adds = r.adds[:0]
		r.compute(o)
	}
}

// wholePass emits all layers of the present pass. After the first nothing is waited for.
func (r *recorder) wholePass(c int) {
	runs, kind := r.forward[c], Forward
	if r.back {
		runs, kind = r.backward[c], Backward
	}
	r.compute(runs[0])
	main := &r.streams[mainStream]
	for i := range runs[1:] {
		o := &runs[1+i]
		task, l := r.appendTask()
		task.Stream = main.id
		l.Kind, l.Chunk, l.Layer, l.Micro, l.Work = kind, r.chunk, o.layer, r.micro, o.work
		l.Module = [2]int16{int16(o.first), int16(o.last)}
	}
	t := sched.TaskID(len(r.rec.Program.Tasks) - 1)
	main.tail, main.knows[mainStream] = t, t
}

// compute emits one run on main.
func (r *recorder) compute(o run) {
	kind := Forward
	if r.back {
		kind = Backward
	}
	t := r.emit(mainStream, kind, o.work, sched.None)
	l := &r.rec.Labels[t]
	l.Layer, l.Module = o.layer, [2]int16{int16(o.first), int16(o.last)}
	if !r.started && !r.back {
		r.started = true
		r.starts = append(r.starts, t)
	}
}

// plan splits a pass through a chunk into runs, one per layer.
func (r *recorder) plan(c int, back bool) []run {
	span := r.model.Chunks[c].Modules
	var runs []run
	add := func(i int) {
		layer := int16(r.model.Modules[i].Layer)
		if n := len(runs); n > 0 && runs[n-1].layer == layer {
			runs[n-1].first = min(runs[n-1].first, int32(i))
			runs[n-1].last = max(runs[n-1].last, int32(i)+1)
		} else {
			runs = append(runs, run{int32(i), int32(i) + 1, layer, 0})
		}
	}
	if back {
		for i := span[1] - 1; i >= span[0]; i-- {
			add(i)
		}
	} else {
		for i := span[0]; i < span[1]; i++ {
			add(i)
		}
	}
	for i := range runs {
		runs[i].work = r.works.compute(r.model, runs[i], back, nil)
	}
	return runs
}

// planAdds makes gradient additions part of a chunk's backward passes.
func (r *recorder) planAdds(c int) {
	for i := range r.backward[c] {
		o := &r.backward[c][i]
		adds := r.scratch[:0]
		for m := o.last - 1; m >= o.first; m-- {
			adds = append(adds, r.perModule[m]...)
		}
		o.work = r.works.compute(r.model, *o, true, adds)
		r.scratch = adds
	}
}
