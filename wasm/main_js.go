// The program, in one binary with two roles: the page where there is a document, else the
// simulator in a worker. boot.js compiles it once and hands the module to the workers.
package main

import (
	"runtime"
	"runtime/debug"
	"syscall/js"

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
	var simulator bridge.Bridge
	grow()
	self.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		message := args[0].Get("data")
		id := message.Get("id")
		reply := map[string]any{"id": id}
		head, spans, err := simulator.Handle([]byte(message.Get("request").String()), func(done float64) {
			self.Call("postMessage", map[string]any{"id": id, "progress": done})
		})
		if err != nil {
			reply["err"], reply["report"] = err.Error(), bridge.Report(err)
			self.Call("postMessage", reply)
			return nil
		}
		headBuffer, spansBuffer := buffer(head), buffer(spans)
		reply["head"], reply["spans"] = headBuffer, spansBuffer
		self.Call("postMessage", reply, []any{headBuffer, spansBuffer})
		return nil
	}))
	self.Call("postMessage", map[string]any{"ready": true})
	select {}
}

// buffer returns an ArrayBuffer with a copy of data.
func buffer(data []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(array, data)
	return array.Get("buffer")
}
