package importer

import (
	"strings"
	"unicode/utf8"
)

// word is a word of a command line, without its quotes.
type word struct {
	text           string
	line, col, end int
}

// option is a flag with what stands behind it. In a YAML file true stands for a switch.
type option struct {
	name    string // without dashes, words joined by hyphens
	at      word
	values  []word
	comment string // behind it on its line, without #
	yaml    bool
	off     bool // false in a YAML file: not given
}

// text returns the flag as a command line has it.
func (f *option) text() string { return "--" + f.name }

// value returns the first word behind the flag, or nothing.
func (f *option) value() string {
	if len(f.values) == 0 {
		return ""
	}
	return f.values[0].text
}

// place returns the word that a remark on the flag's value stands at.
func (f *option) place() *word {
	if len(f.values) > 0 {
		return &f.values[0]
	}
	return &f.at
}

// commandLine is what a text of flags holds: of Megatron-LM's own, of torchrun, and variables.
type commandLine struct {
	flags []option
	env   []option // NAME=value
}

// lexer splits a text into words as a shell does. Quotes and parentheses that hold a list of flags
// (ARGS="--a 1", ARGS=(--a 1)) are looked through. Conditions and substitutions are not evaluated.
type lexer struct {
	src   *source
	pos   int
	line  int
	start int  // of the line
	open  byte // quote that is looked through
	seen  struct{ pos, col int }
}

// readFlags reads flags and variables.
func readFlags(src *source) commandLine {
	x := lexer{src: src, pos: src.lines[0], start: src.lines[0], line: 1}
	x.seen.pos, x.seen.col = x.pos, 1
	var c commandLine
	for {
		w, comment, ok := x.next()
		switch {
		case !ok:
			return c
		case comment:
			if n := len(c.flags); n > 0 && lastLine(&c.flags[n-1]) == w.line {
				c.flags[n-1].comment = w.text
			}
		case isFlag(w.text):
			name, value, joined := strings.Cut(w.text, "=")
			f := option{name: hyphens(name), at: w}
			f.at.text, f.at.end = name, w.col+len(name)
			if joined {
				f.values = append(f.values, word{value, w.line, f.at.end + 1, max(w.end, f.at.end+2)})
			}
			c.flags = append(c.flags, f)
		default:
			c.add(w)
		}
	}
}

// hyphens returns the name of a flag as argparse's users write it.
func hyphens(flag string) string {
	return strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "_", "-")
}

func lastLine(f *option) int {
	if n := len(f.values); n > 0 {
		return f.values[n-1].line
	}
	return f.at.line
}

// add finds out where a word belongs that is no flag.
func (c *commandLine) add(w word) {
	if name, value, ok := strings.Cut(w.text, "="); ok && isVariable(name) {
		at := word{name, w.line, w.col, w.col + len(name)}
		c.env = append(c.env, option{name: name, at: at, values: []word{{value, w.line, at.end + 1, max(w.end, at.end+2)}}})
		return
	}
	if strings.HasSuffix(w.text, ".py") {
		return
	}
	if n := len(c.flags); n > 0 {
		// On a line of its own it is the value of a flag that lacks one, else another command.
		f := &c.flags[n-1]
		full := len(f.values) > 0 || megatron.isSwitch(f.name)
		if full && (w.line != lastLine(f) || w.text[0] == '$') { // $ARGS holds flags
			return
		}
		f.values = append(f.values, w)
	}
}

// isVariable reports whether a word is the name of an environment variable.
func isVariable(name string) bool {
	for i := range len(name) {
		if c := name[i]; !(c == '_' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

// skip passes spaces and continued lines.
func (x *lexer) skip() {
	text := x.src.text
	for x.pos < len(text) {
		switch c := text[x.pos]; {
		case c == '\\' && x.pos+1 < len(text) && breakAt(text, x.pos+1) > 0:
			x.pos++
		case breakAt(text, x.pos) > 0:
			x.pos += breakAt(text, x.pos)
			x.line, x.start = x.line+1, x.pos
			x.seen.pos, x.seen.col = x.pos, 1
		case c == ' ' || c == '\t' || c == ';' || c == '&' || c == '|':
			x.pos++
		default:
			return
		}
	}
}

// column returns the column of a byte of the present line, asked for in order.
func (x *lexer) column(pos int) int {
	if pos >= x.seen.pos {
		x.seen.col += utf8.RuneCountInString(x.src.text[x.seen.pos:pos])
		x.seen.pos = pos
	}
	return x.seen.col
}

// next returns the next word, or the text of a comment.
func (x *lexer) next() (w word, comment, ok bool) {
	text := x.src.text
	for {
		x.skip()
		if x.pos >= len(text) {
			return word{}, false, false
		}
		w = word{line: x.line, col: x.column(x.pos)}
		if text[x.pos] == '#' {
			line := x.src.line(x.line)
			w.text = strings.TrimSpace(strings.TrimLeft(line[x.pos-x.start:], "#"))
			x.pos = x.start + len(line)
			w.end = max(x.column(x.pos), w.col+1)
			return w, true, true
		}
		if w.text = x.word(); w.text != "" {
			w.end = max(x.column(x.pos), w.col+1)
			return w, false, true
		}
	}
}

// word reads a word, which is empty where a quote or parenthesis is looked through, with what
// stands before it.
func (x *lexer) word() string {
	text := x.src.text
	var b strings.Builder
	for x.pos < len(text) {
		c := text[x.pos]
		switch {
		case c == x.open:
			if b.Len() == 0 {
				x.open = 0
				x.pos++
			}
			return b.String()
		case c == '"' || c == '\'':
			n := closeQuote(text[x.pos:])
			if n > 0 && !strings.Contains(text[x.pos:x.pos+n], "--") && !strings.ContainsAny(text[x.pos:x.pos+n], "\n\r") {
				b.WriteString(text[x.pos+1 : x.pos+n-1])
				x.pos += n
				continue
			}
			x.pos++
			x.open = c
			return ""
		case c == '(' && !strings.HasPrefix(text[x.pos:], "([") && (b.Len() == 0 || strings.HasSuffix(b.String(), "=")), c == ')' && b.Len() == 0:
			x.pos++
			return ""
		case c == '\\' && x.pos+1 < len(text):
			if breakAt(text, x.pos+1) > 0 {
				return b.String()
			}
			b.WriteByte(text[x.pos+1])
			x.pos += 2
			continue
		case c == ' ', c == '\t', c == ';', c == '&', c == '|', breakAt(text, x.pos) > 0:
			return b.String()
		}
		b.WriteByte(c)
		x.pos++
	}
	return b.String()
}

// closeQuote returns the length of a shell's quoted text, 0 if it is not closed.
func closeQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] == '"':
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return 0
}

// yamlFlags reads the flags of a YAML map, and the variables of another.
func yamlFlags(src *source, args, env *node) commandLine {
	read := func(n *node, name func(string) string) (all []option) {
		if n == nil {
			return nil
		}
		for _, c := range n.children {
			f := option{name: name(c.key.Value), yaml: true}
			f.at = word{c.key.Value, c.key.Line, c.key.Column, src.end(c.key)}
			items := []*node{c}
			if !c.isScalar() {
				items = c.children
			}
			for _, v := range items {
				if !v.isScalar() || v.isNull() {
					continue
				}
				for _, text := range strings.Fields(v.yaml.Value) {
					f.values = append(f.values, word{text, v.yaml.Line, v.yaml.Column, src.end(v.yaml)})
				}
			}
			switch low := strings.ToLower(f.value()); {
			case len(f.values) == 1 && low == "true":
				f.values = nil
			case len(f.values) == 1 && low == "false":
				f.off = true
			}
			if line := src.line(lastLine(&f)); strings.Contains(line, " #") && c.yaml.LineComment != "" {
				f.comment = strings.TrimSpace(strings.TrimLeft(c.yaml.LineComment, "#"))
			}
			all = append(all, f)
		}
		return all
	}
	return commandLine{flags: read(args, hyphens), env: read(env, strings.Clone)}
}
