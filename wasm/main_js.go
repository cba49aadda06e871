// The program, in one binary with two roles: the page where there is a document, else the
// simulator in a worker. boot.js compiles it once and hands the module to the workers.
package main

import (
	"runtime"
	"runtime/debug"
	"syscall/js"
	"time"

	"distopt/core/report"
	"distopt/wasm/bridge"
	"distopt/web"
)

func main() {
	// There is one thread: a collection is time that the visitor waits. Most configurations use a few
	// MiB, so garbage may be four times that; the limit keeps this from adding up where they do not.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
	if js.Global().Get("document").IsUndefined() {
		serve(js.Global())
		return
	}
	web.Run()
}

// reserve is about what an evaluation of most configurations takes, in bytes.
const reserve = 48 << 20

// grow takes memory from the browser in one piece, which takes a moment each time, and leaves it to
// what follows. Memory that nothing has written to yet is only a number.
func grow() {
	runtime.KeepAlive(make([]byte, reserve))
	runtime.GC()
	runtime.GC() // what a collection is under way for outlives that one
}

// serve answers the page's messages {id, request} with {id, progress}, and last {id, head, spans}
// or {id, err, report}. head and spans are ArrayBuffers, transferred.
func serve(self js.Value) {
	grow()
	var simulator bridge.Bridge
	practice := practice{self: self, simulator: &simulator}
	practice.again = js.FuncOf(func(js.Value, []js.Value) any { practice.once(); return nil })
	self.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		practice.stop()
		message := args[0].Get("data")
		id, request := message.Get("id"), []byte(message.Get("request").String())
		reply := map[string]any{"id": id}
		began := time.Now()
		head, spans, err := simulator.Handle(request, func(done float64) {
			self.Call("postMessage", map[string]any{"id": id, "progress": done})
		})
		if err != nil {
			reply["err"], reply["report"] = err.Error(), bridge.Report(err)
			self.Call("postMessage", reply)
			return nil
		}
		headBuffer, spansBuffer := buffer(head), block(spans)
		reply["head"], reply["spans"] = headBuffer, spansBuffer
		self.Call("postMessage", reply, []any{headBuffer, spansBuffer})
		if spans != nil {
			practice.start(request, time.Since(began))
		}
		return nil
	}))
	self.Call("postMessage", map[string]any{"ready": true})
	select {}
}

// practice makes the browser compile the simulator well before the visitor's first edit: it begins
// with code that is compiled in haste, three times slower, and replaces what has run often. So an idle
// worker answers its last request again, a few times in its life, to nobody.
type practice struct {
	self      js.Value
	simulator *bridge.Bridge
	again     js.Func
	timer     js.Value
	request   []byte
	done      int
}

const (
	practices    = 30                    // in the life of a worker
	practiceWait = 300                   // ms of idleness before the first
	practiceMost = 50 * time.Millisecond // a request that takes longer warms up by itself
)

func (p *practice) start(request []byte, took time.Duration) {
	if p.request = request; p.done < practices && took < practiceMost {
		p.timer = p.self.Call("setTimeout", p.again, practiceWait)
	}
}

func (p *practice) stop() {
	if p.timer.Truthy() {
		p.self.Call("clearTimeout", p.timer)
		p.timer = js.Undefined()
	}
}

// once evaluates and comes back after whatever has arrived meanwhile.
func (p *practice) once() {
	_, _, err := p.simulator.Handle(p.request, func(float64) {})
	if p.done++; p.done < practices && err == nil {
		p.timer = p.self.Call("setTimeout", p.again, 0)
	}
}

// block returns an ArrayBuffer with spans as report.Spans.Encode writes them, empty for nil.
func block(spans *report.Spans) js.Value {
	if spans == nil {
		return buffer(nil)
	}
	arrays := bridge.Arrays(spans)
	parts := append([][]byte{spans.Header()}, arrays[:]...)
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	array := js.Global().Get("Uint8Array").New(length)
	at := 0
	for _, part := range parts {
		js.CopyBytesToJS(array.Call("subarray", at), part)
		at += len(part)
	}
	return array.Get("buffer")
}

// buffer returns an ArrayBuffer with a copy of data.
func buffer(data []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(array, data)
	return array.Get("buffer")
}
