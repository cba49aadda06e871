// Package bridge is the simulator behind bytes: a request comes in as JSON, an answer goes out as a
// JSON head and spans. It is pure Go, so that everything that the worker does is tested natively; the
// worker adds only the transport. An answer depends on its request alone.
//
// A request is untrusted: it is bounded before it is decoded, and whatever happens while it is
// handled, a panic included, comes back as an error.
package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"

	"distopt/core/eval"
	"distopt/core/lab"
	"distopt/core/report"
)

// MaxRequest bounds a request in bytes: a document of 2 MiB, every character escaped as \u00xx.
const MaxRequest = 13 << 20

// The kinds of request.
const (
	Ping    = "ping"    // answers "pong"
	Memory  = "memory"  // answers the bytes of memory that the simulator holds
	Eval    = "eval"    // answers the report.Result of document A, with its spans
	Lab     = "lab"     // answers the lab.Frame after some more steps of a run
	Inspect = "inspect" // answers the lab.Inspection of a number
)

// Request is what the page asks for.
type Request struct {
	Op string `json:"op"`
	A  string `json:"a,omitempty"` // a document as the visitor typed it

	Lab     *lab.Request  `json:"lab,omitempty"`
	Inspect *lab.Question `json:"inspect,omitempty"`
}

// Progress is told how much of a request is done, from 0 to 1.
type Progress func(done float64)

// Bridge answers requests one after the other. It keeps the simulator's memory between them, and the
// last run of the lab, of which the next request wants more. The zero value is ready.
type Bridge struct {
	simulator eval.Simulator
	session   *lab.Session
	head      []byte         // of a result, as last encoded
	result    *report.Result // the last: the next one takes the memory of its spans
}

// op handles one kind of request. head is marshalled as JSON.
type op func(b *Bridge, r Request, progress Progress) (head any, spans *report.Spans, err error)

// ops are the kinds of request by name.
var ops = map[string]op{
	Ping:    func(*Bridge, Request, Progress) (any, *report.Spans, error) { return "pong", nil, nil },
	Memory:  func(*Bridge, Request, Progress) (any, *report.Spans, error) { return held(), nil, nil },
	Eval:    (*Bridge).eval,
	Lab:     (*Bridge).lab,
	Inspect: (*Bridge).inspect,
}

// Handle answers one request, spans being nil unless it was to evaluate. The answer stays as it is
// until the next request.
func (b *Bridge) Handle(request []byte, progress Progress) (head []byte, spans *report.Spans, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			*b = Bridge{} // whatever it was in the middle of
			head, spans, err = nil, nil, &Panic{Cause: cause, Request: brief(request), Stack: debug.Stack()}
		}
	}()
	r, err := decode(request)
	if err != nil {
		return nil, nil, err
	}
	handle, ok := ops[r.Op]
	if !ok {
		return nil, nil, fmt.Errorf("op: got %q, want one of %q", r.Op, slices.Sorted(maps.Keys(ops)))
	}
	answer, spans, err := handle(b, r, progress)
	if err != nil {
		return nil, nil, err
	}
	if r, ok := answer.(*report.Result); ok {
		b.head, err = r.EncodeHead(b.head)
		head = b.head
	} else {
		head, err = json.Marshal(answer)
	}
	return head, spans, err
}

func decode(request []byte) (r Request, err error) {
	if len(request) > MaxRequest {
		return r, fmt.Errorf("request: got %d bytes, want at most %d; shorten the document", len(request), MaxRequest)
	}
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("request: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Request{}, errors.New("request: want one JSON object and nothing after it")
	}
	return r, nil
}

// Panic is a bug of ours that a request has met.
type Panic struct {
	Cause   any
	Request []byte // its beginning, to find the case again
	Stack   []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("internal error: %v", p.Cause) }

// Report returns what a bug report needs beside the error's text: "" unless err is a Panic.
func Report(err error) string {
	var p *Panic
	if !errors.As(err, &p) {
		return ""
	}
	return fmt.Sprintf("%v\n\nrequest: %s\n\n%s", p, p.Request, p.Stack)
}

// held returns the bytes of memory taken from the system; in WebAssembly, the linear memory.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

// brief cuts a request to what a report can hold.
func brief(request []byte) []byte {
	const most = 8 << 10
	if len(request) <= most {
		return bytes.Clone(request)
	}
	return fmt.Appendf(bytes.Clone(request[:most]), "… (%d bytes in all)", len(request))
}
