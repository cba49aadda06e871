// Package chrome starts a headless Chromium and opens tabs in it that remember everything a test
// wants to complain about: console errors, uncaught exceptions, refused content, requests.
package chrome

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	permission "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Patience is how long one action may take. It is long, since a loaded machine is no error.
const Patience = 60 * time.Second

// ErrMissing says that there is no Chromium.
var ErrMissing = errors.New("no Chromium found: install it (Debian, Ubuntu: apt-get install chromium) or name it in CHROMIUM")

// Find returns the path of Chromium: $CHROMIUM, else the first of the usual names in $PATH.
func Find() (string, error) {
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}
	if name := os.Getenv("CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Browser is a running Chromium.
type Browser struct {
	ctx   context.Context
	close func()
}

// Start starts Chromium without a sandbox: it shows only our own page from localhost, and a sandbox
// is not to be had as root or in most containers. Names other than localhost do not resolve.
func Start() (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"),
		chromedp.WindowSize(1440, 900),
	)
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	b := &Browser{ctx: ctx, close: func() { closeBrowser(); closeAllocator() }}
	if err := chromedp.Do(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.close() }

// Tab is one tab with storage of its own, or with that of the tab it was opened from.
type Tab struct {
	browser *Browser
	ctx     context.Context
	cancel  func()

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// watch makes the page keep what its Content-Security-Policy has refused.
const watch = `globalThis.refused = [];
addEventListener("securitypolicyviolation", e => refused.push(e.violatedDirective + " " + (e.blockedURI || e.sourceFile)))`

// Open opens an empty tab with storage of its own. Each of scripts runs before any of the page.
func (b *Browser) Open(scripts ...string) (*Tab, error) {
	return b.open(b.ctx, chromedp.WithNewBrowserContext(), scripts)
}

// Beside opens an empty tab that shares storage with t.
func (t *Tab) Beside(scripts ...string) (*Tab, error) {
	id := chromedp.FromContext(t.ctx).BrowserContextID
	return t.browser.open(t.browser.ctx, chromedp.WithExistingBrowserContext(id), scripts)
}

func (b *Browser) open(parent context.Context, option chromedp.ContextOption, scripts []string) (*Tab, error) {
	ctx, cancel := chromedp.NewContext(parent, option)
	t := &Tab{browser: b, ctx: ctx, cancel: cancel}
	if err := chromedp.Listen(ctx, t.hear); err != nil {
		cancel()
		return nil, err
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), clipboard); err != nil {
		cancel()
		return nil, err
	}
	for _, script := range append([]string{watch}, scripts...) {
		params := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
		if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, params); err != nil {
			cancel()
			return nil, err
		}
	}
	return t, nil
}

// clipboard lets the page write to the clipboard, as a browser with a window does after a click.
var clipboard = chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
	_, err := chromedp.CallBrowser(ctx, permission.SetPermission, permission.SetPermissionParams{
		Permission:       &permission.PermissionDescriptor{Name: "clipboard-write"},
		Setting:          permission.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	})
	return err
})

// Close closes the tab.
func (t *Tab) Close() { t.cancel() }

func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "assert" {
			t.complaints = append(t.complaints, "console: "+text(e.Args))
		}
	case *runtime.EventExceptionThrown:
		d := e.ExceptionDetails
		line := "exception: " + d.Text
		if d.Exception != nil {
			line += " " + d.Exception.Description
		}
		t.complaints = append(t.complaints, line)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" {
			t.complaints = append(t.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	}
}

func text(args []*runtime.RemoteObject) string {
	var parts []string
	for _, a := range args {
		if a.Description != "" {
			parts = append(parts, a.Description)
		} else {
			parts = append(parts, string(a.Value))
		}
	}
	return strings.Join(parts, " ")
}

// Complaints returns what went wrong in the tab so far, and forgets it.
func (t *Tab) Complaints() []string {
	refused, err := Eval[[]string](t, "globalThis.refused ? refused.splice(0) : []")
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.complaints
	t.complaints = nil
	for _, r := range refused {
		found = append(found, "refused by the Content-Security-Policy: "+r)
	}
	if err != nil {
		found = append(found, "asking the page: "+err.Error())
	}
	return found
}

// Requests returns the addresses that the tab has asked for so far.
func (t *Tab) Requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.requests...)
}

// Do runs actions.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// Get runs an action that has a value.
func Get[T any](t *Tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// Eval returns the value of a JavaScript expression; of a promise, what it resolves to.
func Eval[T any](t *Tab, expression string) (T, error) {
	return Get(t, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Wait waits until a JavaScript expression, or what its promise resolves to, is true. The page may
// load anew meanwhile.
func (t *Tab) Wait(expression string) error {
	deadline := time.Now().Add(Patience)
	for {
		done, err := Eval[bool](t, "Promise.resolve("+expression+").then(Boolean)")
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s: %w", Patience, expression, cmp.Or(err, errors.New("it stays false")))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Theme makes the system prefer a colour scheme, "light" or "dark".
func Theme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}
