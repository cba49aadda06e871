package step

import (
	"distopt/core/optim"
	"distopt/core/sched"
)

// The effects of an optimizer that waits for single collectives.

// number remembers the last task as a numbered collective.
func (r *recorder) number(call int) {
	if call == 0 {
		return
	}
	for call >= len(r.calls) {
		r.calls = append(r.calls, sched.None)
	}
	r.calls[call] = sched.TaskID(len(r.rec.Program.Tasks) - 1)
}

// WaitCall is optim.Runtime's. What the collective itself waited for has ended when it has.
func (r *recorder) WaitCall(waiter, on optim.Stream, call int) {
	if call >= len(r.calls) || r.calls[call] == sched.None {
		return
	}
	s, o, t := local(waiter), local(on), r.calls[call]
	if st := &r.streams[s]; t > st.knows[o] {
		if s == mainStream {
			r.flush() // what is open does not wait
		}
		st.learn(o, t)
	}
}

// scale is what happens to buckets on main before a collective: private sums are rounded into them,
// their norms are computed, they are multiplied. Each is a pass over them.
func (r *recorder) scale(c *optim.Collective) {
	memory := 3 * c.Private.Bytes // fp32 read, 16 bits written; the way back is as long
	if c.Check {
		memory += c.Bytes
	}
	if c.Scale != 0 && c.Scale != 1 && !c.Prescaled {
		memory += 2 * c.Bytes
	}
	if memory == 0 {
		return
	}
	r.launch(optim.Main, Work{Kind: GradCopy, Memory: memory, Count: len(c.Members)}, sched.None, r.ids...)
	r.wait(local(c.Stream), mainStream)
}

// ScaleGrads adds the token counts up and is one pass over all gradient buffers.
func (r *recorder) ScaleGrads(g *optim.GradScaling) {
	if g.Count.Size > 1 {
		r.launch(optim.Main, small(NormAllReduce, &g.Count), r.comm(g.Count.Group))
	}
	r.launch(optim.Main, Work{Kind: GradCopy, Memory: 2 * g.Bytes, Count: g.Buffers}, sched.None)
}
