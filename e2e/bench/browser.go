package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/chromedp/chromedp"

	"distopt/core/report"
	"distopt/e2e/chrome"
	"distopt/web/ids"
)

// spy notes when requests leave for a worker and answers come back.
const spy = `{ const Real = Worker;
globalThis.bench = { trips: [], workers: [] };
globalThis.Worker = class extends Real {
	constructor(...a) {
		super(...a);
		bench.workers.push(this);
		this.addEventListener("message", ({ data }) => {
			if (data.head && data.id > 0) bench.trips.push({ ms: performance.now() - this.sent, spans: data.spans.byteLength });
		});
	}
	postMessage(message, ...rest) {
		if (message.request) this.sent = performance.now();
		super.postMessage(message, ...rest);
	}
};
// shown resolves with the time until the next result is on screen.
bench.shown = (edit) => new Promise((done) => {
	const began = performance.now(), trips = bench.trips.length;
	new MutationObserver((_, o) => { o.disconnect(); done({ ms: performance.now() - began, worker: Math.max(...bench.trips.slice(trips).map(t => t.ms)) }); })
		.observe(document.documentElement, { attributeFilter: ["` + ids.AttrShown + `"] });
	edit();
});
bench.field = (path, value) => { const f = document.querySelector('[` + ids.AttrField + `="' + path + '"]'); f.value = value; f.dispatchEvent(new Event("input", { bubbles: true })); };
bench.preset = (id) => { const f = document.getElementById("` + ids.Preset + `"); f.value = id; f.dispatchEvent(new Event("change", { bubbles: true })); };
// memory resolves with the largest linear memory of a worker, in bytes.
bench.memory = () => Promise.all(bench.workers.map((w) => new Promise((done) => {
	const hear = ({ data }) => { if (data.id === -7) { w.removeEventListener("message", hear); done(JSON.parse(new TextDecoder().decode(data.head))); } };
	w.addEventListener("message", hear);
	w.postMessage({ id: -7, request: '{"op":"memory"}' });
	setTimeout(done, 5000, 0); // a worker that was ended
}))).then((all) => Math.max(...all));
// pan zooms the timeline in by some turns of the wheel, moves it for some seconds and resolves with the
// times between frames.
bench.pan = (seconds, turns) => new Promise((done) => {
	const canvas = document.getElementById("` + ids.Canvas + `"), box = canvas.getBoundingClientRect();
	const wheel = (x, y, ctrl) => canvas.dispatchEvent(new WheelEvent("wheel", { deltaX: x, deltaY: y, ctrlKey: ctrl, bubbles: true, cancelable: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
	for (let i = 0; i < turns; i++) wheel(0, -240, true);
	const times = [], began = performance.now(); let last = began, n = 0;
	requestAnimationFrame(function frame(now) {
		times.push(now - last); last = now;
		wheel(++n % 120 < 60 ? 25 : -25, 0, false);
		if (now - began < 1000 * seconds) requestAnimationFrame(frame); else done(times.slice(5));
	});
});
}`

type edit struct {
	MS     float64 `json:"ms"`
	Worker float64 `json:"worker"`
}

// inBrowser measures the built site in headless Chromium.
func inBrowser() ([]row, error) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	go http.Serve(listener, http.FileServer(http.Dir("dist")))
	browser, err := chrome.Start()
	if err != nil {
		return nil, err
	}
	defer browser.Close()
	tab, err := browser.Open(spy)
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	if err := tab.Do(chromedp.Navigate("http://" + listener.Addr().String() + "/")); err != nil {
		return nil, err
	}
	if err := tab.Wait(`Number(document.documentElement.getAttribute("` + ids.AttrShown + `")) >= 2`); err != nil {
		return nil, err
	}
	var rows []row
	for _, part := range []func(*chrome.Tab) ([]row, error){start, edits, megatronEdits, largestPreset, panning} {
		found, err := part(tab)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

func start(tab *chrome.Tab) ([]row, error) {
	first, err := chrome.Eval[float64](tab, `bench.trips[0].ms`)
	if err != nil {
		return nil, err
	}
	return []row{{"first answer after start, opening preset, browser", "", fmt.Sprintf("%.0f ms", first)}}, nil
}

// warm is how many edits come before those that are measured: browsers begin with code that is
// compiled in haste, and replace it by and by.
const warm = 10

func edits(tab *chrome.Tab) ([]row, error) {
	return edited(tab, "opening preset", "model.optim.bucket_cap_mb", 380)
}

func megatronEdits(tab *chrome.Tab) ([]row, error) {
	if _, err := chrome.Eval[edit](tab, fmt.Sprintf(`bench.shown(() => bench.preset(%q))`, megatron)); err != nil {
		return nil, err
	}
	return edited(tab, "the same on Megatron-Core", "model.optim.ddp_bucket_size", 40_000_000)
}

// edited sets a field of what is shown, again and again, to other values from first on.
func edited(tab *chrome.Tab, what, path string, first int) ([]row, error) {
	var whole, worker []float64
	for i := range warm + runs {
		e, err := chrome.Eval[edit](tab, fmt.Sprintf(`bench.shown(() => bench.field(%q, %d))`, path, first+i))
		if err != nil {
			return nil, err
		}
		if i >= warm {
			whole, worker = append(whole, e.MS), append(worker, e.Worker)
		}
	}
	return []row{
		{"edit to answer, " + what + ", browser", "50 ms with the draw", fmt.Sprintf("%.1f ms", median(worker))},
		{"edit to picture on screen, " + what + ", browser", "", fmt.Sprintf("%.1f ms", median(whole))},
	}, nil
}

func largestPreset(tab *chrome.Tab) ([]row, error) {
	var whole, worker []float64
	for i := range warm + runs {
		change := fmt.Sprintf(`bench.preset(%q)`, largest)
		if i > 0 {
			change = fmt.Sprintf(`bench.field("model.optim.bucket_cap_mb", %d)`, 200+i)
		}
		e, err := chrome.Eval[edit](tab, `bench.shown(() => `+change+`)`)
		if err != nil {
			return nil, err
		}
		if i >= warm {
			whole, worker = append(whole, e.MS), append(worker, e.Worker)
		}
	}
	bytes, err := chrome.Eval[float64](tab, `bench.memory()`)
	if err != nil {
		return nil, err
	}
	return []row{
		{"edit to answer, largest preset, browser", "500 ms", fmt.Sprintf("%.0f ms", median(worker))},
		{"edit to picture on screen, largest preset, browser", "", fmt.Sprintf("%.0f ms", median(whole))},
		{"memory of the worker after it", "1024 MiB", fmt.Sprintf("%.0f MiB", bytes/(1<<20))},
	}, nil
}

// panning shows the largest preset before and after the change on one axis: more than a million spans.
// It pans over a view of the whole width of a few pixels less than all, where a pixel holds the most
// spans, and deep inside.
func panning(tab *chrome.Tab) ([]row, error) {
	spans, err := chrome.Eval[float64](tab, `(async () => {
	const before = bench.trips.length;
	await bench.shown(() => document.getElementById("`+ids.Compare+`").click());
	while (bench.trips.length < before + 1) await new Promise((done) => setTimeout(done, 100));
	await new Promise((done) => setTimeout(done, 2000));
	return (bench.trips.at(-1).spans + bench.trips[before - 1].spans) / `+strconv.Itoa(report.SpanBytes)+`;
})()`)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, view := range []struct {
		what  string
		turns int
	}{{"most of them in view", 1}, {"a fifth in view", 2}, {"deep inside", 8}} {
		frames, err := chrome.Eval[[]float64](tab, fmt.Sprintf(`bench.pan(4, %d)`, view.turns))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			fmt.Sprintf("panning over %.2f million spans, %s, browser", spans/1e6, view.what), "60 frames a second",
			fmt.Sprintf("%.1f frames a second, the slowest of 20 after %.0f ms", 1000/mean(frames), slowest(frames)),
		})
	}
	return rows, nil
}

// slowest returns the time that one frame of twenty takes longer than.
func slowest(frames []float64) float64 {
	frames = slices.Sorted(slices.Values(frames))
	return frames[len(frames)*19/20]
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}
