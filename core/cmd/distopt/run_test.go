package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"distopt/core/importer"
	"distopt/core/scenario"
	"distopt/core/share"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// try runs a command line on a standard input.
func try(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &err)
	return status, out.String(), err.String()
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// preset returns a preset's text.
func preset(t *testing.T, id string) string {
	t.Helper()
	for _, p := range scenario.Presets() {
		if p.ID == id {
			return p.Text
		}
	}
	t.Fatalf("no preset %s", id)
	return ""
}

// broken is a document with an error, a warning and an unknown key.
const broken = "trainer: {devices: 8, precision: bf16}\nmodel:\n  mcore_gpt: True\n  megatron_amp_O2: True\n  micro_batch_size: 3\n" +
	"  global_batch_size: 20\n  optim:\n    overlap_parm_sync: true\n"

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "a command is missing"},
		{[]string{"evaluate"}, `"evaluate" is not a command`},
		{[]string{"eval"}, "eval: it takes FILE, and 0 operands are given"},
		{[]string{"eval", "a", "b"}, "eval: it takes FILE, and 2 operands are given"},
		{[]string{"eval", "-x", "a"}, "eval: it has no flag -x"},
		{[]string{"eval", "-json=1", "a"}, "eval: -json takes no value"},
		{[]string{"eval", "-json", "a", "--json"}, "eval: -json is given twice"},
		{[]string{"layout", "a", "-stage"}, "layout: -stage needs a number"},
		{[]string{"layout", "a", "-stage", "x"}, `layout: -stage needs a number from 0, not "x"`},
		{[]string{"layout", "a", "-rank=-1"}, `layout: -rank needs a number from 0, not "-1"`},
		{[]string{"link", "-", "-"}, "link: standard input can be read once only"},
		{[]string{"version", "x"}, "version: it takes no operand, and 1 operand is given"},
		{[]string{"help", "x"}, `"x" is not a command`},
	} {
		status, stdout, stderr := try("", c.args...)
		require.Equal(t, exitUsage, status, c.args)
		require.Empty(t, stdout)
		require.Equal(t, "distopt: "+c.want+"\nRun \"distopt help\" for what it can do.\n", stderr)
	}
}

func TestHelp(t *testing.T) {
	status, help, stderr := try("", "help")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	golden(t, "help.txt", help)
	_, same, _ := try("", "--help")
	require.Equal(t, help, same)
	for _, c := range commands() {
		status, one, _ := try("", c.name, "-h")
		require.Equal(t, exitOK, status)
		_, two, _ := try("", "help", c.name)
		require.Equal(t, one, two)
		require.Contains(t, one, "distopt "+c.name)
	}
}

func TestVersion(t *testing.T) {
	status, stdout, _ := try("", "version")
	require.Equal(t, exitOK, status)
	require.Regexp(t, `^distopt, prediction model \S+, link format 2\n$`, stdout)
}

// Flags stand before or after the file, which may be standard input.
func TestFlagsAnywhere(t *testing.T) {
	text := preset(t, "tiny-fp8")
	file := filepath.Join(t.TempDir(), "-odd name.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	_, want, _ := try(text, "layout", "-stage", "0", "-rank", "1", "-")
	require.NotEmpty(t, want)
	for _, args := range [][]string{
		{"layout", "-", "-stage=0", "--rank=1"}, {"layout", "-rank", "1", "-", "-stage", "0"}, {"layout", "--rank=1", "--", "-"}, {"layout", file, "-rank", "1"},
	} {
		status, stdout, stderr := try(text, args...)
		require.Equal(t, exitOK, status, stderr)
		require.Equal(t, want, stdout, args)
	}
	t.Chdir(filepath.Dir(file))
	status, _, stderr := try("", "eval", "-odd name.yaml")
	require.Equal(t, exitUsage, status, stderr)
	status, _, stderr = try("", "eval", "--", "-odd name.yaml")
	require.Equal(t, exitOK, status, stderr)
}

func TestEval(t *testing.T) {
	status, stdout, stderr := try(preset(t, "gpt3-5b-fp8"), "eval", "-")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	for _, name := range []string{"Configuration            GPT-3 5B, FP8\n", "Ranks                    8 = TP 1", "Step time", "MFU", "Exposed communication"} {
		require.Contains(t, stdout, name)
	}
	status, stdout, stderr = try(preset(t, "gpt3-5b-fp8"), "eval", "-json", "-")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	var result struct {
		Figures struct {
			StepTime int64 `json:"step_time_ns"`
		}
		Stages []struct{ Buckets []any }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &result))
	require.Positive(t, result.Figures.StepTime)
	require.NotEmpty(t, result.Stages[0].Buckets)
}

func TestProblems(t *testing.T) {
	const want = `standard input:6:22: error: model.global_batch_size: got 20, want a multiple of 24 (microbatch 3 × DP 8); set model.global_batch_size to 24
standard input:8:5: warning: model.optim.overlap_parm_sync is not a key and is ignored. Did you mean model.optim.overlap_param_sync?
`
	for _, command := range []string{"eval", "layout"} {
		status, stdout, stderr := try(broken, command, "-")
		require.Equal(t, exitWrong, status)
		require.Empty(t, stdout)
		require.Equal(t, want, stderr)
	}
	status, stdout, stderr := try("", "eval", "no/such/file")
	require.Equal(t, exitWrong, status)
	require.Empty(t, stdout)
	require.Equal(t, "distopt: cannot read no/such/file: no such file or directory\n", stderr)
	status, _, stderr = try("", "eval", ".")
	require.Equal(t, exitWrong, status)
	require.Equal(t, "distopt: cannot read .: is a directory\n", stderr)
	status, _, stderr = try(strings.Repeat("# long\n", 2<<20), "eval", "-")
	require.Equal(t, exitWrong, status)
	require.Equal(t, "distopt: cannot read standard input: it has more than 8 MiB; at most 256 KiB are read\n", stderr)
	status, _, stderr = try(preset(t, "tiny-fp8"), "layout", "-", "-stage", "1")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "layout: -stage 1, want 0 to 0")
	status, _, stderr = try(preset(t, "tiny-fp8"), "layout", "-", "-rank", "2")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "layout: -rank 2, want 0 to 1")
}

func TestImport(t *testing.T) {
	status, stdout, stderr := try(broken, "import", "-")
	require.Equal(t, exitWrong, status)
	golden(t, "import.txt", stdout+"--- standard error\n"+stderr)
	status, stdout, stderr = try(preset(t, "tiny-fp8"), "import", "-", "-json")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	golden(t, "import.json", stdout)
	status, stdout, stderr = try("--num-layers 4 --hidden-size many", "import", "-")
	require.Equal(t, exitWrong, status)
	require.Contains(t, stdout, "--num-layers = 4: model.num_layers")
	require.Contains(t, stderr, "standard input:1:30: error: model.hidden_size: got many")
	_, stdout, _ = try("--num-layers 4 --hidden-size 64", "import", "-yaml", "-")
	require.Contains(t, stdout, "  num_layers: 4\n  hidden_size: 64\n")
	_, stdout, _ = try(preset(t, "tiny-fp8"), "import", "-yaml", "-")
	require.Equal(t, preset(t, "tiny-fp8"), stdout)
}

func TestLayout(t *testing.T) {
	status, stdout, _ := try(preset(t, "tiny-fp8"), "layout", "-")
	require.Equal(t, exitOK, status)
	golden(t, "layout.json", stdout)
}

// What layout prints is a reference case, which oracle checks in its own way.
func TestLayoutIsACase(t *testing.T) {
	dir := t.TempDir()
	texts := map[string]string{}
	for _, p := range scenario.Presets() {
		path, values := "framework.version", []string{scenario.After, scenario.Before, scenario.BeforeNewApex, scenario.AfterOldApex}
		switch p.ID {
		case "gpt3-1t-bf16": // 64 stages of which each is as the others
			continue
		case "gpt2-124m-apex": // lazily, the order inside a module is the step's own
			path, values = "framework.plain_init", []string{scenario.InitExplicit, scenario.InitReversed}
		case "tiny-fp8", "gpt3-175b-fp8":
		default:
			values = values[:1]
		}
		for _, v := range values {
			text, err := importer.SetField(p.Text, path, v)
			require.NoError(t, err)
			texts[p.ID+"-"+v] = text
		}
	}
	cases, others := 0, 0
	for id, text := range texts {
		for stage := range importer.Read(text).Scenario.Parallel.PP {
			number := string(rune('0' + stage))
			status, stdout, stderr := try(text, "layout", "-", "-stage", number)
			require.Equal(t, exitOK, status, stderr)
			require.NoError(t, os.WriteFile(filepath.Join(dir, id+number), []byte(stdout), 0o644))
			if s := importer.Read(text).Scenario; isCase(&s) {
				cases++
			} else {
				others++
			}
		}
	}
	rng := rand.New(rand.NewPCG(9, 10))
	drawnCases := 0
	for i := range 200 {
		s := drawn(t, rng)
		if s.Parameters() > 1<<31 || s.MCore() {
			continue
		}
		text := ""
		for i := range scenario.Fields {
			f := &scenario.Fields[i]
			var err error
			text, err = importer.SetField(text, f.Path, f.Get(&s))
			require.NoError(t, err)
		}
		status, stdout, stderr := try(text, "layout", "-", "-stage", strconv.Itoa(rng.IntN(s.Parallel.PP)))
		require.Equal(t, exitOK, status, stderr)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("drawn", i)), []byte(stdout), 0o644))
		if isCase(&s) {
			drawnCases++
		} else {
			others++
		}
	}
	require.Greater(t, drawnCases, 20)
	require.Greater(t, others, 10)
	status, stdout, stderr := try("", "oracle", dir)
	require.Equal(t, exitOK, status, stdout+stderr)
	require.Equal(t, cases+drawnCases, strings.Count(stdout, "passed  "))
	require.Equal(t, others, strings.Count(stdout, "skipped "))
}

func TestOracle(t *testing.T) {
	dir := t.TempDir()
	_, good, _ := try(preset(t, "tiny-fp8"), "layout", "-")
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	write("a/good.txt", good)
	write("notes.md", "# notes\n")
	write("a/data.json", `{"rows": [1, 2]}`)
	status, stdout, stderr := try("", "oracle", dir)
	require.Equal(t, exitOK, status, stderr)
	require.Equal(t, "skipped "+dir+"/a/data.json (no reference case)\npassed  "+dir+"/a/good.txt (layout)\nskipped "+dir+
		"/notes.md (no reference case)\nlayout 1 passed, 0 failed, 0 skipped\nother 0 passed, 0 failed, 2 skipped\n", stdout)

	write("a/wrong", strings.Replace(good, `"default_shard_size": 16384`, `"default_shard_size": 16448`, 1))
	write("b/cut", good[:len(good)/2])
	status, stdout, stderr = try("", "oracle", dir)
	require.Equal(t, exitWrong, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "failed  "+dir+"/a/wrong (layout): default_shard_size: ")
	require.Contains(t, stdout, "failed  "+dir+"/b/cut (unreadable): the case breaks off at byte")
	require.True(t, strings.HasSuffix(stdout, "layout 1 passed, 1 failed, 0 skipped\nunreadable 0 passed, 1 failed, 0 skipped\nother 0 passed, 0 failed, 2 skipped\n"), stdout)

	status, stdout, _ = try("", "oracle", dir, "-json")
	require.Equal(t, exitWrong, status)
	var out struct {
		Files []checked
		Kinds []tally
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Len(t, out.Files, 5)
	require.Equal(t, []tally{{"layout", 1, 1, 0}, {"unreadable", 0, 1, 0}, {"other", 0, 0, 2}}, out.Kinds)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "a"), link))
	_, stdout, _ = try("", "oracle", link)
	require.Contains(t, stdout, "layout 1 passed, 1 failed")

	for _, d := range []string{filepath.Join(dir, "none"), t.TempDir()} {
		status, _, stderr := try("", "oracle", d)
		require.Equal(t, exitWrong, status)
		require.NotEmpty(t, stderr)
	}
}

func TestLinks(t *testing.T) {
	text := preset(t, "tiny-fp8")
	status, fragment, stderr := try(text, "link", "-")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	require.Regexp(t, `^#c=1\.[A-Za-z0-9_-]+\n$`, fragment)
	l, err := share.Decode(fragment)
	require.NoError(t, err)
	require.Equal(t, "tiny-fp8", l.A.Preset)
	require.Positive(t, l.A.StepTime)
	status, stdout, stderr := try("", "open", strings.TrimSpace(fragment))
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	require.Equal(t, text, stdout)
	_, stdout, _ = try("https://example.org/"+fragment, "open", "-")
	require.Equal(t, text, stdout)

	file := filepath.Join(t.TempDir(), "b.yaml")
	require.NoError(t, os.WriteFile(file, []byte(broken), 0o644))
	status, fragment, stderr = try(text, "link", "-", file)
	require.Equal(t, exitOK, status)
	require.Equal(t, "distopt: warning: "+file+" has errors; the link holds it as it is\n", stderr)
	fragment = strings.TrimSpace(fragment)
	_, stdout, stderr = try("", "open", fragment)
	require.Equal(t, text, stdout)
	require.Contains(t, stderr, "-b prints the other")
	_, stdout, _ = try("", "open", "-b", fragment)
	require.Equal(t, broken, stdout)
	_, stdout, _ = try("", "open", "-json", fragment)
	var out opened
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Equal(t, broken, out.B.Text)

	old, err := share.Encode(&share.Link{A: share.Document{Text: text, StepTime: 1_000_000}, Model: "0.1\x1b"})
	require.NoError(t, err)
	_, _, stderr = try("", "open", old)
	require.Regexp(t, `^distopt: the link was made with model "0\.1\\u001b"; model \S+ gives .*instead of 1\.0.*ms\n$`, stderr)

	for _, bad := range []string{"c=9.abc", "hello", "c=1.abc"} {
		status, stdout, stderr := try("", "open", bad)
		require.Equal(t, exitWrong, status)
		require.Empty(t, stdout)
		require.True(t, strings.HasPrefix(stderr, "distopt: This "), stderr)
	}
	status, _, stderr = try("", "open", "-b", strings.TrimSpace(old))
	require.Equal(t, exitWrong, status)
	require.Contains(t, stderr, "one configuration only")
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWriteErrors(t *testing.T) {
	var stderr bytes.Buffer
	require.Equal(t, exitWrong, run([]string{"version"}, strings.NewReader(""), full{}, &stderr))
	require.Equal(t, "distopt: cannot write the result: no space left on device\n", stderr.String())
}

// Every configuration that the importer is tested with is imported, and evaluated if it can be.
func TestConfigs(t *testing.T) {
	files, err := filepath.Glob("../../importer/testdata/configs/nemo-launcher-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want := exitOK
		if !importer.Read(string(text)).OK() { // names another optimizer
			want = exitWrong
		}
		status, stdout, stderr := try("", "import", file)
		require.Equal(t, want, status, stderr)
		require.Contains(t, stdout, "used\n")
		status, _, stderr = try("", "eval", file)
		require.Equal(t, want, status, stderr)
	}
}
