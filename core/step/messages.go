package step

import "distopt/core/sched"

// newMessage appends a message whose ends are not known yet.
func (s *shared) newMessage(work WorkID) sched.MessageID {
	id := sched.MessageID(len(s.rec.Program.Messages))
	s.rec.Program.Messages = append(s.rec.Program.Messages, sched.Message{From: sched.None, To: sched.None})
	s.rec.MessageWork = append(s.rec.MessageWork, work)
	return id
}

// id returns the message that travels over the edge above virtual stage edge.
func (s *shared) id(step int, backward bool, micro, edge int) sched.MessageID {
	micros := s.micros
	if step == 0 {
		micros = s.firstMicros
	}
	n := 2*s.before(step) + micro
	if backward {
		n += micros
	}
	if step < s.steps {
		return sched.MessageID(edge*s.perEdge + n)
	}
	key := int64(n)*int64(s.edges) + int64(edge)
	id, ok := s.late[key]
	if !ok {
		id = s.newMessage(s.messageWork)
		s.late[key] = id
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
	n, sends := 0, 0
	for i := range messages {
		if messages[i].exists {
			n++
			sends += int(flag(messages[i].send))
		}
	}
	if n > 0 {
		r.exchange(h, prevStream, messages, r.exchangeWork(n, max(sends, n-sends), r.cfg))
	}
	r.hostSync()
}

// single records one send or receive of its own, on the stream of that pair of stages.
func (r *recorder) single(h *runner, m message) sched.TaskID {
	return r.exchange(h, r.pairStream(m.next()), []message{m}, r.messageWork)
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
func (r *recorder) exchange(h *runner, s int, messages []message, work WorkID) sched.TaskID {
	r.wait(s, mainStream)
	t := r.emit(s, Exchange, work, sched.None)
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
		main.learn(s, q.task)
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
