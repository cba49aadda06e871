package step

import (
	"distopt/core/optim"
	"distopt/core/sched"
	"distopt/core/units"
)

// message is a tensor between neighbouring virtual stages, seen from one of them. Its microbatch
// and chunk are this stage's own: what it has computed, or what it will use the tensor for.
type message struct {
	exists   bool // false at the ends of the pipeline
	backward bool
	send     bool
	micro    int32
	chunk    int32
}

func (m message) op() optim.Op {
	switch {
	case m.backward && m.send:
		return "send_backward"
	case m.backward:
		return "recv_backward"
	case m.send:
		return "send_forward"
	}
	return "recv_forward"
}

// next reports whether the other side is the next stage.
func (m message) next() bool { return m.send != m.backward }

// virtual returns the position of chunk c of this stage among all virtual stages.
func (r *runner) virtual(c int) int { return c*r.stages + r.stage }

func (r *runner) recvForward(micro, chunk int) message {
	return message{exists: r.virtual(chunk) > 0, micro: int32(micro), chunk: int32(chunk)}
}

func (r *runner) sendForward(micro, chunk int) message {
	return message{exists: r.virtual(chunk) < r.virtuals()-1, send: true, micro: int32(micro), chunk: int32(chunk)}
}

func (r *runner) recvBackward(micro, chunk int) message {
	return message{exists: r.virtual(chunk) < r.virtuals()-1, backward: true, micro: int32(micro), chunk: int32(chunk)}
}

func (r *runner) sendBackward(micro, chunk int) message {
	return message{exists: r.virtual(chunk) > 0, backward: true, send: true, micro: int32(micro), chunk: int32(chunk)}
}

// messageBytes returns the size of every message.
func (c *Config) messageBytes() units.Bytes {
	return units.Bytes(c.Activation) * c.DType.Size()
}

// requests are messages in flight, in the order in which they were issued.
type requests struct {
	n     int
	items [4]request
}

type request struct {
	number int
	task   sched.TaskID
	next   bool
}

// exchange makes a call if any of its messages exists, and waits for it.
func (r *runner) exchange(messages ...message) {
	for _, m := range messages {
		if m.exists {
			r.exchangeAlways(messages...)
			return
		}
	}
}

// exchangeAlways makes a call, waited for at once. A batched call is one NCCL group, in the order
// send backward, receive forward, send forward, receive backward (the order of the arguments);
// after it the host waits for the whole device, also if the call has no messages.
func (r *runner) exchangeAlways(messages ...message) {
	if r.done {
		return
	}
	if !r.cfg.BatchP2P {
		var now requests
		r.start(&now, messages...)
		r.wait(&now)
		return
	}
	if r.obs != nil {
		r.batchEvents(messages)
	}
	r.rec.batch(r, messages)
	r.afterCall()
}

func (r *runner) batchEvents(messages []message) {
	first := true
	for _, m := range messages {
		if m.exists {
			if first {
				r.batch++
				first = false
			}
			r.messageEvent(m, r.batch, 0)
		}
	}
	r.event("device_sync")
}

// start issues messages one by one. Even stages send before they receive, odd stages the other
// way round: forward messages come first.
func (r *runner) start(into *requests, messages ...message) {
	into.n = 0
	if r.done {
		return
	}
	for backward := range 2 {
		for second := range 2 {
			for _, m := range messages {
				sendFirst := r.stage%2 == 0
				if m.exists && m.backward == (backward == 1) && (m.send == sendFirst) == (second == 0) {
					r.request++
					r.messageEvent(m, 0, r.request)
					into.items[into.n] = request{r.request, r.rec.single(r, m), m.next()}
					into.n++
				}
			}
		}
	}
	r.afterCall()
}

// wait makes the compute stream wait for messages in flight.
func (r *runner) wait(q *requests) {
	if !r.done {
		for _, x := range q.items[:q.n] {
			r.countEvent(optim.Event{Op: "p2p_wait", Request: x.number})
			r.rec.waitMessage(x)
		}
	}
	q.n = 0
}

// afterCall ends the tail of a recording: its first forward has handed its output on.
func (r *runner) afterCall() {
	if r.tail && r.tailCall && r.forwards > 0 {
		r.done = true
	}
}
