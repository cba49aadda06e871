package sched

// event is the next instant at which a device has something to do.
type event struct {
	at     Time
	device int32
}

// queue finds the earliest event. It is a tournament: leaf size+d is the event of device d, every
// other node i is the earlier of nodes 2i and 2i+1, the left one where they are simultaneous, so
// node 1 is the earliest of all and the lowest device goes first. With one event for each device,
// which moves but never leaves, this takes fewer comparisons than a heap.
type queue struct {
	nodes []event
	size  int
}

// reset makes a queue of devices that all have something to do at 0.
func (q *queue) reset(devices int) {
	q.size = 1
	for q.size < devices {
		q.size *= 2
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

// set moves the event of device d to at.
func (q *queue) set(d int32, at Time) {
	nodes := q.nodes
	i := q.size + int(d)
	if i >= len(nodes) {
		return // never: it tells the compiler that i stays in range
	}
	nodes[i].at = at
	for i > 1 {
		w := earlier(nodes[i&^1], nodes[i|1])
		i >>= 1
		if nodes[i] == w {
			return
		}
		nodes[i] = w
	}
}

// sooner moves the event of device d to at unless it is not later than that already.
func (q *queue) sooner(d int32, at Time) {
	if at < q.nodes[q.size+int(d)].at {
		q.set(d, at)
	}
}
