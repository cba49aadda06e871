package importer

import (
	"fmt"
	"strings"

	"distopt/core/scenario"
	"distopt/core/units"

	"go.yaml.in/yaml/v3"
)

// reader reads one document.
type reader struct {
	src  *source
	out  Reading
	eval evaluator
	root *node

	mcore bool // the document names mcore_distributed_optim
	// at is where each known path stands: its value, or the key if the value is a section.
	at       map[string]*node
	invalid  []string // fields whose value could not be read
	visits   int
	unknowns int
}

func (r *reader) read() {
	if d, ok := r.src.check(); !ok {
		r.out.Kind = NotConfiguration
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		return
	}
	y, d, ok := parse(r.src)
	if kind, d, foreign := detect(r.src, y); foreign {
		r.out.Kind = kind
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		return
	}
	if !ok {
		r.out.Kind = NotConfiguration
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		return
	}
	if y == nil { // nothing but comments: all defaults
		r.validate()
		return
	}
	b := treeBuilder{src: r.src}
	r.root = b.build(y, nil, nil, 0, false)
	r.out.Diagnostics = append(r.out.Diagnostics, b.diags...)
	if r.root == nil || b.stop {
		return
	}
	if r.root.isNull() {
		r.validate()
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
	r.mcore = v.text == mcoreOptim
	if strings.EqualFold(v.text, scenario.PlainApex) {
		r.out.Scenario = scenario.Default(scenario.PlainApex)
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
			r.key(n, path, Key{Status: NoEffect, Why: "an empty section"})
			return
		}
		r.report(Error, n, path, fmt.Sprintf("%s is a section: its keys stand below it, indented.", path))
		r.key(n, path, Key{Status: Unsupported, Why: "a section is wanted here"})
		return
	}
	if why := known.why[path]; why != "" {
		if n.isMap() && known.sections[path] { // of whose keys the reader looks at some
			r.ownSection(n, path, why)
			return
		}
		r.key(n, path, Key{Status: NoEffect, Why: why})
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
		k := Key{Status: NoEffect, Why: why, Count: rest}
		r.key(n, path, k)
	}
}

// field reads a field's value.
func (r *reader) field(n *node, f *scenario.Field) {
	r.at[f.Path] = n
	if r.mcore && known.apex[f.Path] {
		r.key(n, f.Path, Key{Status: NoEffect, Why: mcoreOptim + " does not read it"})
		return
	}
	v, err := r.eval.eval(n)
	if err != nil {
		r.report(Error, n, f.Path, err.Error())
		r.reject(n, f)
		return
	}
	if v.kind == aSection {
		what := "a list"
		if v.node.isMap() {
			what = "a section"
		}
		r.report(Error, n, f.Path, "got "+what+", want "+f.Want())
		r.reject(n, f)
		return
	}
	if wrong := f.Set(&r.out.Scenario, v.text); wrong != nil {
		if f.Path == "model.optim.name" {
			wrong = otherOptimizer(wrong, v.text)
		}
		r.reportField(n, wrong)
		r.reject(n, f)
		return
	}
	k := Key{Status: Used, Value: f.Get(&r.out.Scenario)}
	if v.source != "" {
		k.Why = v.source
	}
	if f.Path == "model.optim.name" && r.out.Scenario.Plain() {
		k.Why = "Apex by itself"
	}
	if !f.Applies(&r.out.Scenario) {
		k = Key{Status: NoEffect, Why: "NeMo decides this by itself"}
	}
	r.key(n, f.Path, k)
}

func (r *reader) reject(n *node, f *scenario.Field) {
	r.invalid = append(r.invalid, f.Path)
	r.key(n, f.Path, Key{Status: Unsupported, Why: "its value could not be used"})
}

// otherOptimizer says of an optimizer that is not simulated that it is not.
func otherOptimizer(e *scenario.FieldError, name string) *scenario.FieldError {
	switch name {
	case mcoreOptim:
		e.Want = "distributed_fused_adam: Megatron-core's optimizer is not simulated yet, and its buckets differ"
	default:
		e.Want = "distributed_fused_adam: no other optimizer is simulated yet"
	}
	e.Edits = []scenario.Edit{{Path: e.Path, Value: scenario.NeMoAdam}}
	e.Fix = "set " + e.Path + " to " + scenario.NeMoAdam + " to simulate Apex's with this model"
	return e
}

// assumption compares a key with the one value that is simulated.
func (r *reader) assumption(n *node, a *assumption) {
	r.at[a.path] = n
	v, err := r.eval.eval(n)
	same := err == nil && (v.kind == aNull || sameValue(v.text, a.value))
	switch {
	case err != nil && a.severity == Error:
		r.report(Error, n, a.path, err.Error())
		r.key(n, a.path, Key{Status: Unsupported, Why: "its value could not be read"})
	case same:
		r.key(n, a.path, Key{Status: NoEffect, Why: "simulated with this value"})
	default:
		got := scenario.Quote(v.text)
		if v.kind == aSection {
			got = "a section or list"
		}
		message := fmt.Sprintf("got %s, want %s: %s", got, a.value, a.why)
		edits := []scenario.Edit{{Path: a.path, Value: a.value}}
		d := r.diagnostic(a.severity, n, a.path, message)
		d.Fix, d.Edits = "set "+a.path+" to "+a.value, edits
		r.out.Diagnostics = append(r.out.Diagnostics, d)
		r.key(n, a.path, Key{Status: Unsupported, Why: a.why})
	}
}

// sameValue compares values as a document writes them.
func sameValue(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	switch strings.ToLower(a) {
	case "no", "off", "n":
		return b == "false"
	case "yes", "on", "y":
		return b == "true"
	}
	return false
}

// unknown lists a key that nothing is known of.
func (r *reader) unknown(n *node, path string) {
	near := ""
	if r.unknowns++; r.unknowns <= maxReports {
		near = known.nearest(path)
		d := Diagnostic{Line: n.key.Line, Col: n.key.Column, EndCol: r.src.end(n.key), Severity: Warning, Path: scenario.Visible(path)}
		d.Message = scenario.Quote(path) + " is not a key and is ignored."
		switch {
		case r.unknowns == maxReports:
			d.Message = "More keys are not known and are ignored, from here on without a remark."
		case near != "":
			d.Message += " Did you mean " + near + "?"
		}
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
	r.key(n, path, Key{Status: Unknown, Near: near})
}

// key lists a key.
func (r *reader) key(n *node, path string, k Key) {
	k.Path, k.Line, k.Col, k.EndCol = scenario.Visible(path), n.key.Line, n.key.Column, r.src.end(n.key)
	if k.Count == 0 {
		k.Count = n.leaves()
	}
	r.out.Keys = append(r.out.Keys, k)
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

func (r *reader) reportField(n *node, e *scenario.FieldError) {
	d := r.diagnostic(Error, n, e.Path, e.Problem())
	d.Fix, d.Edits = e.Fix, e.Edits
	r.out.Diagnostics = append(r.out.Diagnostics, d)
}

// validate adds what is wrong with the scenario as a whole.
func (r *reader) validate() {
	errs, notes := r.out.Scenario.Validate(r.invalid...)
	for _, e := range errs {
		d := r.nearest(e.Path)
		d.Severity, d.Path, d.Message, d.Fix, d.Edits = Error, e.Path, e.Problem(), e.Fix, e.Edits
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
	for _, n := range notes {
		d := r.nearest(n.Path)
		d.Severity, d.Path, d.Message, d.Edits = Info, n.Path, n.Text, n.Edits
		if n.Warning {
			d.Severity = Warning
		}
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
}

// nearest places a remark on a field: at its value, else at the section that would hold it, else
// at the first line.
func (r *reader) nearest(path string) Diagnostic {
	for {
		if n := r.at[path]; n != nil {
			return r.diagnostic(Error, n, path, "")
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			break
		}
		path = path[:i]
	}
	col, end := r.src.whole(1)
	return Diagnostic{Line: 1, Col: col, EndCol: end}
}

// own treats the keys that are no fields but say something.
func (r *reader) own(n *node, path string) {
	r.at[path] = n
	k := Key{Status: NoEffect}
	v, err := r.eval.eval(n)
	switch path {
	case "name", "run.name":
		k.Why = "names the result"
		if err == nil && v.kind != aSection && v.kind != aNull && (path == "name" || r.out.Scenario.Name == "") {
			r.out.Scenario.Name = scenario.Visible(v.text)
		}
	case "model.data.seq_length":
		k.Why = "model.encoder_seq_length counts"
	default:
		k.Why = "the size of the vocabulary is what counts"
	}
	r.key(n, path, k)
}

// text returns the value of a key that own has seen.
func (r *reader) text(path string) string {
	n := r.at[path]
	if n == nil {
		return ""
	}
	v, err := r.eval.eval(n)
	if err != nil || v.kind == aNull || v.kind == aSection {
		return ""
	}
	return v.text
}

// vocabulary takes the size of the tokenizer that the document names.
func (r *reader) vocabulary() {
	const path = "model.tokenizer.vocab_size"
	if r.at[path] != nil || r.at["model.override_vocab_size"] != nil {
		return
	}
	for _, key := range []string{"model.tokenizer.type", "model.tokenizer.model", "model.tokenizer.library"} {
		if size := vocabulary(r.text(key)); size > 0 {
			r.out.Scenario.Model.TokenizerVocab = size
			for i := range r.out.Keys {
				if k := &r.out.Keys[i]; k.Path == key {
					k.Status, k.Value, k.Why = Used, scenario.Visible(r.text(key)), "a vocabulary of "+units.Count(int64(size))
				}
			}
			return
		}
	}
	if n := r.at["model.tokenizer.library"]; n != nil {
		d := r.diagnostic(Warning, n, path, fmt.Sprintf("The vocabulary is the tokenizer's, which is not known here; %s tokens are assumed.",
			units.Count(int64(r.out.Scenario.Model.TokenizerVocab))))
		d.Fix = "set " + path
		r.out.Diagnostics = append(r.out.Diagnostics, d)
	}
}

// sequenceOfData remarks on data that is cut otherwise than the model expects.
func (r *reader) sequenceOfData() {
	const path = "model.data.seq_length"
	if n := r.at[path]; n != nil {
		if text := r.text(path); text != "" && text != fmt.Sprint(r.out.Scenario.Model.SeqLength) {
			r.report(Warning, n, path, fmt.Sprintf("Sequences are simulated with model.encoder_seq_length (%d), not with this.", r.out.Scenario.Model.SeqLength))
		}
	}
}

// kindOf returns the kind of a YAML node, 0 for none.
func kindOf(y *yaml.Node) yaml.Kind {
	if y == nil {
		return 0
	}
	return y.Kind
}
