package importer

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"indentation", "model:\n  a: 1\n   b: 2\n  c: 3\n", "3:4-8 error: A colon stands where no key can be: quote the text before it, or mend the indentation."},
		{"dedent", "model:\n    a: 1\n  b: 2\n", "3:3-7 error: No key stands where one is expected: mend the indentation of this line."},
		{"dedent at the top", "  model: 1\ntrainer: 2\n", "2:1-11 error: The document has ended before this line: mend the indentation."},
		{"tab", "model:\n\ta: 1\n", "2:2-6 error: A value cannot begin with this character (a tab, @ or `): quote it, and indent with spaces."},
		{"no colon", "model:\n  a: 1\n  b\n  c: 3\n", "3:3-4 error: A key without a colon: write key: value."},
		{"no colon, last", "model:\n  a: 1\n  b\n", "3:3-4 error: A key without a colon: write key: value."},
		{"open quote", "model:\n  a: 'x\n  b: 2\n", "2:3-8 error: A quote that is opened here is not closed."},
		{"open double quote", "a: 1\nb: \"x\nc: 2\n", "2:1-6 error: A quote that is opened here is not closed."},
		{"open list", "a: 1\nb: [1, 2\nc: 3\n", "2:1-9 error: A list that is opened with [ is not closed, or an item lacks its comma."},
		{"open map", "a: 1\nb: {c: 1\nd: 3\n", "2:1-9 error: A map that is opened with { is not closed, or an entry lacks its comma."},
		{"two colons", "a: 1\nb: c: d\n", "2:1-8 error: A colon stands where no key can be: quote the text before it, or mend the indentation."},
		{"unknown alias", "a: 1\nb: *c\n", `2:1-6 error: Not YAML: "unknown anchor 'c' referenced".`},
		{"at sign", "a: 1\nb: @c\nd: 2\n", "2:1-6 error: A value cannot begin with this character (a tab, @ or `): quote it, and indent with spaces."},
		{"list in a map", "a: 1\n- b\n", "2:1-4 error: No key stands where one is expected: mend the indentation of this line."},
		{"after blank lines", "a:\n  b: 1\n\n\n\n c: 2\n", "6:2-6 error: No key stands where one is expected: mend the indentation of this line."},
		{"after comments", "a:\n  b: 1\n# x\n# y\n c: 2\nd: 1\n", "5:2-6 error: No key stands where one is expected: mend the indentation of this line."},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range Read(c.text).Diagnostics {
				if d.Path == "" && d.Severity == Error {
					got = append(got, line(d))
				}
			}
			require.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}

// patience is what a hostile text may take on a busy machine; on an idle one it is some 100 ms.
const patience = 20 * time.Second

// Each attack gets a clear answer soon.
func TestHostile(t *testing.T) {
	bomb := func() string {
		var b strings.Builder
		b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
		for i := 1; i < 12; i++ {
			fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
		}
		return b.String()
	}
	merges := func() string {
		var b strings.Builder
		b.WriteString("m0: &m0 {k: 1}\n")
		for i := 1; i < 40; i++ {
			fmt.Fprintf(&b, "m%d: &m%d {<<: [*m%d, *m%d]}\n", i, i, i-1, i-1)
		}
		return b.String()
	}
	doubling := func() string {
		var b strings.Builder
		b.WriteString("model:\n  x0: aaaaaaaa\n")
		for i := 1; i < 40; i++ {
			fmt.Fprintf(&b, "  x%d: ${.x%d}${.x%d}\n", i, i-1, i-1)
		}
		b.WriteString("  num_layers: ${.x39}\n")
		return b.String()
	}
	chain := func() string {
		var b strings.Builder
		b.WriteString("model:\n  x0: 4\n")
		for i := 1; i < 200; i++ {
			fmt.Fprintf(&b, "  x%d: ${.x%d}\n", i, i-1)
		}
		b.WriteString("  num_layers: ${.x199}\n")
		return b.String()
	}
	for _, c := range []struct{ name, text, want string }{
		{"too long", strings.Repeat("a: 1\n", 300_000), "1:1-2 error: The text has 1465 KiB; at most 256 KiB are read."},
		{"alias bomb", bomb(), "The document holds more than 100,000 values, aliases expanded."},
		{"merge bomb", merges(), "The document holds more than 100,000 values, merges expanded."},
		{"alias to itself", "a: &a [*a]\n", "The document is nested too deeply; at most 64 levels are read."},
		{"merge of itself", "a: &a {<<: *a}\n", "The document holds more than 100,000 values, merges expanded."},
		{"deep lists", "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "The document is nested too deeply; at most 64 levels are read."},
		{"very deep lists", strings.Repeat("[", 200_000), "The document is nested too deeply; at most 64 levels are read."},
		{"deep maps", strings.Repeat("{a: ", 500) + strings.Repeat("}", 500), "The document is nested too deeply; at most 64 levels are read."},
		{"dashes", strings.Repeat("- ", 100_000), "The document is nested too deeply; at most 64 levels are read."},
		{"text bomb", doubling(), "4096 bytes."},
		{"long chain", chain(), "Interpolations are nested more than 64 deep."},
		{"interpolation of itself", "model: ${model}\n", "model is a section"},
		{"sections in circles", "model:\n  optim: ${a}\na:\n  bucket_cap_mb: 5\n  x: ${model.optim}\n", "model.optim.x is not a key"},
		{"NUL", "a: \x00\n", "1:4-5 error: Control character U+0000 is not allowed."},
		{"escape", "a: 1\nb: \x1b[31m\n", "2:4-5 error: Control character U+001B is not allowed."},
		{"Latin-1", "a: 1\nname: M\xfcller\n", "2:8-9 error: Byte 0xfc is not UTF-8 text."},
		{"UTF-16", "\xff\xfea\x00:\x00", "1:1-2 error: Byte 0xff is not UTF-8 text."},
		{"bidirectional name", "model:\n  num_\u202elayers: 4\n", `2:3-14 warning: model.num_\u202elayers: "model.num_\u202elayers" is not a key and is ignored.`},
		{"HTML in a name", "<img src=x>: 1\n", `"<img src=x>" is not a key and is ignored.`},
		{"giant number", "model: {num_layers: " + strings.Repeat("9", 10_000) + "}\n", "99999…\", want an integer"},
		{"giant key", "model: {" + strings.Repeat("k", 1000) + ": 1}\n", "kkk…\" is not a key"},
		{"tag", "model: {num_layers: !!python/object/apply:os.system [ls]}\n", "got a list, want an integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			r := Read(c.text)
			require.Less(t, time.Since(begin), patience)
			var all []string
			for _, d := range r.Diagnostics {
				all = append(all, line(d))
			}
			text := strings.Join(all, "\n")
			require.Contains(t, text, c.want)
			require.LessOrEqual(t, len(text), 8000)
		})
	}
}

// The stack of a page is some 1 MB, three times less for the same calls than here, and a text that needs more ends the
// program: no text may.
func TestNestingNeedsLittleStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(3 << 20))
	for _, c := range []struct{ opening, filling, closing string }{
		{"a: ", "[", "]"},
		{"a: ", "[\n", "]\n"},
		{"a: ", "{a: ", "}"},
		{"a: ", "[a: ", "]"},
		{"a: ", "[[]] # ]\n", ""},
		{"", "- ", ""},
		{"", "? ", ""},
		{"", "? - ", ""},
		{"", ": ", ""},
		{"model: {num_layers: '", "${", "}"},
		{"model: {num_layers: '", "${add:", ",1}"},
		{"model: {num_layers: '", "${.${", "}}"},
		{`{"a":`, `{"a":`, "}"},
		{"MODEL_ARGS: ", "[", "]"},
		{"torchrun ", "$(", ")"},
		{"torchrun pretrain_gpt.py ", "${A:-", "}"},
	} {
		for _, n := range []int{100, 400, 1000, 3000, 9000, 20_000, 60_000} {
			text := c.opening + strings.Repeat(c.filling, n) + "1" + strings.Repeat(c.closing, n)
			if len(text) > MaxText {
				continue
			}
			Read(text)
			_, _ = SetField(text, "model.num_layers", "4")
		}
	}
	deep := Read("- [" + strings.Repeat("[", 5000))
	require.Equal(t, "1:1-5004 error: The document is nested too deeply; at most 64 levels are read.", line(deep.Diagnostics[0]))
	var steps strings.Builder
	for i := range 700 {
		fmt.Fprintf(&steps, "%*sa:\n", i, "")
	}
	require.Contains(t, Read(steps.String()).Diagnostics[0].Message, "nested too deeply")
}

// Long documents with many problems are read quickly, and say the first of them.
func TestManyProblems(t *testing.T) {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, text string }{
		{"unknown keys", "model:\n" + numbered("  bucket_cap_%d: 1\n", 8000)},
		{"unknown keys on a line", "{" + numbered("k%d: 1, ", 15_000) + "}"},
		{"duplicates", strings.Repeat("a:\n  # x\n", 20_000)},
		{"duplicates on a line", "{" + strings.Repeat("a: 1, ", 40_000) + "}"},
		{"nested resolvers", "model:\n  num_layers: " + strings.Repeat("${add:1,", 20_000) + "1" + strings.Repeat("}", 20_000)},
		{"many arguments", "model:\n  num_layers: ${multiply:" + strings.Repeat("1,", 100_000) + "1}"},
		{"open interpolations", "model:\n  num_layers: " + strings.Repeat("${", 100_000)},
		{"many interpolations", "model:\n" + numbered("  num_query_groups_%d: ${.x}\n", 8000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			r := Read(c.text)
			require.Less(t, time.Since(begin), patience)
			require.NotEmpty(t, r.Diagnostics)
			require.LessOrEqual(t, len(r.Diagnostics), 200)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add("model:\n  <<: *a\n")
	f.Add("a: &a {b: *a}\n")
	f.Add("model: {ffn_hidden_size: '${multiply:4,${.hidden_size}}'}")
	f.Add("\"a\": [1, 'b', {c: |\n  x}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := Read(text)
		lines := newSource(text).lines
		for _, d := range r.Diagnostics {
			require.Positive(t, d.Line)
			require.LessOrEqual(t, d.Line, len(lines))
			require.Positive(t, d.Col)
			require.Greater(t, d.EndCol, d.Col, "%v", d)
			require.NotEmpty(t, d.Message)
		}
		if r.OK() {
			errs, _ := r.Scenario.Validate()
			require.NoError(t, errs.Err())
		}
	})
}
