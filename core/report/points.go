package report

import (
	"slices"

	"distopt/core/sched"
	"distopt/core/step"
)

// A point is where a stage meets others: an exchange, or a collective in which other stages take
// part. Between two points a stage is on its own. How much of its communication there delays the
// step follows from the second of them: see classify.
type point struct {
	task    sched.TaskID
	joint   int32      // of a collective, its place among the joint ones of its kind; -1: an exchange
	ready   sched.Time // the stage is there
	proceed sched.Time // everybody is there

	// Found by meet: from when on compute was idle for the others (proceed: it was not), and the
	// exposed time on the stage between the point before and then.
	waits   sched.Time
	exposed sched.Time
}

// joints lists the joint collectives of each kind in host order; each has one task on every stage
// that takes part.
type joints [step.NumKinds][][]sched.TaskID

// findPoints lists the points of stage st that can matter to the drawn step, in order of proceed,
// and sets the time through which the stage has to be followed for that. It reports false if a task
// is not of this stage.
func (m *maker) findPoints(st *stage) bool {
	low, high := sched.Time(-1), sched.Time(-1)
	latest := sched.TaskID(sched.None) // of the exchanges that ended before the drawn step
	var seen [step.NumKinds]int32
	st.points = room(st.points, m.before(st).points)
	for i := st.first; i < st.last; i++ {
		l := &m.labels[i]
		if int(l.Stage) != st.index {
			return false
		}
		if kinds[l.Kind].role != communicates {
			continue
		}
		s := m.spans[i]
		pt := point{task: i, ready: s.Start, joint: -1}
		if kinds[l.Kind].family == pipeline {
			if s.End <= m.from {
				if latest == sched.None || s.End >= m.spans[latest].End {
					latest = i
				}
				continue
			}
			pt.proceed = m.begins(i)
		} else if ready, joint := m.collective(st, i); joint {
			pt.joint, pt.ready, pt.proceed = seen[l.Kind], ready, s.Start
			seen[l.Kind]++
			for len(m.joints[l.Kind]) <= int(pt.joint) {
				m.joints[l.Kind] = append(m.joints[l.Kind], nil)
			}
			m.joints[l.Kind][pt.joint] = append(m.joints[l.Kind][pt.joint], i)
		} else {
			if l.Kind == step.AmaxAllReduce && l.Step == m.index {
				st.amaxes++
			}
			continue
		}
		switch {
		case pt.proceed < m.from:
			low = max(low, pt.proceed)
			continue
		case pt.proceed >= m.to && (high < 0 || pt.proceed < high):
			high = pt.proceed
		}
		st.points = append(st.points, pt)
	}
	if latest != sched.None {
		low = max(low, m.begins(latest))
	}
	st.low, st.high = m.from, m.to
	if low >= 0 {
		st.low = low
	}
	if high >= 0 {
		st.high = high
		st.points = slices.DeleteFunc(st.points, func(p point) bool { return p.proceed > high })
	}
	order(st.points, func(a, b *point) bool {
		return a.proceed < b.proceed || a.proceed == b.proceed && a.task < b.task
	})
	for n := range st.points {
		m.slot[st.points[n].task] = int32(n)
	}
	return true
}

// begins returns when a task communicates: an exchange, when all its messages have started.
func (m *maker) begins(i sched.TaskID) sched.Time {
	start := m.spans[i].Start
	t := &m.tasks[i]
	for _, msg := range m.in.Recording.Program.Parts[t.Messages[0]:t.Messages[1]] {
		start = max(start, m.in.Meets[msg])
	}
	return start
}

// collective reports whether collective i waits for tasks of other stages, and when its own stage's
// part is there.
func (m *maker) collective(st *stage, i sched.TaskID) (ready sched.Time, joint bool) {
	t := &m.tasks[i]
	var own, other sched.Time
	for _, x := range m.in.Recording.Program.Deps[t.Deps[0]:t.Deps[1]] {
		if x >= st.first && x < st.last {
			own = max(own, m.spans[x].End)
		} else {
			joint, other = true, max(other, m.spans[x].End)
		}
	}
	start := m.spans[i].Start
	if !joint || start > other { // held up by its own launch
		return start, joint
	}
	for x := i - 1; x >= st.first; x-- {
		if m.tasks[x].Stream == t.Stream {
			own = max(own, m.spans[x].End)
			break
		}
	}
	return min(own, start), true
}

// lastOther returns when the last of the others who meet at pt would be ready but for its exposed
// time, at least at.
func (m *maker) lastOther(pt *point, at sched.Time) sched.Time {
	add := func(t sched.TaskID) {
		if n := m.slot[t]; n >= 0 {
			other := &m.stages[m.labels[t].Stage].points[n]
			at = max(at, other.ready-other.exposed)
		} else {
			at = max(at, m.spans[t].Start)
		}
	}
	if pt.joint >= 0 {
		for _, t := range m.joints[m.labels[pt.task].Kind][pt.joint] {
			add(t)
		}
		return at
	}
	p := &m.in.Recording.Program
	t := &m.tasks[pt.task]
	last := sched.TaskID(sched.None)
	for _, i := range p.Parts[t.Messages[0]:t.Messages[1]] {
		other := p.Messages[i].From
		if other == pt.task {
			other = p.Messages[i].To
		}
		if other != last && other != sched.None {
			add(other)
		}
		last = other
	}
	return at
}
