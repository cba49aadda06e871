package report

import "distopt/core/sched"

// meet finds, for each point of st, from when on compute was idle for the others, and the exposed
// time on the stage between the point before and then.
func (m *maker) meet(st *stage) {
	k := 0
	for i := range st.points {
		pt := &st.points[i]
		from := k
		for k < len(st.pieces) && st.pieces[k].start < pt.proceed {
			k++
		}
		pt.waits = pt.proceed
		if k > from && st.pieces[k-1].end >= pt.proceed {
			pt.waits = min(pt.proceed, max(pt.ready, st.gaps[st.pieces[k-1].gap].start))
		}
		for _, p := range st.pieces[from:k] {
			if p.comm >= 0 && p.start < pt.waits {
				pt.exposed += p.end - p.start
			}
		}
	}
}

// delays returns how much of the exposed time before pt delays the step; the rest would only be
// spent waiting for the others. Without any exposed time all who meet would be there sooner, each
// by its own, and proceed together with the last of them: that is what exposed time costs here. A
// stage that has waited anyway answers for that much less of it.
//
// So of two stages that are late by the same collective both are charged, though neither alone
// could help it, and a reduce-scatter beside which another stage still computes is charged to
// nobody.
func (m *maker) delays(pt *point) sched.Time {
	if pt.exposed == 0 {
		return 0
	}
	return min(pt.exposed, max(0, pt.waits-m.lastOther(pt, pt.ready-pt.exposed)))
}

// classify says of every piece of a gap whether it delays the step, lies in a bubble, or is neither.
func (m *maker) classify(st *stage) {
	st.covers = room(st.covers, m.before(st).covers)
	k := 0
	for i := range st.points {
		pt := &st.points[i]
		spare := pt.exposed - m.delays(pt) // the first of it is in the bubble
		for ; k < len(st.pieces) && st.pieces[k].start < pt.proceed; k++ {
			p := st.pieces[k]
			switch {
			case p.start >= pt.waits && p.comm < 0:
				m.charge(st, p, Waits)
			case p.start >= pt.waits:
				m.charge(st, p, InBubble)
			case p.comm < 0:
			default:
				free := p
				free.end = min(p.end, p.start+spare)
				spare -= free.end - free.start
				m.charge(st, free, InBubble)
				p.start = free.end
				m.charge(st, p, Delays)
			}
		}
	}
	for ; k < len(st.pieces); k++ {
		if p := st.pieces[k]; p.comm >= 0 {
			m.charge(st, p, Delays)
		}
	}
	rest := m.to - m.from
	for _, t := range st.exposed {
		st.shares[exposed] += t
	}
	for _, t := range st.shares[:idle] {
		rest -= t
	}
	st.shares[idle] = rest
}

// charge accounts for what lies inside the drawn step of a piece.
func (m *maker) charge(st *stage, p piece, state State) {
	t := m.clip(p.start, p.end)
	if t == 0 {
		return
	}
	switch state {
	case Delays:
		c := &st.comms[p.comm]
		c.exposed += t
		if p.gap != c.last {
			c.last, c.inLast = p.gap, 0
		}
		if c.inLast += t; c.inLast > c.most {
			c.gap, c.most = p.gap, c.inLast
		}
		st.exposed[kinds[m.labels[c.task].Kind].family] += t
	case InBubble:
		st.comms[p.comm].inBubble += t
		st.inBubble += t
		st.shares[bubble] += t
	case Waits:
		st.shares[bubble] += t
	}
	st.covers = join(st.covers, cover{max(p.start, m.from), min(p.end, m.to), p.comm, state})
}
