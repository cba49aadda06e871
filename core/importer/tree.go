package importer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"distopt/core/scenario"
	"distopt/core/units"

	"go.yaml.in/yaml/v3"
)

// node is a value of the document with aliases and merges resolved.
type node struct {
	yaml     *yaml.Node // the value; never an alias
	key      *yaml.Node // of a map's entry, nil for items of a list and the root
	parent   *node
	children []*node // of a map: entries in order, merged ones last; of a list: items
	merged   bool    // came through "<<"
	aliased  bool    // it or something above it was reached through an alias
	read     bool    // an interpolation has read it

	state evalState // of interpolation
	value value
	fail  string
}

func (n *node) isMap() bool    { return n.yaml.Kind == yaml.MappingNode }
func (n *node) isList() bool   { return n.yaml.Kind == yaml.SequenceNode }
func (n *node) isScalar() bool { return n.yaml.Kind == yaml.ScalarNode }

// isNull reports whether the document gives no value, or one of YAML's nulls unquoted.
func (n *node) isNull() bool { return n.isScalar() && n.yaml.Tag == "!!null" }

// child returns the entry of a map.
func (n *node) child(name string) *node {
	if n == nil || !n.isMap() {
		return nil
	}
	for _, c := range n.children {
		if c.key.Value == name {
			return c
		}
	}
	return nil
}

// leaves counts the scalars below n.
func (n *node) leaves() int {
	if n.isScalar() {
		return 1
	}
	total := 0
	for _, c := range n.children {
		total += c.leaves()
	}
	return total
}

// referred reports whether an interpolation has read n or something in it, or an alias or merge
// repeats it.
func (n *node) referred(shared map[*yaml.Node]bool) bool {
	if n.read || shared[n.yaml] {
		return true
	}
	for _, c := range n.children {
		if c.referred(shared) {
			return true
		}
	}
	return false
}

// maxReports bounds the remarks of one kind on a document: the first ones say what is wrong.
const maxReports = 50

// treeBuilder resolves a YAML tree within limits.
type treeBuilder struct {
	src   *source
	count int
	slab  []node
	diags []Diagnostic
	stop  bool // a limit was passed

	shared map[*yaml.Node]bool // what an alias stands for
}

// build resolves y as a child of parent. It is nil once a limit is passed.
func (b *treeBuilder) build(y, key *yaml.Node, parent *node, depth int, aliased bool) *node {
	place := y
	if y.Kind == yaml.AliasNode {
		y, aliased = b.follow(y), true
	}
	b.count++
	switch {
	case b.stop:
		return nil
	case b.count > MaxNodes:
		b.refuse(place, fmt.Sprintf("The document holds more than %s values, aliases expanded.", units.Count(MaxNodes)))
		return nil
	case depth > MaxDepth:
		b.refuse(place, fmt.Sprintf("The document is nested too deeply; at most %d levels are read.", MaxDepth))
		return nil
	}
	if len(b.slab) == 0 {
		b.slab = make([]node, 128)
	}
	n := &b.slab[0]
	b.slab = b.slab[1:]
	n.yaml, n.key, n.parent, n.aliased = y, key, parent, aliased
	switch y.Kind {
	case yaml.MappingNode:
		b.entries(n, depth)
	case yaml.SequenceNode:
		n.children = make([]*node, 0, len(y.Content))
		for _, item := range y.Content {
			if c := b.build(item, nil, n, depth+1, aliased); c != nil {
				n.children = append(n.children, c)
			}
		}
	}
	return n
}

// follow returns what an alias stands for.
func (b *treeBuilder) follow(alias *yaml.Node) *yaml.Node {
	if b.shared == nil {
		b.shared = make(map[*yaml.Node]bool)
	}
	b.shared[alias.Alias] = true
	return alias.Alias
}

// entries adds the entries of a map: its own in order, then those of its merges that it does not
// give itself.
func (b *treeBuilder) entries(n *node, depth int) {
	y := n.yaml
	n.children = make([]*node, 0, len(y.Content)/2)
	seen := make(map[string]*yaml.Node, len(y.Content)/2)
	merges := false
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			b.report(key, "A key must be a word, not a list or a map.")
			continue
		}
		if key.Tag == "!!merge" {
			merges = true
			continue
		}
		if first, twice := seen[key.Value]; twice {
			if len(b.diags) < maxReports {
				d := b.at(key, fmt.Sprintf("The key %s is given twice: here and on line %d.", scenario.Quote(key.Value), first.Line))
				d.Fix = fmt.Sprintf("remove one; the one on line %d is read", first.Line)
				b.diags = append(b.diags, d)
			}
			continue
		}
		seen[key.Value] = key
		if c := b.build(y.Content[i+1], key, n, depth+1, n.aliased); c != nil {
			n.children = append(n.children, c)
		}
	}
	if !merges {
		return
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag == "!!merge" {
			b.merge(n, y.Content[i+1], seen, depth)
		}
	}
}

// merge adds the entries of from, a map or a list of maps, that n does not have.
func (b *treeBuilder) merge(n *node, from *yaml.Node, seen map[string]*yaml.Node, depth int) {
	if b.count++; b.count > MaxNodes || depth > MaxDepth {
		b.refuse(from, fmt.Sprintf("The document holds more than %s values, merges expanded.", units.Count(MaxNodes)))
		return
	}
	place := from
	if from.Kind == yaml.AliasNode {
		from = b.follow(from)
	}
	switch from.Kind {
	case yaml.SequenceNode:
		for _, f := range from.Content {
			b.merge(n, f, seen, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(from.Content) && !b.stop; i += 2 {
			key := from.Content[i]
			if key.Tag == "!!merge" {
				b.merge(n, from.Content[i+1], seen, depth+1)
				continue
			}
			if key.Kind != yaml.ScalarNode || seen[key.Value] != nil {
				continue
			}
			seen[key.Value] = key
			if c := b.build(from.Content[i+1], key, n, depth+1, true); c != nil {
				c.merged = true
				n.children = append(n.children, c)
			}
		}
	default:
		b.report(place, "Only a map, or a list of maps, can be merged by <<.")
	}
}

func (b *treeBuilder) refuse(y *yaml.Node, message string) {
	if !b.stop {
		b.stop = true
		b.report(y, message)
	}
}

func (b *treeBuilder) report(y *yaml.Node, message string) {
	if len(b.diags) >= maxReports && !b.stop {
		return
	}
	b.diags = append(b.diags, b.at(y, message))
}

func (b *treeBuilder) at(y *yaml.Node, message string) Diagnostic {
	return Diagnostic{Line: y.Line, Col: y.Column, EndCol: b.src.end(y), Message: message}
}

// end returns the column past a node on its first line: of a plain scalar its own length, of a
// quoted one its closing quote, of all else the end of the line.
func (s *source) end(y *yaml.Node) int {
	_, lineEnd := s.whole(y.Line)
	if y.Kind != yaml.ScalarNode {
		return max(lineEnd, y.Column+1)
	}
	if y.Style == 0 {
		return max(min(y.Column+utf8.RuneCountInString(y.Value), lineEnd), y.Column+1)
	}
	start := s.offset(y.Line, y.Column)
	if start < len(s.text) && (y.Style == yaml.SingleQuotedStyle || y.Style == yaml.DoubleQuotedStyle) {
		if n := quoted(s.text[start:]); n > 0 && !strings.ContainsAny(s.text[start:start+n], "\n\r") {
			return y.Column + utf8.RuneCountInString(s.text[start:start+n])
		}
	}
	return max(lineEnd, y.Column+1)
}

// quoted returns the length of the quoted scalar at the start of text, or 0.
func quoted(text string) int {
	if text == "" {
		return 0
	}
	q := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && q == '"':
			i++
		case text[i] != q:
		case q == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return 0
}
