package sched

// host lets the host of dev go on until a task blocks it. Nothing slows a host down, so the end of
// a host task is known, and set, as soon as what it waits for has ended, though it may lie ahead of
// now; the host may go on in that future.
func (e *Engine) host(dev *device, l *lane, now Time) {
	for {
		i := l.head
		if i == None {
			i = dev.next
			if i == None {
				return
			}
			t := &e.tasks[i]
			dev.next = e.links[i].next
			if e.laneOf[t.Stream] != dev.first {
				e.issue(dev, i, t)
				continue
			}
			l.front(i, t, 0)
			e.spans[i] = Span{Start: dev.hostTime, End: notEnded, By: dev.hostTask, Cause: ByHost}
			if dev.hostTask == None && dev.hostTime == 0 {
				e.spans[i].Cause = ByStart
			}
		}
		t := &e.tasks[i]
		dev.draining = t.Drain && dev.outstanding > 0
		if dev.draining || !e.ready(dev, l, 0, t) {
			return
		}
		s := &e.spans[i]
		begin := s.Start
		if l.latest > begin {
			begin, s.By, s.Cause = l.latest, l.latestBy, ByData
		}
		if t.Drain && dev.lastEnd > begin {
			begin, s.By, s.Cause = dev.lastEnd, dev.lastEnded, ByData
		}
		s.End = begin + t.Work
		l.head = None
		dev.hostTime, dev.hostTask = s.End, i
		e.done++
		e.release(i, now)
	}
}

// issue puts a task on its stream.
func (e *Engine) issue(dev *device, i TaskID, t *Task) {
	s := &e.spans[i]
	s.Start = dev.hostTime + e.p.Latency
	s.End = notEnded - 1 - Time(dev.hostTask)
	s.By = None
	if t.Comm != None {
		s.By = e.last[t.Comm]
		e.last[t.Comm] = i
	}
	dev.hostTime += t.Launch
	dev.outstanding++
	e.links[i].next = None
	lane := e.laneOf[t.Stream]
	l := &e.lanes[lane]
	if l.head != None {
		e.links[l.tail].next = i
	} else {
		l.front(i, t, s.Start)
		dev.check |= 1 << (lane - dev.first)
	}
	l.tail = i
}
