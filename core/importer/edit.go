package importer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// SetField returns text with the field at path set to value, as a user would type it: only the
// line of that value changes, or one is added. Comments, order and indentation stay. The result
// is read again before it is returned: if anything but that field would have changed, the text
// is left alone and the error says why.
func SetField(text, path, value string) (string, error) {
	value = strings.TrimSpace(value)
	e, err := newEditor(text, path)
	if err != nil {
		return text, err
	}
	out, err := e.set(value)
	if err != nil {
		return text, err
	}
	if err := e.verify(out, value, false); err != nil {
		return text, err
	}
	return out, nil
}

// UnsetField returns text without the field at path, so that its default applies. A text
// without it is returned as it is.
func UnsetField(text, path string) (string, error) {
	e, err := newEditor(text, path)
	if err != nil {
		return text, err
	}
	out, err := e.unset()
	if err != nil || out == text {
		return text, err
	}
	if err := e.verify(out, "", true); err != nil {
		return text, err
	}
	return out, nil
}

// Apply sets the fields of all edits.
func Apply(text string, edits []scenario.Edit) (string, error) {
	for _, x := range edits {
		var err error
		if text, err = SetField(text, x.Path, x.Value); err != nil {
			return text, err
		}
	}
	return text, nil
}

// editor changes one entry of a document.
type editor struct {
	src   *source
	root  *yaml.Node
	mount string
	path  string   // of the field
	keys  []string // the same from the document's root
}

var errElsewhere = errors.New("edit the text itself")

// refuse says why a document cannot be changed for the user.
func (e *editor) refuse(format string, args ...any) error {
	return fmt.Errorf("%s cannot be set here: %s; %w", e.path, fmt.Sprintf(format, args...), errElsewhere)
}

func newEditor(text, path string) (*editor, error) {
	e := &editor{src: newSource(text), path: path}
	if d, ok := e.src.check(); !ok {
		return nil, e.refuse("%s", d.Message)
	}
	root, d, ok := parse(e.src)
	if kind, foreign := detect(e.src, root); foreign {
		translated := Read(text).Document
		if translated == "" {
			return nil, e.refuse("the document is a %v", kind)
		}
		return newEditor(translated, path) // what is edited is the translation
	}
	if !ok {
		return nil, e.refuse("line %d: %s", d.Line, d.Message)
	}
	if root != nil && root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" {
		root = nil
	}
	e.root = root
	e.keys = strings.Split(path, ".")
	if root == nil {
		return e, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, e.refuse("the document is no map of keys")
	}
	b := treeBuilder{src: e.src}
	tree := b.build(root, nil, nil, 0, false)
	if tree == nil || b.stop || len(b.diags) > 0 {
		return nil, e.refuse("%s", b.diags[0].Message)
	}
	switch e.mount = mountOf(tree); {
	case e.mount == wrapper:
		e.keys = append([]string{wrapper}, e.keys...)
	case e.mount != "":
		rest, inside := strings.CutPrefix(path, e.mount+".")
		if !inside { // the section becomes part of a whole document
			return newEditor(e.nest(), path)
		}
		e.keys = strings.Split(rest, ".")
	}
	return e, nil
}

// nest puts a document that is a section below the keys of its mount.
func (e *editor) nest() string {
	var b strings.Builder
	indent := ""
	for _, k := range strings.Split(e.mount, ".") {
		b.WriteString(indent + k + ":" + e.lineBreak())
		indent += strings.Repeat(" ", indentStep)
	}
	text := e.src.text
	for n, start := range e.src.lines {
		end := len(text)
		if n+1 < len(e.src.lines) {
			end = e.src.lines[n+1]
		}
		if line := text[start:end]; strings.TrimSpace(line) != "" {
			b.WriteString(indent + line)
		} else {
			b.WriteString(line)
		}
	}
	return b.String()
}

// entry is a key and its value in a map.
type entry struct {
	key, value *yaml.Node
	index      int // of the key in the map's Content
}

// lookup finds an entry of a map, not one that is merged into it.
func lookup(m *yaml.Node, name string) (entry, bool) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.Kind == yaml.ScalarNode && k.Value == name {
			return entry{k, m.Content[i+1], i}, true
		}
	}
	return entry{}, false
}

// descend follows the keys as far as there are entries. It returns the map that holds the last
// one found or lacks the next, and how many keys were found.
func (e *editor) descend() (m *yaml.Node, last entry, depth int, err error) {
	m = e.root
	for depth < len(e.keys) {
		next, ok := lookup(m, e.keys[depth])
		if !ok {
			return m, last, depth, nil
		}
		last = next
		depth++
		if depth == len(e.keys) {
			return m, last, depth, nil
		}
		switch v := last.value; {
		case v.Kind == yaml.MappingNode:
			m = v
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Value == "" && v.Anchor == "":
			return m, last, depth, nil
		case v.Kind == yaml.AliasNode:
			return nil, last, depth, e.refuse("line %d takes %s from an alias", last.key.Line, e.keys[depth-1])
		default:
			return nil, last, depth, e.refuse("line %d gives %s a value of its own", last.key.Line, e.keys[depth-1])
		}
	}
	return m, last, depth, nil
}

// set returns the text with the value set.
func (e *editor) set(value string) (string, error) {
	if e.root == nil {
		return e.appendTo(len(e.src.text), 0, e.keys, value), nil
	}
	m, last, depth, err := e.descend()
	switch {
	case err != nil:
		return "", err
	case depth == len(e.keys):
		return e.replace(m, last, value)
	case last.value != nil && last.value.Kind == yaml.ScalarNode: // an empty section
		return e.fillSection(m, last, e.keys[depth:], value)
	case m.Style&yaml.FlowStyle != 0:
		return e.insertFlow(m, e.keys[depth:], value)
	default:
		return e.insertBlock(m, depth, value)
	}
}

// replace writes value where the entry's present one stands.
func (e *editor) replace(m *yaml.Node, x entry, value string) (string, error) {
	if x.value.Anchor != "" && aliases(e.root, x.value) {
		return "", e.refuse("line %d shares its value through &%s", x.value.Line, x.value.Anchor)
	}
	flow := m.Style&yaml.FlowStyle != 0
	start, end, err := e.extent(m, x)
	if err != nil {
		return "", err
	}
	out := scalar(value, flow, x.value.Style, x.key.Style == yaml.DoubleQuotedStyle)
	text := e.src.text
	if start > 0 && text[start-1] == ':' { // behind the colon: there was no value, or it stood below
		return text[:start] + " " + out + text[end:], nil
	}
	return text[:start] + out + keepColumn(text[start:end], out, text[end:]), nil
}

// keepColumn returns rest, the text behind a replaced value, with the comment on its line kept
// in its column if there is room.
func keepColumn(was, is, rest string) string {
	spaces := len(rest) - len(strings.TrimLeft(rest, " "))
	if spaces == 0 || spaces == len(rest) || rest[spaces] != '#' || strings.ContainsAny(was, "\r\n") {
		return rest
	}
	grown := utf8.RuneCountInString(is) - utf8.RuneCountInString(was)
	return strings.Repeat(" ", max(1, spaces-grown)) + rest[spaces:]
}

// unset returns the text without the entry.
func (e *editor) unset() (string, error) {
	text := e.src.text
	if e.root == nil {
		return text, nil
	}
	m, x, depth, err := e.descend()
	if err != nil {
		return "", err
	}
	if depth < len(e.keys) {
		return text, nil
	}
	if x.value.Anchor != "" && aliases(e.root, x.value) {
		return "", e.refuse("line %d shares its value through &%s", x.value.Line, x.value.Anchor)
	}
	start := e.src.offset(x.key.Line, x.key.Column)
	if m.Style&yaml.FlowStyle != 0 {
		_, end, err := e.extent(m, x)
		if err != nil {
			return "", err
		}
		return cutFlow(text, start, end), nil
	}
	first, last := x.key.Line, e.lastLine(x)
	if strings.TrimSpace(e.src.line(first)[:start-e.src.lines[first-1]]) != "" {
		return "", e.refuse("line %d holds more than this key", first)
	}
	from, to := e.src.lines[first-1], len(text)
	if last < len(e.src.lines) {
		to = e.src.lines[last]
	}
	return text[:from] + text[to:], nil
}

// cutFlow removes an entry of a flow map with the comma behind or before it.
func cutFlow(text string, start, end int) string {
	rest := strings.TrimLeft(text[end:], " \t")
	if tail, ok := strings.CutPrefix(rest, ","); ok {
		return text[:start] + strings.TrimLeft(tail, " \t")
	}
	head := strings.TrimRight(text[:start], " \t\r\n")
	if strings.HasSuffix(head, ",") {
		return head[:len(head)-1] + text[end:]
	}
	return text[:start] + text[end:]
}

// aliases reports whether an alias of target stands anywhere below n.
func aliases(n, target *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return n.Alias == target
	}
	for _, c := range n.Content {
		if aliases(c, target) {
			return true
		}
	}
	return false
}
