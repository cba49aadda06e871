package sched

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipelineProperties checks what must hold of any result on programs that are too long for the
// reference.
func TestPipelineProperties(t *testing.T) {
	for _, c := range []struct{ stages, micros, layers int }{{1, 1, 1}, {1, 2, 24}, {4, 3, 2}, {4, 9, 3}, {16, 40, 2}} {
		p := pipeline(c.stages, c.micros, c.layers)
		spans, meets := place(t, p)
		requireValid(t, p, spans, meets)
	}
}

func requireValid(t *testing.T, p *Program, spans []Span, meets []Time) {
	t.Helper()
	var makespan Time
	busy := make([]Time, len(p.Streams))
	free := make([]Time, len(p.Streams))
	comm := make([]Time, p.Comms)
	for i := range p.Tasks {
		task, s := &p.Tasks[i], spans[i]
		host := int(task.Stream) < p.Devices
		require.GreaterOrEqual(t, s.End-s.Start, task.Work, "task %d is at least as long as its work", i)
		require.GreaterOrEqual(t, s.Start, free[task.Stream], "task %d: no stream overlaps itself", i)
		free[task.Stream] = s.End
		busy[task.Stream] += s.End - s.Start
		for _, x := range p.Deps[task.Deps[0]:task.Deps[1]] {
			if host {
				require.GreaterOrEqual(t, s.End, spans[x].End+task.Work)
			} else {
				require.GreaterOrEqual(t, s.Start, spans[x].End, "task %d waits for %d", i, x)
			}
		}
		if task.Comm != None {
			require.GreaterOrEqual(t, s.Start, comm[task.Comm], "task %d: communicators run in issue order", i)
			comm[task.Comm] = s.End
		}
		for _, m := range p.Parts[task.Messages[0]:task.Messages[1]] {
			require.GreaterOrEqual(t, meets[m], s.Start)
			require.GreaterOrEqual(t, s.End, meets[m]+p.Messages[m].Work)
		}
		switch s.Cause {
		case ByData, ByStream, ByComm:
			if !host {
				require.Equal(t, s.Start, spans[s.By].End, "task %d starts when what released it ends", i)
			}
		case ByPeer:
			require.Greater(t, spans[s.By].Start, s.Start)
		case ByStart:
			require.Zero(t, s.Start)
		}
		makespan = max(makespan, s.End)
	}
	for s, b := range busy {
		require.GreaterOrEqual(t, makespan, b, "stream %d is busy for longer than the program runs", s)
	}
	requireWorkConserved(t, p, spans)
}

// requireWorkConserved integrates the rates over each span: the work done must be the task's work,
// up to the last nanosecond and to what keeps a task from ending (its launch, its messages).
func requireWorkConserved(t *testing.T, p *Program, spans []Span) {
	t.Helper()
	if p.Rates == nil {
		return
	}
	byDevice := make([][]TaskID, p.Devices)
	for i := range p.Tasks {
		if s := p.Tasks[i].Stream; int(s) >= p.Devices {
			d := p.Streams[s].Device
			byDevice[d] = append(byDevice[d], TaskID(i))
		}
	}
	for _, tasks := range byDevice {
		var cuts []Time
		for _, i := range tasks {
			cuts = append(cuts, spans[i].Start, spans[i].End)
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		slices.SortFunc(tasks, func(a, b TaskID) int { return int(spans[a].Start - spans[b].Start) })
		done := make([]int64, len(p.Tasks))
		var running []TaskID
		next := 0
		for k := 0; k+1 < len(cuts); k++ {
			from, to := cuts[k], cuts[k+1]
			running = slices.DeleteFunc(running, func(i TaskID) bool { return spans[i].End <= from })
			for ; next < len(tasks) && spans[tasks[next]].Start == from; next++ {
				if spans[tasks[next]].End > from {
					running = append(running, tasks[next])
				}
			}
			for _, i := range running {
				mask := 0
				for _, j := range running {
					if j != i {
						mask |= 1 << p.Tasks[j].Class
					}
				}
				rate := int64(p.Rates[p.Tasks[i].Class][mask])
				if rate == 0 {
					rate = FullSpeed
				}
				done[i] += rate * int64(to-from)
			}
		}
		for _, i := range tasks {
			task := &p.Tasks[i]
			want := int64(task.Work) * FullSpeed
			require.GreaterOrEqual(t, done[i], want, "task %d has done its work", i)
			if task.Launch == 0 && task.Messages[0] == task.Messages[1] {
				require.Less(t, done[i], want+FullSpeed, "task %d has done no more than its work", i)
			}
		}
	}
}

func TestRatesOnlyDelay(t *testing.T) {
	p := pipeline(4, 6, 3)
	slow, _ := place(t, p)
	p.Rates = nil
	fast, _ := place(t, p)
	var a, b Time
	for i := range fast {
		a, b = max(a, fast[i].End), max(b, slow[i].End)
	}
	require.Less(t, a, b)
}

func TestRunAllocatesNothing(t *testing.T) {
	p := pipeline(4, 8, 3)
	spans, meets := make([]Span, len(p.Tasks)), make([]Time, len(p.Messages))
	e := new(Engine)
	require.NoError(t, e.Run(p, spans, meets))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = e.Run(p, spans, nil) }))
}

func TestProgress(t *testing.T) {
	p := pipeline(4, 8, 3)
	spans := make([]Span, len(p.Tasks))
	var seen []int
	e := &Engine{Every: 100, Progress: func(done, total int) bool {
		require.Equal(t, len(p.Tasks), total)
		seen = append(seen, done)
		return true
	}}
	require.NoError(t, e.Run(p, spans, nil))
	require.Greater(t, len(seen), len(p.Tasks)/150)
	require.IsIncreasing(t, seen)

	calls := 0
	e.Progress = func(int, int) bool { calls++; return calls < 3 }
	require.ErrorIs(t, e.Run(p, spans, nil), ErrStopped)
	require.Equal(t, 3, calls)

	e.Progress = nil
	again := make([]Span, len(p.Tasks))
	require.NoError(t, e.Run(p, again, nil), "a stopped engine can run again")
	want, _ := place(t, p)
	require.Equal(t, want, again)
}
