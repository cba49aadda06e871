package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The head that travels between worker and page is the JSON that json.Marshal makes of a Result. An
// edit waits for it twice, and reflection takes several times as long as naming the fields here does.

// EncodeHead returns the Result as json.Marshal would, without its spans, in the memory of an earlier
// head if that suffices.
func (r *Result) EncodeHead(into []byte) ([]byte, error) {
	w := head{writing: true, out: into[:0]}
	r.fields(&w)
	w.mark('}')
	if w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}

// DecodeHead reads what EncodeHead wrote. It refuses other JSON, even of the same meaning.
func DecodeHead(b []byte) (*Result, error) {
	h := head{in: string(b)}
	r := &Result{}
	r.fields(&h)
	h.mark('}')
	if h.err == nil && h.at != len(h.in) {
		h.fail("the end")
	}
	if h.err != nil {
		return nil, fmt.Errorf("head: %w", h.err)
	}
	return r, nil
}

// head writes a JSON text or reads one that it wrote: one walk over the fields, in their order,
// serves both. After an error it does nothing any more.
type head struct {
	writing bool
	out     []byte
	in      string
	at      int // of in, next to read
	err     error
}

func (h *head) fail(want string) {
	if h.err == nil {
		got := h.in[h.at:min(len(h.in), h.at+20)]
		h.err = fmt.Errorf("byte %d: got %q, want %s", h.at, got, want)
	}
	h.at = len(h.in)
}

// mark writes or reads one character of structure.
func (h *head) mark(c byte) {
	if h.writing {
		h.out = append(h.out, c)
	} else if !h.accept(c) {
		h.fail(strconv.QuoteRune(rune(c)))
	}
}

// accept reads c if it comes next.
func (h *head) accept(c byte) bool {
	if h.at < len(h.in) && h.in[h.at] == c {
		h.at++
		return true
	}
	return false
}

// key writes or reads the name of the next field.
func (h *head) key(name string) {
	if h.writing {
		if h.out[len(h.out)-1] != '{' {
			h.out = append(h.out, ',')
		}
		h.out = append(h.out, '"')
		h.out = append(h.out, name...)
		h.out = append(h.out, '"', ':')
		return
	}
	n := h.next(name)
	if n == 0 {
		h.fail(strconv.Quote(name))
	}
	h.at += n
}

// next returns how many bytes introduce the field called name, 0 if it does not come next.
func (h *head) next(name string) int {
	rest := h.in[h.at:]
	comma := 0
	if h.at > 0 && h.in[h.at-1] != '{' {
		comma = 1
	}
	n := comma + len(name) + 3
	if len(rest) < n || comma > 0 && rest[0] != ',' || rest[comma] != '"' || rest[comma+1:n-2] != name || rest[n-2] != '"' || rest[n-1] != ':' {
		return 0
	}
	return n
}

// has reports whether a field is there that is left out when it is empty: given, when writing.
func (h *head) has(name string, given bool) bool {
	if h.writing {
		return given
	}
	return h.next(name) > 0
}

// integer is a field.
func integer[T ~int | ~int32 | ~int64 | ~uint8 | ~uint32](h *head, name string, v *T) {
	h.key(name)
	number(h, v)
}

func number[T ~int | ~int32 | ~int64 | ~uint8 | ~uint32](h *head, v *T) {
	if h.writing {
		h.out = strconv.AppendInt(h.out, int64(*v), 10)
		return
	}
	n := h.digits()
	if *v = T(n); int64(*v) != n {
		h.fail("a smaller number")
	}
}

// digits reads a whole number.
func (h *head) digits() int64 {
	negative := h.accept('-')
	from, n := h.at, int64(0)
	for h.at < len(h.in) && h.in[h.at]-'0' < 10 {
		d := int64(h.in[h.at] - '0')
		if n > (math.MaxInt64-d)/10 {
			h.fail("a smaller number")
			return 0
		}
		n = 10*n + d
		h.at++
	}
	if h.at == from {
		h.fail("a whole number")
	}
	if negative {
		return -n
	}
	return n
}

// float is a field, written as encoding/json writes numbers.
func (h *head) float(name string, v *float64) {
	h.key(name)
	if h.writing {
		if x := math.Abs(*v); x == 0 || 1e-6 <= x && x < 1e21 {
			h.out = strconv.AppendFloat(h.out, *v, 'f', -1, 64)
			return
		}
		text, err := json.Marshal(*v)
		if err != nil && h.err == nil {
			h.err = err
		}
		h.out = append(h.out, text...)
		return
	}
	end := h.at
	for end < len(h.in) && strings.IndexByte("+-.0123456789eE", h.in[end]) >= 0 {
		end++
	}
	f, err := strconv.ParseFloat(h.in[h.at:end], 64)
	if err != nil {
		h.fail("a number")
		return
	}
	*v, h.at = f, end
}

// string is a field.
func (h *head) string(name string, v *string) {
	h.key(name)
	if h.writing {
		if plain(*v) {
			h.out = append(h.out, '"')
			h.out = append(h.out, *v...)
			h.out = append(h.out, '"')
			return
		}
		quoted, _ := json.Marshal(*v) // strings always marshal
		h.out = append(h.out, quoted...)
		return
	}
	if !h.accept('"') {
		h.fail("a string")
		return
	}
	n := strings.IndexByte(h.in[h.at:], '"')
	if n >= 0 && strings.IndexByte(h.in[h.at:h.at+n], '\\') < 0 {
		*v = h.in[h.at : h.at+n]
		h.at += n + 1
		return
	}
	h.escaped(v)
}

// escaped reads a string with escapes in it, whose opening quote has been read.
func (h *head) escaped(v *string) {
	end := h.at
	for end < len(h.in) && h.in[end] != '"' {
		if h.in[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(h.in) || json.Unmarshal([]byte(h.in[h.at-1:end+1]), v) != nil {
		h.fail("a string")
		return
	}
	h.at = end + 1
}

// plain reports whether encoding/json writes a string as it is.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// pair is a field of two numbers.
func (h *head) pair(name string, v *[2]int64) {
	h.key(name)
	h.mark('[')
	number(h, &v[0])
	h.mark(',')
	number(h, &v[1])
	h.mark(']')
}

// list is a field that holds objects.
func list[T any](h *head, name string, all *[]T, fields func(*T, *head)) {
	elements(h, name, all, func(x *T) {
		h.mark('{')
		fields(x, h)
		h.mark('}')
	})
}

// integers is a field that holds numbers.
func integers[T ~int32 | ~int64](h *head, name string, all *[]T) {
	elements(h, name, all, func(x *T) { number(h, x) })
}

// elements is a field that holds a list; nil is null.
func elements[T any](h *head, name string, all *[]T, element func(*T)) {
	h.key(name)
	switch {
	case h.writing && *all == nil:
		h.out = append(h.out, "null"...)
		return
	case !h.writing && strings.HasPrefix(h.in[h.at:], "null"):
		h.at += len("null")
		return
	}
	h.mark('[')
	if h.writing {
		for i := range *all {
			if i > 0 {
				h.out = append(h.out, ',')
			}
			element(&(*all)[i])
		}
	} else if h.err == nil && !(h.at < len(h.in) && h.in[h.at] == ']') {
		for more := true; more; more = h.accept(',') {
			*all = append(*all, *new(T))
			element(&(*all)[len(*all)-1])
		}
	} else {
		*all = []T{}
	}
	h.mark(']')
}
