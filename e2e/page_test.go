package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"distopt/core/share"
	"distopt/web/ids"
)

const cap400 = "model.optim.bucket_cap_mb"

// open visits the page and waits for its first results: A and B of the opening preset.
func open(t *testing.T, rest string, scripts ...string) *visitor {
	t.Helper()
	v := visit(t, serve(t, site(t), "/"), rest, scripts...)
	v.shown(2)
	return v
}

// shown waits until n results have been on screen.
func (v *visitor) shown(n int) {
	v.t.Helper()
	v.wait(fmt.Sprintf(`Number(document.documentElement.getAttribute(%q)) >= %d`, ids.AttrShown, n))
}

// after does something and waits until a newer result is on screen.
func (v *visitor) after(do func()) {
	v.t.Helper()
	n := get[int](v, fmt.Sprintf(`Number(document.documentElement.getAttribute(%q))`, ids.AttrShown))
	do()
	v.shown(n + 1)
}

func (v *visitor) click(id string) {
	v.t.Helper()
	v.do(chromedp.Click(chromedp.ID(id)))
}

// figure returns the bare number of a key figure.
func (v *visitor) figure(id string) float64 {
	v.t.Helper()
	text := get[string](v, fmt.Sprintf(`document.getElementById(%q).getAttribute(%q)`, id, ids.AttrValue))
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(v.t, err, "%s of %s", ids.AttrValue, id)
	return value
}

// field fills a field of the form as a visitor does, from the keyboard.
func (v *visitor) field(path, text string) {
	v.t.Helper()
	selector := chromedp.CSS(fmt.Sprintf(`[%s=%q]`, ids.AttrField, path))
	v.do(chromedp.Focus(selector),
		chromedp.Evaluate[chromedp.Void](`void document.activeElement.select()`),
		chromedp.KeyEvent(text))
}

// fill puts text into a field of the form at once, as from the clipboard.
func (v *visitor) fill(path, text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.CSS(fmt.Sprintf(`[%s=%q]`, ids.AttrField, path))),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void (document.activeElement.select(), document.execCommand("insertText", false, %q))`, text)))
}

func (v *visitor) document() string {
	v.t.Helper()
	return get[string](v, fmt.Sprintf(`document.getElementById(%q).value`, ids.Editor))
}

// edit shows the text and puts the cursor into it.
func (v *visitor) edit() {
	v.t.Helper()
	v.click(ids.TabYAML)
	v.do(chromedp.WaitVisible(chromedp.ID(ids.Editor)),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.getElementById(%q).focus()`, ids.Editor)))
}

// paste puts text at the end of the editor, as one edit of the visitor's.
func (v *visitor) paste(text string) {
	v.t.Helper()
	v.edit()
	v.do(chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl)),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.execCommand("insertText", false, %q)`, text)))
}

func (v *visitor) errors() int {
	v.t.Helper()
	return get[int](v, fmt.Sprintf(`document.querySelectorAll('#%s [%s="error"]').length`, ids.Problems, ids.AttrProblem))
}

// ink counts the colours on the timeline.
func (v *visitor) ink() int {
	v.t.Helper()
	return get[int](v, fmt.Sprintf(`(() => {
		const c = document.getElementById(%q), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		return new Set(new Uint32Array(d.buffer)).size;
	})()`, ids.Canvas))
}

func TestOpensOnThePreset(t *testing.T) {
	v := open(t, "")
	require.Contains(t, get[string](v, fmt.Sprintf(`(s => s.options[s.selectedIndex].text)(document.getElementById(%q))`, ids.Preset)), "GPT-3 5B")
	require.Greater(t, v.figure(ids.StepTime), 1e6, "ns")
	require.Contains(t, v.document(), "bucket_cap_mb: 400")
	require.Zero(t, v.errors())
	require.Greater(t, v.ink(), 3)
	require.Equal(t, "Distopt Playground", get[string](v, "document.title"))
	v.Do(chromedp.Sleep(300 * time.Millisecond))
	require.False(t, get[bool](v, `document.documentElement.scrollHeight > innerHeight`), "at 1440 × 900 the page does not scroll")
}

func TestEditAField(t *testing.T) {
	v := open(t, "")
	step, use, text := v.figure(ids.StepTime), v.figure(ids.Utilisation), v.document()
	v.after(func() { v.field(cap400, "100") })
	require.NotEqual(t, use, v.figure(ids.Utilisation))
	require.NotEqual(t, step, v.figure(ids.StepTime))
	require.Equal(t, strings.Replace(text, "bucket_cap_mb: 400", "bucket_cap_mb: 100", 1), v.document(), "only its line changes")

	v.after(func() { v.click(ids.Undo) })
	require.Equal(t, text, v.document())
	require.Equal(t, step, v.figure(ids.StepTime))
}

func TestBreakAndMend(t *testing.T) {
	v := open(t, "")
	step, text, ink := v.figure(ids.StepTime), v.document(), v.ink()
	v.paste("\nmodel: [broken\n")
	v.wait(fmt.Sprintf(`document.querySelector('#%s [%s="error"]')`, ids.Problems, ids.AttrProblem))
	require.Equal(t, step, v.figure(ids.StepTime), "the last good result stays")
	require.Equal(t, ink, v.ink(), "so does its picture")
	require.Contains(t, v.document(), "[broken", "nothing typed is lost")
	v.wait(fmt.Sprintf(`document.getElementById(%q).shadowRoot.querySelector(".cm-lintRange-error, .cm-lintPoint-error")`, ids.Editor))

	v.do(chromedp.KeyEvent("z", chromedp.KeyModifiers(kb.ModifierCtrl)))
	v.wait(fmt.Sprintf(`!document.querySelector('#%s [%s="error"]')`, ids.Problems, ids.AttrProblem))
	require.Equal(t, text, v.document())
	require.Equal(t, step, v.figure(ids.StepTime))
}

func TestEditTheText(t *testing.T) {
	v := open(t, "")
	text := v.document()
	v.edit()
	v.after(func() {
		line := strings.Count(text[:strings.Index(text, "bucket_cap_mb: 400")], "\n") + 1
		v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.getElementById(%q).reveal(%d)`, ids.Editor, line)),
			chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Backspace+kb.Backspace+kb.Backspace+"200"))
	})
	require.Contains(t, v.document(), "bucket_cap_mb: 200")
	v.click(ids.TabForm)
	require.Equal(t, "200", get[string](v, fmt.Sprintf(`document.querySelector('[%s=%q]').value`, ids.AttrField, cap400)), "both tabs edit one text")
}

func TestShareAndOpen(t *testing.T) {
	v := open(t, "")
	v.after(func() { v.field(cap400, "200") })
	v.click(ids.Share)
	v.wait(fmt.Sprintf(`document.getElementById(%q)?.value`, ids.ShareLink))
	link := get[string](v, fmt.Sprintf(`document.getElementById(%q).value`, ids.ShareLink))
	require.Contains(t, link, "#c=1.")

	other := v.beside(link)
	other.shown(2)
	require.Equal(t, v.figure(ids.StepTime), other.figure(ids.StepTime))
	require.Equal(t, v.document(), other.document())

	other.after(func() { other.field(cap400, "400") })
	require.NotEqual(t, v.figure(ids.StepTime), other.figure(ids.StepTime))
	other.after(func() { other.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("void (location.href = %q)", link))) })
	require.Equal(t, v.figure(ids.StepTime), other.figure(ids.StepTime), "the link opens in the page that is already there")
}

func TestTheWayBackFromALink(t *testing.T) {
	v := open(t, "")
	text := v.document()
	fragment, err := share.Encode(&share.Link{A: share.Document{Text: "model:\n  num_layers: 4\n"}})
	require.NoError(t, err)
	v.after(func() { v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("void (location.hash = %q)", fragment))) })
	v.wait(fmt.Sprintf(`document.getElementById(%q).value.includes("num_layers: 4")`, ids.Editor))
	v.do(chromedp.Evaluate[chromedp.Void]("history.back()"))
	v.wait(fmt.Sprintf(`document.getElementById(%q).value === %q`, ids.Editor, text))
	v.wait(`location.hash === ""`)
	v.do(chromedp.Evaluate[chromedp.Void]("history.forward()"))
	v.wait(fmt.Sprintf(`document.getElementById(%q).value.includes("num_layers: 4")`, ids.Editor))
}

func TestTooDeepTexts(t *testing.T) {
	deep := "x:\n- " + strings.Repeat("- ", 20_000) + "1"
	for _, c := range []struct{ name, text, want string }{
		{"dashes", deep, "at most 64 levels"},
		{"brackets", "x: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "at most 64 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := open(t, "")
			text := v.document()
			v.paste(c.text)
			v.wait(fmt.Sprintf(`document.querySelector('#%s [%s="error"]')`, ids.Problems, ids.AttrProblem))
			require.Contains(t, v.text(ids.Problems), c.want)
			v.click(ids.Undo)
			v.wait(fmt.Sprintf(`document.getElementById(%q).value === %q`, ids.Editor, text))
			require.Zero(t, v.errors(), "the page goes on")
		})
	}
	t.Run("link", func(t *testing.T) {
		fragment, err := share.Encode(&share.Link{A: share.Document{Text: deep}})
		require.NoError(t, err)
		v := visit(t, serve(t, site(t), "/"), "#"+fragment)
		v.wait(fmt.Sprintf(`document.querySelector('#%s [%s="error"]')`, ids.Problems, ids.AttrProblem))
		require.Contains(t, v.text(ids.Problems), "at most 64 levels")
	})
}

func TestBadLinks(t *testing.T) {
	for _, hash := range []string{"#c=1.", "#c=1.!!!", "#c=1.AAAA", "#c=99.AAAA", "#c=", "#%zz", "#c=1." + strings.Repeat("A", 100_000)} {
		t.Run(hash[:min(len(hash), 12)], func(t *testing.T) {
			v := open(t, hash)
			require.Greater(t, v.figure(ids.StepTime), 0.0, "never a blank page")
		})
	}
}

func TestCompare(t *testing.T) {
	v := open(t, "")
	v.click(ids.Compare)
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tr').length > 3`, ids.DiffTable))
	v.wait(fmt.Sprintf(`getComputedStyle(document.getElementById(%q)).visibility === "visible"`, ids.Canvas))
	v.click(ids.TabFour)
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tbody tr').length === 4`, ids.FourTable))
	v.click(ids.SideA)
	v.wait(fmt.Sprintf(`document.getElementById(%q).getAttribute("aria-pressed") === "true"`, ids.SideA))
}

func TestSelectABucket(t *testing.T) {
	v := open(t, "")
	v.click(ids.TabBuckets)
	bucket := chromedp.CSS(fmt.Sprintf(`#%s [%s="3"]`, ids.Buckets, ids.AttrBucket))
	v.do(chromedp.Click(bucket))
	v.wait(fmt.Sprintf(`document.querySelector('#%s [%s="3"][%s="1"]')`, ids.Buckets, ids.AttrBucket, ids.AttrLit))
	require.Contains(t, v.text(ids.Inspector), "3")
}

// fragile makes every worker that gets a request die of it, while fragile is set.
const fragile = `{ const Real = Worker; globalThis.Worker = class extends Real {
	postMessage(message, ...rest) {
		if (!message.request || !globalThis.fragile) return super.postMessage(message, ...rest);
		setTimeout(() => this.onmessage?.({ data: { stopped: "exit code 2", report: "fatal error: out of memory" } }));
	}
} }`

func TestWorkerDies(t *testing.T) {
	v := open(t, "", fragile)
	step := v.figure(ids.StepTime)
	v.do(chromedp.Evaluate[chromedp.Void](`void (globalThis.fragile = true)`))
	v.fill(cap400, "200")
	v.do(chromedp.WaitVisible(chromedp.ID(ids.WorkerStop)))
	require.Contains(t, v.text(ids.WorkerStop), "The simulator stopped. Your configuration is safe.")
	require.Contains(t, v.document(), "bucket_cap_mb: 200")
	v.do(chromedp.Evaluate[chromedp.Void](`void (globalThis.fragile = false)`))
	v.after(func() { v.click(ids.Restart) })
	v.do(chromedp.WaitNotVisible(chromedp.ID(ids.WorkerStop)))
	require.NotEqual(t, step, v.figure(ids.StepTime), "the request that was lost is answered")
}

// endless makes every worker keep the requests that it gets while endless is set.
const endless = `{ const Real = Worker; globalThis.Worker = class extends Real {
	postMessage(message, ...rest) { if (!message.request || !globalThis.endless) super.postMessage(message, ...rest); }
} }`

func TestCancel(t *testing.T) {
	v := open(t, "", endless)
	step := v.figure(ids.StepTime)
	v.do(chromedp.Evaluate[chromedp.Void](`void (globalThis.endless = true)`))
	v.fill(cap400, "200")
	v.do(chromedp.WaitVisible(chromedp.ID(ids.Busy)))
	v.click(ids.Cancel)
	v.do(chromedp.WaitNotVisible(chromedp.ID(ids.Busy)))
	require.Equal(t, step, v.figure(ids.StepTime), "the earlier result stays")
	require.Contains(t, v.document(), "bucket_cap_mb: 200")

	v.do(chromedp.Evaluate[chromedp.Void](`void (globalThis.endless = false)`))
	v.after(func() { v.fill(cap400, "100") })
	require.NotEqual(t, step, v.figure(ids.StepTime))
}

func TestTextSurvivesTheProgram(t *testing.T) {
	v := open(t, "")
	v.after(func() { v.field(cap400, "200") })
	text := v.document()
	v.do(chromedp.Evaluate[chromedp.Void](`void goappNav()`))
	v.stopped()
	require.Contains(t, get[string](v, `document.getElementById("stopped-text").value`), text)
	v.do(chromedp.Click(chromedp.ID("stopped-reload")))
	v.wait(`document.documentElement.dataset.stopped !== "1"`)
	v.shown(2)
	require.Equal(t, text, v.document())
}

func TestHelpShowsTheLicences(t *testing.T) {
	v := open(t, "")
	v.click(ids.Help)
	v.do(chromedp.WaitVisible(chromedp.ID(ids.HelpDialog)))
	address := get[string](v, fmt.Sprintf(`document.querySelector('#%s a[href$="THIRD_PARTY_NOTICES.txt"]').href`, ids.HelpDialog))
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "go-app")
}

func TestHugePasteLeavesThePageAlive(t *testing.T) {
	v := open(t, "")
	step := v.figure(ids.StepTime)
	v.paste("\n# " + strings.Repeat("x", 1<<20))
	v.wait(fmt.Sprintf(`document.querySelector('#%s [%s="error"]')`, ids.Problems, ids.AttrProblem))
	require.Greater(t, len(v.document()), 1<<20, "nothing typed is lost")
	require.Equal(t, step, v.figure(ids.StepTime))
	began := time.Now()
	v.click(ids.TabForm)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestNothingIsSent(t *testing.T) {
	v := open(t, "")
	before := len(v.Requests())
	v.after(func() { v.field(cap400, "200") })
	v.click(ids.Compare)
	v.click(ids.Share)
	for _, request := range v.Requests()[before:] {
		require.Regexp(t, `^(blob:|[^?#]*/web/static/[\w.]+$)`, request, "nothing that is typed leaves the page")
	}
}
