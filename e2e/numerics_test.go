package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"distopt/web/ids"
)

// labField fills a field of the lab, from the keyboard.
func (v *visitor) labField(path, text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.ID("lab-field-"+path)),
		chromedp.Evaluate[chromedp.Void](`void document.activeElement.select()`),
		chromedp.KeyEvent(text))
}

// labSteps waits until the lab has taken n steps.
func (v *visitor) labSteps(n int) {
	v.t.Helper()
	v.wait(fmt.Sprintf(`Number(document.getElementById(%q).dataset.value) >= %d`, ids.LabProgress, n))
}

// losses returns a column of the table of variants: first losses are column 1, last ones column 2.
func (v *visitor) losses(column int) (out []float64) {
	v.t.Helper()
	for text := range strings.FieldsSeq(get[string](v, fmt.Sprintf(`[...document.querySelectorAll('#%s tr[data-health] td:nth-of-type(%d)')].map((c) => c.textContent).join(" ")`, ids.LabRows, column+1))) {
		x, err := strconv.ParseFloat(text, 64)
		require.NoError(v.t, err)
		out = append(out, x)
	}
	return out
}

func TestNumericsRunsInTheBrowser(t *testing.T) {
	v := open(t, "")
	v.click(ids.TabNumerics)
	v.do(chromedp.WaitVisible(chromedp.ID(ids.LabRun)))
	require.Empty(t, v.text(ids.LabChecks), "nothing runs until asked")

	v.labField("steps", "0")
	v.click(ids.LabRun)
	v.wait(`document.getElementById("lab-field-steps-error").textContent.includes("got 0, want 1 to 2,000")`)

	v.labField("steps", "16")
	v.click(ids.LabRun)
	v.labSteps(1)
	v.after(func() { v.field(cap400, "200") }) // the page simulates beside the run
	v.labSteps(16)
	v.wait(fmt.Sprintf(`document.getElementById(%q).textContent.includes("done")`, ids.LabProgress))
	first, last := v.losses(1), v.losses(2)
	require.Len(t, first, 4)
	for i := range first {
		require.Less(t, last[i], first[i], "the loss falls")
	}
	require.Contains(t, v.text(ids.LabChecks), "All 4 ranks hold identical parameters after step 16.")
	require.Contains(t, v.text(ids.LabChecks), "BEFORE and AFTER: no difference.")
	require.Equal(t, "good good", get[string](v, fmt.Sprintf(`[...document.querySelectorAll("#%s li")].map((c) => c.dataset.check).join(" ")`, ids.LabChecks)))
	for _, id := range []string{"lab-loss", "lab-amax", "lab-scale", "lab-lost", "lab-bins"} {
		v.wait(fmt.Sprintf(`(() => {
			const c = document.getElementById(%q), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
			return new Set(new Uint32Array(d.buffer)).size > 3;
		})()`, id))
	}
	v.wait(`document.querySelectorAll("#lab-journey tbody tr").length > 8`)

	v.do(chromedp.Focus(chromedp.ID(ids.LabNumber)), chromedp.Evaluate[chromedp.Void](`void document.activeElement.select()`), chromedp.KeyEvent("1000"))
	v.wait(`document.querySelector("#lab-formats tbody tr:nth-child(4)").textContent.includes("saturated")`)

	v.click("as-table")
	v.wait(`document.querySelectorAll("#lab-table tbody tr").length === 64`)
}

func TestNumericsPausesAndCancels(t *testing.T) {
	v := open(t, "")
	v.click(ids.TabNumerics)
	v.do(chromedp.WaitVisible(chromedp.ID(ids.LabRun)))
	v.labField("steps", "1000")
	v.click(ids.LabRun)
	v.labSteps(1)
	v.click(ids.LabPause)
	v.wait(fmt.Sprintf(`document.getElementById(%q).textContent === "Resume"`, ids.LabPause))
	v.click(ids.LabPause)
	n := get[int](v, fmt.Sprintf(`Number(document.getElementById(%q).dataset.value)`, ids.LabProgress))
	v.labSteps(n + 2)
	v.click(ids.LabCancel)
	v.wait(fmt.Sprintf(`document.getElementById(%q).textContent.includes("cancelled")`, ids.LabProgress))
	require.Contains(t, v.text(ids.LabChecks), "hold identical parameters", "what was computed stays")
	v.wait(fmt.Sprintf(`document.getElementById(%q).offsetParent !== null`, ids.LabRun))
}
