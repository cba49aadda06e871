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

func newShared(stages, chunks int, cfg *Config, steps, tasks int) *shared {
	s := &shared{
		rec: &Recording{}, stages: stages, steps: steps, micros: cfg.Microbatches, edges: stages*chunks - 1,
		perDevice: firstComm + max(cfg.CommStreams, 1),
	}
	s.works.init(s.rec)
	s.syncWork = s.works.intern(Work{Kind: HostSync})
	p := &s.rec.Program
	p.Devices, p.Comms = stages, stages*numComms
	p.Tasks = make([]sched.Task, 0, tasks)
	s.rec.Labels = make([]Label, 0, tasks)
	p.Streams = make([]sched.Stream, stages*(1+s.perDevice))
	for i := range p.Streams {
		if i < stages {
			p.Streams[i].Device = int32(i)
		} else {
			p.Streams[i].Device = int32((i - stages) / s.perDevice)
		}
	}
	if stages > 1 {
		s.late = map[int64]sched.MessageID{}
		for n := 1; n < len(s.messageWork); n++ {
			s.messageWork[n] = s.works.intern(Work{
				Kind: Exchange, Op: OpSend, Bytes: units.Bytes(n) * cfg.messageBytes(), Count: n, Group: Pipeline, DType: cfg.DType,
			})
		}
		n := steps * 2 * s.micros * s.edges
		p.Messages = make([]sched.Message, n, n+8*stages)
		s.rec.MessageWork = make([]WorkID, n, n+8*stages)
		p.Parts = make([]sched.MessageID, 0, 2*n+16*stages)
		p.Deps = make([]sched.TaskID, 0, 3*n+100*stages)
		for i := range p.Messages {
			p.Messages[i] = sched.Message{From: sched.None, To: sched.None}
			s.rec.MessageWork[i] = s.messageWork[1]
		}
	}
	return s
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

// batch records one batched call: one task, for which main waits.
func (r *recorder) batch(h *runner, messages []message) {
	r.exchange(h, prevStream, messages)
	r.wait(mainStream, prevStream)
}

// single records one send or receive of its own, on the stream of that pair of stages.
func (r *recorder) single(h *runner, m message) sched.TaskID {
	return r.exchange(h, r.pairStream(m.next()), []message{m})
}

// pairStream returns the stream of messages with the next or the previous stage. Of two stages,
// both are the same.
func (r *recorder) pairStream(next bool) int {
	if next && r.stages > 2 {
		return nextStream
	}
	return prevStream
}

// exchange emits a task with messages, after everything on main.
func (r *recorder) exchange(h *runner, s int, messages []message) sched.TaskID {
	r.wait(s, mainStream)
	t := r.emit(s, Exchange, r.messageWork[len(messages)], sched.None)
	l := &r.rec.Labels[t]
	l.Micro, l.Chunk = int32(messages[0].micro), int8(messages[0].chunk)
	for _, m := range messages {
		edge := h.virtual(m.chunk)
		if !m.next() {
			edge--
		}
		r.part(t, r.id(int(r.step), m.backward, m.micro, edge), m.send)
	}
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
