package importer

import (
	"strconv"
	"strings"
)

// Section returns what a document gives below path, such as model.optim, with interpolations
// evaluated: numbers, booleans, texts, nil, lists and maps, as JSON has them. What has no value
// is left out. It is nil if there is no such section, or no document.
func Section(text, path string) map[string]any {
	r := reader{src: newSource(text)}
	if _, ok := r.src.check(); !ok {
		return nil
	}
	y, _, ok := parse(r.src)
	if !ok || y == nil {
		return nil
	}
	b := treeBuilder{src: r.src}
	r.root = b.build(y, nil, nil, 0, false)
	if r.root == nil || b.stop || !r.root.isMap() {
		return nil
	}
	mount := mountOf(r.root)
	r.eval = evaluator{root: r.root, mount: mount}
	n := r.root
	if path != mount {
		n = r.find(mount, path)
	}
	if n == nil {
		return nil
	}
	w := plainWriter{eval: &r.eval}
	v, _ := w.plain(n, 0)
	m, _ := v.(map[string]any)
	return m
}

// plainWriter turns nodes into plain values.
type plainWriter struct {
	eval  *evaluator
	count int
}

// plain returns the value of a node; ok is false if it has none.
func (w *plainWriter) plain(n *node, depth int) (value any, ok bool) {
	if w.count++; w.count > MaxNodes || depth > MaxDepth { // sections may refer to themselves
		return nil, false
	}
	v, err := w.eval.eval(n)
	if err != nil {
		return nil, false
	}
	switch v.kind {
	case aNull:
		return nil, true
	case anInt:
		i, err := strconv.ParseInt(v.text, 10, 64)
		return i, err == nil
	case aFloat:
		return v.number, true
	case aText:
		if low := strings.ToLower(v.text); n.yaml.Style == 0 && (low == "true" || low == "false") {
			return low == "true", true
		}
		return v.text, true
	}
	if v.node.isMap() {
		m := make(map[string]any, len(v.node.children))
		for _, c := range v.node.children {
			if x, ok := w.plain(c, depth+1); ok {
				m[c.key.Value] = x
			}
		}
		return m, true
	}
	list := make([]any, 0, len(v.node.children))
	for _, c := range v.node.children {
		if x, ok := w.plain(c, depth+1); ok {
			list = append(list, x)
		}
	}
	return list, true
}
