package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"distopt/web/ids"
)

// forbidden is a browser whose visitor has forbidden storage: asking for it throws.
const forbidden = `for (const name of ["localStorage", "sessionStorage"])
	Object.defineProperty(globalThis, name, { configurable: true, get() { throw new DOMException("denied", "SecurityError"); } });`

func TestStorageIsForbidden(t *testing.T) {
	v := open(t, "", forbidden)
	v.after(func() { v.field(cap400, "200") })
	v.click(ids.Theme)
	require.Equal(t, "light", get[string](v, `document.documentElement.dataset.theme`))
	require.Contains(t, v.document(), "bucket_cap_mb: 200")
}

// slow makes every worker report progress before it works, as those of large configurations do.
const slow = `{ const Real = Worker; globalThis.Worker = class extends Real {
	postMessage(message, ...rest) {
		if (message.request) this.onmessage?.({ data: { id: message.id, progress: 0.5 } });
		super.postMessage(message, ...rest);
	}
} }`

func TestFourVersionsReportProgress(t *testing.T) {
	v := open(t, "", slow)
	v.click(ids.TabFour)
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tbody tr').length === 4`, ids.FourTable))
}

// focused is the id of what has the focus.
func (v *visitor) focused(id string) {
	v.t.Helper()
	v.wait(fmt.Sprintf(`document.activeElement?.id === %q`, id))
}

func (v *visitor) key(keys string, modifiers ...kb.Modifier) {
	v.t.Helper()
	var all kb.Modifier
	for _, m := range modifiers {
		all |= m
	}
	v.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(all)))
}

func TestFocusFollowsTheKeyboard(t *testing.T) {
	v := open(t, "")
	v.do(chromedp.Focus(chromedp.ID(ids.Timeline)))
	v.key("t")
	v.focused(ids.TimelineTable)
	v.key("t")
	v.focused(ids.Timeline)

	v.key("x") // B
	v.wait(fmt.Sprintf(`document.getElementById(%q).getAttribute("aria-pressed") === "true"`, ids.SideB))
	v.key("t")
	v.focused(ids.TimelineTable)
	row := chromedp.CSS("#operation-table tbody tr:nth-child(6)")
	v.do(chromedp.Click(row))
	v.wait(`document.querySelector("#operation-table tbody tr:nth-child(6)").dataset.lit === "1"`)
	v.key("t")
	v.focused(ids.Timeline)

	v.key("2")
	v.wait(fmt.Sprintf(`document.getElementById(%q)`, ids.CollTable))
	v.key("g")
	v.key("b")
	v.focused(ids.Buckets)
	v.key("g")
	v.key("c")
	v.focused(ids.TabForm)
	v.key("g")
	v.key("t")
	v.focused(ids.Timeline)

	v.key("g") // on the timeline, for which T has a meaning of its own
	v.key("t")
	v.key("g")
	v.key("b")
	v.focused(ids.Buckets)
	v.key("g")
	v.key("T")
	v.focused(ids.Timeline)

	v.do(chromedp.Evaluate[chromedp.Void](`void document.activeElement.blur()`))
	v.key(kb.Escape)
	v.wait(fmt.Sprintf(`document.querySelector("#%s h2").innerText.startsWith("Where the step goes")`, ids.Inspector))
}

func TestUndoRewritesAFieldWithAnError(t *testing.T) {
	v := open(t, "")
	const layers = "model.num_layers"
	value := fmt.Sprintf(`document.querySelector('[%s=%q]').value`, ids.AttrField, layers)
	v.field(layers, "abc")
	v.wait(value + ` === "abc"`)
	v.do(chromedp.Sleep(1200 * time.Millisecond)) // a pause ends the run of edits
	v.key("d")
	v.wait(value + ` === "abcd"`)
	v.key("z", kb.ModifierCtrl)
	v.wait(value + ` === "abc"`)
	v.key("z", kb.ModifierCtrl)
	v.wait(value + ` === "24"`)
	require.Zero(t, v.errors())
}

func TestLegendIsWhole(t *testing.T) {
	v := open(t, "")
	v.after(func() {
		v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void (p => { p.value = "gpt3-175b-fp8"; p.dispatchEvent(new Event("change", { bubbles: true })); })(document.getElementById(%q))`, ids.Preset)))
	})
	v.wait(`document.querySelector(".tl .legend").innerText.includes("in a bubble")`)
	require.True(t, get[bool](v, `(l => l.lastElementChild.offsetTop === l.firstElementChild.offsetTop)(document.querySelector(".tl .legend"))`), "the last colour stands in the line that is shown")
}

// cut lists the texts that have less room than they need.
const cut = `[...document.querySelectorAll(".kpi > span, h2, .scope, .titles, dd, th, td, .tabs [role=tab], .btn, .frow label, output")]
	.filter(e => e.offsetParent && e.offsetTop - e.parentElement.offsetTop < 20 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")
	.map(e => e.className + ": " + e.innerText)`

func TestNothingIsCutOff(t *testing.T) {
	v := open(t, "")
	for _, size := range [][2]int64{{320, 480}, {390, 844}, {720, 450}, {1024, 768}, {1440, 900}, {2560, 1440}} {
		v.do(chromedp.EmulateViewport(size[0], size[1]), chromedp.Sleep(300*time.Millisecond))
		require.Empty(t, get[[]string](v, cut), "at %d × %d", size[0], size[1])
		require.LessOrEqual(t, get[int64](v, `document.documentElement.scrollWidth`), size[0], "no scrolling sideways")
		for _, id := range []string{ids.Share, ids.TabBuckets, "pane"} {
			require.True(t, get[bool](v, fmt.Sprintf(`(e => { e.scrollIntoView(); const r = e.getBoundingClientRect(); return r.width > 0 && r.right <= innerWidth + 1 && r.top < innerHeight; })(document.getElementById(%q))`, id)),
				"%s can be reached at %d × %d", id, size[0], size[1])
		}
	}
}

func TestComparedTablesKeepApart(t *testing.T) {
	v := open(t, "")
	v.click(ids.Compare)
	v.wait(`document.querySelector(".moved")`)
	for _, width := range []int64{390, 720, 1440} {
		v.do(chromedp.EmulateViewport(width, 844), chromedp.Sleep(300*time.Millisecond))
		require.False(t, get[bool](v, fmt.Sprintf(`(() => {
			const a = document.getElementById(%q).getBoundingClientRect(), b = document.querySelector(".moved").getBoundingClientRect();
			return a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
		})()`, ids.DiffTable)), "at %d px", width)
		require.True(t, get[bool](v, fmt.Sprintf(`document.getElementById(%q).getBoundingClientRect().right <= innerWidth`, ids.DiffTable)), "at %d px", width)
	}
}

func TestForcedColoursKeepTheLanesApart(t *testing.T) {
	v := open(t, "")
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}},
		})
		return err
	}), chromedp.Sleep(300*time.Millisecond))
	require.Greater(t, v.ink(), 8)
}

func TestHugeFilesAreRefusedAtOnce(t *testing.T) {
	v := open(t, "")
	text := v.document()
	v.click(ids.Import)
	v.do(chromedp.WaitVisible(chromedp.ID("import-go")))
	began := time.Now()
	v.do(chromedp.Evaluate[chromedp.Void](`void (() => {
		const data = new DataTransfer();
		data.items.add(new File(["k: 1\n".repeat(1_500_000)], "huge.yaml"));
		window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
	})()`))
	v.wait(`document.getElementById("import-failed").innerText.includes("huge.yaml: It is larger than 1 MiB")`)
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, text, v.document())
}

func TestPanesKeepTheirSize(t *testing.T) {
	v := open(t, "")
	width := fmt.Sprintf(`document.getElementById(%q).offsetWidth`, ids.ConfigPane)
	usual := get[int](v, width)
	v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.getElementById(%q).focus()`, ids.SplitConfig)))
	v.key(kb.ArrowRight)
	v.wait(fmt.Sprintf(`%s === %d`, width, usual+16))
	v.do(chromedp.Reload())
	v.shown(1)
	require.Equal(t, usual+16, get[int](v, width))
	v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.getElementById(%q).focus()`, ids.SplitConfig)))
	v.key(kb.Enter)
	v.wait(fmt.Sprintf(`%s === %d`, width, usual))
}

// The table of tens of thousands of buckets opens at once: what is not shown is not made.
func TestManyBucketsAreShownAtOnce(t *testing.T) {
	v := open(t, "")
	v.after(func() { v.fill(cap400, "0.205") })
	v.click(ids.TabBuckets)
	began := time.Now()
	v.click("as-table")
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tbody tr').length === 400`, ids.BucketTable))
	t.Log("table:", time.Since(began))
	require.Less(t, time.Since(began), 5*time.Second)
	began = time.Now()
	v.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`#%s th:nth-child(3) button`, ids.BucketTable))))
	v.wait(fmt.Sprintf(`document.querySelector('#%s th:nth-child(3)').getAttribute("aria-sort") === "ascending"`, ids.BucketTable))
	t.Log("sorted:", time.Since(began))
	require.Less(t, time.Since(began), 5*time.Second)
}

// Under a finger, what is pressed is 40 px high: all but links in sentences and heads of tables.
func TestFingersHaveRoom(t *testing.T) {
	v := open(t, "")
	for _, width := range []int64{390, 900} {
		v.do(chromedp.EmulateViewport(width, 844, chromedp.EmulateMobile, chromedp.EmulateTouch), chromedp.Sleep(300*time.Millisecond))
		require.Empty(t, get[[]string](v, `[...document.querySelectorAll(".top button, .top select, .bar button, .bar select")]
			.filter(e => e.offsetParent && e.getBoundingClientRect().height < 40).map(e => e.id || e.innerText)`), "at %d", width)
		require.LessOrEqual(t, get[int64](v, `document.documentElement.scrollWidth`), width)
	}
}
