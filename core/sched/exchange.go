package sched

import "fmt"

// meet starts the messages of exchange i, which begins now on lane l, as far as their other sides
// have begun.
func (e *Engine) meet(i TaskID, l *lane, now Time) {
	t := &e.tasks[i]
	for _, m := range e.p.Parts[t.Messages[0]:t.Messages[1]] {
		msg := &e.p.Messages[m]
		other, mine := msg.To, fromOnly
		if other == i {
			other, mine = msg.From, toOnly
		} else if msg.From != i {
			e.err = fmt.Errorf("task %d: message %d, which is from task %d to task %d", i, m, msg.From, msg.To)
			return
		}
		switch met := &e.meets[m]; {
		case *met == mine || *met >= 0:
			e.err = fmt.Errorf("task %d: message %d, which it lists already", i, m)
			return
		case other == None:
			*met = now
		case *met == noSide:
			*met = mine
			l.messages++
		default:
			*met = now
			e.met(other)
		}
	}
	if l.messages == 0 {
		e.settle(i, l)
	}
}

// met tells a running exchange that one of its messages has started.
func (e *Engine) met(i TaskID) {
	l := &e.lanes[e.laneOf[e.tasks[i].Stream]]
	l.messages--
	if l.messages > 0 {
		return
	}
	e.settle(i, l)
	if l.rate == 0 {
		return // started in this very visit: rerate sets its end
	}
	l.end = max(l.workEnd, l.floor)
	e.queue.sooner(l.device, l.end)
}

// settle sets when the exchange can end, now that all its messages have started, and whether the
// message that ends last had to wait for the other side.
func (e *Engine) settle(i TaskID, l *lane) {
	t := &e.tasks[i]
	s := &e.spans[i]
	last, peer, late := Time(-1), TaskID(None), false
	for _, m := range e.p.Parts[t.Messages[0]:t.Messages[1]] {
		msg := &e.p.Messages[m]
		if end := e.meets[m] + msg.Work; end > last {
			last, late = end, e.meets[m] > s.Start
			peer = msg.From
			if peer == i {
				peer = msg.To
			}
		}
	}
	l.floor = max(l.floor, last)
	if late {
		s.By, s.Cause = peer, ByPeer
	}
}
