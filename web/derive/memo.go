// Package derive turns the state into what is shown: figures, rows, sentences, geometry. It
// recomputes a part only when what it depends on has changed, and otherwise returns the same
// pointer, so that a view sees at once that nothing is to be drawn. Nothing here is ever changed
// after it was returned.
package derive

// memo keeps the last value made for a key.
type memo[K comparable, V any] struct {
	key   K
	value *V
}

func (m *memo[K, V]) get(key K, build func() *V) *V {
	if m.value == nil || m.key != key {
		m.key, m.value = key, build()
	}
	return m.value
}
