package importer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// byteOrderMark may begin a text and is no part of its first line.
const byteOrderMark = "\uFEFF"

// source is the text with the starts of its lines, broken where YAML breaks them.
type source struct {
	text  string
	lines []int // byte offset of each line

	// The place that was asked for last: places are asked for in order, and a line may be long.
	near struct{ line, col, offset int }
	span struct{ line, col, end int } // the last answer of whole
}

func newSource(text string) *source {
	s := &source{text: text, lines: make([]int, 1, 16+len(text)/32)}
	if strings.HasPrefix(text, byteOrderMark) {
		s.lines[0] = len(byteOrderMark)
	}
	for i := s.lines[0]; i < len(text); {
		n := breakAt(text, i)
		if n == 0 {
			i++
			continue
		}
		i += n
		s.lines = append(s.lines, i)
	}
	return s
}

// breakAt returns the length of the line break at byte i, or 0. YAML 1.1 also breaks at NEL and
// at the Unicode line and paragraph separators.
func breakAt(text string, i int) int {
	switch text[i] {
	case '\n':
		return 1
	case '\r':
		if i+1 < len(text) && text[i+1] == '\n' {
			return 2
		}
		return 1
	case 0xc2:
		if i+1 < len(text) && text[i+1] == 0x85 {
			return 2
		}
	case 0xe2:
		if i+2 < len(text) && text[i+1] == 0x80 && (text[i+2] == 0xa8 || text[i+2] == 0xa9) {
			return 3
		}
	}
	return 0
}

// line returns line n (from 1) without its break.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	start, end := s.lines[n-1], len(s.text)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	line := s.text[start:end]
	for i := len(line) - 3; i < len(line); i++ {
		if i >= 0 && breakAt(line, i) > 0 {
			return line[:i]
		}
	}
	return line
}

// offset returns the byte at a column (code points, from 1) of a line; the line's end if it is
// beyond it.
func (s *source) offset(line, col int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.text)
	}
	end := s.lines[line-1] + len(s.line(line))
	c, i := 1, s.lines[line-1]
	if s.near.line == line && s.near.col <= col {
		c, i = s.near.col, s.near.offset
	}
	for ; c < col && i < end; c++ {
		_, n := utf8.DecodeRuneInString(s.text[i:])
		i += n
	}
	s.near.line, s.near.col, s.near.offset = line, c, i
	return i
}

// place returns line and column of a byte offset.
func (s *source) place(offset int) (line, col int) {
	lo, hi := 0, len(s.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, utf8.RuneCountInString(s.text[s.lines[lo]:offset]) + 1
}

// check refuses a text that is no text: too long, not UTF-8, or with characters that YAML forbids.
func (s *source) check() (d Diagnostic, ok bool) {
	if len(s.text) > MaxText {
		return Diagnostic{Line: 1, Col: 1, EndCol: 2,
			Message: fmt.Sprintf("The text has %d KiB; at most %d KiB are read.", (len(s.text)+1023)/1024, MaxText/1024)}, false
	}
	for i, r := range s.text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s.text[i:], "\uFFFD"):
			return s.at(i, fmt.Sprintf("Byte 0x%02x is not UTF-8 text.", s.text[i])), false
		case r < 0x20 && r != '\n' && r != '\r' && r != '\t', r == 0x7f, r >= 0x80 && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			return s.at(i, fmt.Sprintf("Control character U+%04X is not allowed.", r)), false
		case r == 0xfeff && i > 0:
			return s.at(i, "A byte order mark (U+FEFF) is only allowed at the start."), false
		}
	}
	return Diagnostic{}, true
}

func (s *source) at(offset int, message string) Diagnostic {
	line, col := s.place(offset)
	return Diagnostic{Line: line, Col: col, EndCol: col + 1, Message: message}
}

// whole returns the columns of the text of a line: from its first to past its last character
// that is no space, at least one wide.
func (s *source) whole(line int) (col, end int) {
	if s.span.line == line {
		return s.span.col, s.span.end
	}
	defer func() { s.span.line, s.span.col, s.span.end = line, col, end }()
	text := s.line(line)
	trimmed := strings.TrimRight(text, " \t")
	indent := len(trimmed) - len(strings.TrimLeft(trimmed, " \t"))
	return indent + 1, max(indent+2, utf8.RuneCountInString(trimmed)+1)
}
