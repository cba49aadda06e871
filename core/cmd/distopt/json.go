package main

import (
	"bytes"
	"encoding/json"
)

// outline is the depth to which JSON is written with a line for each value. Deeper ones, rows of
// a table mostly, stay on a line.
const outline = 2

// json writes a value with a line break at its end.
func (e *env) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := e.stdout.Write(spread(b.Bytes()))
	return err
}

// spread breaks the lines of compact JSON after what opens, parts and closes down to outline.
func spread(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8)
	depth, quoted := 0, false
	line := func() {
		out = append(out, '\n')
		for range depth {
			out = append(out, ' ')
		}
	}
	for i := 0; i < len(data); i++ {
		c := data[i]
		if quoted {
			out = append(out, c)
			switch c {
			case '\\':
				i++
				out = append(out, data[i])
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case '"':
			quoted = true
			out = append(out, c)
		case '{', '[':
			out = append(out, c)
			if depth++; depth <= outline && data[i+1] != c+2 {
				line()
			}
		case '}', ']':
			if depth--; depth < outline && data[i-1] != c-2 {
				line()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if depth <= outline {
				line()
			}
		case ':':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
		}
	}
	return out
}
