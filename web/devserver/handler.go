package main

import (
	"net/http"
	"strings"
)

// Handler serves dir under prefix as a plain file server does, but tells the browser to ask again
// each time, so that an edit shows on reload.
func Handler(dir, prefix string) http.Handler {
	files := http.StripPrefix(strings.TrimSuffix(prefix, "/"), http.FileServer(http.Dir(dir)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}
