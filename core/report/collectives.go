package report

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/sched"
	"distopt/core/step"
)

// listCollectives makes the table of collectives, stages ascending, each in order of start.
func (m *maker) listCollectives() {
	n := 0
	for s := range m.stages {
		n += len(m.stages[s].comms)
	}
	m.out.Collectives = make([]Collective, 0, min(n, 64*len(m.stages)))
	for s := range m.stages {
		m.listStage(&m.stages[s])
	}
}

func (m *maker) listStage(st *stage) {
	var heads []int32 // of st.comms: begun before the drawn step
	for i := range st.comms {
		c := &st.comms[i]
		if !kinds[m.labels[c.task].Kind].row || c.end <= m.from || c.start >= m.to {
			continue
		}
		if c.start < m.from {
			heads = append(heads, int32(i))
		}
		// What crosses the end of the step is the next step's copy of what crosses its begin.
		if c.end > m.to && c.start >= m.from {
			if k := slices.IndexFunc(heads, func(h int32) bool { return m.same(st.comms[h].task, c.task) }); k >= 0 {
				c.row = st.comms[heads[k]].row
				heads = slices.Delete(heads, k, k+1)
			}
		}
		if c.row < 0 {
			c.row = int32(len(m.out.Collectives))
			m.out.Collectives = append(m.out.Collectives, m.collectiveRow(c.task))
		}
		r := &m.out.Collectives[c.row]
		r.Exposed += c.exposed
		r.InBubble += c.inBubble
		r.Hidden += c.hidden
	}
}

// same reports whether two tasks are the same collective of different steps.
func (m *maker) same(a, b sched.TaskID) bool {
	x, y := &m.labels[a], &m.labels[b]
	return x.Kind == y.Kind && x.Work == y.Work && x.Step != y.Step && slices.Equal(m.bucketsOf(a), m.bucketsOf(b))
}

func (m *maker) bucketsOf(t sched.TaskID) []bucket.ID {
	r := m.labels[t].Buckets
	return m.in.Recording.BucketIDs[r[0]:r[1]]
}

// collectiveRow describes a collective.
func (m *maker) collectiveRow(t sched.TaskID) Collective {
	l := &m.labels[t]
	w := &m.in.Recording.Works[l.Work]
	s := m.spans[t]
	r := Collective{
		Span: -1, Stage: int(l.Stage), Kind: kinds[l.Kind].name, Bytes: int64(w.Bytes),
		Group: groupNames[w.Group], Ranks: m.in.GroupSizes[w.Group],
		Start: s.Start - m.from, Length: s.End - s.Start,
	}
	if ids := m.bucketsOf(t); len(ids) > 0 {
		r.Buckets = make([]int32, len(ids))
		for i, id := range ids {
			r.Buckets[i] = int32(id)
		}
	}
	if r.Length > 0 {
		r.AlgBW = float64(w.Bytes) / (float64(r.Length) * 1e-9)
		r.BusBW = float64(r.AlgBW * busFactor(w.Op, r.Ranks))
	}
	return r
}

// busFactor turns algbw into busbw (NCCL tests, PERFORMANCE.md).
func busFactor(op step.Collective, ranks int) float64 {
	if ranks < 1 {
		return 1
	}
	part := float64(ranks-1) / float64(ranks)
	switch op {
	case step.OpReduceScatter, step.OpAllGather:
		return part
	case step.OpAllReduce:
		return 2 * part
	}
	return 1
}
