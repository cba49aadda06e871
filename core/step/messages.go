package step

import (
	"fmt"

	"distopt/core/sched"
	"distopt/core/units"
)

// shared is what the recorders of all stages have in common.
type shared struct {
	rec       *Recording
	stages    int
	perDevice int // streams, without the host's
	works     interner
	syncWork  WorkID

	// Messages of whole steps are laid out densely, by step, direction, microbatch and edge
	// between virtual stages; those of the tail come as they are met.
	steps, micros, edges int
	late                 map[int64]sched.MessageID
	messageWork          [5]WorkID // of a call of 1 to 4 messages
	losses               []sched.MessageID

	joints [numJoints][][]contribution
}

// numComms is the number of communicators of a device, one per optim.Group.
const numComms = 5

// newShared makes rec ready to be recorded into, for about so many tasks.
func newShared(rec *Recording, stages, chunks int, cfg *Config, steps, tasks int) *shared {
	s := &shared{
		rec: rec, stages: stages, steps: steps, micros: cfg.Microbatches, edges: stages*chunks - 1,
		perDevice: firstComm + max(cfg.CommStreams, 1),
	}
	messages := 0
	if stages > 1 {
		messages = steps * 2 * s.micros * s.edges
	}
	p := &rec.Program
	*rec = Recording{
		Program: sched.Program{
			Devices: stages, Comms: stages * numComms,
			Streams:  empty(p.Streams, stages*(1+s.perDevice)),
			Tasks:    empty(p.Tasks, tasks),
			Deps:     empty(p.Deps, tasks/2),
			Parts:    empty(p.Parts, 2*messages+16*stages),
			Messages: empty(p.Messages, messages+8*stages),
		},
		Labels:      empty(rec.Labels, tasks),
		Works:       empty(rec.Works, 0),
		BucketIDs:   empty(rec.BucketIDs, 0),
		MessageWork: empty(rec.MessageWork, messages+8*stages),
		StepStart:   make([][]sched.TaskID, stages),
	}
	for d := range stages {
		p.Streams = append(p.Streams, sched.Stream{Device: int32(d)})
	}
	for i := range stages * s.perDevice {
		p.Streams = append(p.Streams, sched.Stream{Device: int32(i / s.perDevice)})
	}
	s.works.init(rec)
	s.syncWork = s.works.intern(Work{Kind: HostSync})
	for n := 1; n < len(s.messageWork); n++ {
		s.messageWork[n] = s.works.intern(Work{
			Kind: Exchange, Op: OpSend, Bytes: units.Bytes(n) * cfg.messageBytes(), Count: n, Group: Pipeline, DType: cfg.DType,
		})
	}
	s.late = map[int64]sched.MessageID{}
	for range messages {
		s.newMessage(s.messageWork[1])
	}
	return s
}

// empty returns a slice without elements that has room for n, in old's memory if that suffices.
func empty[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:0]
	}
	return make([]T, 0, n)
}

// newMessage appends a message whose ends are not known yet.
func (s *shared) newMessage(work WorkID) sched.MessageID {
	id := sched.MessageID(len(s.rec.Program.Messages))
	s.rec.Program.Messages = append(s.rec.Program.Messages, sched.Message{From: sched.None, To: sched.None})
	s.rec.MessageWork = append(s.rec.MessageWork, work)
	return id
}

// id returns the message that travels over the edge above virtual stage edge.
func (s *shared) id(step int, backward bool, micro, edge int) sched.MessageID {
	n := (step*2*s.micros + micro) * s.edges
	if backward {
		n += s.micros * s.edges
	}
	n += edge
	if step < s.steps {
		return sched.MessageID(n)
	}
	id, ok := s.late[int64(n)]
	if !ok {
		id = s.newMessage(s.messageWork[1])
		s.late[int64(n)] = id
	}
	return id
}

// part gives the last task one more message.
func (r *recorder) part(t sched.TaskID, id sched.MessageID, send bool) {
	p := &r.rec.Program
	p.Parts = append(p.Parts, id)
	p.Tasks[t].Messages[1] = int32(len(p.Parts))
	if send {
		p.Messages[id].From = t
	} else {
		p.Messages[id].To = t
	}
}

// batch records one batched call: one task, then the host waits for the device, and so does
// everything that it issues later.
func (r *recorder) batch(h *runner, messages []message) {
	n := 0
	for i := range messages {
		if messages[i].exists {
			n++
		}
	}
	if n > 0 {
		r.exchange(h, prevStream, messages, n)
	}
	r.hostSync()
}

// single records one send or receive of its own, on the stream of that pair of stages.
func (r *recorder) single(h *runner, m message) sched.TaskID {
	return r.exchange(h, r.pairStream(m.next()), []message{m}, 1)
}

// pairStream returns the stream of messages with the next or the previous stage. Of two stages,
// both are the same.
func (r *recorder) pairStream(next bool) int {
	if next && r.stages > 2 {
		return nextStream
	}
	return prevStream
}

// exchange emits a task with n messages, after everything on main.
func (r *recorder) exchange(h *runner, s int, messages []message, n int) sched.TaskID {
	r.wait(s, mainStream)
	t := r.emit(s, Exchange, r.messageWork[n], sched.None)
	p := &r.rec.Program
	first := true
	for i := range messages {
		m := &messages[i]
		if !m.exists {
			continue
		}
		if first {
			first = false
			l := &r.rec.Labels[t]
			l.Micro, l.Chunk = m.micro, int8(m.chunk)
		}
		edge := h.virtual(int(m.chunk))
		if !m.next() {
			edge--
		}
		id := r.id(int(r.step), m.backward, int(m.micro), edge)
		p.Parts = append(p.Parts, id)
		if m.send {
			p.Messages[id].From = t
		} else {
			p.Messages[id].To = t
		}
	}
	p.Tasks[t].Messages[1] = int32(len(p.Parts))
	return t
}

// waitMessage makes main wait for a single message.
func (r *recorder) waitMessage(q request) {
	s := r.pairStream(q.next)
	if main := &r.streams[mainStream]; q.task > main.knows[s] {
		r.flush()
		main.knows[s] = q.task
	}
}

// loss records the transfer of the mean loss from the last stage to the first, for which main
// waits.
func (r *recorder) loss(send bool) {
	r.flush()
	work := r.works.intern(Work{Kind: LossSend, Op: OpSend, Bytes: 4, Count: 1, Group: World})
	for len(r.losses) <= int(r.step) {
		r.losses = append(r.losses, r.newMessage(work))
	}
	t := r.emit(mainStream, LossSend, work, sched.None)
	r.part(t, r.losses[r.step], send)
}

// joint is a kind of collective in which several stages take part.
type joint int

const (
	jointWorld     joint = iota // all stages
	jointEmbedding              // first and last
	numJoints
)

// contribution is one stage's part of a joint collective: what it waits for, which the others
// wait for too, and the slots for the others' parts among the task's dependencies.
type contribution struct {
	task  sched.TaskID
	after []sched.TaskID
	slots int32
}

// joint emits the stage's next joint collective of kind j on main. Its dependencies on other
// stages are filled in by join.
func (r *recorder) joint(j joint, w Work, comm sched.CommID) {
	r.flush()
	main := &r.streams[mainStream]
	var c contribution
	for o := range r.streams {
		if d := main.knows[o]; d != sched.None && (o == mainStream || d > main.deps[o] && d > r.synced) {
			c.after = append(c.after, d)
		}
	}
	c.task = r.emit(mainStream, w.Kind, r.works.intern(w), comm)
	p := &r.rec.Program
	c.slots = int32(len(p.Deps))
	members := 2
	if j == jointWorld {
		members = r.stages
	}
	for range (members - 1) * len(r.streams) {
		p.Deps = append(p.Deps, c.task)
	}
	n := r.made[j]
	r.made[j]++
	if n == len(r.joints[j]) {
		r.joints[j] = append(r.joints[j], nil)
	}
	r.joints[j][n] = append(r.joints[j][n], c)
}

// join connects the joint collectives of all stages.
func (s *shared) join() error {
	p := &s.rec.Program
	for j, all := range s.joints {
		members := 2
		if joint(j) == jointWorld {
			members = s.stages
		}
		for n, cs := range all {
			if len(cs) != members {
				return fmt.Errorf("collective %d between stages: %d stages take part, want %d", n, len(cs), members)
			}
			for i, c := range cs {
				at := c.slots
				for k, other := range cs {
					if k != i {
						at += int32(copy(p.Deps[at:], other.after))
					}
				}
				p.Tasks[c.task].Deps[1] = at
			}
		}
	}
	return nil
}
