package sched

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadlock(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *builder)
		want  string
	}{
		{
			"two tasks wait for each other",
			func(b *builder) { b.run(0, 1, 1, 1); b.run(1, 1, 1, 0) },
			"deadlock after 0 of 2 tasks: task 0 waits for task 1 (data); task 1 waits for task 0 (data)",
		},
		{
			"a task waits for one behind it",
			func(b *builder) { b.run(0, 1, 1); b.run(0, 1, 1, 2); b.run(0, 1, 1) },
			"deadlock after 1 of 3 tasks: task 1 waits for task 2 (data); task 2 waits for task 1 (stream)",
		},
		{
			"itself",
			func(b *builder) { b.run(0, 0, 1, 0) },
			"deadlock after 0 of 1 tasks: task 0 waits for task 0 (data)",
		},
		{
			"sends that cross, each behind a wait of the host",
			func(b *builder) {
				for d := range 2 {
					b.run(d, 1, 0)
					b.add(Task{Stream: b.stream(d, 0), Comm: None, Drain: true})
					b.run(d, 1, 0)
				}
				m, n := b.message(1, 0, 5), b.message(1, 3, 2)
				b.list(0, m)
				b.list(5, m)
				b.list(3, n)
				b.list(2, n)
			},
			"deadlock after 0 of 6 tasks: task 0 waits for task 5 (peer); task 5 waits for task 4 (host); " +
				"task 4 waits for task 3 (data); task 3 waits for task 2 (peer); task 2 waits for task 1 (host); task 1 waits for task 0 (data)",
		},
		{
			"a peer that does not list the message",
			func(b *builder) { b.run(0, 1, 0, 1); b.run(1, 1, 0); b.run(1, 1, 0, 0); b.list(1, b.message(1, 1, 2)) },
			"deadlock after 0 of 3 tasks: task 1 waits for task 2 (peer); task 2 waits for task 1 (stream)",
		},
		{
			"communicator",
			func(b *builder) {
				b.add(Task{Stream: b.stream(0, 1), Comm: 0}, 1)
				b.add(Task{Stream: b.stream(0, 2), Comm: 0})
			},
			"deadlock after 0 of 2 tasks: task 0 waits for task 1 (data); task 1 waits for task 0 (communicator)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder(2, 2, 1)
			c.build(b)
			check(t, new(Engine), &b.Program)
			require.EqualError(t, new(Engine).Run(&b.Program, make([]Span, len(b.Tasks)), nil), c.want)
		})
	}
}

func TestDeadlockNamesEightTasks(t *testing.T) {
	b := newBuilder(20, 1, 0)
	for d := range 20 {
		b.run(d, 1, 1, TaskID((d+1)%20))
	}
	err := new(Engine).Run(&b.Program, make([]Span, 20), nil)
	require.ErrorContains(t, err, "task 7 waits for task 8 (data); and 12 more")
}

func TestRunRefusesBrokenPrograms(t *testing.T) {
	for _, c := range []struct {
		want   string
		damage func(b *builder)
	}{
		{"devices: got 0 with 6 streams", func(b *builder) { b.Devices = 0 }},
		{"devices: got 7 with 6 streams", func(b *builder) { b.Devices = 7 }},
		{"stream 1: device 0, want the first 2 streams to be the hosts of devices 0 to 1", func(b *builder) { b.Streams[1].Device = 0 }},
		{"stream 5: device 2", func(b *builder) { b.Streams[5].Device = 2 }},
		{"device 0: 68 streams, want at most 64", func(b *builder) { b.Streams = append(b.Streams, make([]Stream, 65)...) }},
		{"latency: got -1 ns", func(b *builder) { b.Latency = -1 }},
		{"task 1: stream 6, want 0 to 5", func(b *builder) { b.Tasks[1].Stream = 6 }},
		{"task 1: stream -1, want 0 to 5", func(b *builder) { b.Tasks[1].Stream = -1 }},
		{"task 1: work -1 ns", func(b *builder) { b.Tasks[1].Work = -1 }},
		{"launch 70368744177664 ns, want 0 to 70368744177663", func(b *builder) { b.Tasks[1].Launch = 1 << 46 }},
		{"task 1: class 6, want 0 to 5", func(b *builder) { b.Tasks[1].Class = 6 }},
		{"task 1: communicator 2, want 0 to 1 or -1", func(b *builder) { b.Tasks[1].Comm = 2 }},
		{"task 0: communicator 0 is used by several devices", func(b *builder) { b.Tasks[0].Comm, b.Tasks[1].Comm = 0, 0 }},
		{"task 1: dependencies [0, 9), want a range of the program's 1", func(b *builder) { b.Tasks[1].Deps = [2]int32{0, 9} }},
		{"task 1: messages [1, 0)", func(b *builder) { b.Tasks[1].Messages = [2]int32{1, 0} }},
		{"task 1: drains on stream 3", func(b *builder) { b.Tasks[1].Drain = true }},
		{"task 2: on host 0 with a communicator or messages", func(b *builder) { b.Tasks[2].Comm = 0 }},
		{"task 2: on host 0 with a communicator or messages", func(b *builder) { b.Tasks[2].Messages = [2]int32{0, 1} }},
		{"dependency 0: got task 3, want 0 to 2", func(b *builder) { b.Deps[0] = 3 }},
		{"message 0: -1 ns from task 0 to task 1", func(b *builder) { b.Messages[0].Work = -1 }},
		{"message 0: 1 ns from task 0 to task 0", func(b *builder) { b.Messages[0].To = 0 }},
		{"message 0: 1 ns from task 0 to task 4", func(b *builder) { b.Messages[0].To = 4 }},
		{"part 0: got message 1, want 0 to 0", func(b *builder) { b.Parts[0] = 1 }},
		{"task 0: message 0, which it lists already", func(b *builder) { b.list(0, 0, 0) }},
		{"task 1: message 0, which is from task 0 to task -1", func(b *builder) { b.Messages[0].To = None }},
		{"rate of class 1 beside 000010: got 65537, want 1 to 65536 or 0", func(b *builder) { b.Rates = new(Rates); b.Rates[1][2] = FullSpeed + 1 }},
		{"program: its tasks may take", func(b *builder) {
			b.Rates = new(Rates)
			b.Rates[0][0] = 1
			b.Tasks[0].Work, b.Tasks[1].Work = 1<<46-1, 1<<46-1
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			b := newBuilder(2, 2, 1)
			b.run(0, 1, 1)
			b.run(1, 1, 1)
			b.run(0, 0, 1, 0)
			m := b.message(1, 0, 1)
			b.list(0, m)
			b.list(1, m)
			c.damage(b)
			require.ErrorContains(t, new(Engine).Run(&b.Program, make([]Span, len(b.Tasks)), nil), c.want)
		})
	}
	b := newBuilder(1, 1, 0)
	b.run(0, 1, 1)
	require.ErrorContains(t, new(Engine).Run(&b.Program, nil, nil), "spans: got 0, want 1")
	require.ErrorContains(t, new(Engine).Run(&b.Program, make([]Span, 1), make([]Time, 2)), "meets: got 2, want 0")
}

func TestLongTimesDoNotOverflow(t *testing.T) {
	b := newBuilder(1, 2, 0)
	b.Rates = new(Rates)
	b.Rates[0][1<<1] = FullSpeed / 4
	b.run(0, 1, 1<<46-1)
	b.add(Task{Stream: b.stream(0, 2), Class: 1, Comm: None, Work: 1<<46 - 1, Launch: 1<<46 - 1})
	b.run(0, 1, 1<<46-1)
	spans, _ := place(t, &b.Program)
	require.Equal(t, Span{0, 1<<46 - 1, None, ByStart}, spans[1])
	// A quarter of the first is done by then.
	require.Equal(t, Time(1<<46-1+(1<<46)*3/4), spans[0].End)
	require.Equal(t, spans[0].End+1<<46-1, spans[2].End)
}
