package worker

import (
	"time"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/report"
	"distopt/wasm/bridge"
)

// browser is the host that boot.js offers as `distopt`. Outside a browser every call is a no-op:
// no worker ever gets ready.
type browser struct{}

func (browser) spawn(receive func(message)) thread {
	onMessage := app.FuncOf(func(_ app.Value, args []app.Value) any {
		receive(decode(args[0]))
		return nil
	})
	return &process{
		worker:    app.Window().Get("distopt").Call("spawn", onMessage),
		onMessage: onMessage,
	}
}

func (browser) after(d time.Duration, f func()) {
	var once app.Func
	once = app.FuncOf(func(app.Value, []app.Value) any {
		once.Release()
		f()
		return nil
	})
	app.Window().Call("setTimeout", once, d.Milliseconds())
}

func (browser) now() time.Duration {
	ms := app.Window().Get("performance").Call("now").Float()
	return time.Duration(ms * float64(time.Millisecond))
}

func (browser) up() {
	app.Window().Get("document").Get("documentElement").Get("dataset").Set("ready", "1")
}

type process struct {
	worker    app.Value
	onMessage app.Func
}

func (p *process) post(id int, request string) {
	p.worker.Call("postMessage", map[string]any{"id": id, "request": request})
}

func (p *process) terminate() {
	p.worker.Call("terminate")
	p.worker.Set("onmessage", app.Null())
	p.worker.Set("onerror", app.Null())
	p.onMessage.Release()
}

func decode(v app.Value) message {
	if v.Get("ready").Truthy() {
		return message{ready: true}
	}
	if reason := v.Get("stopped"); reason.Truthy() {
		return message{stopped: reason.String(), report: v.Get("report").String()}
	}
	m := message{id: v.Get("id").Int()}
	if progress := v.Get("progress"); !progress.IsUndefined() {
		m.isProgress, m.progress = true, progress.Float()
		return m
	}
	if err := v.Get("err"); !err.IsUndefined() {
		m.err, m.report = err.String(), v.Get("report").String()
		return m
	}
	m.head = content(v.Get("head"))
	m.spans, m.damage = spans(v.Get("spans"))
	return m
}

// spans copies the arrays of a block, each to its place.
func spans(buffer app.Value) (*report.Spans, error) {
	array := app.Window().Get("Uint8Array").New(buffer)
	length := array.Length()
	if length == 0 {
		return nil, nil
	}
	header := new(report.Spans).Header()
	app.CopyBytesToGo(header, array)
	s, err := report.Empty(header, length)
	if err != nil {
		return nil, err
	}
	at := len(header)
	for _, a := range bridge.Arrays(&s) {
		app.CopyBytesToGo(a, array.Call("subarray", at))
		at += len(a)
	}
	return &s, s.Check()
}

// content copies an ArrayBuffer.
func content(buffer app.Value) []byte {
	array := app.Window().Get("Uint8Array").New(buffer)
	data := make([]byte, array.Length())
	app.CopyBytesToGo(data, array)
	return data
}
