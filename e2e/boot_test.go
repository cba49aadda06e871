package e2e

import (
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"distopt/web/ids"
)

func TestOpensUnderAnyPath(t *testing.T) {
	dir := site(t)
	for _, c := range []struct{ prefix, rest string }{
		{"/", ""},
		{"/", "index.html?x=%zz"},
		{"/some/repo/", ""},
		{"/some/repo/", "index.html"},
		{"/some/repo/", "?a&b#nothing"},
	} {
		t.Run(c.prefix+c.rest, func(t *testing.T) { visit(t, serve(t, dir, c.prefix), c.rest) })
	}
}

func TestWorkTreeIsAPage(t *testing.T) {
	site(t)
	visit(t, serve(t, "..", "/"), "")
}

func TestMalformedHash(t *testing.T) {
	v := visit(t, serve(t, site(t), "/"), "#%zz")
	require.Empty(t, get[string](v, "location.hash"), "the malformed hash is dropped")
	v.do(chromedp.Evaluate[chromedp.Void](`void (location.hash = "#%zz")`))
	v.do(chromedp.Sleep(100 * time.Millisecond))
	require.Empty(t, get[string](v, `document.documentElement.dataset.stopped || ""`))
}

func TestLoadsWhatTheServerSends(t *testing.T) {
	dir := site(t)
	plain := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.ServeFile(w, r, dir+r.URL.Path)
	}
	// A server that compresses says so; then the plain file is the right one.
	compressed := func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(dir + r.URL.Path + ".gz")
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/wasm")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(data)
	}
	for _, c := range []struct {
		name   string
		ending string
		fault  http.HandlerFunc
		packed int // how often the .gz is asked for
	}{
		{"does not compress", "/none", plain, 1},
		{"wrong type", ".wasm", plain, 1},
		{"compresses", ".wasm", compressed, 0},
		{"lacks the .gz", ".wasm.gz", http.NotFound, 1},
		{"packs the .gz again", ".wasm.gz", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			http.ServeFile(w, r, dir+r.URL.Path)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, dir, "/")
			s.breakOff(c.ending, c.fault)
			v := visit(t, s, "")
			require.Equal(t, c.packed, s.count(".wasm.gz"))
			if c.name == "lacks the .gz" {
				require.NotEmpty(t, v.Complaints(), "the browser logs the 404")
			}
		})
	}
}

// stopped waits for the last message and returns its text.
func (v *visitor) stopped() string {
	v.t.Helper()
	v.wait(`document.documentElement.dataset.stopped === "1"`)
	v.Complaints()
	return get[string](v, `document.getElementById("stopped").innerText`)
}

const savedText = "model:\n  # mine\n  hidden_size: 4096\n"

// typed leaves text in storage as the page does while the visitor types.
const typed = `sessionStorage.setItem("distopt.a", ` + "`" + savedText + "`" + `)`

func TestSaysWhyItCannotStart(t *testing.T) {
	dir := site(t)
	gone := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "gone", http.StatusServiceUnavailable) }
	garbage := func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("<html>not here</html>")) }
	for _, c := range []struct {
		name, script, ending string
		fault                http.HandlerFunc
		want                 string
	}{
		{"no WebAssembly", "delete globalThis.WebAssembly", "/none", gone, "WebAssembly is missing"},
		{"no wasm_exec.js", "", execName(t, dir), gone, "wasm_exec.js did not arrive"},
		{"no program", "", ".wasm", gone, "HTTP 503"},
		{"a program that is none", "", ".wasm", garbage, "did not arrive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, dir, "/")
			s.breakOff(c.ending, c.fault)
			if c.name == "a program that is none" {
				s.fault = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, ".wasm") {
						return false
					}
					garbage(w, r)
					return true
				}
			}
			v := look(t, s, "", typed, c.script)
			require.Contains(t, v.stopped(), c.want)
			require.Equal(t, savedText, get[string](v, `document.getElementById("stopped-text").value`))
			s.mend()
			if c.script == "" {
				v.do(chromedp.Click(chromedp.ID("stopped-reload")))
				v.wait(`document.documentElement.dataset.stopped !== "1"`)
				v.ready()
			}
		})
	}
}

// execName returns the hashed name of wasm_exec.js.
func execName(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir + "/web/static")
	require.NoError(t, err)
	for _, e := range entries {
		if ok, _ := path.Match("wasm_exec.*.js", e.Name()); ok {
			return e.Name()
		}
	}
	t.Fatal("no wasm_exec.*.js in dist")
	return ""
}

// full is a program whose stack is full when it next gets an event, while full is set.
const full = `{ const Real = WebAssembly.instantiate; WebAssembly.instantiate = async (...all) => {
	const instance = await Real(...all), resume = instance.exports.resume;
	Object.defineProperty(instance, "exports", { value: { ...instance.exports, resume() {
		if (globalThis.full) throw new RangeError("Maximum call stack size exceeded");
		resume();
	} } });
	return instance;
} }`

// What an event throws ends the program as much as what its start throws, and the text stays.
func TestProgramDiesInAnEvent(t *testing.T) {
	v := open(t, "", full)
	v.after(func() { v.field(cap400, "200") })
	text := v.document()
	v.do(chromedp.Evaluate[chromedp.Void](`void (globalThis.full = true)`))
	v.click(ids.Compare)
	require.Contains(t, v.stopped(), "Maximum call stack size exceeded")
	require.Contains(t, get[string](v, `document.getElementById("stopped-text").value`), text)
	v.do(chromedp.Click(chromedp.ID("stopped-reload")))
	v.wait(`document.documentElement.dataset.stopped !== "1"`)
	v.shown(2)
	require.Equal(t, text, v.document())
}

func TestProgramDies(t *testing.T) {
	// The program ends when Go's own scheduler is told a handler that is no function.
	v := visit(t, serve(t, site(t), "/"), "", typed)
	v.do(chromedp.Evaluate[chromedp.Void](`void goappNav()`))
	said := v.stopped()
	require.Contains(t, said, "The page has stopped")
	require.Contains(t, get[string](v, `document.getElementById("stopped-report").textContent`), "panic", "the report holds Go's own words")
	require.Equal(t, savedText, get[string](v, `document.getElementById("stopped-text").value`))
}

func TestSlowLoadSaysSo(t *testing.T) {
	dir := site(t)
	s := serve(t, dir, "/")
	release := make(chan struct{})
	s.breakOff(".wasm", func(w http.ResponseWriter, r *http.Request) {
		<-release
		http.ServeFile(w, r, dir+r.URL.Path)
	})
	// The page's clock runs twenty times as fast.
	v := look(t, s, "", `{ const now = performance.now.bind(performance); performance.now = () => 20 * now(); }`)
	v.wait(`document.getElementById("loader-reason").textContent.includes("has not answered")`)
	close(release)
	v.ready()
}

func TestOffline(t *testing.T) {
	s := serve(t, site(t), "/some/repo/")
	v := visit(t, s, "")
	v.wait(`navigator.serviceWorker.ready.then(r => r.active.state === "activated")`)
	v.wait(`caches.keys().then(k => k.length === 1)`)
	s.CloseClientConnections()
	s.Listener.Close()
	v.do(chromedp.Reload())
	v.ready()
	v.Complaints() // the browser logs what it could not fetch
}
