package report

import (
	"slices"
	"strconv"
	"strings"

	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// explain says of every collective why it is exposed: the number, then the reason.
func (m *maker) explain() {
	for s := range m.stages {
		st := &m.stages[s]
		for i := range st.comms {
			c := &st.comms[i]
			if c.row < 0 {
				continue
			}
			r := &m.out.Collectives[c.row]
			switch {
			case r.Exposed > 0 && r.Reason == "" && c.exposed > 0:
				r.Reason = m.reason(st, i)
				r.Cause = "The " + operation(r) + " is exposed for " + length(r.Exposed) + " because " + r.Reason + "."
				if r.InBubble > 0 {
					r.Cause += " Another " + length(r.InBubble) + " in a bubble do not delay the step."
				}
			case r.Exposed == 0 && r.InBubble > 0:
				r.Reason = "another stage is waited for anyway"
				r.Cause = "Exposed in a bubble: " + length(r.InBubble) + ". It does not delay the step."
			}
		}
	}
}

func length(t sched.Time) string { return units.Milliseconds(int64(t)) }

// operation names a collective: "reduce-scatter of buckets 23–26".
func operation(r *Collective) string {
	name := lower(r.Kind)
	if len(r.Buckets) == 0 {
		return name
	}
	return name + " of " + BucketNames(r.Buckets)
}

// BucketNames lists buckets for a sentence: "bucket 3", "buckets 23–26", "buckets 0, 4, 5". More
// than four runs are counted: "12 buckets".
func BucketNames(ids []int32) string {
	ids = slices.Sorted(slices.Values(ids))
	if len(ids) == 1 {
		return "bucket " + strconv.Itoa(int(ids[0]))
	}
	var runs []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		run := strconv.Itoa(int(ids[i]))
		switch {
		case j == i+1:
			runs = append(runs, run)
			run = strconv.Itoa(int(ids[j]))
		case j > i:
			run += "–" + strconv.Itoa(int(ids[j]))
		}
		runs = append(runs, run)
		i = j + 1
	}
	if len(runs) > 4 {
		return units.Count(int64(len(ids))) + " buckets"
	}
	return "buckets " + strings.Join(runs, ", ")
}

// reason says why communication i of a stage delays the step, as a clause.
func (m *maker) reason(st *stage, i int) string {
	c := &st.comms[i]
	switch m.labels[c.task].Kind {
	case step.AllGather:
		return m.gatherReason(st, i)
	case step.ReduceScatter, step.ShardAllReduce, step.GradAllReduce:
		return m.reduceReason(st, i)
	case step.NormAllReduce:
		return "gradient clipping needs the norm of all gradients before anything else can run"
	case step.AmaxAllReduce:
		if held := m.heldBy(c); held != "" {
			return "it is waited for at once, and " + held
		}
		return "it is waited for at once: the new FP8 scales need the amaxes of all ranks"
	case step.EmbeddingAllReduce:
		return "first and last stage must add their gradients of the tied weights before these can be reduced"
	case step.SequenceParallelAllReduce:
		return "it is waited for when the backward pass is over"
	}
	return "nothing runs beside it"
}

func (m *maker) gatherReason(st *stage, i int) string {
	c := &st.comms[i]
	g := &st.gaps[c.gap]
	if !m.in.OverlapParamSync {
		return "overlap_param_sync is off: all parameters are gathered when the optimizer step is over"
	}
	if why := m.indirect(st, c, g); why != "" {
		return why
	}
	user := m.user(st, g.next)
	if c.start < g.start {
		return user + " needs it " + length(g.start-c.start) + " after it starts, and it takes " + length(c.end-c.start)
	}
	why := user + " needs it at once"
	for k := i - 1; k >= 0; k-- {
		before := &st.comms[k]
		if m.labels[before.task].Kind == step.AllGather {
			why += "; the gather before it was of " + m.bucketNames(before.task)
			break
		}
	}
	return why
}

func (m *maker) reduceReason(st *stage, i int) string {
	c := &st.comms[i]
	g := &st.gaps[c.gap]
	if !m.in.OverlapGradSync {
		return "overlap_grad_sync is off: all gradients are reduced when the backward pass is over"
	}
	if g.next != sched.None && kinds[m.labels[g.next].Kind].lane == LaneCompute {
		if why := m.indirect(st, c, g); why != "" {
			return why
		}
		return m.user(st, g.next) + " waits for it"
	}
	if n := m.notOverlapped(st, c.task); n > 0 && !m.hooked(c.task) {
		return "it is reduced only when gradients are clipped: overlap is disabled for " + units.Count(int64(n)) + " of its parameters"
	}
	if c.start < g.start {
		return "only " + length(g.start-c.start) + " of compute are left behind it, and it takes " + length(c.end-c.start)
	}
	if held := m.heldBy(c); held != "" {
		return "nothing is left to compute behind it: " + held
	}
	return "nothing is left to compute behind it"
}

// indirect says why c is exposed in a gap that does not end because c does, or not directly;
// empty: compute waits for c itself.
func (m *maker) indirect(st *stage, c *comm, g *gap) string {
	by := m.releasedBy(g.next, g.start)
	switch {
	case by == sched.None:
		return "compute waits for the host meanwhile"
	case by != c.task && m.spans[by].By == c.task && m.spans[by].Cause == sched.ByComm:
		return "the " + m.taskName(by) + ", which is waited for, comes behind it on the same communicator"
	case by != c.task && m.spans[by].By == c.task:
		return "the " + m.taskName(by) + ", which is waited for, comes behind it"
	case by != c.task:
		return "the " + m.taskName(by) + " is waited for meanwhile"
	case m.labels[m.spans[g.next].By].Kind == step.HostSync:
		return "the host waits for the whole device, after it has exchanged messages, before it launches " + m.user(st, g.next)
	}
	return ""
}

// hooked reports whether a backward pass released task t, as it does from a gradient's hook.
func (m *maker) hooked(t sched.TaskID) bool {
	by := m.spans[t].By
	return by != sched.None && m.labels[by].Kind == step.Backward
}

// notOverlapped counts the parameters, in the buckets of task t, whose gradients are not reduced
// during the backward pass.
func (m *maker) notOverlapped(st *stage, t sched.TaskID) int {
	in := &m.in.Stages[st.index]
	params := in.params()
	var seen []bool
	n := 0
	for _, id := range m.bucketsOf(t) {
		if int(id) >= len(in.Buckets) {
			continue
		}
		for _, f := range in.Buckets[id].Fragments {
			if !params[f.Param].NoOverlap {
				continue
			}
			if seen == nil {
				seen = make([]bool, len(params))
			}
			if !seen[f.Param] {
				seen[f.Param] = true
				n++
			}
		}
	}
	return n
}

// heldBy says which communication c had to wait for, if that is what let it start.
func (m *maker) heldBy(c *comm) string {
	s := m.spans[c.task]
	if s.By == sched.None || kinds[m.labels[s.By].Kind].role != communicates || s.Cause == sched.ByPeer {
		return ""
	}
	why := "it waits for the " + m.taskName(s.By)
	if s.Cause == sched.ByComm {
		why += " on the same communicator"
	}
	return why
}

// taskName names a communication: "all-gather of bucket 3".
func (m *maker) taskName(t sched.TaskID) string {
	if m.labels[t].Kind == step.Exchange {
		return "exchange with another stage"
	}
	name := lower(kinds[m.labels[t].Kind].name)
	if len(m.bucketsOf(t)) > 0 {
		name += " of " + m.bucketNames(t)
	}
	return name
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func (m *maker) bucketNames(t sched.TaskID) string {
	var ids []int32
	for _, id := range m.bucketsOf(t) {
		ids = append(ids, int32(id))
	}
	return BucketNames(ids)
}

// user names what a stage computes after a gap: of copies, what they are made for.
func (m *maker) user(st *stage, t sched.TaskID) string {
	for t != sched.None && m.labels[t].Kind == step.ParamCopy {
		t++
		for t < st.last && kinds[m.labels[t].Kind].role != computes {
			t++
		}
		if t >= st.last {
			t = sched.None
		}
	}
	if t == sched.None {
		return "the next step"
	}
	l := &m.labels[t]
	name := ""
	switch l.Kind {
	case step.Forward, step.Backward:
		s := m.in.Stages[st.index].Model
		if l.Layer >= 0 && l.Chunk >= 0 {
			name = "layer " + strconv.Itoa(s.Chunks[l.Chunk].FirstLayer+int(l.Layer))
		} else if l.Module[0] < l.Module[1] {
			name = "the " + moduleNames[s.Modules[l.Module[0]].Kind]
		} else {
			name = "the next pass"
		}
		if l.Kind == step.Backward {
			name = "the backward pass of " + name
		}
	case step.ZeroGrad:
		name = "the next step"
	case step.GradNorm:
		name = "the gradient norm"
	case step.Adam:
		name = "Adam"
	default:
		name = "the " + lower(kinds[l.Kind].name)
	}
	return name
}

// params returns the parameters with the flags of the layout.
func (s *StageInput) params() []model.Param {
	if s.Params != nil {
		return s.Params
	}
	return s.Model.Params
}
