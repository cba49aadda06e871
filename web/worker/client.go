// Package worker is the page's side of the simulator in its worker: one request at a time, the
// newest wins, and work that nobody waits for any more is ended with its worker.
//
// The client is driven by one thread, the page's: its callbacks run where the browser's events run.
package worker

import (
	"encoding/json"
	"errors"
	"time"

	"distopt/core/report"
	"distopt/wasm/bridge"
)

// Grace is how long a request that is no longer wanted may still run: less than that and waiting
// for it is cheaper than a new worker (20 to 30 ms until the first answer).
const Grace = 100 * time.Millisecond

// Response is the answer to a request.
type Response struct {
	Head  []byte        // JSON
	Spans *report.Spans // of a result, else nil
	Err   error         // *Failure, or that the spans were damaged on the way
}

// Failure is a request that the simulator could not answer.
type Failure struct {
	Text   string
	Report string // for a bug report; "" when the request itself was at fault
}

func (f *Failure) Error() string { return f.Text }

// Client owns one worker. Its hooks are set before the first request.
type Client struct {
	OnProgress func(done float64)          // of the newest request, 0 to 1
	OnStopped  func(reason, report string) // the worker died at work; Restart or a new request starts another

	host    host
	thread  thread
	ready   bool
	lastID  int
	running *job // posted to the worker
	waiting *job // the newest, when it is not running
	lost    *job // was running or waiting when the worker died
}

type job struct {
	id     int
	text   string
	done   func(Response)
	began  time.Duration
	wanted bool
}

// host is what the client needs of the browser.
type host interface {
	spawn(receive func(message)) thread
	after(d time.Duration, f func())
	now() time.Duration
	up() // the first worker is ready
}

// thread is one worker.
type thread interface {
	post(id int, request string)
	terminate()
}

// message is what comes from a worker: one of ready, stopped, progress, an answer.
type message struct {
	ready       bool
	stopped     string
	id          int
	progress    float64
	isProgress  bool
	head        []byte
	spans       *report.Spans
	damage      error // of spans
	err, report string
}

// New returns a client and starts its worker.
func New() *Client { return newClient(browser{}) }

func newClient(h host) *Client {
	c := &Client{host: h}
	c.spawn()
	return c
}

// Request asks the simulator and forgets every earlier request. done is called once, unless a newer
// request, Cancel or the worker's death comes first.
func (c *Client) Request(r bridge.Request, done func(Response)) {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings always marshal
	}
	c.lastID++
	c.lost = nil
	c.waiting = &job{id: c.lastID, text: string(text), done: done, wanted: true}
	if c.thread == nil {
		c.spawn()
	}
	c.next()
}

// Busy reports whether an answer is on its way.
func (c *Client) Busy() bool {
	return c.waiting != nil || c.running != nil && c.running.wanted
}

// Cancel drops the request on its way and ends the work on it.
func (c *Client) Cancel() {
	c.waiting, c.lost = nil, nil
	if c.running != nil {
		c.respawn()
	}
}

// Restart starts a new worker after the last one died, and repeats the request that died with it.
func (c *Client) Restart() {
	c.waiting, c.lost = c.lost, nil
	c.respawn()
}

// next brings the newest request to the worker, at once or when the worker can take it.
func (c *Client) next() {
	if c.waiting == nil || !c.ready {
		return
	}
	if c.running == nil {
		c.running, c.waiting = c.waiting, nil
		c.running.began = c.host.now()
		c.thread.post(c.running.id, c.running.text)
		return
	}
	c.running.wanted = false
	rest := Grace - (c.host.now() - c.running.began)
	if rest <= 0 {
		c.respawn()
		return
	}
	blocked := c.running
	c.host.after(rest, func() {
		if c.running == blocked && !blocked.wanted {
			c.respawn()
		}
	})
}

func (c *Client) respawn() {
	if c.thread != nil {
		c.thread.terminate()
	}
	c.running = nil
	c.spawn()
}

func (c *Client) spawn() {
	c.ready = false
	var mine thread
	mine = c.host.spawn(func(m message) {
		if c.thread == mine {
			c.receive(m)
		}
	})
	c.thread = mine
}

func (c *Client) receive(m message) {
	switch {
	case m.ready:
		c.ready = true
		c.host.up()
		c.next()
	case m.stopped != "":
		c.died(m)
	case c.running == nil || m.id != c.running.id:
	case m.isProgress:
		if c.running.wanted && c.OnProgress != nil {
			c.OnProgress(m.progress)
		}
	default:
		c.answered(m)
	}
}

func (c *Client) answered(m message) {
	job := c.running
	c.running = nil
	c.next()
	if !job.wanted {
		return
	}
	r := Response{Head: m.head, Spans: m.spans, Err: m.damage}
	if m.err != "" {
		r.Err = &Failure{Text: m.err, Report: m.report}
	}
	job.done(r)
}

func (c *Client) died(m message) {
	c.lost = c.waiting
	if c.lost == nil && c.running != nil && c.running.wanted {
		c.lost = c.running
	}
	c.thread.terminate()
	c.thread, c.ready, c.running, c.waiting = nil, false, nil, nil
	if c.lost != nil && c.OnStopped != nil { // else nobody has lost anything: the next request starts a worker
		c.OnStopped(m.stopped, m.report)
	}
}

// IsFailure reports whether err says that the simulator itself is at fault, not the request.
func IsFailure(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Report != ""
}
