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

// drawer fills Spans, lane by lane.
type drawer struct {
	*maker
	out *Spans
	n   int // spans so far
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
	m.out.Spans, m.Memory.spans = m.Memory.spans, Spans{}
	d := drawer{maker: m, out: &m.out.Spans}
	d.out.resize(total, len(m.stages)*int(NumLanes)+1)
	for s := range m.stages {
		st := &m.stages[s]
		m.sortOut(st)
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
				d.lane(st, lane, m.lanes[lane])
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
	for n, task := range d.out.By {
		if task != sched.None {
			d.out.By[n] = m.slot[task]
		}
	}
}

// sortOut lists the tasks of each lane that are drawn, in order of their start.
func (m *maker) sortOut(st *stage) {
	lanes := &m.lanes
	for l := range lanes {
		lanes[l] = lanes[l][:0]
	}
	for i := st.within[0]; i < st.within[1]; i++ {
		if s := &m.spans[i]; s.End > m.from && s.Start < m.to && s.End > s.Start {
			lane := kinds[m.labels[i].Kind].lane
			lanes[lane] = append(lanes[lane], i)
		}
	}
	for _, tasks := range lanes {
		before := sched.Time(0)
		for _, i := range tasks {
			start := m.spans[i].Start
			if start < before {
				order(tasks, func(a, b *sched.TaskID) bool {
					return m.spans[*a].Start < m.spans[*b].Start || m.spans[*a].Start == m.spans[*b].Start && *a < *b
				})
				break
			}
			before = start
		}
	}
}

// begin begins a lane of n spans: it returns the first and sets what all have in common.
func (d *drawer) begin(st *stage, lane Lane, n int) int {
	from, o := d.n, d.out
	d.n += n
	fill(o.Stage[from:d.n], uint16(st.index))
	fill(o.Lane[from:d.n], lane)
	return from
}

// By holds tasks until all spans are there.

// lane draws tasks.
func (d *drawer) lane(st *stage, lane Lane, tasks []sched.TaskID) {
	n, o := d.begin(st, lane, len(tasks)), d.out
	fill(o.Group[n:d.n], -1)
	fill(o.State[n:d.n], 0)
	for _, i := range tasks {
		s, l := &d.spans[i], &d.labels[i]
		o.Start[n], o.End[n] = int64(s.Start-d.from), int64(s.End-d.from)
		o.By[n], o.Cause[n] = int32(d.releaser(s)), uint8(s.Cause)
		o.Work[n], o.Micro[n], o.Kind[n], o.Chunk[n] = int32(l.Work), l.Micro, uint8(l.Kind), l.Chunk
		o.Layer[n] = -1
		if l.Layer >= 0 && l.Chunk >= 0 {
			o.Layer[n] = int16(d.in.Stages[st.index].Model.Chunks[l.Chunk].FirstLayer) + l.Layer
		}
		d.slot[i] = int32(n)
		n++
	}
}

// releaser returns the task that released a span. What is not drawn for want of length is seen
// through; what is not drawn because it lies outside the step ends the chain.
func (d *drawer) releaser(s *sched.Span) sched.TaskID {
	t := s.By
	for t != sched.None && d.spans[t].Start == d.spans[t].End {
		t = d.spans[t].By
	}
	return t
}

// passes draws the phases of st.
func (d *drawer) passes(st *stage) {
	n, o := d.begin(st, LanePhase, len(st.phases)), d.out
	fill(o.Work[n:d.n], -1)
	fill(o.Group[n:d.n], -1)
	fill(o.Layer[n:d.n], -1)
	fill(o.State[n:d.n], 0)
	for k := range st.phases {
		p := &st.phases[k]
		s, l := &d.spans[p.task], &d.labels[p.task]
		o.Start[n], o.End[n] = int64(p.start-d.from), int64(p.end-d.from)
		o.By[n], o.Cause[n] = int32(d.releaser(s)), uint8(s.Cause)
		o.Micro[n], o.Kind[n], o.Chunk[n] = l.Micro, uint8(l.Kind), l.Chunk
		n++
	}
}

// madeUp draws covers, each as a part of the communication that it names By.
func (d *drawer) madeUp(st *stage, lane Lane, covers []cover) {
	n, o := d.begin(st, lane, len(covers)), d.out
	fill(o.Work[n:d.n], -1)
	fill(o.Layer[n:d.n], -1)
	fill(o.Cause[n:d.n], 0)
	for k := range covers {
		c := &covers[k]
		o.Start[n], o.End[n] = int64(c.start-d.from), int64(c.end-d.from)
		o.State[n] = c.state
		if c.comm >= 0 {
			m := &st.comms[c.comm]
			l := &d.labels[m.task]
			o.By[n], o.Group[n] = int32(m.task), m.row
			o.Micro[n], o.Kind[n], o.Chunk[n] = l.Micro, uint8(l.Kind), l.Chunk
		} else {
			o.By[n], o.Group[n], o.Micro[n], o.Kind[n], o.Chunk[n] = sched.None, -1, -1, 0, -1
		}
		n++
	}
}
