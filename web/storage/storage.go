// Package storage keeps short texts in the browser. Storage may be full or forbidden: what cannot be
// kept is let go, and what cannot be read is empty.
package storage

import "github.com/maxence-charriere/go-app/v9/pkg/app"

// Area is one of the browser's two stores.
type Area string

const (
	Browser Area = "localStorage"   // for all tabs, from visit to visit
	Tab     Area = "sessionStorage" // for one tab, over reloads and crashes
)

// Set keeps text under a key.
func (a Area) Set(key, text string) {
	a.try(func(store app.Value) { store.Call("setItem", key, text) })
}

// Get reads a text; one that was never set is empty.
func (a Area) Get(key string) (text string) {
	a.try(func(store app.Value) {
		if v := store.Call("getItem", key); v.Truthy() {
			text = v.String()
		}
	})
	return text
}

// Remove forgets a key.
func (a Area) Remove(key string) {
	a.try(func(store app.Value) { store.Call("removeItem", key) })
}

func (a Area) try(f func(store app.Value)) {
	defer func() { _ = recover() }() // the browser throws
	f(app.Window().Get(string(a)))
}
