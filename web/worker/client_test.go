package worker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/wasm/bridge"
)

// fakeHost has a clock that only the test moves, and workers that only the test lets speak.
type fakeHost struct {
	clock   time.Duration
	timers  []fakeTimer
	threads []*fakeThread
	ups     int
}

type fakeTimer struct {
	at time.Duration
	f  func()
}

type fakeThread struct {
	receive func(message)
	posted  []bridge.Request
	ids     []int
	ended   bool
}

func (h *fakeHost) spawn(receive func(message)) thread {
	t := &fakeThread{receive: receive}
	h.threads = append(h.threads, t)
	return t
}

func (h *fakeHost) after(d time.Duration, f func()) {
	h.timers = append(h.timers, fakeTimer{h.clock + d, f})
}

func (h *fakeHost) now() time.Duration { return h.clock }

func (h *fakeHost) up() { h.ups++ }

// pass lets time go by.
func (h *fakeHost) pass(d time.Duration) {
	h.clock += d
	due := h.timers
	h.timers = nil
	for _, t := range due {
		if t.at <= h.clock {
			t.f()
		} else {
			h.timers = append(h.timers, t)
		}
	}
}

func (h *fakeHost) last() *fakeThread { return h.threads[len(h.threads)-1] }

func (t *fakeThread) post(id int, request string) {
	var r bridge.Request
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		panic(err)
	}
	t.ids, t.posted = append(t.ids, id), append(t.posted, r)
}

func (t *fakeThread) terminate() { t.ended = true }

func (t *fakeThread) ready() { t.receive(message{ready: true}) }

// answer answers the last request that was posted.
func (t *fakeThread) answer(head string) {
	t.receive(message{id: t.ids[len(t.ids)-1], head: []byte(head), spans: &report.Spans{}})
}

// start returns a client whose first worker is ready, and what its callbacks were told.
func start(t *testing.T) (*Client, *fakeHost, *heard) {
	t.Helper()
	h, said := &fakeHost{}, &heard{}
	c := newClient(h)
	c.OnProgress = func(done float64) { said.progress = append(said.progress, done) }
	c.OnStopped = func(reason, report string) { said.stopped = append(said.stopped, reason+"|"+report) }
	h.last().ready()
	return c, h, said
}

type heard struct {
	answers  []string
	errors   []error
	progress []float64
	stopped  []string
}

func (h *heard) done(r Response) {
	h.answers, h.errors = append(h.answers, string(r.Head)), append(h.errors, r.Err)
}

func doc(text string) bridge.Request { return bridge.Request{Op: bridge.Eval, A: text} }

func TestRequestWaitsForTheWorker(t *testing.T) {
	h, said := &fakeHost{}, &heard{}
	c := newClient(h)
	c.Request(doc("a"), said.done)
	require.Empty(t, h.last().posted)
	require.True(t, c.Busy())

	h.last().ready()
	require.Equal(t, []bridge.Request{doc("a")}, h.last().posted)
	require.Equal(t, 1, h.ups)

	h.last().answer("A")
	require.Equal(t, []string{"A"}, said.answers)
	require.False(t, c.Busy())
}

func TestNewestWins(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	c.Request(doc("b"), said.done)
	c.Request(doc("c"), said.done)
	require.Equal(t, []bridge.Request{doc("a")}, h.last().posted, "one at a time")

	h.pass(Grace / 2)
	h.last().answer("A")
	require.Empty(t, said.answers, "nobody waits for a any more")
	require.Equal(t, []bridge.Request{doc("a"), doc("c")}, h.last().posted, "b was never worth posting")

	h.last().answer("C")
	require.Equal(t, []string{"C"}, said.answers)
	require.Len(t, h.threads, 1)
}

func TestUnwantedWorkEndsAfterGrace(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	h.pass(Grace / 4)
	c.Request(doc("b"), said.done)
	h.pass(Grace / 2)
	require.Len(t, h.threads, 1)
	h.pass(Grace / 4)
	require.Len(t, h.threads, 2, "a has had its time")
	require.True(t, h.threads[0].ended)

	h.threads[0].answer("A") // too late
	h.last().ready()
	h.last().answer("B")
	require.Equal(t, []string{"B"}, said.answers)
}

func TestUnwantedWorkPastGraceEndsAtOnce(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	h.pass(Grace)
	c.Request(doc("b"), said.done)
	require.Len(t, h.threads, 2)
	h.last().ready()
	require.Equal(t, []bridge.Request{doc("b")}, h.last().posted)
}

func TestLateTimerLeavesNewWorkAlone(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	c.Request(doc("b"), said.done)
	h.last().answer("A")
	h.pass(10 * Grace) // b is wanted, however long it takes
	require.Len(t, h.threads, 1)
	h.last().answer("B")
	require.Equal(t, []string{"B"}, said.answers)
}

func TestCancel(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	c.Cancel()
	require.False(t, c.Busy())
	require.Len(t, h.threads, 2)
	require.True(t, h.threads[0].ended)

	h.last().ready()
	require.Empty(t, h.last().posted)
	c.Cancel()
	require.Len(t, h.threads, 2, "nothing runs: nothing to end")
	require.Empty(t, said.answers)
}

func TestProgressOfTheNewestOnly(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	h.last().receive(message{id: h.last().ids[0], isProgress: true, progress: 0.25})
	c.Request(doc("b"), said.done)
	h.last().receive(message{id: h.last().ids[0], isProgress: true, progress: 0.5})
	require.Equal(t, []float64{0.25}, said.progress)
}

func TestFailure(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	h.last().receive(message{id: 1, err: "internal error: x", report: "stack"})
	require.EqualError(t, said.errors[0], "internal error: x")
	require.True(t, IsFailure(said.errors[0]))
	require.False(t, c.Busy())
}

func TestWorkerDiesAndComesBack(t *testing.T) {
	c, h, said := start(t)
	c.Request(doc("a"), said.done)
	h.last().receive(message{stopped: "exit code 2", report: "panic"})
	require.Equal(t, []string{"exit code 2|panic"}, said.stopped)
	require.False(t, c.Busy())
	require.True(t, h.threads[0].ended)

	c.Restart()
	require.True(t, c.Busy(), "the request that died with its worker is repeated")
	h.last().ready()
	h.last().answer("A")
	require.Equal(t, []string{"A"}, said.answers)
}

func TestRequestAfterDeathStartsAWorker(t *testing.T) {
	c, h, said := start(t)
	h.last().receive(message{stopped: "out of memory"})
	require.Empty(t, said.stopped, "nothing is lost when an idle worker dies")
	c.Request(doc("b"), said.done)
	require.Len(t, h.threads, 2)
	h.last().ready()
	require.Equal(t, []bridge.Request{doc("b")}, h.last().posted)
	h.threads[0].receive(message{stopped: "again"})
	require.Empty(t, said.stopped, "a worker that is gone has no say")
}

// Outside a browser nothing answers, and nothing fails.
func TestNewNatively(t *testing.T) {
	c := New()
	c.Request(doc("a"), func(Response) { t.Fatal("answered") })
	c.Cancel()
	c.Restart()
}
