package sched

// event is the next instant at which a device has something to do.
type event struct {
	at     Time
	device int32
}

// queue finds the earliest event. It is a tournament: leaf size+d is the event of device d, every
// other node i is the earlier of nodes 2i and 2i+1, so node 1 is the earliest of all. With one event
// for each device, which moves but never leaves, this takes fewer comparisons than a heap. Where two
// are simultaneous either may go first: what a device finds at an instant does not depend on it.
type queue struct {
	nodes []event
	size  int
}

// reset makes a queue of devices that all have something to do at 0.
func (q *queue) reset(devices int) {
	q.size = 1
	for q.size < devices {
		q.size *= 4 // set takes two levels at a time
	}
	q.nodes = grow(q.nodes, 2*q.size)
	for d := range q.size {
		q.nodes[q.size+d] = event{never, int32(d)}
	}
	for d := range devices {
		q.nodes[q.size+d].at = 0
	}
	for i := q.size - 1; i > 0; i-- {
		q.nodes[i] = earlier(q.nodes[2*i], q.nodes[2*i+1])
	}
}

func earlier(a, b event) event {
	if b.at < a.at {
		return b
	}
	return a
}

// later moves the event of device d, which is the earliest of all, to at, which is not earlier. Every
// node above it held that event, so each gets the earlier of what comes up and its neighbour; there
// is no branch to guess.
func (q *queue) later(d int32, at Time) {
	nodes := q.nodes
	i := uint(q.size) + uint(d)
	if i >= uint(len(nodes)) {
		return // never: it tells the compiler that i stays in range
	}
	nodes[i].at = at
	for i > 3 {
		n := &nodes[i^1]
		by := n.device
		if n.at >= at {
			by = d
		}
		at, d = min(at, n.at), by
		i >>= 1
		m := &nodes[i]
		m.at, m.device = at, d

		n = &nodes[i^1]
		by = n.device
		if n.at >= at {
			by = d
		}
		at, d = min(at, n.at), by
		i >>= 1
		m = &nodes[i]
		m.at, m.device = at, d
	}
}

// sooner moves the event of device d to at unless it is not later than that already.
func (q *queue) sooner(d int32, at Time) {
	nodes := q.nodes
	i := uint(q.size) + uint(d)
	if i >= uint(len(nodes)) || at >= nodes[i].at {
		return
	}
	nodes[i].at = at
	for i >>= 1; i > 0 && at < nodes[i].at; i >>= 1 {
		nodes[i] = event{at, d}
	}
}
