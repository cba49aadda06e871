package main

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandler(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"index.html": "page", "LICENSE": "free"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, c := range []struct {
		prefix, path string
		status       int
		body         string
	}{
		{"/", "/", 200, "page"},
		{"/", "/LICENSE.txt", 200, "free"},
		{"/some/repo", "/some/repo/", 200, "page"},
		{"/some/repo", "/some/repo/LICENSE.txt", 200, "free"},
		{"/some/repo", "/", 404, ""},
		{"/", "/THIRD_PARTY_NOTICES.txt", 404, ""},
	} {
		w := httptest.NewRecorder()
		Handler(dir, c.prefix).ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		require.Equal(t, c.status, w.Code, "%s under %s", c.path, c.prefix)
		if c.status == 200 {
			require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
			require.Equal(t, c.body, w.Body.String())
		}
	}
}

func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	require.EqualError(t, run(t.TempDir(), port, "/"),
		"port "+port+" is taken by another program; choose another: make run PORT=8081")
}
