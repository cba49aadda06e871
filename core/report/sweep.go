package report

import "distopt/core/sched"

// stage is what the report finds out about one stage.
type stage struct {
	index       int
	first, last sched.TaskID // its tasks
	low, high   sched.Time   // followed from, to

	amaxes int             // all-reduces of FP8 amaxes
	drawn  int             // tasks that are drawn,
	within [2]sched.TaskID // from the first to behind the last of them
	phases []phase
	points []point
	comms  []comm
	gaps   []gap
	pieces []piece // in gaps, in order
	hidden []cover // communication beside compute, in order

	shares   [numShares]sched.Time
	exposed  [numFamilies]sched.Time // delays the step
	inBubble sched.Time
	covers   []cover // what LaneExposed shows
}

// comm is a task that communicates. An exchange that waits for its other side does not.
type comm struct {
	task       sched.TaskID
	start, end sched.Time
	row        int32 // of the table of collectives, -1: none
	// Inside the drawn step:
	exposed, inBubble, hidden sched.Time
	// The gap in which it delays the step most, -1: none, and by how much; and the last so far.
	gap, last    int32
	most, inLast sched.Time
}

// gap is a time in which a stage does not compute.
type gap struct {
	start, end sched.Time
	next       sched.TaskID // what it computes then, None: nothing more
}

// piece is a part of a gap that one communication accounts for, or none (-1).
type piece struct {
	start, end sched.Time
	comm, gap  int32
}

// cover is a piece of a made-up lane.
type cover struct {
	start, end sched.Time
	comm       int32
	state      State
}

// before returns the stage before st. Stages are alike, so it tells how much there will be.
func (m *maker) before(st *stage) *stage { return &m.stages[max(st.index-1, 0)] }

// sweep follows stage st through time and splits it into compute and gaps, and gaps by the
// communication that accounts for them.
func (m *maker) sweep(st *stage) {
	b := m.before(st)
	st.phases, st.comms = room(st.phases, b.phases), room(st.comms, b.comms)
	st.gaps, st.pieces, st.hidden = room(st.gaps, b.gaps), room(st.pieces, b.pieces), room(st.hidden, b.hidden)
	compute := m.compute[:0]
	after := sched.TaskID(sched.None) // the first to compute later than that
	for i := st.first; i < st.last; i++ {
		s := m.spans[i]
		if s.End <= st.low || s.Start == s.End {
			continue
		}
		role := kinds[m.labels[i].Kind].role
		if s.Start >= st.high {
			if role == computes && (after == sched.None || s.Start < m.spans[after].Start) {
				after = i
			}
			continue
		}
		m.note(st, i)
		switch role {
		case computes:
			compute = append(compute, i)
		case communicates:
			var start sched.Time
			if n := m.slot[i]; n >= 0 {
				start = st.points[n].proceed
			} else {
				start = m.begins(i)
			}
			if start < s.End {
				st.comms = append(st.comms, comm{task: i, start: start, end: s.End, row: -1, gap: -1, last: -1})
			}
		}
	}
	m.compute = compute
	order(compute, func(a, b *sched.TaskID) bool {
		return m.spans[*a].Start < m.spans[*b].Start || m.spans[*a].Start == m.spans[*b].Start && *a < *b
	})
	order(st.comms, func(a, b *comm) bool { return a.start < b.start || a.start == b.start && a.task < b.task })

	w := sweeper{m: m, st: st, active: m.active[:0], cuts: m.cuts[:0]}
	for i := range st.points {
		w.cuts = append(w.cuts, st.points[i].ready, st.points[i].proceed)
	}
	order(w.cuts, func(a, b *sched.Time) bool { return *a < *b })
	free := st.low
	for _, i := range compute {
		s := m.spans[i]
		if s.Start > free {
			w.gap(free, min(s.Start, st.high), i)
		}
		if from, to := max(free, s.Start), min(s.End, st.high); from < to {
			w.busy(from, to)
			m.count(st, i, from, to)
		}
		free = max(free, s.End)
	}
	if free < st.high {
		w.gap(free, st.high, after)
	}
	m.active, m.cuts = w.active, w.cuts
	m.meet(st)
}

// count adds compute to the shares of the step. Exposed tensor-parallel communication inside a
// pass is taken out of it, in proportion where the pass crosses the border of the step.
func (m *maker) count(st *stage, i sched.TaskID, from, to sched.Time) {
	t := m.clip(from, to)
	comm := sched.Time(int64(t) * m.works[m.labels[i].Work].exposed / whole)
	st.shares[kinds[m.labels[i].Kind].share] += t - comm
	st.exposed[tensorParallel] += comm
}

// sweeper walks through the communication of a stage in step with its compute.
type sweeper struct {
	m      *maker
	st     *stage
	next   int     // of st.comms, not yet begun
	active []int32 // of st.comms, begun and perhaps ended
	cuts   []sched.Time
	cut    int
}

// admit makes active what overlaps [from, to).
func (w *sweeper) admit(from, to sched.Time) {
	comms := w.st.comms
	n := 0
	for _, c := range w.active {
		if comms[c].end > from {
			w.active[n] = c
			n++
		}
	}
	w.active = w.active[:n]
	for ; w.next < len(comms) && comms[w.next].start < to; w.next++ {
		if comms[w.next].end > from {
			w.active = append(w.active, int32(w.next))
		}
	}
}

// gap splits a time without compute.
func (w *sweeper) gap(from, to sched.Time, next sched.TaskID) {
	st := w.st
	n := int32(len(st.gaps))
	st.gaps = append(st.gaps, gap{from, to, next})
	w.admit(from, to)
	released := w.m.releasedBy(next, from)
	for at := from; at < to; {
		owner, until := w.owner(at, to, released)
		for w.cut < len(w.cuts) && w.cuts[w.cut] <= at {
			w.cut++
		}
		if w.cut < len(w.cuts) {
			until = min(until, w.cuts[w.cut])
		}
		st.pieces = append(st.pieces, piece{at, until, owner, n})
		at = until
	}
}

// busy notes what compute hides.
func (w *sweeper) busy(from, to sched.Time) {
	w.admit(from, to)
	if len(w.active) == 0 {
		return
	}
	st := w.st
	for at := from; at < to; {
		owner, until := w.owner(at, to, sched.None)
		if owner >= 0 {
			for _, c := range w.active {
				if st.comms[c].start <= at && st.comms[c].end > at {
					st.comms[c].hidden += w.m.clip(at, until)
				}
			}
			st.hidden = join(st.hidden, cover{max(at, w.m.from), min(until, w.m.to), owner, 0})
		}
		at = until
	}
}

// owner returns the communication that accounts for the time from at on, and until when it does, at
// most to: the one that released the next compute, else the last to end, -1 if there is none.
func (w *sweeper) owner(at, to sched.Time, released sched.TaskID) (int32, sched.Time) {
	owner := int32(-1)
	for _, i := range w.active {
		c := &w.st.comms[i]
		if c.start > at {
			to = min(to, c.start)
			continue
		}
		if c.end <= at {
			continue
		}
		to = min(to, c.end)
		if owner < 0 || c.task == released ||
			w.st.comms[owner].task != released && c.end > w.st.comms[owner].end {
			owner = i
		}
	}
	return owner, to
}

// releasedBy returns the communication that released compute task i, seen through the waits of the
// host, if it ended after from.
func (m *maker) releasedBy(i sched.TaskID, from sched.Time) sched.TaskID {
	for i != sched.None {
		i = m.spans[i].By
		if i == sched.None || m.spans[i].End <= from {
			break
		}
		switch kinds[m.labels[i].Kind].role {
		case communicates:
			return i
		case computes:
			return sched.None
		}
	}
	return sched.None
}

// join appends c to list, or lengthens the last if c continues it.
func join(list []cover, c cover) []cover {
	if c.start >= c.end {
		return list
	}
	if n := len(list); n > 0 && list[n-1].end == c.start && list[n-1].comm == c.comm && list[n-1].state == c.state {
		list[n-1].end = c.end
		return list
	}
	return append(list, c)
}
