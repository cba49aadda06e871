package importer

import (
	"math"
	"strings"

	"distopt/core/scenario"
)

// resolve evaluates a resolver: OmegaConf's own, and the arithmetic that NeMo and its launchers
// register.
func (e *evaluator) resolve(at *node, name string, args []string) (value, error) {
	switch name {
	case "oc.env":
		return e.env(at, args)
	case "oc.decode":
		v, err := e.arg(at, args, 0, 1, name)
		if err != nil || v.kind != aText {
			return v, err
		}
		decoded := scalarValue(strings.TrimSpace(v.text))
		decoded.source = v.source
		return decoded, nil
	case "oc.select":
		return e.selectPath(at, args)
	}
	op, ok := arithmetic[name]
	if !ok {
		return failEval("The resolver %s is not known here; write the value in its place.", scenario.Quote(name))
	}
	if len(args) < 2 || op.pair && len(args) != 2 {
		return failEval("%s needs two numbers.", scenario.Quote(name))
	}
	acc, err := e.number(at, args[0], name)
	if err != nil {
		return acc, err
	}
	for _, a := range args[1:] {
		x, err := e.number(at, a, name)
		if err != nil {
			return x, err
		}
		if op.divides && x.number == 0 {
			return failEval("%s divides by zero.", scenario.Quote(name))
		}
		y := op.of(acc.number, x.number)
		if math.IsInf(y, 0) || math.IsNaN(y) {
			return failEval("%s overflows.", scenario.Quote(name))
		}
		if y == math.Trunc(y) && math.Abs(y) < 1<<53 && (op.whole || acc.kind == anInt && x.kind == anInt) {
			acc = intValue(int64(y))
		} else {
			acc = floatValue(y)
		}
	}
	return acc, nil
}

// operation is an arithmetic resolver.
type operation struct {
	of      func(x, y float64) float64
	pair    bool // takes exactly two
	divides bool
	whole   bool // gives an integer whatever it takes
}

var arithmetic = map[string]operation{
	"multiply":     {of: func(x, y float64) float64 { return x * y }},
	"mul":          {of: func(x, y float64) float64 { return x * y }},
	"add":          {of: func(x, y float64) float64 { return x + y }},
	"sum":          {of: func(x, y float64) float64 { return x + y }},
	"subtract":     {of: func(x, y float64) float64 { return x - y }, pair: true},
	"sub":          {of: func(x, y float64) float64 { return x - y }, pair: true},
	"max":          {of: math.Max},
	"min":          {of: math.Min},
	"divide":       {of: func(x, y float64) float64 { return x / y }, pair: true, divides: true},
	"div":          {of: func(x, y float64) float64 { return x / y }, pair: true, divides: true},
	"floor_div":    {of: floorDiv, pair: true, divides: true, whole: true},
	"floordiv":     {of: floorDiv, pair: true, divides: true, whole: true},
	"divide_floor": {of: floorDiv, pair: true, divides: true, whole: true},
	"divide_ceil":  {of: ceilDiv, pair: true, divides: true, whole: true},
	"ceil_div":     {of: ceilDiv, pair: true, divides: true, whole: true},
}

func floorDiv(x, y float64) float64 { return math.Floor(x / y) }
func ceilDiv(x, y float64) float64  { return math.Ceil(x / y) }

// argument evaluates one argument of a resolver.
func (e *evaluator) argument(at *node, text string) (value, error) {
	if len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && quoted(text) == len(text) {
		return e.expand(at, text[1:len(text)-1])
	}
	if strings.Contains(text, "${") {
		return e.expand(at, text)
	}
	return scalarValue(text), nil
}

// arg evaluates args[i] of a resolver that takes n.
func (e *evaluator) arg(at *node, args []string, i, n int, name string) (value, error) {
	if len(args) != n {
		return failEval("%s takes %d value, not %d.", scenario.Quote(name), n, len(args))
	}
	return e.argument(at, args[i])
}

// number evaluates an argument that must be a number.
func (e *evaluator) number(at *node, text, name string) (value, error) {
	v, err := e.argument(at, text)
	if err != nil {
		return v, err
	}
	if v.kind == aText { // an environment variable, or a quoted number
		v = scalarValue(strings.TrimSpace(v.text))
	}
	if v.kind != anInt && v.kind != aFloat {
		return failEval("%s needs numbers, not %s.", scenario.Quote(name), scenario.Quote(v.text))
	}
	return v, nil
}

// env evaluates an environment variable. None is set here: only a default has a value.
func (e *evaluator) env(at *node, args []string) (value, error) {
	if len(args) == 0 || len(args) > 2 || args[0] == "" {
		return failEval("oc.env takes a name and perhaps a default.")
	}
	if len(args) == 1 {
		return failEval("The environment variable %s has no value here, and no default; write the value in its place.", scenario.Quote(args[0]))
	}
	v, err := e.argument(at, args[1])
	if v.kind == aText || v.kind == anInt || v.kind == aFloat { // the environment holds text
		v = textValue(v.text)
	}
	v.source = "the default of " + scenario.Quote(args[0])
	return v, err
}

// selectPath evaluates oc.select: a path, and a default for when it is not there.
func (e *evaluator) selectPath(at *node, args []string) (value, error) {
	if len(args) == 0 || len(args) > 2 {
		return failEval("oc.select takes a path and perhaps a default.")
	}
	if n, err := e.lookup(at, args[0]); err == nil {
		return e.eval(n)
	}
	if len(args) == 2 {
		return e.argument(at, args[1])
	}
	return value{text: scenario.Null, kind: aNull}, nil
}
