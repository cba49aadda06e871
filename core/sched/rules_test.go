package sched

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRules(t *testing.T) {
	// host, compute and comm are streams of one device; want is one span for each task.
	const host, compute, comm = 0, 1, 2
	task := func(stream int, work, launch Time) Task {
		return Task{Stream: StreamID(stream), Comm: None, Work: work, Launch: launch}
	}
	onComm := func(t Task) Task { t.Comm = 0; return t }
	class := func(c Class, t Task) Task { t.Class = c; return t }
	drain := func(t Task) Task { t.Drain = true; return t }
	for _, c := range []struct {
		name    string
		tasks   []Task
		deps    map[int][]TaskID
		latency Time
		rates   func(*Rates)
		want    []Span
	}{
		{
			name:  "a stream runs in order",
			tasks: []Task{task(compute, 5, 0), task(compute, 3, 0)},
			want:  []Span{{0, 5, None, ByStart}, {5, 8, 0, ByStream}},
		},
		{
			name:  "streams overlap",
			tasks: []Task{task(compute, 5, 0), task(comm, 3, 0)},
			want:  []Span{{0, 5, None, ByStart}, {0, 3, None, ByStart}},
		},
		{
			name:  "a dependency holds back, and wins a tie against the stream",
			tasks: []Task{task(compute, 5, 0), task(comm, 5, 0), task(comm, 1, 0)},
			deps:  map[int][]TaskID{2: {0}},
			want:  []Span{{0, 5, None, ByStart}, {0, 5, None, ByStart}, {5, 6, 0, ByData}},
		},
		{
			name:  "of equal dependencies the first is named",
			tasks: []Task{task(compute, 5, 0), task(host, 5, 0), task(comm, 1, 0)},
			deps:  map[int][]TaskID{2: {1, 0}},
			want:  []Span{{0, 5, None, ByStart}, {0, 5, None, ByStart}, {5, 6, 1, ByData}},
		},
		{
			name:  "a communicator keeps issue order over streams",
			tasks: []Task{onComm(task(comm, 7, 0)), onComm(task(compute, 2, 0))},
			want:  []Span{{0, 7, None, ByStart}, {7, 9, 0, ByComm}},
		},
		{
			name:  "a communicator also waits for a collective that has not begun",
			tasks: []Task{task(compute, 5, 0), onComm(task(comm, 2, 0)), onComm(task(compute, 1, 0))},
			deps:  map[int][]TaskID{1: {0}},
			want:  []Span{{0, 5, None, ByStart}, {5, 7, 0, ByData}, {7, 8, 1, ByComm}},
		},
		{
			name:  "launches follow each other; a task starts when its launch begins and outlasts it",
			tasks: []Task{task(compute, 1, 4), task(compute, 1, 4), task(compute, 20, 4)},
			want:  []Span{{0, 4, None, ByStart}, {4, 8, 0, ByStream}, {8, 28, 1, ByStream}},
		},
		{
			name:  "the host bounds another stream",
			tasks: []Task{task(compute, 1, 4), task(comm, 1, 4)},
			want:  []Span{{0, 4, None, ByStart}, {4, 8, None, ByHost}},
		},
		{
			name:    "launches reach the device after a latency",
			tasks:   []Task{task(compute, 1, 4), task(comm, 9, 4)},
			latency: 3,
			want:    []Span{{3, 7, None, ByHost}, {7, 16, None, ByHost}},
		},
		{
			name:  "a host task blocks the host until its dependency has ended",
			tasks: []Task{task(compute, 9, 2), task(comm, 1, 2), task(host, 3, 0), task(comm, 1, 2)},
			deps:  map[int][]TaskID{2: {0}},
			want:  []Span{{0, 9, None, ByStart}, {2, 4, None, ByHost}, {4, 12, 0, ByData}, {12, 14, 2, ByHost}},
		},
		{
			name:  "a host task that need not wait",
			tasks: []Task{task(compute, 1, 2), task(host, 3, 0), task(host, 1, 0), task(compute, 1, 0)},
			want:  []Span{{0, 2, None, ByStart}, {2, 5, None, ByHost}, {5, 6, 1, ByHost}, {6, 7, 2, ByHost}},
		},
		{
			name:  "a drain waits for all that was issued before it, not after",
			tasks: []Task{task(compute, 9, 0), task(comm, 4, 0), drain(task(host, 1, 0)), task(comm, 5, 0)},
			want:  []Span{{0, 9, None, ByStart}, {0, 4, None, ByStart}, {0, 10, 0, ByData}, {10, 15, 2, ByHost}},
		},
		{
			name:  "work without length",
			tasks: []Task{task(compute, 0, 0), drain(task(host, 0, 0)), task(compute, 0, 0), task(comm, 2, 0)},
			deps:  map[int][]TaskID{3: {2}},
			want:  []Span{{0, 0, None, ByStart}, {0, 0, None, ByStart}, {0, 0, None, ByStart}, {0, 2, None, ByStart}},
		},
		{
			// Class 0 runs at half speed beside class 1: 4 of its 10 done by 8, the rest at full speed.
			name:  "contention is re-rated when the other ends",
			tasks: []Task{class(0, task(compute, 10, 0)), class(1, task(comm, 8, 0))},
			rates: func(r *Rates) { r[0][1<<1] = FullSpeed / 2 },
			want:  []Span{{0, 14, None, ByStart}, {0, 8, None, ByStart}},
		},
		{
			// The first is alone for 6 of its 10. Then both run at a half: its other 4 end at 14, when
			// the second has done 4 of its 5.
			name:  "and when the other starts, both ways",
			tasks: []Task{class(0, task(compute, 10, 0)), task(host, 6, 0), class(1, task(comm, 5, 0))},
			deps:  map[int][]TaskID{2: {1}},
			rates: func(r *Rates) { r[0][1<<1] = FullSpeed / 2; r[1][1<<0] = FullSpeed / 2 },
			want:  []Span{{0, 14, None, ByStart}, {0, 6, None, ByStart}, {6, 15, 1, ByData}},
		},
		{
			name:  "two of a class see each other, and ends are rounded up",
			tasks: []Task{class(3, task(compute, 4, 0)), class(3, task(comm, 4, 0))},
			rates: func(r *Rates) { r[3][1<<3] = FullSpeed / 3 },
			want:  []Span{{0, 13, None, ByStart}, {0, 13, None, ByStart}}, // 4 * 65536 / 21845 = 12.0002
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder(1, 2, 1)
			b.Latency = c.latency
			for i, task := range c.tasks {
				b.add(task, c.deps[i]...)
			}
			if c.rates != nil {
				b.Rates = new(Rates)
				c.rates(b.Rates)
			}
			require.Equal(t, c.want, check(t, new(Engine), &b.Program))
		})
	}
}

func TestExchange(t *testing.T) {
	b := newBuilder(3, 1, 0)
	b.run(0, 1, 10)
	send := b.run(0, 1, 0)
	recv := b.run(1, 1, 0)
	b.run(1, 1, 5)
	other := b.run(2, 1, 3)
	b.list(send, b.message(4, send, recv))
	b.list(recv, 0, b.message(9, other, recv), b.message(2, None, recv))
	b.list(other, 1)

	spans, meets := place(t, &b.Program)
	require.Equal(t, []Time{10, 0, 0}, meets)
	require.Equal(t, Span{10, 14, 0, ByStream}, spans[send])
	require.Equal(t, Span{0, 14, send, ByPeer}, spans[recv])
	require.Equal(t, Span{0, 9, None, ByStart}, spans[other])
	require.Equal(t, Span{14, 19, recv, ByStream}, spans[3])

	b.Messages[1].Work = 20 // now the message that was met at once ends last
	spans, _ = place(t, &b.Program)
	require.Equal(t, Span{0, 20, None, ByStart}, spans[recv])
}
