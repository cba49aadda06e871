package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Handler serves dir under prefix as a plain file server does, but tells the browser to ask again
// each time, so that an edit shows on reload. The licences have the names that the site gives them.
func Handler(dir, prefix string) http.Handler {
	prefix = strings.TrimSuffix(prefix, "/")
	files := http.StripPrefix(prefix, http.FileServer(http.Dir(dir)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		switch name := strings.TrimPrefix(r.URL.Path, prefix+"/"); name {
		case "LICENSE.txt", "THIRD_PARTY_NOTICES.txt":
			if plain := filepath.Join(dir, strings.TrimSuffix(name, ".txt")); exists(plain) {
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				http.ServeFile(w, r, plain)
				return
			}
		}
		files.ServeHTTP(w, r)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
