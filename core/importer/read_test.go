package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// diagnostics returns the remarks on a text, errors and warnings only.
func diagnostics(text string) []string {
	var all []string
	for _, d := range Read(text).Diagnostics {
		if d.Severity != Info {
			all = append(all, line(d))
		}
	}
	return all
}

// whole is a document without remarks.
const whole = `trainer:
  devices: 8
  precision: bf16
model:
  mcore_gpt: True
  megatron_amp_O2: True
  global_batch_size: 64
`

func TestDiagnostics(t *testing.T) {
	require.Empty(t, diagnostics(whole))
	for _, c := range []struct{ name, text, want string }{
		{"unknown key, near", whole + "  optim:\n    overlap_parm_sync: true\n",
			"9:5-22 warning: model.optim.overlap_parm_sync: model.optim.overlap_parm_sync is not a key and is ignored. Did you mean model.optim.overlap_param_sync?"},
		{"key in the wrong section", whole + "  bucket_cap_mb: 5\n",
			"8:3-16 warning: model.bucket_cap_mb: model.bucket_cap_mb is not a key and is ignored. Did you mean model.optim.bucket_cap_mb?"},
		{"path as a key", whole + "  optim.bucket_cap_mb: 5\n",
			"8:3-22 warning: model.optim.bucket_cap_mb: model.optim.bucket_cap_mb is not a key and is ignored. Did you mean model.optim.bucket_cap_mb?"},
		{"said elsewhere", whole + "hardware:\n  gpus_per_node: 4\n",
			"9:3-16 warning: hardware.gpus_per_node: hardware.gpus_per_node is not a key and is ignored. Did you mean trainer.devices?"},
		{"unknown section", whole + "zzz:\n  a: 1\n  b: 2\n", "8:1-4 warning: zzz: zzz is not a key and is ignored."},
		{"wrong type", whole + "  num_layers: many # all\n",
			"8:15-19 error: model.num_layers: got many, want an integer from 1 to 10,000; use an integer from 1 to 10,000"},
		{"fraction", whole + "  num_layers: 12.5\n",
			"8:15-19 error: model.num_layers: got 12.5, want an integer from 1 to 10,000; set model.num_layers to 13"},
		{"zero", whole + "  num_layers: 0\n",
			"8:15-16 error: model.num_layers: got 0, want an integer from 1 to 10,000; set model.num_layers to 1"},
		{"negative", whole + "  num_layers: -4\n",
			"8:15-17 error: model.num_layers: got -4, want an integer from 1 to 10,000; set model.num_layers to 1"},
		{"huge", whole + "  num_layers: 1e300\n",
			"8:15-20 error: model.num_layers: got 1e300, want an integer from 1 to 10,000; set model.num_layers to 6000"},
		{"null", whole + "  num_layers:\n",
			"8:3-13 error: model.num_layers: got null, want an integer from 1 to 10,000; use an integer from 1 to 10,000"},
		{"list for a value", whole + "  num_layers: [1, 2]\n",
			"8:3-13 error: model.num_layers: got a list, want an integer from 1 to 10,000; write one value behind the key"},
		{"section for a value", whole + "  num_layers: {a: 1}\n",
			"8:3-13 error: model.num_layers: got a section, want an integer from 1 to 10,000; write one value behind the key"},
		{"value for a section", whole + "hardware: h100\n",
			"8:11-15 error: hardware: hardware is a section: its keys stand below it, indented."},
		{"choice", whole + "hardware: {gpu: h1000}\n",
			"8:17-22 error: hardware.gpu: got h1000, want a100-40gb, a100-80gb, h100, h200, b200, gb200 or l40s; set hardware.gpu to h100"},
		{"duplicate", whole + "  num_layers: 4\n  num_layers: 5\n",
			"9:3-13 error: The key num_layers is given twice: here and on line 8; remove one; the one on line 8 is read"},
		{"batch", whole + "  micro_batch_size: 3\n",
			"7:22-24 error: model.global_batch_size: got 64, want a multiple of 24 (microbatch 3 × DP 8); set model.global_batch_size to 48 or 72"},
		{"mandatory", whole + "  num_layers: ???\n",
			"8:15-18 error: model.num_layers: A value is missing here (??? marks it as mandatory)."},
		{"other optimizer", whole + "  optim:\n    name: fused_adam\n",
			"9:11-21 error: model.optim.name: got fused_adam, want distributed_fused_adam, apex_distributed_fused_adam, mcore_distributed_optim or torch_ddp: no other optimizer is simulated; set model.optim.name to distributed_fused_adam to simulate Apex's with this model"},
		{"assumed", whole + "  fsdp: True\n",
			"8:9-13 error: model.fsdp: got True, want false: NeMo refuses it together with this optimizer; set model.fsdp to false"},
		{"not simulated", whole + "  num_micro_batches_with_partial_activation_checkpoints: 4\n",
			"8:58-59 warning: model.num_micro_batches_with_partial_activation_checkpoints: got 4, want null: every microbatch is simulated with the same recomputation; set model.num_micro_batches_with_partial_activation_checkpoints to null"},
		{"recomputed in part", whole + "  activations_checkpoint_granularity: Full\n  activations_checkpoint_method: uniform\n  activations_checkpoint_num_layers: 5\n",
			"10:38-39 error: model.activations_checkpoint_num_layers: got 5, want a divisor of the 12 layers of a model chunk with uniform; set model.activations_checkpoint_num_layers to 4"},
		{"tokenizer", whole + "  tokenizer:\n    library: sentencepiece\n",
			"9:14-27 warning: model.tokenizer.vocab_size: The vocabulary is the tokenizer's, which is not known here; 50,257 tokens are assumed; set model.tokenizer.vocab_size"},
		{"data", whole + "  data:\n    seq_length: 4096\n",
			"9:17-21 warning: model.data.seq_length: Sequences are simulated with model.encoder_seq_length (512), not with this."},
		{"list", "- a\n- b\n", "1:1-4 error: A configuration is a map of keys, such as model: and trainer:."},
		{"word", "hello\n", "1:1-6 error: A configuration is a map of keys, such as model: and trainer:."},
		{"complex key", whole + "? [a, b]\n: 1\n", "8:3-9 error: A key must be a word, not a list or a map."},
		{"second document", whole + "---\nmodel: {}\n", "8:1-4 error: A second document begins here; only one is read; remove one of them"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, []string{c.want}, diagnostics(c.text)) })
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"model.num_layers", "1_0", "10"},
		{"model.num_layers", "0x10", "16"},
		{"model.num_layers", "'24'", "24"},
		{"model.num_layers", "24.0", "24"},
		{"model.num_layers", "!!str 24", "24"},
		{"model.optim.bucket_cap_mb", "1.25e2", "125"},
		{"model.optim.bucket_cap_mb", "0.0001", "0.0001"},
		{"model.optim.bucket_cap_mb", "1_000", "1000"},
		{"model.fp8_wgrad", "FALSE", "false"},
		{"model.fp8_wgrad", "No", "false"},
		{"model.fp8_wgrad", "off", "false"},
		{"model.sequence_parallel", "YES", "true"},
		{"model.sequence_parallel", "On", "true"},
		{"model.sequence_parallel", "'true'", "true"},
		{"model.activations_checkpoint_granularity", "Selective", "selective"},
		{"model.activations_checkpoint_num_layers", "0", "null"},
		{"model.hidden_dropout", "0.0", "0"},
		{"model.hidden_dropout", "1e-1", "0.1"},
		{"model.kv_channels", "~", "null"},
		{"model.kv_channels", "", "null"},
		{"model.fp8_wgrad", "null", "false"},
		{"trainer.gradient_clip_val", "null", "null"},
		{"trainer.gradient_clip_val", "0.0", "null"},
		{"trainer.precision", "bf16-mixed", "bf16"},
		{"trainer.precision", "16", "16"},
		{"trainer.precision", "'32'", "32"},
		{"model.optim.dtype", "torch.bfloat16", "bf16"},
		{"model.optim.grad_sync_dtype", "HALF", "fp16"},
		{"model.normalization", "LayerNorm1P", "layernorm1p"},
		{"hardware.gpu", "H100 SXM 80 GB", "h100"},
		{"framework.version", "before-new-apex", "before-new-apex"},
	} {
		t.Run(c.path+"="+c.text, func(t *testing.T) {
			require.Equal(t, c.want, fieldOf(t, nested(c.path, c.text), c.path))
		})
	}
}

// nested writes a path as a document.
func nested(path, value string) string {
	keys := strings.Split(path, ".")
	var b strings.Builder
	for i, k := range keys {
		b.WriteString(strings.Repeat("  ", i) + k + ":")
		if i < len(keys)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String() + " " + value + "\n"
}

// fieldOf reads the field at path.
func fieldOf(t *testing.T, text, path string) string {
	t.Helper()
	f, ok := scenario.ByPath(path)
	require.True(t, ok, path)
	r := Read(text)
	for _, k := range r.Keys {
		if k.Path == path {
			require.Equal(t, Used, k.Status, "%v", r.Diagnostics)
		}
	}
	return f.Get(&r.Scenario)
}

func TestInterpolation(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"sibling", "${.hidden_size}", "640"},
		{"absolute", "${model.hidden_size}", "640"},
		{"section above", "${..model.hidden_size}", "640"},
		{"launcher's prefix", "${training.model.hidden_size}", "640"},
		{"multiply", "${multiply:4, ${.hidden_size}}", "2560"},
		{"multiply many", "${multiply:2,2,${.hidden_size}}", "2560"},
		{"nested", "${multiply:${divide:${.hidden_size},2},${floor_div:7,2}}", "960"},
		{"divide", "${divide:${.hidden_size},2}", "320"},
		{"floor_div", "${floor_div:${.hidden_size},3}", "213"},
		{"divide_ceil", "${divide_ceil:${.hidden_size},3}", "214"},
		{"add", "${add:${.hidden_size},64,1}", "705"},
		{"environment's default", "${oc.env:FFN,1024}", "1024"},
		{"decoded default", "${oc.decode:${oc.env:FFN,1_024}}", "1024"},
		{"default from the document", "${oc.env:FFN,${.hidden_size}}", "640"},
		{"in quotes", `"${multiply:4, ${.hidden_size}}"`, "2560"},
		{"chain", "${.alias}", "640"},
		{"text around", "1${.two}0", "120"},
		{"computed path", "${.${.which}}", "640"},
		{"list", "${model.list[1]}", "512"},
		{"select", "${oc.select:model.nothing, 96}", "96"},
		{"decoded null", "${oc.decode:null}", "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "model:\n  hidden_size: 640\n  alias: ${.hidden_size}\n  which: hidden_size\n  two: 2\n  list: [256, 512]\n" +
				"  num_attention_heads: 8\n  ffn_hidden_size: " + c.value + "\n"
			require.Equal(t, c.want, fieldOf(t, text, "model.ffn_hidden_size"))
		})
	}
}

func TestInterpolationErrors(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"missing", "${.nothing}", `"${.nothing}" is not in the document: there is no nothing.`},
		{"itself", "${.ffn_hidden_size}", `The interpolation "${.ffn_hidden_size}" leads back to itself.`},
		{"cycle", "${.a}", `The interpolation "${.b}" leads back to itself.`},
		{"above the root", "${....x}", `"${....x}" points above the root.`},
		{"no default", "${oc.env:HOME}", "The environment variable HOME has no value here, and no default; write the value in its place."},
		{"unknown resolver", "${eval:1+1}", "The resolver eval is not known here; write the value in its place."},
		{"by zero", "${divide:1,0}", "divide divides by zero."},
		{"words", "${multiply:a,b}", "multiply needs numbers, not a."},
		{"one number", "${multiply:2}", "multiply needs two numbers."},
		{"open", "'${.x'", `The interpolation "${.x" is not closed.`},
		{"section", "a${model}", `"${model}" is a section, not a value.`},
		{"overflow", "${multiply:1e300,1e300}", "multiply overflows."},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "model:\n  a: ${.b}\n  b: ${.a}\n  ffn_hidden_size: " + c.value + "\n"
			var got string
			for _, d := range Read(text).Diagnostics {
				if d.Path == "model.ffn_hidden_size" {
					got = d.Message
					require.Equal(t, 4, d.Line)
					require.Equal(t, Error, d.Severity)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// What does not matter is not evaluated.
func TestInterpolationWithoutEffect(t *testing.T) {
	require.Empty(t, diagnostics(whole+"  data:\n    x: ${nowhere}\n  seed: ${oc.env:SEED}\n"))
}

func TestMounts(t *testing.T) {
	r := Read("training:\n  trainer:\n    devices: 4\n  model:\n    hidden_size: 640\n    ffn_hidden_size: ${training.model.hidden_size}\n    kv_channels: ${model.ffn_hidden_size}\nstages: [training]\n")
	require.Equal(t, NeMo, r.Kind)
	require.Equal(t, 4, r.Scenario.Hardware.Devices)
	require.Equal(t, 640, r.Scenario.Model.FFN)
	require.Equal(t, 640, r.Scenario.Model.KVChannels)

	r = Read("name: distributed_fused_adam\nbucket_cap_mb: ${model.optim.cap}\ncap: 7\n")
	require.Equal(t, NeMoSection, r.Kind)
	require.Equal(t, 7.0, r.Scenario.Optim.BucketCapMB)
	require.Empty(t, r.Scenario.Name)

	r = Read("num_layers: 4\nhidden_size: 64\noptim: {bucket_cap_mb: 5}\n")
	require.Equal(t, NeMoSection, r.Kind)
	require.Equal(t, 4, r.Scenario.Model.Layers)
	require.Equal(t, 5.0, r.Scenario.Optim.BucketCapMB)
}

func TestAliasesAndMerges(t *testing.T) {
	r := Read(`base: &base
  num_layers: 6
  hidden_size: &h 480
model:
  <<: *base
  num_layers: 8
  ffn_hidden_size: *h
  optim: ${.settings}
  settings: {bucket_cap_mb: 11}
`)
	require.Equal(t, 8, r.Scenario.Model.Layers)
	require.Equal(t, 480, r.Scenario.Model.Hidden)
	require.Equal(t, 480, r.Scenario.Model.FFN)
	require.Equal(t, 11.0, r.Scenario.Optim.BucketCapMB)
}

// Plain Apex has defaults of its own.
func TestPlainApexDefaults(t *testing.T) {
	r := Read("model:\n  optim:\n    bucket_cap_mb: 5\n    name: apex_distributed_fused_adam\n")
	require.True(t, r.Scenario.Plain())
	require.False(t, r.Scenario.Optim.ContiguousGradBuffer)
	require.Equal(t, 5.0, r.Scenario.Optim.BucketCapMB)
}

// What NeMo computes is listed as such when a document gives it.
func TestComputedByNeMo(t *testing.T) {
	r := Read(whole + "  optim:\n    store_params: False\n")
	k := r.Keys[len(r.Keys)-1]
	require.Equal(t, "model.optim.store_params", k.Path)
	require.Equal(t, NoEffect, k.Status)
	require.True(t, r.OK())
	require.Equal(t, Info, r.Diagnostics[0].Severity)
}

func TestForeign(t *testing.T) {
	for _, c := range []struct {
		text string
		kind Kind
	}{
		{"--num-layers 4\n--hidden-size 64\n", MegatronFlags},
		{"#!/bin/bash\nARGS=\"\n    --num-layers 4 \\\n    --hidden-size=64 \\\n\"\ntorchrun pretrain_gpt.py $ARGS\n", MegatronFlags},
		{"torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4", MegatronFlags},
		{"MODEL_ARGS:\n  --num-layers: 4\n", MegatronYAML},
		{"--num-layers: 4\n--hidden-size: 64\n", MegatronYAML},
		{`{"architectures": ["LlamaForCausalLM"], "hidden_size": 64}`, HuggingFace},
		{`{"model_type": "gpt2", "n_embd": 64}`, HuggingFace},
	} {
		r := Read(c.text)
		require.Equal(t, c.kind, r.Kind, c.text)
		if c.kind != HuggingFace {
			require.Equal(t, 4, r.Scenario.Model.Layers, c.text)
			continue
		}
		require.Len(t, r.Diagnostics, 1)
		require.Contains(t, r.Diagnostics[0].Message, "not imported yet")
	}
}

func TestKeysCoverTheDocument(t *testing.T) {
	for _, p := range scenario.Presets() {
		r := Read(p.Text)
		values := 0
		for _, k := range r.Keys {
			values += k.Count
		}
		src := newSource(p.Text)
		y, _, _ := parse(src)
		b := treeBuilder{src: src}
		require.Equal(t, b.build(y, nil, nil, 0, false).leaves(), values, p.ID)
	}
}

func ExampleRead() {
	r := Read("model:\n  num_layers: 0\n")
	for _, d := range r.Diagnostics {
		if d.Severity == Error {
			fmt.Printf("%d:%d: %s: %s; %s\n", d.Line, d.Col, d.Path, d.Message, d.Fix)
		}
	}
	// Output:
	// 2:15: model.num_layers: got 0, want an integer from 1 to 10,000; set model.num_layers to 1
}

// A fix leaves alone what it can: FP8 stays on where another size does.
func TestFixesKeepFP8(t *testing.T) {
	for _, c := range []struct {
		path, value string
		want        string
	}{
		{"model.hidden_size", "8.5", "32"}, {"model.hidden_size", "0", "32"}, {"model.hidden_size", "-4096", "32"},
		{"model.ffn_hidden_size", "0", "16"}, {"model.ffn_hidden_size", "100.5", "112"}, {"model.ffn_hidden_size", "1e99", ""},
		{"model.encoder_seq_length", "0", "16"}, {"model.encoder_seq_length", "7.5", "16"}, {"model.num_attention_heads", "0", "1"},
	} {
		preset := scenario.Presets()[0].Text
		text, err := SetField(preset, c.path, c.value)
		require.NoError(t, err)
		r := Read(text)
		i := slices.IndexFunc(r.Diagnostics, func(d Diagnostic) bool { return d.Path == c.path && d.Severity == Error })
		require.GreaterOrEqual(t, i, 0)
		edits := r.Diagnostics[i].Edits
		if c.want != "" {
			require.Equal(t, []scenario.Edit{{Path: c.path, Value: c.want}}, edits, "%s: %s", c.path, c.value)
		}
		mended, err := Apply(text, edits)
		require.NoError(t, err)
		after := Read(mended)
		require.Zero(t, after.Count(Error), "%s: %s", c.path, c.value)
		require.True(t, after.Scenario.Precision.FP8)
	}
}
