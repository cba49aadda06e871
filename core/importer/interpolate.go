package importer

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/scenario"
	"distopt/core/units"
)

// Limits of interpolation: its depth, how many are evaluated, and the length of what they give.
const (
	maxEvalDepth = 64
	maxEvals     = 10_000
	maxEvalText  = 4096
)

type evalState uint8

const (
	notEvaluated evalState = iota
	evaluating
	evaluated
)

// value is what a scalar or an interpolation stands for.
type value struct {
	text   string  // as a document would write it; "null" for null
	number float64 // if numeric
	kind   valueKind
	node   *node  // if kind is aSection
	source string // how it came about, if that needs saying: "from the default of X"
}

type valueKind uint8

const (
	aText valueKind = iota
	aNull
	anInt
	aFloat
	aSection
)

func textValue(text string) value { return value{text: text} }

// scalarValue types unquoted text as YAML does.
func scalarValue(text string) value {
	if n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64); err == nil {
		return intValue(n)
	}
	switch text {
	case "null", "~", "":
		return value{text: scenario.Null, kind: aNull}
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		if x, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64); err == nil {
			return value{text: text, number: x, kind: aFloat}
		}
	}
	return textValue(text)
}

func intValue(n int64) value {
	return value{text: strconv.FormatInt(n, 10), number: float64(n), kind: anInt}
}

func floatValue(x float64) value {
	return value{text: strconv.FormatFloat(x, 'g', -1, 64), number: x, kind: aFloat}
}

// evalError says why an interpolation has no value.
type evalError string

func (e evalError) Error() string { return string(e) }

func failEval(format string, args ...any) (value, error) {
	return value{}, evalError(fmt.Sprintf(format, args...))
}

// evaluator gives nodes their values, each once.
type evaluator struct {
	root  *node
	mount string // path of the root, "" for a whole document
	evals int
	depth int
}

// eval returns the value of a scalar or, through an interpolation, of a section.
func (e *evaluator) eval(n *node) (value, error) {
	if !n.isScalar() {
		return value{kind: aSection, node: n}, nil
	}
	text := n.yaml.Value
	if !strings.Contains(text, "${") {
		switch {
		case text == "???":
			return failEval("A value is missing here (??? marks it as mandatory).")
		case n.yaml.Style == 0:
			return scalarValue(text), nil
		default:
			return textValue(text), nil
		}
	}
	switch n.state {
	case evaluated:
		if n.fail != "" {
			return value{}, evalError(n.fail)
		}
		return n.value, nil
	case evaluating:
		return failEval("The interpolation %s leads back to itself.", scenario.Quote(text))
	}
	n.state = evaluating
	v, err := e.expand(n, text)
	n.state, n.value = evaluated, v
	if err != nil {
		n.fail = err.Error()
	}
	return v, err
}

// expand evaluates the interpolations in text, which stands at node at. One that is the whole
// text keeps its type.
func (e *evaluator) expand(at *node, text string) (value, error) {
	if strings.HasPrefix(text, "${") && closing(text, 2) == len(text)-1 {
		return e.interpolation(at, text[2:len(text)-1])
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] == '\\' && strings.HasPrefix(text[i:], `\${`) { // escaped
			b.WriteString("${")
			i += 3
			continue
		}
		if !strings.HasPrefix(text[i:], "${") {
			b.WriteByte(text[i])
			i++
			continue
		}
		end := closing(text, i+2)
		if end < 0 {
			return failEval("The interpolation %s is not closed.", scenario.Quote(text[i:]))
		}
		v, err := e.interpolation(at, text[i+2:end])
		if err != nil {
			return v, err
		}
		if v.kind == aSection {
			return failEval("%s is a section, not a value.", scenario.Quote(text[i:end+1]))
		}
		b.WriteString(v.text)
		if b.Len() > maxEvalText {
			return failEval("The interpolation %s gives more than %d bytes.", scenario.Quote(text), maxEvalText)
		}
		i = end + 1
	}
	return textValue(b.String()), nil
}

// closing returns the index of the brace that closes the interpolation whose content begins at
// byte i, or -1.
func closing(text string, i int) int {
	depth := 1
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		case '\'', '"':
			if n := quoted(text[i:]); n > 0 {
				i += n - 1
			}
		}
	}
	return -1
}

// interpolation evaluates what stands between ${ and }.
func (e *evaluator) interpolation(at *node, content string) (value, error) {
	if e.evals++; e.evals > maxEvals {
		return failEval("The document has more than %s interpolations.", units.Count(maxEvals))
	}
	if e.depth++; e.depth > maxEvalDepth {
		e.depth--
		return failEval("Interpolations are nested more than %d deep.", maxEvalDepth)
	}
	defer func() { e.depth-- }()
	content = strings.TrimSpace(content)
	if name, args, ok := strings.Cut(content, ":"); ok && isResolver(name) {
		return e.resolve(at, name, splitArgs(args))
	}
	if strings.Contains(content, "${") {
		inner, err := e.expand(at, content)
		if err != nil {
			return inner, err
		}
		content = inner.text
	}
	n, err := e.lookup(at, content)
	if err != nil {
		return value{}, err
	}
	return e.eval(n)
}

func isResolver(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c == '_' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != "" && name[0] != '.'
}

// splitArgs splits at commas outside of quotes, braces and brackets.
func splitArgs(text string) []string {
	var args []string
	depth, start := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case '\'', '"':
			if n := quoted(text[i:]); n > 0 {
				i += n - 1
			}
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		}
	}
	return append(args, strings.TrimSpace(text[start:]))
}

// lookup finds the node of a path. A leading dot stands for the section that holds at, each
// further one for the section above.
func (e *evaluator) lookup(at *node, path string) (*node, error) {
	base, rest := e.root, path
	if strings.HasPrefix(path, ".") {
		base = at
		for strings.HasPrefix(rest, ".") {
			rest = rest[1:]
			if base = base.parent; base == nil {
				return nil, evalError(fmt.Sprintf("%s points above the root.", scenario.Quote("${"+path+"}")))
			}
		}
	}
	keys := strings.FieldsFunc(rest, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if base == e.root {
		keys = e.fromRoot(keys)
	}
	n := base
	for _, k := range keys {
		if n.isScalar() && strings.Contains(n.yaml.Value, "${") { // through another interpolation
			v, err := e.eval(n)
			if err != nil {
				return nil, err
			}
			if v.kind == aSection {
				n = v.node
			}
		}
		var next *node
		if i, err := strconv.Atoi(k); err == nil && n.isList() && i >= 0 && i < len(n.children) {
			next = n.children[i]
		} else {
			next = n.child(k)
		}
		if next == nil {
			return nil, evalError(fmt.Sprintf("%s is not in the document: there is no %s.", scenario.Quote("${"+path+"}"), scenario.Quote(k)))
		}
		n = next
	}
	n.read = true
	return n, nil
}

// fromRoot adapts an absolute path to where this document's root stands. A launcher's training
// file is mounted as "training" and refers to itself so; a section is mounted where NeMo has it.
func (e *evaluator) fromRoot(keys []string) []string {
	if len(keys) == 0 {
		return keys
	}
	if keys[0] == wrapper && e.root.child(wrapper) == nil {
		keys = keys[1:]
	} else if e.mount == wrapper && e.root.child(keys[0]) == nil {
		return append([]string{wrapper}, keys...)
	}
	if e.mount == "" || e.mount == wrapper {
		return keys
	}
	rest := keys
	for _, m := range strings.Split(e.mount, ".") {
		if len(rest) == 0 || rest[0] != m {
			return keys
		}
		rest = rest[1:]
	}
	return rest
}
