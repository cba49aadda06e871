package importer

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// extent returns the bytes that hold an entry's value, start == end for an empty one.
func (e *editor) extent(m *yaml.Node, x entry) (start, end int, err error) {
	text := e.src.text
	flow := m.Style&yaml.FlowStyle != 0
	v := x.value
	if v.Kind == yaml.ScalarNode && v.Value == "" && v.Style == 0 && v.Anchor == "" && v.Tag == "!!null" {
		at, ok := e.colon(x)
		if !ok {
			return 0, 0, e.refuse("line %d has a key without a colon", x.key.Line)
		}
		return at, at, nil
	}
	start = e.src.offset(v.Line, v.Column)
	body := start
	for body < len(text) && (text[body] == '&' || text[body] == '!') { // anchor and tag
		n := strings.IndexAny(text[body:], " \t\r\n")
		if n < 0 {
			return 0, 0, e.refuse("line %d has a value that is only a tag", v.Line)
		}
		body += n
		body += len(text[body:]) - len(strings.TrimLeft(text[body:], " \t"))
	}
	switch {
	case v.Kind == yaml.AliasNode:
		n := strings.IndexAny(text[start:]+"\n", " \t\r\n,]}")
		return start, start + n, nil
	case v.Kind == yaml.ScalarNode && v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		n := quoted(text[body:])
		if n == 0 {
			return 0, 0, e.refuse("line %d has a quote that does not close", v.Line)
		}
		return start, body + n, nil
	case v.Kind == yaml.ScalarNode && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(text[body:], v.Value):
		return start, body + len(v.Value), nil
	case v.Kind != yaml.ScalarNode && v.Style&yaml.FlowStyle != 0:
		n := closeFlow(text[body:])
		if n == 0 {
			return 0, 0, e.refuse("line %d has a bracket that does not close", v.Line)
		}
		return start, body + n, nil
	case flow:
		return 0, 0, e.refuse("line %d has a value over several lines", v.Line)
	}
	// A block scalar, a plain one over several lines, or a block list or map: to the end of its
	// last line. One that begins on a line of its own is pulled up behind the colon.
	if v.Line > x.key.Line {
		at, ok := e.colon(x)
		if !ok {
			return 0, 0, e.refuse("line %d has a key without a colon", x.key.Line)
		}
		start = at
		if rest := e.src.line(x.key.Line)[at-e.src.lines[x.key.Line-1]:]; strings.TrimSpace(rest) != "" {
			return 0, 0, e.refuse("line %d has a comment between key and value", x.key.Line)
		}
	}
	last := e.lastLine(x)
	return start, e.src.lines[last-1] + len(e.src.line(last)), nil
}

// colon returns the byte behind the colon of an entry's key.
func (e *editor) colon(x entry) (int, bool) {
	text := e.src.text
	i := e.src.offset(x.key.Line, x.key.Column)
	switch {
	case i < len(text) && (text[i] == '"' || text[i] == '\''):
		i += quoted(text[i:])
	case strings.HasPrefix(text[i:], x.key.Value):
		i += len(x.key.Value)
	default:
		return 0, false
	}
	i += len(text[i:]) - len(strings.TrimLeft(text[i:], " \t"))
	if i < len(text) && text[i] == ':' {
		return i + 1, true
	}
	return 0, false
}

// closeFlow returns the length of the flow collection at the start of text, or 0.
func closeFlow(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if i > 0 && strings.IndexByte(" \t\r\n[{,:", text[i-1]) < 0 {
				continue // an apostrophe inside a word
			}
			n := quoted(text[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '#':
			if i > 0 && strings.IndexByte(" \t\r\n", text[i-1]) >= 0 {
				n := strings.IndexAny(text[i:], "\r\n")
				if n < 0 {
					return 0
				}
				i += n
			}
		}
	}
	return 0
}

// lastLine returns the last line of a block entry: it goes on while lines are blank, comments
// or indented deeper than its key (list items also at the key's own indentation).
func (e *editor) lastLine(x entry) int {
	indent := x.key.Column - 1
	last := x.key.Line
	if x.value.Line > last {
		last = x.value.Line
	}
	list := x.value.Kind == yaml.SequenceNode && x.value.Style&yaml.FlowStyle == 0
	quotedScalar := x.value.Kind == yaml.ScalarNode && x.value.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	flowValue := x.value.Kind != yaml.ScalarNode && x.value.Style&yaml.FlowStyle != 0
	if quotedScalar || flowValue { // may hold any line: it ends with its own sign
		body := e.src.offset(x.value.Line, x.value.Column)
		n := closeFlow(e.src.text[body:])
		if quotedScalar {
			n = quoted(e.src.text[body:])
		}
		if n > 0 {
			line, _ := e.src.place(body + n - 1)
			return max(line, last)
		}
	}
	literal := x.value.Kind == yaml.ScalarNode && x.value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	for n := last + 1; n <= len(e.src.lines); n++ {
		line := e.src.line(n)
		body := strings.TrimLeft(line, " ")
		depth := len(line) - len(body)
		switch {
		case strings.TrimSpace(body) == "" || body[0] == '#' && !literal:
			continue // counts only if more follows
		case depth > indent, list && depth == indent && (body == "-" || strings.HasPrefix(body, "- ")):
			last = n
		default:
			return last
		}
	}
	return last
}
