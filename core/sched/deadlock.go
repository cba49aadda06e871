package sched

import (
	"fmt"
	"strings"
)

// Wait is a task that cannot start, or an exchange that cannot end, and what it waits for.
type Wait struct {
	Task, For TaskID
	// Cause is what For would have to do: ByData, ByComm: end; ByStream: end, before it on the
	// stream; ByHost: end, as the host waits for it; ByPeer: begin its side of the exchange.
	Cause Cause
}

// Deadlock is the error of a program whose tasks wait for each other for ever.
type Deadlock struct {
	Done, Tasks int
	Waits       []Wait // a circle: each Wait is for the next one's Task, the last for the first's
}

// Error names the tasks of the circle, at most the first eight.
func (d *Deadlock) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock after %d of %d tasks", d.Done, d.Tasks)
	for i, w := range d.Waits {
		if i == 8 {
			fmt.Fprintf(&b, "; and %d more", len(d.Waits)-i)
			break
		}
		sep := ";"
		if i == 0 {
			sep = ":"
		}
		fmt.Fprintf(&b, "%s task %d waits for task %d (%v)", sep, w.Task, w.For, w.Cause)
	}
	return b.String()
}

// String names the cause as a reader would.
func (c Cause) String() string {
	names := [...]string{"start", "data", "stream", "communicator", "host", "peer"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// deadlock finds a circle among the tasks that have not ended. It follows waits from one of them;
// each waits for another that has not ended either, so a task must come up again.
func (e *Engine) deadlock() error {
	d := &Deadlock{Done: e.done, Tasks: len(e.p.Tasks)}
	at := make(map[TaskID]int)
	var t TaskID
	for e.spans[t].End >= 0 {
		t++
	}
	for {
		if i, seen := at[t]; seen {
			d.Waits = d.Waits[i:]
			return d
		}
		at[t] = len(d.Waits)
		w := e.waitOf(t)
		d.Waits = append(d.Waits, w)
		t = w.For
	}
}

// waitOf says what task i, which has not ended, waits for.
func (e *Engine) waitOf(i TaskID) Wait {
	t := &e.tasks[i]
	l := &e.lanes[e.laneOf[t.Stream]]
	dev := &e.devices[l.device]
	host := &e.lanes[dev.first]
	switch {
	case l.running == i:
		for _, m := range e.p.Parts[t.Messages[0]:t.Messages[1]] {
			if e.meets[m] == fromOnly {
				return Wait{i, e.p.Messages[m].To, ByPeer}
			} else if e.meets[m] == toOnly {
				return Wait{i, e.p.Messages[m].From, ByPeer}
			}
		}
	case i == host.head && dev.draining:
		lanes := e.lanes[dev.first+1 : dev.first+dev.lanes]
		for j := range lanes {
			if lanes[j].running != None {
				return Wait{i, lanes[j].running, ByData}
			}
			if lanes[j].head != None {
				return Wait{i, lanes[j].head, ByData}
			}
		}
	case host.head != None && i > host.head:
		return Wait{i, host.head, ByHost}
	case l.running != None:
		return Wait{i, l.running, ByStream}
	case l.head != i:
		return Wait{i, l.head, ByStream}
	case l != host && e.spans[i].By != None && e.spans[e.spans[i].By].End < 0:
		return Wait{i, e.spans[i].By, ByComm}
	}
	for _, x := range e.deps[t.Deps[0]:t.Deps[1]] {
		if e.spans[x].End < 0 {
			return Wait{i, x, ByData}
		}
	}
	panic(fmt.Sprintf("sched: task %d has not run and waits for nothing", i))
}
