package importer

import (
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

const indentStep = 2

// lineBreak returns the line break that the text uses.
func (e *editor) lineBreak() string {
	switch i := strings.IndexByte(e.src.text, '\n'); {
	case i > 0 && e.src.text[i-1] == '\r':
		return "\r\n"
	case i < 0 && strings.IndexByte(e.src.text, '\r') >= 0:
		return "\r"
	default:
		return "\n"
	}
}

// lines writes nested keys with a value, one a line.
func (e *editor) lines(indent int, keys []string, value string) string {
	var b strings.Builder
	for i, k := range keys {
		b.WriteString(strings.Repeat(" ", indent+i*indentStep) + k + ":")
		if i == len(keys)-1 {
			b.WriteString(" " + scalar(value, false, 0, false))
		}
		b.WriteString(e.lineBreak())
	}
	return b.String()
}

// appendTo adds nested keys at a byte offset, on lines of their own.
func (e *editor) appendTo(offset, indent int, keys []string, value string) string {
	text := e.src.text
	head := text[:offset]
	if trimmed := strings.TrimPrefix(head, byteOrderMark); trimmed != "" && !strings.HasSuffix(head, "\n") && !strings.HasSuffix(head, "\r") {
		head += e.lineBreak()
	}
	return head + e.lines(indent, keys, value) + text[offset:]
}

// insertBlock adds the missing keys to a block map: behind the nearest entry that the field
// table lists before them, else behind the last one. A new section of the whole document goes to
// its end, after a blank line.
func (e *editor) insertBlock(m *yaml.Node, depth int, value string) (string, error) {
	if len(m.Content) == 0 {
		return "", e.refuse("line %d has an empty map", m.Line)
	}
	text := e.src.text
	after := entry{m.Content[len(m.Content)-2], m.Content[len(m.Content)-1], len(m.Content) - 2}
	indent := m.Content[0].Column - 1
	top := depth == 0 || depth == 1 && e.mount == wrapper
	if x, ok := e.before(m, depth); ok && !top {
		after = x
	} else if first := m.Content[0].Line; !top && m.Content[1].Kind != yaml.ScalarNode && !e.comment(first-1) {
		// Nothing comes before, and sections follow: values stand above sections.
		return e.appendTo(e.src.lines[first-1], indent, e.keys[depth:], value), nil
	}
	last := e.lastLine(after)
	offset := len(text)
	if last < len(e.src.lines) {
		offset = e.src.lines[last]
	}
	if top && len(e.keys)-depth > 1 && strings.HasSuffix(text[:offset], e.lineBreak()) {
		return text[:offset] + e.lineBreak() + e.lines(indent, e.keys[depth:], value) + text[offset:], nil
	}
	return e.appendTo(offset, indent, e.keys[depth:], value), nil
}

// comment reports whether a line is a comment.
func (e *editor) comment(line int) bool {
	return strings.HasPrefix(strings.TrimSpace(e.src.line(line)), "#")
}

// before returns the entry of m whose field stands nearest before the new one in the table, if
// it is a value on one line.
func (e *editor) before(m *yaml.Node, depth int) (entry, bool) {
	section := strings.Join(e.keys[:depth], ".")
	if e.mount == wrapper {
		section = strings.TrimPrefix(strings.TrimPrefix(section, wrapper), ".")
	} else if e.mount != "" {
		section = strings.TrimSuffix(e.mount+"."+section, ".")
	}
	var found entry
	ok := false
	for i := range scenario.Fields {
		path := scenario.Fields[i].Path
		if path == e.path {
			break
		}
		name, inside := strings.CutPrefix(path, section+".")
		if !inside || strings.Contains(name, ".") {
			continue
		}
		if x, has := lookup(m, name); has && x.value.Kind == yaml.ScalarNode && x.value.Line == x.key.Line {
			found, ok = x, true
		}
	}
	return found, ok
}

// fillSection writes the missing keys below a key without a value.
func (e *editor) fillSection(m *yaml.Node, section entry, keys []string, value string) (string, error) {
	at, ok := e.colon(section)
	if !ok {
		return "", e.refuse("line %d has a key without a colon", section.key.Line)
	}
	if m.Style&yaml.FlowStyle != 0 {
		return e.src.text[:at] + " " + flowEntry(keys, value, section.key.Style == yaml.DoubleQuotedStyle, true) + e.src.text[at:], nil
	}
	offset := len(e.src.text)
	if section.key.Line < len(e.src.lines) {
		offset = e.src.lines[section.key.Line]
	}
	return e.appendTo(offset, section.key.Column-1+indentStep, keys, value), nil
}

// insertFlow adds the missing keys at the end of a flow map.
func (e *editor) insertFlow(m *yaml.Node, keys []string, value string) (string, error) {
	text := e.src.text
	start := e.src.offset(m.Line, m.Column)
	for start < len(text) && text[start] != '{' { // anchor and tag
		start++
	}
	n := closeFlow(text[start:])
	if n == 0 {
		return "", e.refuse("line %d has a bracket that does not close", m.Line)
	}
	end := start + n - 1 // of the closing brace
	json := len(m.Content) > 0 && m.Content[0].Style == yaml.DoubleQuotedStyle
	if len(m.Content) == 0 {
		return text[:end] + flowEntry(keys, value, json, false) + text[end:], nil
	}
	// Behind the last value, so that a comment before the brace stays one.
	x := entry{m.Content[len(m.Content)-2], m.Content[len(m.Content)-1], len(m.Content) - 2}
	_, at, err := e.extent(m, x)
	if err != nil {
		return "", err
	}
	return text[:at] + ", " + flowEntry(keys, value, json, false) + text[at:], nil
}

// flowEntry writes nested keys as a flow map's entry, in braces if asked for.
func flowEntry(keys []string, value string, json, braces bool) string {
	key := keys[0]
	if json {
		key = `"` + key + `"`
	}
	out := key + ": "
	if len(keys) > 1 {
		out += flowEntry(keys[1:], value, json, true)
	} else {
		out += scalar(value, true, 0, json)
	}
	if braces {
		return "{" + out + "}"
	}
	return out
}
