// Package firefox starts a headless Firefox and drives it through Marionette, the protocol that it
// speaks without any driver: JSON arrays with a length in front, over TCP.
package firefox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrMissing says that there is no Firefox.
var ErrMissing = errors.New("no Firefox found: install it (Debian: apt-get install firefox-esr) or name it in FIREFOX")

// Find returns the path of Firefox: $FIREFOX, else the first of the usual names in $PATH.
func Find() (string, error) {
	names := []string{"firefox-esr", "firefox"}
	if name := os.Getenv("FIREFOX"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Browser is a running Firefox with one window.
type Browser struct {
	process *exec.Cmd
	profile string
	conn    net.Conn
	in      *bufio.Reader
	last    int
}

// preferences keep Firefox to itself: no first-run pages, nothing fetched, any free port.
const preferences = `user_pref("marionette.port", %d);
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.safebrowsing.downloads.remote.enabled", false);
user_pref("browser.safebrowsing.malware.enabled", false);
user_pref("browser.safebrowsing.phishing.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.server", "");
`

// Start starts Firefox with a profile of its own.
func Start() (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "firefox-")
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), fmt.Appendf(nil, preferences, port), 0o600); err != nil {
		b.Close()
		return nil, err
	}
	b.process = exec.Command(path, "--headless", "--marionette", "--no-remote", "--profile", profile, "about:blank")
	// Firefox refuses a home that belongs to somebody else, as under sudo.
	b.process.Env = append(os.Environ(), "HOME="+profile, "MOZ_HEADLESS_WIDTH=1440", "MOZ_HEADLESS_HEIGHT=900")
	if err := b.process.Start(); err != nil {
		b.process = nil
		b.Close()
		return nil, err
	}
	if err := b.connect(port); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// connect waits until Firefox listens, reads its greeting and opens a session.
func (b *Browser) connect(port int) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			b.conn, b.in = conn, bufio.NewReader(conn)
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing listens on the port of Marionette: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, err := b.receive(); err != nil {
		return err
	}
	return b.call("WebDriver:NewSession", map[string]any{}, nil)
}

// Close ends Firefox and removes its profile.
func (b *Browser) Close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.process != nil {
		b.process.Process.Kill()
		b.process.Wait()
	}
	os.RemoveAll(b.profile)
}

// Open goes to an address and waits for its load event.
func (b *Browser) Open(address string) error {
	return b.call("WebDriver:Navigate", map[string]any{"url": address}, nil)
}

// Eval puts the value of a JavaScript expression into result.
func (b *Browser) Eval(expression string, result any) error {
	answer := struct{ Value any }{result}
	return b.call("WebDriver:ExecuteScript", map[string]any{"script": "return " + expression, "args": []any{}}, &answer)
}

// Wait waits until a JavaScript expression is true.
func (b *Browser) Wait(expression string) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		var done bool
		err := b.Eval("Boolean("+expression+")", &done)
		if err == nil && done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited a minute for %s: %w", expression, errors.Join(err, errors.New("it stays false")))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// call sends [0, id, command, parameters] and takes [1, id, error, result].
func (b *Browser) call(command string, parameters, result any) error {
	b.last++
	message, err := json.Marshal([]any{0, b.last, command, parameters})
	if err != nil {
		return err
	}
	b.conn.SetDeadline(time.Now().Add(90 * time.Second))
	if _, err := fmt.Fprintf(b.conn, "%d:%s", len(message), message); err != nil {
		return err
	}
	raw, err := b.receive()
	if err != nil {
		return err
	}
	var answer [4]json.RawMessage
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if string(answer[2]) != "null" {
		return fmt.Errorf("%s: %s", command, answer[2])
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer[3], result)
}

func (b *Browser) receive() ([]byte, error) {
	length, err := b.in.ReadString(':')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
	if err != nil || n < 0 || n > 64<<20 {
		return nil, fmt.Errorf("not a Marionette message: %q", length)
	}
	message := make([]byte, n)
	_, err = io.ReadFull(b.in, message)
	return message, err
}
