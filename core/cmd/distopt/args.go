package main

import (
	"fmt"
	"strconv"
	"strings"
)

// flagSpec is a flag of a command: a switch, or with a number.
type flagSpec struct {
	name   string
	number bool
	about  string
}

// arguments are a command's flags and operands.
type arguments struct {
	operands []string
	set      map[string]bool
	numbers  map[string]int
	help     bool
}

// parse separates flags, which may stand anywhere, from operands. "-" is an operand and "--" ends
// the flags.
func parse(c command, args []string) (arguments, error) {
	a := arguments{set: make(map[string]bool), numbers: make(map[string]int)}
	wrong := func(format string, v ...any) (arguments, error) {
		return a, usageError{c.name + ": " + fmt.Sprintf(format, v...)}
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			a.operands = append(a.operands, args[i+1:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			a.operands = append(a.operands, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if name == "h" || name == "help" {
			a.help = true
			return a, nil
		}
		spec, ok := c.flag(name)
		if !ok {
			return wrong("it has no flag %s", arg)
		}
		if a.set[name] {
			return wrong("-%s is given twice", name)
		}
		a.set[name] = true
		if !spec.number {
			if hasValue {
				return wrong("-%s takes no value", name)
			}
			continue
		}
		if !hasValue {
			if i++; i == len(args) {
				return wrong("-%s needs a number", name)
			}
			value = args[i]
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return wrong("-%s needs a number from 0, not %q", name, value)
		}
		a.numbers[name] = n
	}
	if n := len(a.operands); n < c.least || n > c.most {
		want := "no operand"
		if c.operands != "" {
			want = c.operands
		}
		given := strconv.Itoa(n) + " operands are"
		if n == 1 {
			given = "1 operand is"
		}
		return wrong("it takes %s, and %s given", want, given)
	}
	return a, nil
}

func (c command) flag(name string) (flagSpec, bool) {
	for _, f := range c.flags {
		if f.name == name {
			return f, true
		}
	}
	return flagSpec{}, false
}
