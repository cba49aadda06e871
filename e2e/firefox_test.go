package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/e2e/firefox"
	"distopt/web/ids"
)

// TestFirefox opens the page, edits a field and compares, in a Firefox if there is one; with
// E2E_FIREFOX=1 there must be.
func TestFirefox(t *testing.T) {
	s := serve(t, site(t), "/some/repo/")
	b, err := firefox.Start()
	if errors.Is(err, firefox.ErrMissing) && os.Getenv("E2E_FIREFOX") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer b.Close()

	require.NoError(t, b.Open(s.address("#%zz")))
	shown := func(n int) {
		t.Helper()
		require.NoError(t, b.Wait(fmt.Sprintf(`Number(document.documentElement.getAttribute(%q)) >= %d`, ids.AttrShown, n)))
	}
	shown(2)
	step := func() (value string) {
		t.Helper()
		require.NoError(t, b.Eval(fmt.Sprintf(`document.getElementById(%q).getAttribute(%q)`, ids.StepTime, ids.AttrValue), &value))
		return value
	}
	before := step()
	var results int
	require.NoError(t, b.Eval(fmt.Sprintf(`Number(document.documentElement.getAttribute(%q))`, ids.AttrShown), &results))
	require.NoError(t, b.Eval(fmt.Sprintf(`(f => { f.focus(); f.value = "100"; f.dispatchEvent(new Event("input", {bubbles: true})) })(document.querySelector('[%s=%q]'))`,
		ids.AttrField, cap400), new(any)))
	shown(results + 1)
	require.NotEqual(t, before, step())
	require.NoError(t, b.Eval(fmt.Sprintf(`document.getElementById(%q).click()`, ids.Compare), new(any)))
	require.NoError(t, b.Wait(fmt.Sprintf(`document.querySelectorAll('#%s tr').length > 3`, ids.DiffTable)))
}
