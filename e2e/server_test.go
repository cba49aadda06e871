package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// server is a plain file server for one folder under a prefix, with faults on request.
type server struct {
	*httptest.Server
	prefix string

	mu    sync.Mutex
	asked []string
	fault func(w http.ResponseWriter, r *http.Request) bool // true: answered
}

func serve(t *testing.T, dir, prefix string) *server {
	t.Helper()
	s := &server{prefix: prefix}
	files := http.StripPrefix(strings.TrimSuffix(prefix, "/"), http.FileServer(http.Dir(dir)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.Path)
		fault := s.fault
		s.mu.Unlock()
		if fault == nil || !fault(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// address returns the address of the page; localhost, where service workers and the clipboard are
// allowed without TLS.
func (s *server) address(rest string) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		panic(err) // httptest's own address
	}
	return "http://localhost:" + u.Port() + s.prefix + rest
}

// breakOff makes every answer to a path with this ending come from f.
func (s *server) breakOff(ending string, f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ending) {
			return false
		}
		f(w, r)
		return true
	}
}

func (s *server) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = nil
}

// count returns how often a path with this ending was asked for.
func (s *server) count(ending string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, path := range s.asked {
		if strings.HasSuffix(path, ending) {
			n++
		}
	}
	return n
}
