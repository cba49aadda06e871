package sched

import (
	"errors"
	"math"
	"math/bits"
)

// ErrStopped is returned when Progress asked to stop.
var ErrStopped = errors.New("simulation stopped")

// Engine places programs in time. Its buffers are kept between runs: once they have grown to the
// largest program, Run allocates nothing. An Engine is for one goroutine at a time.
type Engine struct {
	// Progress, if set, is called after about every Every tasks; the run ends with ErrStopped when
	// it returns false.
	Progress func(done, total int) bool
	Every    int // 0: 1<<16

	p     *Program
	tasks []Task
	deps  []TaskID
	spans []Span
	meets []Time
	done  int
	err   error // what a task's messages are wrong in

	devices []device
	lanes   []lane
	laneOf  []int32  // of a stream
	last    []TaskID // of a communicator: its latest issued task
	queue   queue

	links    []link // of a task
	ownMeets []Time
}

// link leads on from a task.
type link struct {
	next   TaskID // of its device until its host issues it, then the next that its stream has been given
	waiter int32  // 1 + the first lane that waits for its end
}

// never is the time of an event that is not known yet.
const never Time = math.MaxInt64

// A task whose end is not known has a negative Span.End. Once issued and until it starts that is
// -2-h, where h is the task (or None) that had blocked its host last; Span.Start then holds the
// earliest start that its launch allows and Span.By the task before it on its communicator.
const notEnded Time = -1

// Values of meets before a message starts.
const (
	noSide   Time = -1
	fromOnly Time = -2 // the other side has not begun
	toOnly   Time = -3
)

// device is a device during a run. Sets of lanes are bit masks over its own lanes; lane 0 is its
// host.
type device struct {
	first, lanes int32
	next         TaskID // next to issue
	hostTime     Time   // when the host is free to go on
	hostTask     TaskID // the last to have blocked the host
	running      uint64
	check        uint64 // may have something to start
	timed        uint64 // wait for the launch of their head
	outstanding  int32  // issued and not ended
	draining     bool
	rerate       bool   // the set of running tasks has changed
	lastEnded    TaskID // of the device's streams
	lastEnd      Time
}

// lane is a stream during a run.
type lane struct {
	end       Time  // of the running task, never while it is not known; of a timed lane, of its wait
	workEnd   Time  // when its work is done at the present rate
	floor     Time  // it cannot end before
	anchor    Time  // when remaining held
	remaining int64 // work left, in 1/FullSpeed ns
	after     Time  // head cannot start before
	latest    Time  // end of the dependency of head that ended last so far,
	latestBy  TaskID
	rate      uint32
	class     Class
	running   TaskID
	before    TaskID // the last to have run
	head      TaskID // the first issued and not started
	tail      TaskID
	dep       int32 // next dependency of head to look at
	messages  int32 // of the running task, not started
	link      int32 // next lane that waits for the same task, 1 + index
	device    int32
}

// Run places the tasks of p. It fills spans, one for each task, and meets, which holds when each
// message started and may be nil. If tasks wait for each other for ever the error is a *Deadlock.
func (e *Engine) Run(p *Program, spans []Span, meets []Time) error {
	defer e.forget()
	if err := e.load(p, spans, meets); err != nil {
		return err
	}
	every := e.Every
	if every <= 0 {
		every = 1 << 16
	}
	report := every
	for {
		first := e.queue.nodes[1]
		if first.at == never {
			break
		}
		e.visit(first.device, first.at)
		if e.err != nil {
			return e.err
		}
		if e.done >= report && e.Progress != nil {
			report = e.done + every
			if !e.Progress(e.done, len(p.Tasks)) {
				return ErrStopped
			}
		}
	}
	if e.done < len(p.Tasks) {
		return e.deadlock()
	}
	return nil
}

// visit does all that device d has to do at now.
func (e *Engine) visit(d int32, now Time) {
	dev := &e.devices[d]
	lanes := e.lanes[dev.first : dev.first+dev.lanes]
	for set := dev.running | dev.timed; set != 0; set &= set - 1 {
		b := bits.TrailingZeros64(set)
		if l := &lanes[b]; l.end > now {
			continue
		} else if l.running != None {
			e.end(dev, l, b, now)
		} else {
			dev.timed &^= 1 << b
			dev.check |= 1 << b
		}
	}
	for dev.check != 0 {
		b := bits.TrailingZeros64(dev.check)
		dev.check &^= 1 << b
		if l := &lanes[b]; b == 0 {
			e.host(dev, l, now)
		} else if l.head != None && l.running == None {
			e.try(dev, l, b, now)
		}
	}
	at, set := never, dev.running|dev.timed
	if dev.rerate {
		dev.rerate = false
		at, set = e.rerate(dev, lanes, now), dev.timed
	}
	for ; set != 0; set &= set - 1 {
		at = min(at, lanes[bits.TrailingZeros64(set)].end)
	}
	e.queue.later(d, at)
}

// end ends the running task of lane b.
func (e *Engine) end(dev *device, l *lane, b int, now Time) {
	t := l.running
	e.spans[t].End = now
	l.running, l.before = None, t
	dev.running &^= 1 << b
	dev.check |= 1 << b
	dev.rerate = true
	dev.outstanding--
	if dev.lastEnd != now || t < dev.lastEnded {
		dev.lastEnd, dev.lastEnded = now, t
	}
	if dev.outstanding == 0 && dev.draining {
		dev.check |= 1
	}
	e.done++
	if e.links[t].waiter != 0 {
		e.release(t, now)
	}
}

// release looks at what has waited to know the end of t.
func (e *Engine) release(t TaskID, now Time) {
	for w := e.links[t].waiter; w != 0; {
		l := &e.lanes[w-1]
		dev := &e.devices[l.device]
		dev.check |= 1 << (w - 1 - dev.first)
		e.queue.sooner(l.device, now)
		w = l.link
	}
}

// wait makes lane b wait for the end of t.
func (e *Engine) wait(dev *device, l *lane, b int, t TaskID) {
	l.link = e.links[t].waiter
	e.links[t].waiter = dev.first + int32(b) + 1
}

// ready reports whether the ends of all dependencies of the lane's head are known, and finds the
// latest; if not, the lane now waits for the first that is not.
func (e *Engine) ready(dev *device, l *lane, b int, t *Task) bool {
	for ; l.dep < t.Deps[1]; l.dep++ {
		x := e.deps[l.dep]
		end := e.spans[x].End
		if end < 0 {
			e.wait(dev, l, b, x)
			return false
		}
		if end > l.latest {
			l.latest, l.latestBy = end, x
		}
	}
	return true
}

// front makes i the head of a lane, from which nothing is known but when it may start.
func (l *lane) front(i TaskID, t *Task, after Time) {
	l.head, l.dep, l.after, l.latest = i, t.Deps[0], after, 0
}

// try starts the head of lane b, on which nothing runs, if nothing else holds it back; otherwise it
// arranges to be called again when what holds it back is over.
func (e *Engine) try(dev *device, l *lane, b int, now Time) {
	i := l.head
	t := &e.tasks[i]
	s := &e.spans[i]
	if prev := s.By; prev != None && e.spans[prev].End < 0 {
		e.wait(dev, l, b, prev)
		return
	}
	if l.dep < t.Deps[1] && !e.ready(dev, l, b, t) {
		return
	}
	if after := max(l.after, l.latest); after > now {
		l.end = after
		dev.timed |= 1 << b
		return
	}
	e.start(dev, l, b, t, s, now)
}

// start starts the head of lane b.
func (e *Engine) start(dev *device, l *lane, b int, t *Task, s *Span, now Time) {
	i := l.head
	launched, prev, host := s.Start, s.By, TaskID(notEnded-1-s.End)

	latest, by, cause := l.latest, TaskID(None), ByStart
	if latest > 0 {
		by, cause = l.latestBy, ByData
	}
	if x := l.before; x != None {
		if end := e.spans[x].End; end > latest {
			latest, by, cause = end, x, ByStream
		}
	}
	if prev != None {
		if end := e.spans[prev].End; end > latest {
			latest, by, cause = end, prev, ByComm
		}
	}
	if launched > latest {
		by, cause = host, ByHost
	}
	*s = Span{Start: now, End: notEnded, By: by, Cause: cause}

	l.head = e.links[i].next
	if l.head != None {
		l.front(l.head, &e.tasks[l.head], e.spans[l.head].Start)
	}
	l.running = i
	l.class = t.Class
	l.remaining = int64(t.Work) * FullSpeed
	l.anchor = now
	l.workEnd = now
	l.floor = launched + t.Launch
	l.rate = 0
	l.messages = 0
	dev.running |= 1 << b
	if t.Messages[0] < t.Messages[1] {
		e.meet(i, l, now)
	}
	if t.Work == 0 && l.floor <= now && l.messages == 0 {
		e.end(dev, l, b, now)
		return
	}
	dev.rerate = true
}
