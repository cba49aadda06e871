package sched

// builder makes programs for tests.
type builder struct{ Program }

func newBuilder(devices, streamsEach, commsEach int) *builder {
	b := &builder{}
	b.Devices, b.Comms = devices, devices*commsEach
	for d := range devices {
		b.Streams = append(b.Streams, Stream{int32(d)})
	}
	for range streamsEach {
		for d := range devices {
			b.Streams = append(b.Streams, Stream{int32(d)})
		}
	}
	return b
}

// stream numbers stream n of a device; 0 is its host.
func (b *builder) stream(device, n int) StreamID { return StreamID(n*b.Devices + device) }

// add appends t with deps.
func (b *builder) add(t Task, deps ...TaskID) TaskID {
	t.Deps[0] = int32(len(b.Deps))
	b.Deps = append(b.Deps, deps...)
	t.Deps[1] = int32(len(b.Deps))
	b.Tasks = append(b.Tasks, t)
	return TaskID(len(b.Tasks) - 1)
}

// run appends a task of a length.
func (b *builder) run(device, stream int, work Time, deps ...TaskID) TaskID {
	return b.add(Task{Stream: b.stream(device, stream), Comm: None, Work: work}, deps...)
}

// message joins two exchanges; list must be called for both.
func (b *builder) message(work Time, from, to TaskID) MessageID {
	b.Messages = append(b.Messages, Message{work, from, to})
	return MessageID(len(b.Messages) - 1)
}

// list gives the messages of exchange i.
func (b *builder) list(i TaskID, ms ...MessageID) {
	b.Tasks[i].Messages[0] = int32(len(b.Parts))
	b.Parts = append(b.Parts, ms...)
	b.Tasks[i].Messages[1] = int32(len(b.Parts))
}

// source draws numbers from bytes, so that a fuzzer steers a program; zeros when it is empty.
type source struct{ bytes []byte }

func (s *source) draw(n int) int {
	if len(s.bytes) == 0 || n <= 1 {
		return 0
	}
	v := int(s.bytes[0])
	s.bytes = s.bytes[1:]
	return v % n
}

// random builds a small program. Dependencies mostly point backwards; some point forwards, so that
// some programs deadlock.
func random(s *source) *Program {
	b := newBuilder(1+s.draw(3), 1+s.draw(3), s.draw(3))
	b.Latency = Time(s.draw(4))
	n := 1 + s.draw(24)
	comms := b.Comms / b.Devices
	for i := range n {
		d := s.draw(b.Devices)
		stream := s.draw(len(b.Streams)/b.Devices + 2)
		if stream >= len(b.Streams)/b.Devices {
			stream = 1 // the busiest
		}
		t := Task{Stream: b.stream(d, stream), Class: Class(s.draw(3)), Comm: None, Work: Time(s.draw(20)), Launch: Time(s.draw(6))}
		if stream == 0 {
			t.Drain = s.draw(2) == 1
		} else if comms > 0 && s.draw(3) == 1 {
			t.Comm = CommID(d*comms + s.draw(comms))
		}
		var deps []TaskID
		for range s.draw(3) {
			if x := s.draw(i + 1); x < i {
				deps = append(deps, TaskID(x))
			} else if s.draw(16) == 15 {
				deps = append(deps, TaskID(s.draw(n)))
			}
		}
		b.add(t, deps...)
	}
	lists := make([][]MessageID, n)
	for range s.draw(6) {
		from, to := TaskID(s.draw(n)), TaskID(s.draw(n))
		if from == to {
			to = None
		}
		if int(b.Tasks[from].Stream) < b.Devices || to != None && int(b.Tasks[to].Stream) < b.Devices {
			continue
		}
		m := b.message(Time(s.draw(12)), from, to)
		lists[from] = append(lists[from], m)
		if to != None {
			lists[to] = append(lists[to], m)
		}
	}
	for i, l := range lists {
		b.list(TaskID(i), l...)
	}
	if s.draw(4) > 0 {
		b.Rates = new(Rates)
		for c := range 3 {
			for mask := range 8 {
				b.Rates[c][mask] = uint32(s.draw(8)) * FullSpeed / 7
			}
		}
	}
	return &b.Program
}
