package importer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// wild writes documents of known and unknown keys in many styles.
type wild struct {
	rng   *rand.Rand
	b     strings.Builder
	nl    string // line break
	quote bool   // keys may stand in quotes
	step  int    // indentation
}

// part is a key with its value or what stands below it.
type part struct {
	key, value string
	parts      []*part
}

func (w *wild) pick(words ...string) string { return words[w.rng.IntN(len(words))] }

// tree draws the keys of a document and their number of values.
func (w *wild) tree() (root *part, values int) {
	root = &part{}
	for range 3 + w.rng.IntN(20) {
		f := &scenario.Fields[w.rng.IntN(len(scenario.Fields))]
		path := f.Path
		switch w.rng.IntN(6) {
		case 0:
			path += "x"
		case 1:
			path = w.pick("model.", "trainer.", "model.optim.", "hardware.", "model.data.", "exp_manager.", "") + w.pick("foo", "lr", "seed", "größe", "betas", "sched")
		}
		at, keys := root, strings.Split(path, ".")
		for i, k := range keys {
			var next *part
			for _, p := range at.parts {
				if p.key == k {
					next = p
				}
			}
			if next != nil && (next.value != "" || i == len(keys)-1) {
				break // given already
			}
			if next == nil {
				next = &part{key: k}
				at.parts = append(at.parts, next)
				if i == len(keys)-1 {
					next.value = w.pick("1", "2", "8", "-1", "0", "true", "bf16", "null", "1e3", "x", "~", "1.5", `"quoted"`, "'it''s'", "größer", "???", "${.nope}", "[1, 2, 3]")
					values++
					if next.value[0] == '[' {
						values += 2
					}
				}
			}
			at = next
		}
	}
	return root, values
}

func (w *wild) write(p *part, indent int) {
	for _, c := range p.parts {
		if w.rng.IntN(8) == 0 {
			w.b.WriteString(strings.Repeat(" ", w.rng.IntN(9)) + w.pick("# ü: x", "") + w.nl)
		}
		key := c.key
		if w.quote && w.rng.IntN(2) == 0 {
			key = `"` + key + `"`
		}
		w.b.WriteString(strings.Repeat(" ", indent) + key + w.pick(":", ":", " :"))
		switch {
		case len(c.parts) == 0:
			w.b.WriteString(w.pick(" ", "   ", "\t") + c.value + w.pick("", " # c", "  ") + w.nl)
		case w.rng.IntN(8) == 0:
			w.b.WriteString(" ")
			w.flow(c)
			w.b.WriteString(w.nl)
		default:
			w.b.WriteString(w.pick("", "  # é") + w.nl)
			w.write(c, indent+w.step)
		}
	}
}

func (w *wild) flow(p *part) {
	w.b.WriteString("{")
	for i, c := range p.parts {
		if i > 0 {
			w.b.WriteString(", ")
		}
		w.b.WriteString(c.key + ": ")
		switch {
		case len(c.parts) > 0:
			w.flow(c)
		case strings.HasPrefix(c.value, "${"), c.value == "???":
			w.b.WriteString(`"` + c.value + `"`)
		default:
			w.b.WriteString(c.value)
		}
	}
	w.b.WriteString("}")
}

// document returns a text, its line break and how many values it has.
func document(rng *rand.Rand) (text, nl string, values int) {
	w := &wild{rng: rng, quote: rng.IntN(3) == 0, step: 1 + rng.IntN(4)}
	w.nl = w.pick("\n", "\n", "\r\n", "\r")
	if rng.IntN(4) == 0 {
		w.b.WriteString(byteOrderMark)
	}
	root, values := w.tree()
	w.write(root, 0)
	return w.b.String(), w.nl, values
}

// Keys and remarks stand where they say, whatever begins the text, breaks its lines and comes
// before them; and no value is missing among the keys.
func TestPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 300 {
		text, nl, values := document(rng)
		lines := strings.Split(strings.TrimPrefix(text, byteOrderMark), nl)
		at := func(line, col, end int) string {
			require.Positive(t, col, text)
			require.Greater(t, end, col, text)
			require.LessOrEqual(t, line, len(lines), text)
			runes := []rune(lines[line-1])
			if col == 1 && end == 2 && len(runes) == 0 {
				return ""
			}
			require.LessOrEqual(t, end, len(runes)+1, "%d:%d-%d\n%s", line, col, end, text)
			return string(runes[col-1 : end-1])
		}
		r := Read(text)
		require.NotEqual(t, NotConfiguration, r.Kind, text)
		for _, k := range r.Keys {
			values -= k.Count
			require.Equal(t, k.Path[strings.LastIndexByte(k.Path, '.')+1:], strings.Trim(at(k.Line, k.Col, k.EndCol), `"`), text)
		}
		require.Zero(t, values, text)
		for _, d := range r.Diagnostics {
			what := at(d.Line, d.Col, d.EndCol)
			require.Equal(t, strings.TrimSpace(what), what, "%v\n%s", d, text)
		}
	}
}

// A field can be set and taken out again in all of them; the mark at the start and the line
// breaks stay.
func TestSetFieldAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 300 {
		text, nl, _ := document(rng)
		f := &scenario.Fields[rng.IntN(len(scenario.Fields))]
		out, err := SetField(text, f.Path, "2")
		require.NoError(t, err, text)
		require.Equal(t, strings.HasPrefix(text, byteOrderMark), strings.HasPrefix(out, byteOrderMark))
		require.LessOrEqual(t, strings.Count(out, byteOrderMark), 1)
		if strings.Contains(text, nl) {
			require.NotContains(t, strings.ReplaceAll(out, nl, ""), "\n")
			require.NotContains(t, strings.ReplaceAll(out, nl, ""), "\r")
		}
		has := func(text string) bool {
			for _, k := range Read(text).Keys {
				if k.Path == f.Path {
					return true
				}
			}
			return false
		}
		require.True(t, has(out), "%s\n%s", f.Path, out)
		out, err = UnsetField(out, f.Path)
		require.NoError(t, err, out)
		require.False(t, has(out), "%s\n%s", f.Path, out)
	}
}

// An unknown key leads to the one that is meant: the same word elsewhere, a misspelling, or one
// with the same words.
func TestNearest(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"model.num_layer", "model.num_layers"},
		{"model.layers", "model.num_layers"},
		{"model.num_hidden_layers", "model.num_layers"},
		{"model.heads", "model.num_attention_heads"},
		{"model.seq_length", "model.encoder_seq_length"},
		{"model.tensor_parallel_size", "model.tensor_model_parallel_size"},
		{"model.pipeline_parallel", "model.pipeline_model_parallel_size"},
		{"model.tp", "model.tensor_model_parallel_size"},
		{"model.global_batch", "model.global_batch_size"},
		{"model.vocab_size", "model.tokenizer.vocab_size"},
		{"model.bucket_cap_mb", "model.optim.bucket_cap_mb"},
		{"model.optim.bucket_cap", "model.optim.bucket_cap_mb"},
		{"model.optim.grad_dtype", "model.optim.grad_sync_dtype"},
		{"model.optim.use_contiguous_grad_buffer", "model.optim.contiguous_grad_buffer"},
		{"trainer.nodes", "trainer.num_nodes"},
		{"trainer.gradient_clip", "trainer.gradient_clip_val"},
		{"hardware.gpus", "trainer.devices"},
		{"model.batch_size", ""}, // micro or global
		{"model.size", ""},
		{"zzz", ""},
	} {
		require.Equal(t, c.want, known.nearest(c.path), c.path)
	}
}

// Keys that nothing is known of but that others refer to are not said to be ignored.
func TestKeysReferredTo(t *testing.T) {
	text := "widths: {channels: &channels 64}\nother: &more {hidden_size: 768}\n" + whole + `  two: 2
  num_layers: ${multiply:${.two},${sizes.a}}
  kv_channels: *channels
  <<: *more
  lost: 3
sizes:
  a: 6
unread: ${model.lost}
`
	require.Equal(t, []string{
		"14:3-7 warning: model.lost: model.lost is not a key and is ignored.",
		"17:1-7 warning: unread: unread is not a key and is ignored.",
	}, diagnostics(text))
	for _, k := range Read(text).Keys {
		switch k.Path {
		case "model.two", "sizes", "widths", "other":
			require.Equal(t, NoEffect, k.Status, k.Path)
			require.Equal(t, "none by itself, but others refer to it", k.Why)
		}
	}
}
