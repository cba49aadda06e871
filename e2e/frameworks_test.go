package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"distopt/web/ids"
)

const optimizerName = "model.optim.name"

// pick chooses a value of a form's select.
func (v *visitor) pick(path, value string) {
	v.t.Helper()
	require.True(v.t, get[bool](v, fmt.Sprintf(`(() => {
		const e = document.querySelector('[%s=%q]'); if (!e) return false;
		e.value = %q; e.dispatchEvent(new Event("change", { bubbles: true })); return true;
	})()`, ids.AttrField, path, value)))
}

func TestAnotherFramework(t *testing.T) {
	v := open(t, "")
	apex := v.figure(ids.StepTime)
	v.after(func() { v.pick(optimizerName, "mcore_distributed_optim") })
	require.NotEqual(t, apex, v.figure(ids.StepTime))
	require.Contains(t, v.document(), "name: mcore_distributed_optim")
	require.Contains(t, get[string](v, `document.getElementById("bucket-rule").textContent`), "40,000,000 parameters", "the rule that made the buckets")
	require.False(t, get[bool](v, fmt.Sprintf(`!!document.querySelector('[%s="model.optim.bucket_cap_mb"]')`, ids.AttrField)), "a field that has no effect is not offered")

	v.click(ids.TabFindings)
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s li').length > 1`, ids.Findings))
	v.click(ids.TabFour)
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tbody tr').length === 3`, ids.FrameTable))
	v.wait(fmt.Sprintf(`document.querySelectorAll('#%s tbody tr').length === 4`, ids.FourTable))
	v.after(func() { v.click(ids.Undo) })
	require.Equal(t, apex, v.figure(ids.StepTime))
}

func TestFindingsAreApplied(t *testing.T) {
	v := open(t, "")
	v.after(func() {
		v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void (p => { p.value = "mixtral-8x7b-mcore"; p.dispatchEvent(new Event("change", { bubbles: true })); })(document.getElementById(%q))`, ids.Preset)))
	})
	before := v.figure(ids.StepTime)
	v.click(ids.TabFindings)
	button := fmt.Sprintf(`#%s li[data-rule="mcore-scaling-pass"] button`, ids.Findings)
	v.wait(fmt.Sprintf(`!!document.querySelector(%q)`, button))
	v.after(func() {
		v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.querySelector(%q).click()`, button)))
	})
	require.Less(t, v.figure(ids.StepTime), before)
	require.Contains(t, v.document(), "average_in_collective: true")
	v.wait(fmt.Sprintf(`!document.querySelector(%q)`, button))
}
