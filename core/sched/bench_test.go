package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pipeline builds a 1F1B-like program: each stage computes layers of microbatches, exchanges with
// its neighbours after each, waits for its device, and reduces gradients beside the last ones.
// Streams: 1 compute, 2 communication, 3 messages.
func pipeline(stages, micros, layers int) *Program {
	b := newBuilder(stages, 3, 2)
	b.Latency = 4000
	b.Rates = new(Rates)
	b.Rates[0][1<<1] = FullSpeed * 9 / 10
	b.Rates[1][1<<0] = FullSpeed * 8 / 10
	b.Rates[0][1<<1|1<<2] = FullSpeed * 8 / 10
	lists := map[TaskID][]MessageID{}
	link := func(work Time, from, to TaskID) {
		m := b.message(work, from, to)
		lists[from] = append(lists[from], m)
		lists[to] = append(lists[to], m)
	}
	// Of the stage above: its exchange that sends a microbatch's output, that receives its gradient.
	var sends, receives []TaskID
	for s := range stages {
		first, last := s == 0, s == stages-1
		mySends, myReceives := make([]TaskID, micros), make([]TaskID, micros)
		// exchange does in one call what its arguments name; -1: not that.
		exchange := func(sb, rf, sf, rb int) {
			x := b.add(Task{Stream: b.stream(s, 3), Class: 2, Comm: CommID(s*2 + 1), Work: 2000, Launch: 8000}, TaskID(len(b.Tasks)-1))
			b.add(Task{Stream: b.stream(s, 0), Comm: None, Work: 1000, Drain: true})
			if sb >= 0 && !first {
				link(30000, x, receives[sb])
			}
			if rf >= 0 && !first {
				link(30000, sends[rf], x)
			}
			if sf >= 0 {
				mySends[sf] = x
			}
			if rb >= 0 {
				myReceives[rb] = x
			}
		}
		pass := func(work Time, reduce bool) {
			for l := range layers {
				i := b.add(Task{Stream: b.stream(s, 1), Comm: None, Work: work + Time(l), Launch: work / 4})
				if reduce {
					b.add(Task{Stream: b.stream(s, 2), Class: 1, Comm: CommID(s * 2), Work: work / 2, Launch: 8000}, i)
				}
			}
		}
		b.run(s, 1, 10)
		warm := min(stages-s-1, micros)
		for m := range warm {
			if !first {
				exchange(-1, m, -1, -1)
			}
			pass(500000, false)
			exchange(-1, -1, m, -1)
		}
		if !first && warm < micros {
			exchange(-1, warm, -1, -1)
		}
		for m := range micros - warm {
			pass(500000, false)
			if !last {
				exchange(-1, -1, warm+m, m)
			}
			pass(1000000, m == micros-1)
			if next := warm + m + 1; !first && next < micros {
				exchange(m, next, -1, -1)
			} else if !first {
				exchange(m, -1, -1, -1)
			}
		}
		for m := micros - warm; m < micros; m++ {
			exchange(-1, -1, -1, m)
			pass(1000000, m == micros-1)
			if !first {
				exchange(m, -1, -1, -1)
			}
		}
		sends, receives = mySends, myReceives
	}
	for i := range b.Tasks {
		b.list(TaskID(i), lists[TaskID(i)]...)
	}
	return &b.Program
}

// BenchmarkEngine reports what a task costs; make bench prints it next to its budget. It measures warm
// runs: browsers and Node begin with code that is compiled in haste, and replace it by and by.
func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		name                   string
		stages, micros, layers int
	}{
		{"stages=1", 1, 2, 24},
		{"stages=8", 8, 64, 4},
		{"stages=64", 64, 512, 4},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := pipeline(c.stages, c.micros, c.layers)
			spans := make([]Span, len(p.Tasks))
			e := new(Engine)
			require.NoError(b, e.Run(p, spans, nil))
			for began := time.Now(); time.Since(began) < time.Second; {
				require.NoError(b, e.Run(p, spans, nil))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Run(p, spans, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Tasks)), "ns/task")
			b.ReportMetric(float64(len(p.Tasks)), "tasks")
		})
	}
}
