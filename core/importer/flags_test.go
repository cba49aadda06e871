package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// show writes a command line with the places of its words.
func show(c commandLine) string {
	var b strings.Builder
	for _, list := range [][]option{c.env, c.flags} {
		for _, f := range list {
			fmt.Fprintf(&b, "%s@%d:%d-%d", f.name, f.at.line, f.at.col, f.at.end)
			for _, v := range f.values {
				fmt.Fprintf(&b, " %s@%d:%d-%d", v.text, v.line, v.col, v.end)
			}
			if f.comment != "" {
				b.WriteString(" #" + f.comment)
			}
			b.WriteString("; ")
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestFlags(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one a line", "--num-layers 4\n--bf16\n", "num-layers@1:1-13 4@1:14-15; bf16@2:1-7"},
		{"on one line", "--num-layers 4 --bf16 --lr 1e-4", "num-layers@1:1-13 4@1:14-15; bf16@1:16-22; lr@1:23-27 1e-4@1:28-32"},
		{"equals sign", "--num-layers=4 --split=99,1,0", "num-layers@1:1-13 4@1:14-15; split@1:16-23 99,1,0@1:24-30"},
		{"underscores", "--num_layers 4 --nproc_per_node=8", "num-layers@1:1-13 4@1:14-15; nproc-per-node@1:16-32 8@1:33-34"},
		{"value below", "--num-layers\n4\n--bf16\n", "num-layers@1:1-13 4@2:1-2; bf16@3:1-7"},
		{"continued", "--num-layers \\\n  4 \\\r\n  --bf16\n", "num-layers@1:1-13 4@2:3-4; bf16@3:3-9"},
		{"no space before the backslash", "--bf16\\\n--num-layers 4\\\n", "bf16@1:1-7; num-layers@2:1-13 4@2:14-15"},
		{"quotes", `--split "99, 1" --lr '1e-4' --save a"b c"d`, "split@1:1-8 99, 1@1:9-16; lr@1:17-21 1e-4@1:22-28; save@1:29-35 ab cd@1:36-43"},
		{"escapes", `--split 99\ 1 --lr "\"x"`, `split@1:1-8 99 1@1:9-14; lr@1:15-19 \"x@1:20-25`},
		{"comments", "# --lr 1\n--bf16 # yes\n  # no\n--num-layers 4 ## layers\n", "bf16@2:1-7 #yes; num-layers@4:1-13 4@4:14-15 #layers"},
		{"no comment inside of words", "--save a#b --bf16", "save@1:1-7 a#b@1:8-11; bf16@1:12-18"},
		{"variables", "export A_1=2\nB=x --bf16 \\\n", "A_1@1:8-11 2@1:12-13; B@2:1-2 x@2:3-4; bf16@2:5-11"},
		{"list in quotes", "ARGS=\"\n  --num-layers 4 \\\n  --bf16\"\nX=\"--lr 1\"\n", "num-layers@2:3-15 4@2:16-17; bf16@3:3-9; lr@4:4-8 1@4:9-10"},
		{"list in parentheses", "ARGS=(\n  --num-layers 4\n  --bf16\n)\npython x.py ${ARGS[@]}\n", "num-layers@2:3-15 4@2:16-17; bf16@3:3-9"},
		{"program", "torchrun --nproc_per_node 8 train.py --bf16 $ARGS", "nproc-per-node@1:10-26 8@1:27-28; bf16@1:38-44"},
		{"several values", "--data-path 1 a 2 b --bf16", "data-path@1:1-12 1@1:13-14 a@1:15-16 2@1:17-18 b@1:19-20; bf16@1:21-27"},
		{"negative", "--x -1", "x@1:1-4 -1@1:5-7"},
		{"characters beyond ASCII", "--save größe --bf16", "save@1:1-7 größe@1:8-13; bf16@1:14-20"},
		{"empty", "", ""},
		{"open quote", "--save 'a\n--bf16", "save@1:1-7 a@1:9-10; bf16@2:1-7"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, show(readFlags(newSource(c.text)))) })
	}
}

func FuzzFlags(f *testing.F) {
	f.Add("--num-layers 4 \\\n --bf16 # c\nA=1")
	f.Add("X=\"--a 'b\" --c=\"d\" (--e) ${F:-1} \\")
	f.Add("--hidden-size=9223372036854775807 --tensor-model-parallel-size 0 --ffn-hidden-size")
	f.Fuzz(func(t *testing.T, text string) {
		src := newSource(text)
		if _, ok := src.check(); !ok {
			return
		}
		for _, f := range readFlags(src).flags {
			for _, w := range append([]word{f.at}, f.values...) {
				require.LessOrEqual(t, w.line, len(src.lines))
				require.Positive(t, w.col)
				require.Greater(t, w.end, w.col)
			}
		}
		r := Read("--x 1 --y 2\n" + text)
		if r.Document == "" {
			return
		}
		again := Read(r.Document)
		require.Equal(t, NeMo, again.Kind, r.Document)
		require.Equal(t, again.Scenario, r.Scenario)
		for _, k := range again.Keys {
			require.NotEqual(t, Unknown, k.Status, "%v", k)
		}
		for _, d := range r.Diagnostics {
			require.LessOrEqual(t, d.Line, len(newSource("--x 1 --y 2\n"+text).lines))
			require.Positive(t, d.Line)
			require.Greater(t, d.EndCol, d.Col)
		}
	})
}
