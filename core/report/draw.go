package report

import (
	"distopt/core/sched"
	"distopt/core/step"
)

// phase is a microbatch's pass through a model chunk.
type phase struct {
	start, end sched.Time
	task       sched.TaskID // its first
}

// note counts task i if it is drawn, and lengthens the present phase by it.
func (m *maker) note(st *stage, i sched.TaskID) {
	s := m.spans[i]
	if s.End <= m.from || s.Start >= m.to {
		return
	}
	if st.drawn == 0 {
		st.within[0] = i
	}
	st.drawn++
	st.within[1] = i + 1
	l := &m.labels[i]
	if l.Kind != step.Forward && l.Kind != step.Backward {
		return
	}
	if n := len(st.phases); n > 0 {
		p := &st.phases[n-1]
		if o := &m.labels[p.task]; o.Kind == l.Kind && o.Micro == l.Micro && o.Chunk == l.Chunk && o.Step == l.Step {
			p.end = s.End
			return
		}
	}
	st.phases = append(st.phases, phase{s.Start, s.End, i})
}

// drawer fills Spans.
type drawer struct {
	*maker
	out  *Spans
	task []sched.TaskID // of each span: whose By is its own, or, on made-up lanes, what it is part of
	n    int
}

// draw makes the spans of all stages.
func (m *maker) draw() {
	for s := range m.stages {
		for i := range m.stages[s].points {
			m.slot[m.stages[s].points[i].task] = -1
		}
	}
	total := 0
	for s := range m.stages {
		st := &m.stages[s]
		total += st.drawn + len(st.phases) + len(st.hidden) + len(st.covers)
	}
	d := drawer{maker: m, out: &m.out.Spans, task: make([]sched.TaskID, total)}
	*d.out = newSpans(total, len(m.stages)*int(NumLanes)+1)
	var lanes [NumLanes][]sched.TaskID
	for s := range m.stages {
		st := &m.stages[s]
		for l := range lanes {
			lanes[l] = lanes[l][:0]
		}
		for i := st.within[0]; i < st.within[1]; i++ {
			if s := m.spans[i]; s.End > m.from && s.Start < m.to && s.End > s.Start {
				lane := kinds[m.labels[i].Kind].lane
				lanes[lane] = append(lanes[lane], i)
			}
		}
		for lane := range NumLanes {
			d.out.First[s*int(NumLanes)+int(lane)] = int32(d.n)
			switch lane {
			case LaneExposed:
				d.madeUp(st, lane, st.covers)
			case LaneHidden:
				d.madeUp(st, lane, st.hidden)
			case LanePhase:
				d.passes(st)
			default:
				d.lane(st, lane, lanes[lane])
			}
		}
		for i := range st.comms {
			c := &st.comms[i]
			if n := m.slot[c.task]; n >= 0 && c.row >= 0 {
				d.out.Group[n] = c.row
				if r := &m.out.Collectives[c.row]; r.Span < 0 {
					r.Span = n
				}
			}
		}
	}
	d.out.First[len(d.out.First)-1] = int32(d.n)
	d.link()
}

// newSpans returns n spans of nothing with room for First.
func newSpans(n, firsts int) Spans {
	return Spans{
		Start: make([]int64, n), End: make([]int64, n),
		By: make([]int32, n), Work: make([]int32, n), Micro: make([]int32, n), Group: make([]int32, n),
		First: make([]int32, firsts), Stage: make([]uint16, n), Layer: make([]int16, n),
		Lane: make([]Lane, n), Kind: make([]uint8, n), Cause: make([]uint8, n), State: make([]State, n), Chunk: make([]int8, n),
	}
}

// lane draws tasks.
func (d *drawer) lane(st *stage, lane Lane, tasks []sched.TaskID) {
	order(tasks, func(a, b *sched.TaskID) bool {
		return d.spans[*a].Start < d.spans[*b].Start || d.spans[*a].Start == d.spans[*b].Start && *a < *b
	})
	for _, i := range tasks {
		s := d.spans[i]
		n := d.put(st, lane, s.Start, s.End, i)
		d.slot[i] = int32(n)
		d.out.Work[n] = int32(d.labels[i].Work)
		d.out.Layer[n] = d.layer(st, i)
		d.out.Cause[n] = uint8(s.Cause)
	}
}

// passes draws the phases of st.
func (d *drawer) passes(st *stage) {
	for _, p := range st.phases {
		n := d.put(st, LanePhase, p.start, p.end, p.task)
		d.out.Cause[n] = uint8(d.spans[p.task].Cause)
	}
}

// madeUp draws covers.
func (d *drawer) madeUp(st *stage, lane Lane, covers []cover) {
	for _, c := range covers {
		task := sched.TaskID(sched.None)
		if c.comm >= 0 {
			task = st.comms[c.comm].task
		}
		n := d.put(st, lane, c.start, c.end, task)
		d.out.State[n] = c.state
		if c.comm >= 0 {
			d.out.Group[n] = st.comms[c.comm].row
		}
	}
}

// put adds a span without work.
func (d *drawer) put(st *stage, lane Lane, start, end sched.Time, task sched.TaskID) int {
	n, o := d.n, d.out
	d.n++
	d.task[n] = task
	o.Start[n], o.End[n] = int64(start-d.from), int64(end-d.from)
	o.Stage[n], o.Lane[n] = uint16(st.index), lane
	o.Work[n], o.Group[n], o.Micro[n], o.Layer[n], o.Chunk[n] = -1, -1, -1, -1, -1
	if task != sched.None {
		l := &d.labels[task]
		o.Kind[n], o.Micro[n], o.Chunk[n] = uint8(l.Kind), l.Micro, l.Chunk
	}
	return n
}

// layer returns the global layer of a task, -1 if it is not one layer's.
func (d *drawer) layer(st *stage, i sched.TaskID) int16 {
	l := &d.labels[i]
	if l.Layer < 0 || l.Chunk < 0 {
		return -1
	}
	return int16(d.in.Stages[st.index].Model.Chunks[l.Chunk].FirstLayer) + l.Layer
}

// link turns tasks that released others into spans. What is not drawn for want of length is seen
// through; what is not drawn because it lies outside the step ends the chain.
func (d *drawer) link() {
	for n, t := range d.task {
		by := int32(-1)
		switch d.out.Lane[n] {
		case LaneExposed, LaneHidden:
			if t != sched.None {
				by = d.slot[t]
			}
		default:
			t = d.spans[t].By
			for t != sched.None && d.spans[t].Start == d.spans[t].End {
				t = d.spans[t].By
			}
			if t != sched.None {
				by = d.slot[t]
			}
		}
		d.out.By[n] = by
	}
}
