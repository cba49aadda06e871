package importer

import (
	"fmt"
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// reader reads one document.
type reader struct {
	src  *source
	out  Reading
	eval evaluator
	root *node

	// at is where each known path stands: its value, or the key if the value is a section.
	at       map[string]*node
	invalid  []string // fields whose value could not be read
	wrong    []wrongValue
	visits   int
	unknowns []unknownKey
}

func (r *reader) read() {
	if d, ok := r.src.check(); !ok {
		r.out.Kind = NotConfiguration
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		return
	}
	y, d, ok := parse(r.src)
	if kind, foreign := detect(r.src, y); foreign {
		r.out.Kind = kind
		r.foreign(y)
		return
	}
	if !ok {
		r.out.Kind = NotConfiguration
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		return
	}
	if y == nil { // nothing but comments: all defaults, of which there is nothing to say
		return
	}
	b := treeBuilder{src: r.src}
	r.root = b.build(y, nil, nil, 0, false)
	r.out.Diagnostics = append(r.out.Diagnostics, b.diags...)
	if r.root == nil || b.stop {
		return
	}
	if r.root.isNull() || r.root.isMap() && len(r.root.children) == 0 {
		return
	}
	if !r.root.isMap() {
		r.out.Kind = NotConfiguration
		r.report(Error, r.root, "", "A configuration is a map of keys, such as model: and trainer:.")
		return
	}
	mount := mountOf(r.root)
	if mount != "" && mount != wrapper {
		r.out.Kind = NeMoSection
		col, end := r.src.whole(1)
		r.out.Diagnostics = append(r.out.Diagnostics, Diagnostic{Line: 1, Col: col, EndCol: end, Severity: Info,
			Message: "This is the section " + mount + " alone; everything else has its default."})
	}
	r.at = make(map[string]*node, len(scenario.Fields))
	r.eval = evaluator{root: r.root, mount: mount}
	r.nameOptimizer(mount)
	if mount == wrapper {
		for _, c := range r.root.children {
			if c.key.Value == wrapper {
				r.section(c, "")
			} else {
				r.visit(c, c.key.Value)
			}
		}
	} else {
		r.section(r.root, mount)
	}
	r.vocabulary()
	r.sequenceOfData()
	r.validate()
	r.reportUnknown(b.shared)
}

// foreign reads a text of another tool.
func (r *reader) foreign(y *yaml.Node) {
	switch r.out.Kind {
	case MegatronFlags:
		r.translate(readFlags(r.src))
	case MegatronYAML:
		b := treeBuilder{src: r.src}
		r.root = b.build(y, nil, nil, 0, false)
		r.out.Diagnostics = append(r.out.Diagnostics, b.diags...)
		if r.root == nil || b.stop {
			return
		}
		args := r.root.child(modelArgs)
		if args == nil {
			r.translate(yamlFlags(r.src, r.root, nil))
			return
		}
		for _, c := range r.root.children {
			if c != args && c.key.Value != envVars {
				r.key(c, c.key.Value, NoEffect, "about the test, not about a step")
			}
		}
		r.translate(yamlFlags(r.src, args, r.root.child(envVars)))
	default:
		col, end := r.src.whole(1)
		r.out.Diagnostics = append(r.out.Diagnostics, Diagnostic{Line: 1, Col: col, EndCol: end,
			Message: "This is a " + r.out.Kind.String() + ". Such files are not imported yet; NeMo YAML and Megatron-LM's flags are."})
	}
}

// nameOptimizer reads model.optim.name first, because defaults follow from it.
func (r *reader) nameOptimizer(mount string) {
	n := r.find(mount, "model.optim.name")
	if n == nil || !n.isScalar() {
		return
	}
	v, err := r.eval.eval(n)
	if err != nil {
		return // reported when its turn comes
	}
	f, _ := scenario.ByPath("model.optim.name")
	if probe := r.out.Scenario; f.Set(&probe, v.text) == nil {
		r.out.Scenario = scenario.Default(probe.Optim.Name)
	}
}

// find returns the node at a field's path, or nil.
func (r *reader) find(mount, path string) *node {
	n := r.root
	switch {
	case mount == wrapper:
		n = n.child(wrapper)
	case mount != "":
		rest, ok := strings.CutPrefix(path, mount+".")
		if !ok {
			return nil
		}
		path = rest
	}
	for _, k := range strings.Split(path, ".") {
		n = n.child(k)
	}
	return n
}

// section visits the entries of a map at path.
func (r *reader) section(n *node, path string) {
	for _, c := range n.children {
		if path == "" {
			r.visit(c, c.key.Value)
		} else {
			r.visit(c, path+"."+c.key.Value)
		}
	}
}

// visit finds out what the entry at path is.
func (r *reader) visit(n *node, path string) {
	if r.visits++; r.visits > MaxNodes {
		return
	}
	if strings.Contains(n.key.Value, ".") { // a path as a key: OmegaConf does not split it
		r.unknown(n, path)
		return
	}
	if f, ok := scenario.ByPath(path); ok {
		r.field(n, f)
		return
	}
	if known.own[path] {
		r.own(n, path)
		return
	}
	if a := known.assumed[path]; a != nil {
		r.assumption(n, a)
		return
	}
	if known.sections[path] && known.why[path] == "" {
		r.at[path] = n
		if inner := r.through(n); inner != nil && inner.isMap() {
			r.section(inner, path)
			return
		}
		if n.isNull() {
			r.key(n, path, NoEffect, "an empty section")
			return
		}
		r.report(Error, n, path, fmt.Sprintf("%s is a section: its keys stand below it, indented.", path))
		r.key(n, path, Unsupported, "a section is wanted here")
		return
	}
	if why := known.why[path]; why != "" {
		if n.isMap() && known.sections[path] { // of whose keys the reader looks at some
			r.ownSection(n, path, why)
			return
		}
		r.key(n, path, NoEffect, why)
		return
	}
	r.unknown(n, path)
}

// through follows an interpolation that stands for a section.
func (r *reader) through(n *node) *node {
	if !n.isScalar() || n.isNull() {
		return n
	}
	v, err := r.eval.eval(n)
	if err != nil || v.kind != aSection {
		return nil
	}
	for p := n; p != nil; p = p.parent { // a section inside itself would never end
		if p == v.node {
			return nil
		}
	}
	return v.node
}

// ownSection lists a section without effect as one key, after the keys in it that are looked at.
func (r *reader) ownSection(n *node, path, why string) {
	rest := 0
	for _, c := range n.children {
		inner := path + "." + c.key.Value
		if _, isField := scenario.ByPath(inner); isField || known.own[inner] {
			r.visit(c, inner)
			continue
		}
		rest += c.leaves()
	}
	if rest > 0 {
		r.key(n, path, NoEffect, why).Count = rest
	}
}

// diagnostic is a remark at a value; at its key if the value is a section or empty.
func (r *reader) diagnostic(s Severity, n *node, path, message string) Diagnostic {
	y := n.yaml
	if n.key != nil && (!n.isScalar() || y.Value == "" && y.Style == 0) || n.aliased && n.key != nil {
		y = n.key
	}
	return Diagnostic{Line: y.Line, Col: y.Column, EndCol: r.src.end(y), Severity: s, Path: path, Message: message}
}

func (r *reader) report(s Severity, n *node, path, message string) {
	r.out.Diagnostics = append(r.out.Diagnostics, r.diagnostic(s, n, path, message))
}

// wrongValue is an error about a field's value and its diagnostic.
type wrongValue struct {
	err        *scenario.FieldError
	diagnostic int
}

func (r *reader) reportField(n *node, e *scenario.FieldError) {
	r.wrong = append(r.wrong, wrongValue{e, len(r.out.Diagnostics)})
	d := r.diagnostic(Error, n, e.Path, e.Problem())
	d.Fix, d.Edits = e.Fix, e.Edits
	r.out.Diagnostics = append(r.out.Diagnostics, d)
}
