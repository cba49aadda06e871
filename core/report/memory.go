package report

import "distopt/core/sched"

// Memory is what reports are made in. Kept from one report to the next it saves their largest
// allocations. The zero value is ready; a Result holds none of it.
type Memory struct {
	stages []stage
	// slot is, per task, first its point in stages[].points, then its drawn span; -1: none.
	slot  []int32
	spans Spans // of a result that was taken back

	// Used by one stage after the other.
	compute []sched.TaskID
	active  []int32
	cuts    []sched.Time
	lanes   [NumLanes][]sched.TaskID
}

// TakeBack makes the spans of r memory for the next report, which overwrites them.
func (m *Memory) TakeBack(r *Result) { m.spans, r.Spans = r.Spans, Spans{} }

// begin forgets what the memory holds, before a report of so many stages and tasks.
func (m *Memory) begin(stages, tasks int) {
	if n := stages - len(m.stages); n > 0 {
		m.stages = append(m.stages, make([]stage, n)...)
	}
	m.stages = m.stages[:stages]
	for s := range m.stages {
		st := &m.stages[s]
		*st = stage{
			index: s, phases: st.phases[:0], points: st.points[:0], comms: st.comms[:0], gaps: st.gaps[:0],
			pieces: st.pieces[:0], hidden: st.hidden[:0], covers: st.covers[:0],
		}
	}
	m.slot = resize(m.slot, tasks)
	fill(m.slot, -1)
}

// resize returns a slice of n elements, which hold anything, in the memory of s if that suffices.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// room returns s without its elements and with room for about as many as like has.
func room[T any](s, like []T) []T {
	if n := len(like) + len(like)/8 + 16; cap(s) < n {
		return make([]T, 0, n)
	}
	return s[:0]
}

// fill sets all elements to v. In WebAssembly copies are many times faster than a loop.
func fill[T any](s []T, v T) {
	if len(s) == 0 {
		return
	}
	s[0] = v
	for n := 1; n < len(s); n *= 2 {
		copy(s[n:], s[:n])
	}
}
