package step

import (
	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/sched"
	"distopt/core/units"
)

// recorder turns the effects of one stage's optimizer, and the passes and messages of its
// schedule, into tasks. It is an optim.Runtime.
//
// A stream knows, for every other stream of its device, the last task that must end before what
// it gets next. A wait only moves that knowledge; it becomes a dependency of the next task.
type recorder struct {
	*shared
	cfg    *Config
	model  *model.Stage
	device int32

	streams []stream     // main, messages with the previous and the next stage, communication
	synced  sched.TaskID // up to here the host has waited for the device
	step    int8
	micro   int32
	chunk   int8
	back    bool // inside a backward pass
	starts  []sched.TaskID
	started bool // the step's first forward task exists

	scratch []kernelID
	ids     []bucket.ID

	open   run        // modules of one layer that are not a task yet
	adds   []kernelID // gradient accumulation of the open run
	copies []kernelID // parameter copies that are not a task yet

	forward, backward [][]run // per chunk: its passes, one run per layer
	perModule         [][]kernelID
	addOf             []kernelID // of each parameter: the kernel that adds its gradient
	accumulating      bool       // a whole chunk's gradients are accumulated at once

	shards []units.Bytes  // of every bucket, as last reduced
	calls  []sched.TaskID // numbered collectives
	made   [numJoints]int // joint collectives so far
}

// Local streams of a device.
const (
	mainStream = iota
	prevStream // batched messages, and single ones with the previous stage
	nextStream
	firstComm
)

const maxStreams = firstComm + maxCommStreams

type stream struct {
	id    sched.StreamID
	tail  sched.TaskID             // last task
	knows [maxStreams]sched.TaskID // what must end before the next task
	deps  [maxStreams]sched.TaskID // what its tasks already wait for
	news  sched.TaskID             // the last that it learned of and no task of it waits for yet
}

// run is a range of modules that one task computes, and its work.
type run struct {
	first, last int32 // half-open; empty: none
	layer       int16
	work        WorkID
}

func newRecorder(s *shared, m *model.Stage, cfg *Config) *recorder {
	r := &recorder{shared: s, cfg: cfg, model: m, device: int32(m.Index), chunk: -1, micro: -1, synced: sched.None}
	r.streams = make([]stream, s.perDevice)
	for i := range r.streams {
		st := &r.streams[i]
		st.id = sched.StreamID(s.stages + m.Index*s.perDevice + i)
		st.tail, st.news = sched.None, sched.None
		for o := range st.knows {
			st.knows[o], st.deps[o] = sched.None, sched.None
		}
	}
	r.perModule = make([][]kernelID, len(m.Modules))
	r.addOf = make([]kernelID, len(m.Params))
	for i := range m.Params {
		r.addOf[i] = s.works.kernel(gradientAdd(&m.Params[i], cfg.GradSync))
	}
	r.forward = make([][]run, len(m.Chunks))
	r.backward = make([][]run, len(m.Chunks))
	for c := range m.Chunks {
		r.forward[c] = r.plan(c, false)
		r.backward[c] = r.plan(c, true)
	}
	return r
}

func (r *recorder) beginStep(k int) {
	r.step, r.micro, r.chunk, r.started = int8(k), -1, -1, false
	r.flush()
}

// emit appends a task to local stream s.
func (r *recorder) emit(s int, kind Kind, work WorkID, comm sched.CommID) sched.TaskID {
	p := &r.rec.Program
	t := sched.TaskID(len(p.Tasks))
	st := &r.streams[s]
	from := int32(len(p.Deps))
	if st.news > r.synced {
		for o := range r.streams {
			if d := st.knows[o]; d > st.deps[o] && d > r.synced && o != s {
				st.deps[o] = d
				p.Deps = append(p.Deps, d)
			}
		}
		st.news = sched.None
	}
	task, label := r.appendTask()
	task.Stream, task.Comm, task.Deps[0] = st.id, comm, from
	label.Kind, label.Chunk, label.Micro, label.Work = kind, r.chunk, r.micro, work
	st.tail, st.knows[s] = t, t
	return t
}

// host appends a task on the host itself, which blocks it: for the end of task dep, or, with dep
// None, of everything that was issued on the device.
func (r *recorder) host(dep sched.TaskID) {
	p := &r.rec.Program
	from := int32(len(p.Deps))
	if dep != sched.None {
		p.Deps = append(p.Deps, dep)
	}
	task, label := r.appendTask()
	task.Stream, task.Drain, task.Deps[0] = sched.StreamID(r.device), dep == sched.None, from
	label.Kind, label.Work = HostSync, r.syncWork
}

// appendTask appends a task, on no stream and of no kind yet, with the dependencies and messages that stand
// behind those of the task before.
func (r *recorder) appendTask() (*sched.Task, *Label) {
	p := &r.rec.Program
	n := len(p.Tasks)
	p.Tasks = append(p.Tasks, sched.Task{})
	r.rec.Labels = append(r.rec.Labels, Label{})
	t, l := &p.Tasks[n], &r.rec.Labels[n]
	deps, parts, buckets := int32(len(p.Deps)), int32(len(p.Parts)), int32(len(r.rec.BucketIDs))
	t.Comm = sched.None
	t.Deps = [2]int32{deps, deps}
	t.Messages = [2]int32{parts, parts}
	l.Chunk, l.Layer, l.Micro = -1, -1, -1
	l.Stage, l.Step = int16(r.device), r.step
	l.Buckets = [2]int32{buckets, buckets}
	return t, l
}

// hostSync makes the host wait for the whole device. What it issues later starts after
// everything issued before, without dependencies.
func (r *recorder) hostSync() {
	r.flush()
	r.host(sched.None)
	r.synced = sched.TaskID(len(r.rec.Program.Tasks) - 1)
}

// wait makes local stream s wait for all that is queued on local stream on.
func (r *recorder) wait(s, on int) {
	if on == mainStream {
		r.flush()
	}
	a, b := &r.streams[s], &r.streams[on]
	for o := range r.streams {
		if d := b.knows[o]; d > a.knows[o] {
			if s == mainStream && o != mainStream {
				r.flush() // what is open does not wait
			}
			a.learn(o, d)
		}
	}
}

// learn notes that what st gets next must wait for task t on local stream o.
func (st *stream) learn(o int, t sched.TaskID) {
	st.knows[o] = t
	st.news = max(st.news, t)
}

// buckets gives the last task its bucket ids.
func (r *recorder) buckets(ids ...bucket.ID) {
	r.rec.BucketIDs = append(r.rec.BucketIDs, ids...)
	r.rec.Labels[len(r.rec.Labels)-1].Buckets[1] = int32(len(r.rec.BucketIDs))
}

// local returns the local stream of an optimizer's stream.
func local(s optim.Stream) int {
	if s == optim.Main {
		return mainStream
	}
	return firstComm + int(s) - int(optim.Comm)
}

// comm returns the rank's communicator of a group.
func (r *recorder) comm(g optim.Group) sched.CommID {
	return sched.CommID(int(r.device)*numComms + int(g))
}
