package importer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

func TestSetField(t *testing.T) {
	const cap, hidden = "model.optim.bucket_cap_mb", "model.hidden_size"
	for _, c := range []struct{ name, text, path, value, want string }{
		{"plain", "model:\n  hidden_size: 1 # one\n", hidden, "2", "model:\n  hidden_size: 2 # one\n"},
		{"comment keeps its column", "model:\n  hidden_size: 1     # one\n", hidden, "1024", "model:\n  hidden_size: 1024  # one\n"},
		{"comment is pushed", "model:\n  hidden_size: 1 # one\n", hidden, "1024", "model:\n  hidden_size: 1024 # one\n"},
		{"comment comes nearer", "model:\n  hidden_size: 1024  # one\n", hidden, "1", "model:\n  hidden_size: 1     # one\n"},
		{"single quotes", "trainer:\n  precision: 'bf16'\n", "trainer.precision", "bf16-mixed", "trainer:\n  precision: 'bf16-mixed'\n"},
		{"quotes of a number", "trainer:\n  precision: \"16\"\n", "trainer.precision", "32", "trainer:\n  precision: 32\n"},
		{"interpolation", "model:\n  hidden_size: ${multiply:4, ${.x}} # c\n  x: 2\n", hidden, "8", "model:\n  hidden_size: 8                    # c\n  x: 2\n"},
		{"to an interpolation", "model:\n  hidden_size: 1\n", hidden, "${multiply:4, ${.x}}", "model:\n  hidden_size: ${multiply:4, ${.x}}\n"},
		{"empty value", "model:\n  hidden_size:\n  x: 1\n", hidden, "8", "model:\n  hidden_size: 8\n  x: 1\n"},
		{"empty value with a comment", "model:\n  hidden_size:   # none\n", hidden, "8", "model:\n  hidden_size: 8   # none\n"},
		{"null", "model:\n  hidden_size: null # c\n", hidden, "8", "model:\n  hidden_size: 8    # c\n"},
		{"to null", "model:\n  kv_channels: 8\n", "model.kv_channels", "null", "model:\n  kv_channels: null\n"},
		{"flow", "model: {hidden_size: 1, optim: {bucket_cap_mb: 5}}\n", cap, "7.5", "model: {hidden_size: 1, optim: {bucket_cap_mb: 7.5}}\n"},
		{"flow, new", "model: {hidden_size: 1, optim: {}} # c\n", cap, "7", "model: {hidden_size: 1, optim: {bucket_cap_mb: 7}} # c\n"},
		{"flow, new section", "model: {hidden_size: 1}\n", cap, "7", "model: {hidden_size: 1, optim: {bucket_cap_mb: 7}}\n"},
		{"flow, empty section", "model: {optim: }\n", cap, "7", "model: {optim: {bucket_cap_mb: 7} }\n"},
		{"flow over lines", "model: {\n  hidden_size: 1, # c\n  x: [1, 2] # d\n}\n", cap, "7", "model: {\n  hidden_size: 1, # c\n  x: [1, 2], optim: {bucket_cap_mb: 7} # d\n}\n"},
		{"JSON", "{\"model\": {\"hidden_size\": 1}}", "trainer.precision", "bf16", "{\"model\": {\"hidden_size\": 1}, \"trainer\": {\"precision\": \"bf16\"}}"},
		{"JSON, number", "{\"model\": {\"hidden_size\": 1}}", hidden, "4", "{\"model\": {\"hidden_size\": 4}}"},
		{"block scalar", "model:\n  hidden_size: |\n    1\n    2\n  x: 1\n", hidden, "4", "model:\n  hidden_size: 4\n  x: 1\n"},
		{"list", "model:\n  hidden_size:\n  - 1\n  - 2\n  x: 1\n", hidden, "4", "model:\n  hidden_size: 4\n  x: 1\n"},
		{"section", "model:\n  hidden_size:\n    a: 1\n  x: 1\n", hidden, "4", "model:\n  hidden_size: 4\n  x: 1\n"},
		{"quotes over lines", "model:\n  hidden_size: 'a\n    b' # c\n  x: 1\n", hidden, "4", "model:\n  hidden_size: 4 # c\n  x: 1\n"},
		{"plain over lines", "model:\n  hidden_size: a\n    b\n  x: 1\n", hidden, "4", "model:\n  hidden_size: 4\n  x: 1\n"},
		{"new behind its neighbour", "model:\n  num_layers: 2\n  # optimizer\n  optim:\n    name: distributed_fused_adam\n", hidden, "8",
			"model:\n  num_layers: 2\n  hidden_size: 8\n  # optimizer\n  optim:\n    name: distributed_fused_adam\n"},
		{"new at the end", "model:\n  y: 1\n  x:\n    - 1\n\n# end\n", hidden, "8", "model:\n  y: 1\n  x:\n    - 1\n  hidden_size: 8\n\n# end\n"},
		{"new section inside", "model:\n    hidden_size: 1\n    data:\n        a: 1\n", cap, "7", "model:\n    hidden_size: 1\n    optim:\n      bucket_cap_mb: 7\n    data:\n        a: 1\n"},
		{"new section at the end", "model:\n  hidden_size: 1\n", "hardware.gpu", "h200", "model:\n  hidden_size: 1\n\nhardware:\n  gpu: h200\n"},
		{"no break at the end", "model:\n  hidden_size: 1", "model.num_layers", "2", "model:\n  hidden_size: 1\n  num_layers: 2\n"},
		{"empty section", "model:\n  optim:\n  x: 1\n", cap, "7", "model:\n  optim:\n    bucket_cap_mb: 7\n  x: 1\n"},
		{"empty text", "", cap, "7", "model:\n  optim:\n    bucket_cap_mb: 7\n"},
		{"comments only", "# a\n# b", cap, "7", "# a\n# b\nmodel:\n  optim:\n    bucket_cap_mb: 7\n"},
		{"carriage returns", "model:\r\n  num_layers: 2\r\n", hidden, "8", "model:\r\n  num_layers: 2\r\n  hidden_size: 8\r\n"},
		{"launcher's wrapper", "training:\n  model:\n    hidden_size: 1\n", hidden, "2", "training:\n  model:\n    hidden_size: 2\n"},
		{"launcher's wrapper, new section", "training:\n  model:\n    hidden_size: 1\n", "hardware.gpu", "h200", "training:\n  model:\n    hidden_size: 1\n\n  hardware:\n    gpu: h200\n"},
		{"section alone", "name: distributed_fused_adam\nbucket_cap_mb: 5\n", cap, "7", "name: distributed_fused_adam\nbucket_cap_mb: 7\n"},
		{"beside a section alone", "name: distributed_fused_adam\n# c\n\nbucket_cap_mb: 5\n", hidden, "8",
			"model:\n  hidden_size: 8\n  optim:\n    name: distributed_fused_adam\n    # c\n\n    bucket_cap_mb: 5\n"},
		{"tag", "model:\n  hidden_size: !!int 1 # c\n", hidden, "2", "model:\n  hidden_size: 2       # c\n"},
		{"over a merge", "a: &a {hidden_size: 1}\nmodel:\n  <<: *a\n  num_layers: 2\n", hidden, "2", "a: &a {hidden_size: 1}\nmodel:\n  <<: *a\n  num_layers: 2\n  hidden_size: 2\n"},
		{"an alias", "a: &a 1\nmodel:\n  hidden_size: *a # c\n", hidden, "2", "a: &a 1\nmodel:\n  hidden_size: 2  # c\n"},
		{"unused anchor", "model:\n  hidden_size: &h 1\n", hidden, "2", "model:\n  hidden_size: 2\n"},
		{"what must be quoted", "model:\n  hidden_size: 1\n", hidden, "a: #b", "model:\n  hidden_size: \"a: #b\"\n"},
		{"byte order mark", "\ufeffmodel:\n  hidden_size: 1\n", hidden, "2", "\ufeffmodel:\n  hidden_size: 2\n"},
		{"umlauts before", "model: {name: 'Größe', hidden_size: 1}\n", hidden, "2", "model: {name: 'Größe', hidden_size: 2}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SetField(c.text, c.path, c.value)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestSetFieldRefuses(t *testing.T) {
	const hidden = "model.hidden_size"
	for _, c := range []struct{ name, text, want string }{
		{"shared value", "model:\n  hidden_size: &h 1\n  ffn_hidden_size: *h\n", "line 2 shares its value through &h"},
		{"aliased section", "a: &a {hidden_size: 1}\nmodel: *a\n", "line 2 takes model from an alias"},
		{"value for a section", "model: 5\n", "line 1 gives model a value of its own"},
		{"list at the root", "- 1\n", "the document is no map of keys"},
		{"no YAML", "model: [\n", "line 1"},
		{"duplicate keys", "model:\n  x: 1\n  x: 2\n", "is given twice"},
		{"other tools", "architectures: [LlamaForCausalLM]\n", "the document is a Hugging Face config.json"},
		{"flags that are no YAML", "MODEL_ARGS: &a\n  x: *a\n", "the document is a Megatron-LM YAML"},
		{"ended document", "model:\n  x: 1\n...\n", "edit the text itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SetField(c.text, hidden, "2")
			if c.name == "ended document" && err == nil {
				require.Equal(t, "2", fieldOf(t, got, hidden))
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.text, got)
		})
	}
}

func TestUnsetField(t *testing.T) {
	const cap = "model.optim.bucket_cap_mb"
	for _, c := range []struct{ name, text, want string }{
		{"line", "model:\n  optim:\n    name: x # a\n    bucket_cap_mb: 5 # b\n    lr: 1 # c\n", "model:\n  optim:\n    name: x # a\n    lr: 1 # c\n"},
		{"last line", "model:\n  optim:\n    bucket_cap_mb: 5", "model:\n  optim:\n"},
		{"lines", "model:\n  optim:\n    bucket_cap_mb:\n      - 1\n      - 2\n  x: 1\n", "model:\n  optim:\n  x: 1\n"},
		{"flow", "model: {optim: {bucket_cap_mb: 5, x: 1}}\n", "model: {optim: {x: 1}}\n"},
		{"flow, last", "model: {optim: {x: 1, bucket_cap_mb: 5}}\n", "model: {optim: {x: 1}}\n"},
		{"flow, only", "model: {optim: {bucket_cap_mb: 5}}\n", "model: {optim: {}}\n"},
		{"absent", "model:\n  optim:\n", "model:\n  optim:\n"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := UnsetField(c.text, cap)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestApply(t *testing.T) {
	r := Read(whole + "  micro_batch_size: 3\n")
	require.False(t, r.OK())
	var edits []scenario.Edit
	for _, d := range r.Diagnostics {
		edits = append(edits, d.Edits...)
	}
	text, err := Apply(whole+"  micro_batch_size: 3\n", edits)
	require.NoError(t, err)
	require.True(t, Read(text).OK(), "%v", diagnostics(text))
}

// corpus returns documents of many shapes.
func corpus(t testing.TB) []string {
	texts := []string{
		"", "# only a comment\n", whole,
		"model: {num_layers: 4, optim: {name: distributed_fused_adam}}\ntrainer: {devices: 8}\n",
		"{\"model\": {\"num_layers\": 4}, \"trainer\": {\"devices\": 8}}\n",
		"name: distributed_fused_adam\nbucket_cap_mb: 5 # c\n",
		"training:\n  trainer:\n    devices: 8\n  model:\n    num_layers: 2\n",
		"model:\n\n  # above\n  num_layers: 2   # beside\n  # below\n\n  optim:   # section\n    # nothing\n\nhardware:\n",
		"model:\n    num_layers: |\n        2\n    optim:\n        sched: [a,\n          b]\n        bucket_cap_mb: >-\n          5\n",
		strings.ReplaceAll(whole, "\n", "\r\n"),
	}
	for _, p := range scenario.Presets() {
		texts = append(texts, p.Text)
	}
	files, err := filepath.Glob("testdata/configs/nemo*.yaml")
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		texts = append(texts, string(b))
	}
	return texts
}

// someValue returns a valid value of a field.
func someValue(f *scenario.Field, rng *rand.Rand) string {
	switch f.Kind {
	case scenario.Int:
		return strconv.Itoa(max(1, int(f.Min)) + rng.IntN(min(1000, int(f.Max))))
	case scenario.Float:
		return strconv.FormatFloat(float64(1+rng.IntN(1000))/1024*min(125, f.Max), 'f', -1, 64)
	case scenario.Bool:
		return strconv.FormatBool(rng.IntN(2) == 0)
	case scenario.Text:
		return []string{"2", "[0,1]", "([0]*3+[1]*5)"}[rng.IntN(3)]
	default:
		return f.Choices[rng.IntN(len(f.Choices))]
	}
}

// comments returns the comments of a text. The corpus has no # inside of values.
func comments(text string) []string {
	var all []string
	for l := range strings.Lines(text) {
		if i := strings.IndexByte(l, '#'); i >= 0 && !strings.Contains(l[:i], "'") {
			all = append(all, strings.TrimSpace(l[i:]))
		}
	}
	return all
}

// listed returns the keys of a text with their values, but for one, and but for those whose
// value follows from others.
func listed(r *Reading, text, but string) []string {
	var all []string
	src := newSource(text)
	for _, k := range r.Keys {
		if k.Path == but || strings.HasPrefix(but, k.Path+".") || strings.Contains(src.line(k.Line), "${") {
			continue
		}
		all = append(all, k.Path)
		if f, ok := scenario.ByPath(k.Path); ok && k.Status == Used {
			all = append(all, f.Get(&r.Scenario))
		}
	}
	return all
}

// Any field of any document can be set, read back and unset, and nothing else changes.
func TestSetFieldProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n, text := range corpus(t) {
		before := Read(text)
		every := 1 + len(text)/1500 // long texts with fewer fields each, all fields over all texts
		for i := n % every; i < len(scenario.Fields); i += every {
			f := &scenario.Fields[i]
			if f.Path == "model.optim.name" { // changes which keys count
				continue
			}
			value := someValue(f, rng)
			got, err := SetField(text, f.Path, value)
			require.NoError(t, err, "document %d, %s", n, f.Path)
			after := Read(got)
			if !slices.ContainsFunc(after.Keys, func(k Key) bool { return k.Path == f.Path && k.Status == NoEffect }) {
				require.Equal(t, value, f.Get(&after.Scenario), "document %d, %s", n, f.Path)
			}
			require.Equal(t, listed(before, text, f.Path), listed(after, got, f.Path), "document %d, %s", n, f.Path)
			require.Equal(t, comments(text), comments(got), "document %d, %s", n, f.Path)
			if was, is := strings.Split(text, "\n"), strings.Split(got, "\n"); len(was) == len(is) {
				changed := 0
				for j := range was {
					if was[j] != is[j] {
						changed++
					}
				}
				require.LessOrEqual(t, changed, 1, "document %d, %s", n, f.Path)
			}
			again, err := SetField(got, f.Path, value)
			require.NoError(t, err)
			require.Equal(t, got, again)
			gone, err := UnsetField(got, f.Path)
			require.NoError(t, err, "document %d, %s:\n%s", n, f.Path, got)
			require.False(t, slices.ContainsFunc(Read(gone).Keys, func(k Key) bool { return k.Path == f.Path }))
		}
	}
}

func FuzzSetField(f *testing.F) {
	f.Add(whole, uint8(3), "7")
	f.Add("model: {optim: {bucket_cap_mb: 5}}", uint8(40), "x: [")
	f.Add("a: &a {b: 1}\nmodel: *a\n", uint8(1), "null")
	f.Add("model:\n  ? num_layers\n  : 3\n", uint8(0), "4")
	f.Fuzz(func(t *testing.T, text string, field uint8, value string) {
		path := scenario.Fields[int(field)%len(scenario.Fields)].Path
		got, err := SetField(text, path, value)
		if err != nil {
			require.Equal(t, text, got)
			return
		}
		_, _, ok := parse(newSource(got))
		require.True(t, ok)
		again, err := SetField(got, path, value)
		require.NoError(t, err)
		require.Equal(t, got, again)
		_, err = UnsetField(got, path)
		_ = err // may be refused, must not panic
	})
}

func BenchmarkRead(b *testing.B) {
	text, err := os.ReadFile("testdata/configs/nemo-launcher-apex_gpt3_175b_fp8.yaml")
	require.NoError(b, err)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Read(string(text))
	}
}

func BenchmarkSetField(b *testing.B) {
	text, err := os.ReadFile("testdata/configs/nemo-launcher-apex_gpt3_175b_fp8.yaml")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SetField(string(text), "model.optim.bucket_cap_mb", "125"); err != nil {
			b.Fatal(err)
		}
	}
}
