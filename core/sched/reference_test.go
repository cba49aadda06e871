package sched

// simulate is the obvious simulator: it walks through time one nanosecond at a time, and at each
// it ends and starts whatever can. It returns nil if nothing more will ever happen.
func simulate(p *Program) ([]Span, []Time) {
	const unknown = -1
	type state struct {
		issued, running, ended bool
		launched               Time // when its launch began, plus latency
		host                   TaskID
		left                   int64
	}
	states := make([]state, len(p.Tasks))
	spans := make([]Span, len(p.Tasks))
	meets := make([]Time, len(p.Messages))
	for i := range meets {
		meets[i] = unknown
	}
	device := func(i TaskID) int32 { return p.Streams[p.Tasks[i].Stream].Device }
	deps := func(i TaskID) []TaskID { return p.Deps[p.Tasks[i].Deps[0]:p.Tasks[i].Deps[1]] }
	parts := func(i TaskID) []MessageID { return p.Parts[p.Tasks[i].Messages[0]:p.Tasks[i].Messages[1]] }
	before := func(i TaskID, same func(*Task) bool) TaskID {
		for j := i - 1; j >= 0; j-- {
			if same(&p.Tasks[j]) {
				return j
			}
		}
		return None
	}

	type host struct {
		time Time
		last TaskID
		next int
	}
	hosts := make([]host, p.Devices)
	queue := make([][]TaskID, p.Devices) // tasks of each device in order
	for i := range p.Tasks {
		d := device(TaskID(i))
		queue[d] = append(queue[d], TaskID(i))
	}
	for d := range hosts {
		hosts[d].last = None
	}

	// step does one thing at instant now and reports whether there was one.
	step := func(now Time) bool {
		for d := range hosts { // hosts
			h := &hosts[d]
			if h.next == len(queue[d]) || h.time > now {
				continue
			}
			i := queue[d][h.next]
			t, s := &p.Tasks[i], &states[i]
			if int(t.Stream) != d {
				s.issued, s.launched, s.host = true, h.time+p.Latency, h.last
				s.left = int64(t.Work) * FullSpeed
				h.time += t.Launch
				h.next++
				return true
			}
			if s.ended {
				h.time, h.last = spans[i].End, i
				h.next++
				return true
			}
			if s.running {
				continue
			}
			begin, by, cause := h.time, h.last, ByHost
			if begin == 0 && by == None {
				cause = ByStart
			}
			blocked := false
			for _, x := range deps(i) {
				blocked = blocked || !states[x].ended
				if states[x].ended && spans[x].End > begin {
					begin, by, cause = spans[x].End, x, ByData
				}
			}
			if t.Drain {
				for _, x := range queue[d][:h.next] {
					blocked = blocked || !states[x].ended
					if states[x].ended && int(p.Tasks[x].Stream) != d && spans[x].End > begin {
						begin, by, cause = spans[x].End, x, ByData
					}
				}
			}
			if blocked {
				continue
			}
			s.running = true
			spans[i] = Span{h.time, begin + t.Work, by, cause}
			return true
		}
		for i := range p.Tasks { // ends
			t, s := &p.Tasks[i], &states[i]
			if !s.running || s.ended {
				continue
			}
			if int(t.Stream) < p.Devices {
				if spans[i].End <= now {
					s.ended = true
					return true
				}
				continue
			}
			done := s.left <= 0 && s.launched+t.Launch <= now
			for _, m := range parts(TaskID(i)) {
				done = done && meets[m] != unknown && meets[m]+p.Messages[m].Work <= now
			}
			if done {
				s.ended = true
				spans[i].End = now
				return true
			}
		}
		for i := range p.Tasks { // starts
			i := TaskID(i)
			t, s := &p.Tasks[i], &states[i]
			if !s.issued || s.running || s.launched > now {
				continue
			}
			type release struct {
				by    TaskID
				cause Cause
			}
			var rs []release
			for _, x := range deps(i) {
				rs = append(rs, release{x, ByData})
			}
			if x := before(i, func(o *Task) bool { return o.Stream == t.Stream }); x != None {
				rs = append(rs, release{x, ByStream})
			}
			if t.Comm != None {
				if x := before(i, func(o *Task) bool { return o.Comm == t.Comm }); x != None {
					rs = append(rs, release{x, ByComm})
				}
			}
			at, by, cause := Time(0), TaskID(None), ByStart
			blocked := false
			for _, r := range rs {
				blocked = blocked || !states[r.by].ended
				if spans[r.by].End > at {
					at, by, cause = spans[r.by].End, r.by, r.cause
				}
			}
			if blocked {
				continue
			}
			if s.launched > at {
				by, cause = s.host, ByHost
			}
			s.running = true
			spans[i] = Span{now, unknown, by, cause}
			return true
		}
		for m := range p.Messages {
			g := &p.Messages[m]
			if meets[m] == unknown && (g.From == None || states[g.From].running) && (g.To == None || states[g.To].running) {
				meets[m] = now
				return true
			}
		}
		return false
	}

	for now := Time(0); ; now++ {
		for step(now) {
		}
		waiting := false // for time to pass
		for d := range hosts {
			waiting = waiting || hosts[d].next < len(queue[d]) && hosts[d].time > now
		}
		for i := range p.Tasks { // work
			t, s := &p.Tasks[i], &states[i]
			if s.issued && !s.running && s.launched > now {
				waiting = true
			}
			if !s.running || s.ended {
				continue
			}
			if int(t.Stream) < p.Devices {
				waiting = true
				continue
			}
			mask := 0
			for j := range p.Tasks {
				if o := &p.Tasks[j]; j != i && int(o.Stream) >= p.Devices && states[j].running && !states[j].ended && device(TaskID(j)) == device(TaskID(i)) {
					mask |= 1 << o.Class
				}
			}
			rate := uint32(0)
			if p.Rates != nil {
				rate = p.Rates[t.Class][mask]
			}
			if rate == 0 {
				rate = FullSpeed
			}
			waiting = waiting || s.left > 0 || s.launched+t.Launch > now
			s.left -= int64(rate)
			for _, m := range parts(TaskID(i)) {
				waiting = waiting || meets[m] != unknown && meets[m]+p.Messages[m].Work > now
			}
		}
		if !waiting {
			break
		}
	}
	for i := range p.Tasks {
		if !states[i].ended {
			return nil, nil
		}
		// An exchange whose last message waited for the other side is released by it.
		last := Time(-1)
		by, late := TaskID(None), false
		for _, m := range parts(TaskID(i)) {
			g := &p.Messages[m]
			if end := meets[m] + g.Work; end > last {
				last, late = end, meets[m] > spans[i].Start
				by = g.From
				if by == TaskID(i) {
					by = g.To
				}
			}
		}
		if late {
			spans[i].By, spans[i].Cause = by, ByPeer
		}
	}
	return spans, meets
}
