package sched

import "fmt"

// Bounds that keep every sum and product of the engine inside 64 bits.
const (
	maxTime  Time = 1 << 46 // of one task, launch or message: 19 hours
	maxTotal Time = 1 << 62 // of all of them, at the slowest rate
	maxLanes      = 64
)

// load checks p and makes the engine ready to run it.
func (e *Engine) load(p *Program, spans []Span, meets []Time) error {
	if len(spans) != len(p.Tasks) {
		return fmt.Errorf("spans: got %d, want %d, one for each task", len(spans), len(p.Tasks))
	}
	if meets == nil {
		e.ownMeets = grow(e.ownMeets, len(p.Messages))
		meets = e.ownMeets
	}
	if len(meets) != len(p.Messages) {
		return fmt.Errorf("meets: got %d, want %d, one for each message", len(meets), len(p.Messages))
	}
	e.p, e.tasks, e.deps = p, p.Tasks, p.Deps
	e.spans, e.meets, e.done, e.err = spans, meets, 0, nil
	if err := e.loadDevices(); err != nil {
		return err
	}
	return e.loadTasks()
}

// forget lets go of the program, so that an idle engine holds none.
func (e *Engine) forget() {
	e.p, e.tasks, e.deps, e.spans, e.meets = nil, nil, nil, nil, nil
}

// loadDevices groups the streams by device.
func (e *Engine) loadDevices() error {
	p := e.p
	if p.Devices < 1 || p.Devices > len(p.Streams) {
		return fmt.Errorf("devices: got %d with %d streams, want 1 to the number of streams", p.Devices, len(p.Streams))
	}
	e.devices = grow(e.devices, p.Devices)
	clear(e.devices)
	for i, s := range p.Streams {
		if s.Device < 0 || int(s.Device) >= p.Devices || i < p.Devices && int(s.Device) != i {
			return fmt.Errorf("stream %d: device %d, want the first %d streams to be the hosts of devices 0 to %d",
				i, s.Device, p.Devices, p.Devices-1)
		}
		e.devices[s.Device].lanes++
	}
	e.queue.reset(p.Devices)
	var first int32
	for i := range e.devices {
		d := &e.devices[i]
		if d.lanes > maxLanes {
			return fmt.Errorf("device %d: %d streams, want at most %d", i, d.lanes, maxLanes)
		}
		d.first = first
		first += d.lanes
		d.lanes = 0
		d.next, d.hostTask, d.lastEnded = None, None, None
		d.check = 1
	}
	e.lanes = grow(e.lanes, len(p.Streams))
	e.laneOf = grow(e.laneOf, len(p.Streams))
	for i, s := range p.Streams {
		d := &e.devices[s.Device]
		at := d.first + d.lanes
		d.lanes++
		e.laneOf[i] = at
		e.lanes[at] = lane{end: never, running: None, before: None, head: None, tail: None, device: s.Device}
	}
	return nil
}

// loadTasks checks the tasks and links those of each device.
func (e *Engine) loadTasks() error {
	p := e.p
	slow, err := slowest(p.Rates)
	if err != nil {
		return err
	}
	if uint64(p.Latency) >= uint64(maxTime) {
		return fmt.Errorf("latency: got %d ns, want 0 to %d", p.Latency, maxTime-1)
	}
	total, err := e.loadMessages()
	if err != nil {
		return err
	}
	e.links = grow(e.links, len(p.Tasks))
	e.last = grow(e.last, p.Comms)
	e.forgetComms()
	hosts := StreamID(p.Devices)
	bounds := bounds{int64(len(p.Streams)), int64(p.Comms), int64(len(p.Deps)), int64(len(p.Parts))}
	for i := len(p.Tasks) - 1; i >= 0; i-- {
		t := &p.Tasks[i]
		if bounds.broken(t) {
			return p.taskError(i)
		}
		if t.Stream < hosts {
			if t.Comm != None || t.Messages[0] < t.Messages[1] {
				return p.taskError(i)
			}
		} else if t.Drain {
			return p.taskError(i)
		}
		device := p.Streams[t.Stream].Device
		if t.Comm != None {
			if at := e.last[t.Comm]; at != None && at != TaskID(device) {
				return p.taskError(i)
			}
			e.last[t.Comm] = TaskID(device)
		}
		if total += t.Work*slow + t.Launch + p.Latency; total >= maxTotal {
			return fmt.Errorf("program: its tasks may take %d ns, want less than %d", total, maxTotal)
		}
		d := &e.devices[device]
		e.links[i] = link{next: d.next}
		d.next = TaskID(i)
		e.spans[i].End = notEnded
	}
	e.forgetComms()
	for i, t := range p.Deps {
		if uint(t) >= uint(len(p.Tasks)) {
			return fmt.Errorf("dependency %d: got task %d, want 0 to %d", i, t, len(p.Tasks)-1)
		}
	}
	for i, m := range p.Parts {
		if uint(m) >= uint(len(p.Messages)) {
			return fmt.Errorf("part %d: got message %d, want 0 to %d", i, m, len(p.Messages)-1)
		}
	}
	return nil
}

// bounds are the numbers of things that a task may name.
type bounds struct{ streams, comms, deps, parts int64 }

// broken reports whether a field of t is out of its range: a difference that must not be negative
// is. All are looked at in one go, since a branch for each would cost more than they do.
func (b *bounds) broken(t *Task) bool {
	stream, comm := int64(t.Stream), int64(t.Comm)
	d0, d1 := int64(t.Deps[0]), int64(t.Deps[1])
	m0, m1 := int64(t.Messages[0]), int64(t.Messages[1])
	return stream|(b.streams-1-stream)|
		(comm-None)|(b.comms-1-comm)|
		int64(t.Work)|int64(maxTime-1-t.Work)|int64(t.Launch)|int64(maxTime-1-t.Launch)|
		(NumClasses-1-int64(t.Class))|
		d0|(d1-d0)|(b.deps-d1)|
		m0|(m1-m0)|(b.parts-m1) < 0
}

func (e *Engine) forgetComms() {
	for i := range e.last {
		e.last[i] = None
	}
}

// loadMessages checks the messages and returns how long they take in all. Who lists them is checked
// in meet.
func (e *Engine) loadMessages() (Time, error) {
	p := e.p
	var total Time
	for i := range p.Messages {
		m := &p.Messages[i]
		if uint64(m.Work) >= uint64(maxTime) || m.From == m.To ||
			m.From < None || int(m.From) >= len(p.Tasks) || m.To < None || int(m.To) >= len(p.Tasks) {
			return 0, fmt.Errorf("message %d: %d ns from task %d to task %d, want 0 to %d ns between two tasks of %d (or %d: unknown)",
				i, m.Work, m.From, m.To, maxTime-1, len(p.Tasks), None)
		}
		if total += m.Work; total >= maxTotal {
			return 0, fmt.Errorf("program: its messages alone may take %d ns, want less than %d", total, maxTotal)
		}
		e.meets[i] = noSide
	}
	return total, nil
}

// slowest returns by what factor the slowest rate of r may stretch work, rounded up.
func slowest(r *Rates) (Time, error) {
	least := uint32(FullSpeed)
	if r != nil {
		for class := range r {
			for mask, rate := range r[class] {
				if rate > FullSpeed {
					return 0, fmt.Errorf("rate of class %d beside %06b: got %d, want 1 to %d or 0 for full speed", class, mask, rate, FullSpeed)
				}
				if rate != 0 {
					least = min(least, rate)
				}
			}
		}
	}
	return Time((FullSpeed + least - 1) / least), nil
}

// taskError says what is wrong with task i.
func (p *Program) taskError(i int) error {
	t := &p.Tasks[i]
	host := t.Stream >= 0 && int(t.Stream) < p.Devices
	switch {
	case t.Stream < 0 || int(t.Stream) >= len(p.Streams):
		return fmt.Errorf("task %d: stream %d, want 0 to %d", i, t.Stream, len(p.Streams)-1)
	case t.Work < 0 || t.Work >= maxTime || t.Launch < 0 || t.Launch >= maxTime:
		return fmt.Errorf("task %d: work %d ns, launch %d ns, want 0 to %d", i, t.Work, t.Launch, maxTime-1)
	case t.Class >= NumClasses:
		return fmt.Errorf("task %d: class %d, want 0 to %d", i, t.Class, NumClasses-1)
	case t.Comm < None || int(t.Comm) >= p.Comms:
		return fmt.Errorf("task %d: communicator %d, want 0 to %d or %d", i, t.Comm, p.Comms-1, None)
	case !within(t.Deps, len(p.Deps)):
		return fmt.Errorf("task %d: dependencies [%d, %d), want a range of the program's %d", i, t.Deps[0], t.Deps[1], len(p.Deps))
	case !within(t.Messages, len(p.Parts)):
		return fmt.Errorf("task %d: messages [%d, %d), want a range of the program's %d", i, t.Messages[0], t.Messages[1], len(p.Parts))
	case host && (t.Comm != None || t.Messages[0] < t.Messages[1]):
		return fmt.Errorf("task %d: on host %d with a communicator or messages, want neither", i, t.Stream)
	case !host && t.Drain:
		return fmt.Errorf("task %d: drains on stream %d, want a host's", i, t.Stream)
	default:
		return fmt.Errorf("task %d: communicator %d is used by several devices, want one for each", i, t.Comm)
	}
}

// within reports whether r is a half-open range of n things.
func within(r [2]int32, n int) bool { return 0 <= r[0] && r[0] <= r[1] && int(r[1]) <= n }

// grow returns a slice of n elements, which hold anything, in the memory of s if that suffices.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
