package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// compare reports the first field in which a case differs from what was computed, in order of
// field names and indices. Fields named in except are inputs.
func compare(reference []byte, computed any, except ...string) error {
	want, err := decodeAny(reference)
	if err != nil {
		return err
	}
	data, err := json.Marshal(computed)
	if err != nil {
		return err
	}
	got, err := decodeAny(data)
	if err != nil {
		return err
	}
	if object, ok := want.(map[string]any); ok {
		for _, key := range except {
			delete(object, key)
		}
	}
	return difference("", got, want)
}

func decodeAny(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// asRead returns a document as it would be read from a file.
func asRead(document map[string]any) (any, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return decodeAny(data)
}

// difference walks two values side by side and returns the first difference, or nil.
func difference(path string, got, want any) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return differs(path, got, want)
		}
		keys := sortedKeys(w)
		for key := range g {
			if _, ok := w[key]; !ok {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			gv, inGot := g[key]
			wv, inWant := w[key]
			at := strings.TrimPrefix(path+"."+key, ".")
			switch {
			case !inGot:
				return fmt.Errorf("%s: got nothing, want %s", at, show(wv))
			case !inWant:
				return fmt.Errorf("%s: got %s, want nothing", at, show(gv))
			}
			if err := difference(at, gv, wv); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok {
			return differs(path, got, want)
		}
		for i := range min(len(g), len(w)) {
			if err := difference(path+"["+strconv.Itoa(i)+"]", g[i], w[i]); err != nil {
				return err
			}
		}
		if len(g) != len(w) {
			return fmt.Errorf("%s: got %d entries, want %d", path, len(g), len(w))
		}
		return nil
	case json.Number:
		g, ok := got.(json.Number)
		if !ok || !sameNumber(g, w) {
			return differs(path, got, want)
		}
		return nil
	default:
		if got != want {
			return differs(path, got, want)
		}
		return nil
	}
}

// sameNumber compares integers exactly and other numbers as doubles.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Int64()
	y, errY := b.Int64()
	if errX == nil && errY == nil {
		return x == y
	}
	f, errF := a.Float64()
	g, errG := b.Float64()
	return errF == nil && errG == nil && f == g
}

func differs(path string, got, want any) error {
	return fmt.Errorf("%s: got %s, want %s", path, show(got), show(want))
}

// show prints a value on one short line.
func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(data) > 120 {
		return string(data[:120]) + "..."
	}
	return string(data)
}
