// Package e2e tests the built site as a visitor meets it, in headless Chromium. `make test` builds
// the site and sets E2E=1: then a missing browser or site fails the tests instead of skipping them.
package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"distopt/e2e/chrome"
	"distopt/web/ids"
)

var browser *chrome.Browser

func TestMain(m *testing.M) {
	var err error
	if browser, err = chrome.Start(); err != nil && os.Getenv("E2E") != "" {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	if browser != nil {
		browser.Close()
	}
	os.Exit(code)
}

// site returns the folder with the built site.
func site(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../dist")
	require.NoError(t, err)
	if browser == nil {
		t.Skip("no Chromium; `make test` installs it and runs this")
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil && os.Getenv("E2E") == "" {
		t.Skip("no dist/; `make test` builds it and runs this")
	}
	return dir
}

// visitor is a tab whose complaints fail the test, with assertions that end it.
type visitor struct {
	*chrome.Tab
	t    *testing.T
	site *server
}

// visit opens a page of the site in a tab of its own and waits until it is ready.
func visit(t *testing.T, s *server, rest string, scripts ...string) *visitor {
	t.Helper()
	v := look(t, s, rest, scripts...)
	v.ready()
	return v
}

// look opens a page of the site and does not wait.
func look(t *testing.T, s *server, rest string, scripts ...string) *visitor {
	t.Helper()
	tab, err := browser.Open(scripts...)
	require.NoError(t, err)
	v := &visitor{Tab: tab, t: t, site: s}
	t.Cleanup(v.leave)
	v.do(chromedp.Navigate(s.address(rest)))
	return v
}

// beside opens a page in a second tab of the same visitor.
func (v *visitor) beside(address string) *visitor {
	v.t.Helper()
	tab, err := v.Tab.Beside()
	require.NoError(v.t, err)
	other := &visitor{Tab: tab, t: v.t, site: v.site}
	v.t.Cleanup(other.leave)
	other.do(chromedp.Navigate(address))
	other.ready()
	return other
}

// leave closes the tab. Nothing may have gone wrong that the test did not ask for, and nothing may
// have been asked of another host.
func (v *visitor) leave() {
	if v.t.Failed() {
		if picture, err := chrome.Get(v.Tab, chromedp.CaptureScreenshot()); err == nil {
			path := filepath.Join(os.TempDir(), "e2e-"+url.PathEscape(v.t.Name())+".png")
			if os.WriteFile(path, picture, 0o644) == nil {
				v.t.Log("screenshot:", path)
			}
		}
	}
	if complaints := v.Complaints(); len(complaints) > 0 {
		v.t.Errorf("the browser complained: %q", complaints)
	}
	own, err := url.Parse(v.site.address(""))
	require.NoError(v.t, err)
	for _, request := range v.Requests() {
		u, err := url.Parse(request)
		if err != nil || u.Host != own.Host && u.Scheme != "data" && u.Scheme != "blob" {
			v.t.Errorf("request to another host: %s", request)
		}
	}
	v.Close()
}

func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	require.NoError(v.t, v.Do(actions...))
}

func (v *visitor) wait(expression string) {
	v.t.Helper()
	require.NoError(v.t, v.Wait(expression))
}

// ready waits until the page is mounted and the simulator answers.
func (v *visitor) ready() {
	v.t.Helper()
	v.wait(`document.documentElement.getAttribute("` + ids.AttrReady + `") === "1"`)
}

func get[T any](v *visitor, expression string) T {
	v.t.Helper()
	value, err := chrome.Eval[T](v.Tab, expression)
	require.NoError(v.t, err, expression)
	return value
}

// text returns the text of the element with an id, "" if there is none.
func (v *visitor) text(id string) string {
	v.t.Helper()
	return get[string](v, fmt.Sprintf(`(document.getElementById(%q) || {innerText: ""}).innerText`, id))
}
