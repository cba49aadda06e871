package step_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/optim"
	"distopt/core/step"
)

// restated is the schedule of one stage told a second time, as the specification writes it down:
// iterations by number, what a neighbour has made at the time instead of what is used next.
type restated struct {
	p, stages, chunks, micros int
	batched                   bool
	lines                     []string
	batch, request            int
	noSync                    bool
}

func (x *restated) say(format string, args ...any) {
	x.lines = append(x.lines, fmt.Sprintf(format, args...))
}

func (x *restated) setNoSync(on bool) {
	if x.noSync != on {
		x.noSync = on
		x.say("no_sync %t", on)
	}
}

// sent is a message "send_forward 3 1": kind, microbatch, chunk.
func sent(kind string, micro, chunk int) string { return fmt.Sprintf("%s %d %d", kind, micro, chunk) }

// call makes a call; messages that do not exist are "".
func (x *restated) call(messages ...string) (requests []int) {
	messages = slices.DeleteFunc(messages, func(m string) bool { return m == "" })
	if x.batched {
		if len(messages) > 0 {
			x.batch++
		}
		for _, m := range messages {
			x.say("%s in batch %d", m, x.batch)
		}
		x.say("device_sync")
		return nil
	}
	kinds := []string{"send_forward", "recv_forward", "send_backward", "recv_backward"}
	if x.p%2 == 1 {
		kinds = []string{"recv_forward", "send_forward", "recv_backward", "send_backward"}
	}
	for _, kind := range kinds {
		for _, m := range messages {
			if m[:len(kind)] == kind {
				x.request++
				x.say("%s as request %d", m, x.request)
				requests = append(requests, x.request)
			}
		}
	}
	return requests
}

func (x *restated) wait(requests []int) {
	for _, q := range requests {
		x.say("wait %d", q)
	}
}

func (x *restated) callAndWait(messages ...string) { x.wait(x.call(messages...)) }

// ifAny is a call that is not made without messages.
func (x *restated) ifAny(messages ...string) {
	if slices.ContainsFunc(messages, func(m string) bool { return m != "" }) {
		x.callAndWait(messages...)
	}
}

func (x *restated) pass(kind string, micro, chunk int) { x.say("%s %d %d", kind, micro, chunk) }

func (x *restated) plain() {
	first, last := x.p == 0, x.p == x.stages-1
	message := func(exists bool, kind string, micro int) string {
		if !exists {
			return ""
		}
		return sent(kind, micro, 0)
	}
	rf := func(i int) string { return message(!first, "recv_forward", i) }
	sf := func(i int) string { return message(!last, "send_forward", i) }
	rb := func(i int) string { return message(!last, "recv_backward", i) }
	sb := func(i int) string { return message(!first, "send_backward", i) }
	x.setNoSync(true)
	warmup := min(x.stages-x.p-1, x.micros)
	for i := range warmup {
		x.ifAny(rf(i))
		x.pass("F", i, 0)
		x.ifAny(sf(i))
	}
	left := x.micros - warmup
	if left > 0 {
		x.ifAny(rf(warmup))
	}
	for i := range left {
		x.pass("F", warmup+i, 0)
		x.ifAny(sf(warmup+i), rb(i))
		x.pass("B", i, 0)
		if i < left-1 {
			x.ifAny(sb(i), rf(warmup+i+1))
		} else {
			x.ifAny(sb(i))
		}
	}
	for i := left; i < x.micros; i++ {
		if first && i == x.micros-1 {
			x.setNoSync(false)
		}
		x.ifAny(rb(i))
		x.pass("B", i, 0)
		x.ifAny(sb(i))
	}
	if !first {
		x.setNoSync(false)
		x.say("grad_sync_func 0")
	}
}

func (x *restated) interleaved() {
	P, V, p := x.stages, x.chunks, x.p
	G, total := P*V, x.micros*V
	micro := func(k int) int { return k/G*P + k%P }
	fc := func(k int) int { return k % G / P }
	bc := func(k int) int { return V - 1 - fc(k) }
	first := func(k int) bool { return k < G && k%G%P == 0 }
	last := func(k int) bool { return k/G == total/G-1 && k%G%P == P-1 }

	// What is received after forward q and backward k: on inner stages for the next iteration.
	rf := func(q int) string {
		switch made := q - (P - 1); {
		case q == total-1:
			return ""
		case p > 0:
			return sent("recv_forward", micro(q+1), fc(q+1))
		case made < 0 || fc(made) == V-1:
			return ""
		default:
			return sent("recv_forward", micro(made), fc(made)+1)
		}
	}
	rb := func(k int) string {
		switch made := k - (P - 1); {
		case k == total-1:
			return ""
		case p < P-1:
			return sent("recv_backward", micro(k+1), bc(k+1))
		case made < 0 || bc(made) == 0:
			return ""
		default:
			return sent("recv_backward", micro(made), bc(made)-1)
		}
	}
	sf := func(k int) string {
		if p == P-1 && fc(k) == V-1 {
			return ""
		}
		return sent("send_forward", micro(k), fc(k))
	}
	sb := func(k int) string {
		if p == 0 && bc(k) == 0 {
			return ""
		}
		return sent("send_backward", micro(k), bc(k))
	}
	done := map[int]bool{}
	F := func(k int) {
		if j := k + p; j < total && first(j) {
			if c := fc(j) + 1; 1 < c && c < V {
				x.say("param_sync_func %d", c)
			}
		}
		x.pass("F", micro(k), fc(k))
	}
	B := func(k int) {
		x.pass("B", micro(k), bc(k))
		if j := k - p; j >= 0 && last(j) {
			x.setNoSync(false)
			x.say("grad_sync_func %d", bc(j))
			done[bc(j)] = true
			x.setNoSync(true)
		}
	}

	x.setNoSync(true)
	x.say("param_sync_func 0")
	x.say("param_sync_func 1")
	warmup := total
	if x.micros != P {
		warmup = min(2*(P-p-1)+(V-1)*P, total)
	}
	if p > 0 {
		x.callAndWait(sent("recv_forward", 0, 0))
	}
	firstGradient := ""
	if p < P-1 {
		firstGradient = sent("recv_backward", 0, V-1)
	}
	var fwd, bwd []int
	for k := range warmup {
		x.wait(fwd)
		F(k)
		atLast := k == warmup-1 && x.micros != P
		switch {
		case x.batched && atLast:
			x.call(rf(k), sf(k), firstGradient)
		case x.batched:
			x.call(rf(k), sf(k))
		default:
			fwd = x.call(rf(k), sf(k))
			if atLast {
				bwd = x.call(firstGradient)
			}
		}
	}
	for k := range total - warmup {
		if x.batched {
			F(warmup + k)
			B(k)
			x.call(sb(k), rf(warmup+k), sf(warmup+k), rb(k))
			continue
		}
		x.wait(fwd)
		F(warmup + k)
		fwd = x.call(sf(warmup+k), rf(warmup+k))
		x.wait(bwd)
		B(k)
		bwd = x.call(sb(k), rb(k))
	}
	x.wait(bwd)
	if x.micros == P && p < P-1 {
		x.callAndWait(firstGradient)
	}
	for k := total - warmup; k < total; k++ {
		B(k)
		x.callAndWait(sb(k), rb(k))
	}
	x.setNoSync(false)
	for c := range V {
		if !done[c] {
			x.say("grad_sync_func %d", c)
		}
	}
}

// watcher writes down what a stage does in whole steps, in the form of restated. Its optimizer is
// idle but for telling of its callbacks.
type watcher struct {
	idle
	lines []string
}

func (w *watcher) Event(at step.At, e *optim.Event) {
	if at.Step != 0 {
		return
	}
	line := ""
	switch e.Op {
	case "forward_step":
		line = fmt.Sprintf("F %d %d", e.Micro, e.Chunk)
	case "backward_step":
		line = fmt.Sprintf("B %d %d", e.Micro, e.Chunk)
	case "no_sync":
		line = fmt.Sprintf("no_sync %t", e.On == 1)
	case "device_sync":
		line = "device_sync"
	case "p2p_wait":
		line = fmt.Sprintf("wait %d", e.Request)
	case "send_forward", "recv_forward", "send_backward", "recv_backward":
		line = sent(string(e.Op), e.Micro, e.Chunk)
		if e.Batch > 0 {
			line += fmt.Sprintf(" in batch %d", e.Batch)
		} else {
			line += fmt.Sprintf(" as request %d", e.Request)
		}
	default:
		return
	}
	w.lines = append(w.lines, line)
}

func (w *watcher) GradSyncFunc(c int) { w.lines = append(w.lines, fmt.Sprintf("grad_sync_func %d", c)) }
func (w *watcher) ParamSyncFunc(c int) {
	w.lines = append(w.lines, fmt.Sprintf("param_sync_func %d", c))
}

// Every stage of every pipeline runs the schedule as told the second time.
func TestRestatedSchedules(t *testing.T) {
	for stages := 2; stages <= 6; stages++ {
		for chunks := 1; chunks <= 4; chunks++ {
			for micros := 1; micros <= 3*stages; micros++ {
				if chunks > 1 && micros%stages > 0 {
					continue
				}
				for _, overlap := range []bool{false, true} {
					if overlap && chunks == 1 {
						continue
					}
					all := pipeline(t, stages, chunks)
					logs := make([][]string, stages)
					for p := range stages {
						w := &watcher{}
						in := all[p]
						in.New = func(optim.Runtime, optim.Observer) (optim.Sharded, error) { return w, nil }
						require.NoError(t, step.RunStage(in, config(micros, overlap), step.Replay{World: stages, Rank: p, Steps: 1, Observer: w}))
						x := &restated{p: p, stages: stages, chunks: chunks, micros: micros, batched: !overlap}
						if chunks > 1 {
							x.interleaved()
						} else {
							x.plain()
						}
						// The callbacks of the step that only begins follow.
						require.Equal(t, x.lines, w.lines[:min(len(x.lines), len(w.lines))], "stage %d of %d, %d chunks, %d microbatches, overlap %t", p, stages, chunks, micros, overlap)
						logs[p] = x.lines
					}
					requirePairs(t, logs, chunks)
				}
			}
		}
	}
}

// requirePairs matches what neighbours send and receive: the n-th send of one meets the n-th receive
// of the other. Between two stages forward and backward messages go the same way, and interleaved
// batches do not list them in the same order: that is why Megatron refuses it.
func requirePairs(t *testing.T, logs [][]string, chunks int) {
	t.Helper()
	stages := len(logs)
	type end struct {
		from, to int
		only     string
	}
	way := func(from, to int, kind string) end {
		if stages > 2 || chunks == 1 {
			kind = ""
		}
		return end{from, to, kind}
	}
	sends, receives := map[end][]string{}, map[end][]string{}
	for p, lines := range logs {
		for _, line := range lines {
			var kind string
			var micro, c int
			if n, _ := fmt.Sscanf(line, "%s %d %d", &kind, &micro, &c); n < 3 {
				continue
			}
			virtual := c*stages + p
			switch kind {
			case "send_forward":
				to := (virtual + 1) % stages
				e := way(p, to, "forward")
				sends[e] = append(sends[e], fmt.Sprint("forward ", micro, virtual+1))
			case "send_backward":
				to := (virtual - 1) % stages
				e := way(p, to, "backward")
				sends[e] = append(sends[e], fmt.Sprint("backward ", micro, virtual-1))
			case "recv_forward":
				from := (virtual - 1) % stages
				e := way(from, p, "forward")
				receives[e] = append(receives[e], fmt.Sprint("forward ", micro, virtual))
			case "recv_backward":
				from := (virtual + 1) % stages
				e := way(from, p, "backward")
				receives[e] = append(receives[e], fmt.Sprint("backward ", micro, virtual))
			}
		}
	}
	require.Equal(t, sends, receives, "%d stages, %d chunks", stages, chunks)
}
