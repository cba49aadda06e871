// Command shots takes the screenshots in docs/img of the built site.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"distopt/e2e/chrome"
	"distopt/web/ids"
)

// shot is one picture: the size and theme of the page, and what is clicked first.
type shot struct {
	name          string
	width, height int64
	theme         string
	touch         bool
	clicks        []string // ids
}

var shots = []shot{
	{name: "light", width: 1440, height: 900, theme: "light"},
	{name: "dark", width: 1440, height: 900, theme: "dark"},
	{name: "compare", width: 1440, height: 900, theme: "light", clicks: []string{ids.Compare}},
	{name: "yaml", width: 1440, height: 900, theme: "dark", clicks: []string{ids.TabYAML}},
	{name: "medium", width: 1024, height: 768, theme: "light"},
	{name: "phone", width: 390, height: 844, theme: "light", touch: true},
}

func main() {
	if err := run("dist", filepath.Join("docs", "img")); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go http.Serve(listener, http.FileServer(http.Dir(dir)))
	browser, err := chrome.Start()
	if err != nil {
		return err
	}
	defer browser.Close()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, s := range shots {
		picture, err := take(browser, "http://"+listener.Addr().String()+"/", s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		path := filepath.Join(out, s.name+".png")
		if err := os.WriteFile(path, picture, 0o644); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

func take(browser *chrome.Browser, address string, s shot) ([]byte, error) {
	tab, err := browser.Open()
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	var viewport []chromedp.EmulateViewportOption
	if s.touch {
		viewport = append(viewport, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
	}
	if err := tab.Do(
		chrome.Theme(s.theme),
		chromedp.EmulateViewport(s.width, s.height, viewport...),
		chromedp.Navigate(address),
	); err != nil {
		return nil, err
	}
	shown := `document.documentElement.getAttribute("` + ids.AttrShown + `") >= "1"`
	if err := tab.Wait(shown); err != nil {
		return nil, err
	}
	for _, id := range s.clicks {
		if err := tab.Do(chromedp.Click(chromedp.ID(id))); err != nil {
			return nil, err
		}
	}
	if err := tab.Do(chromedp.Sleep(time.Second)); err != nil { // the second result, transitions
		return nil, err
	}
	return chrome.Get(tab, chromedp.CaptureScreenshot())
}
