package importer

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/scenario"
)

const (
	positionPath = "model.position_embedding_type"
	gradSyncPath = "model.optim.grad_sync_dtype"
	virtualPath  = "model.virtual_pipeline_model_parallel_size"
	tpPath       = "model.tensor_model_parallel_size"
	cpPath       = "model.context_parallel_size"
	p2pPath      = "model.overlap_p2p_comm"
	batchPath    = "model.global_batch_size"
)

// own translates a flag whose meaning depends on others.
func (t *translation) own(f *option) {
	value := strings.ToLower(f.value())
	switch f.name {
	case "num-query-groups":
		if t.has("group-query-attention") {
			t.used(f, "model.num_query_groups", value)
			return
		}
		t.idle(f, "only with --group-query-attention")
	case "group-query-attention":
		t.used(f, "model.num_query_groups", strconv.Itoa(t.number("num-query-groups", 1)))
	case "no-position-embedding":
		if t.rope() {
			t.idle(f, "positions are rotary")
			return
		}
		t.position(f, "none")
	case "position-embedding-type":
		t.position(f, value)
	case "num-layers-per-virtual-pipeline-stage":
		t.virtual(f)
	case "fp8-format":
		if value != "hybrid" && value != "e4m3" {
			t.wrong(f, "model.fp8", "got "+scenario.Quote(value)+", want hybrid or e4m3")
			return
		}
		t.used(f, "model.fp8", "true")
		t.doc.set("model.fp8_e4m3", strconv.FormatBool(value == "e4m3"), nil, "")
	case "main-grads-dtype", "accumulate-allreduce-grads-in-fp32", "grad-reduce-in-bf16":
		t.gradients(f)
	case "max-position-embeddings":
		if t.rope() || t.number(f.name, 0) == t.number("seq-length", 0) {
			t.idle(f, "position embeddings have as many rows as sequences have tokens")
			return
		}
		t.report(Warning, f.place(), "model.encoder_seq_length", "Learned positions are simulated with a row for each token of a sequence (--seq-length), not with this many.")
		t.key(f, Unsupported, "--seq-length counts")
	case "tokenizer-type", "tokenizer-model":
		if !t.has("vocab-size") && !t.has("padded-vocab-size") && vocabulary(f.value()) > 0 && (f.name == "tokenizer-model" || vocabulary(t.text("tokenizer-model")) == 0) {
			return // vocabulary lists it
		}
		t.idle(f, "the size of the vocabulary is what counts")
	default: // loss-scale
		t.idle(f, "changes values, not layout or time")
	}
}

func (t *translation) text(name string) string {
	if f := t.given[name]; f != nil {
		return f.value()
	}
	return ""
}

func (t *translation) rope() bool {
	return t.has("use-rotary-position-embeddings") || strings.EqualFold(t.text("position-embedding-type"), scenario.Rope)
}

func (t *translation) position(f *option, kind string) {
	switch kind {
	case "yarn", "mrope", "none":
		t.report(Warning, f.place(), positionPath, "Positions "+kind+" are simulated as rope: neither has parameters.")
		kind = scenario.Rope
	case scenario.Rope, scenario.LearnedAbsolute:
	default:
		t.wrong(f, positionPath, "got "+scenario.Quote(kind)+", want rope or learned_absolute")
		return
	}
	t.used(f, positionPath, kind)
}

// virtual makes model chunks of a stage from the layers of one.
func (t *translation) virtual(f *option) {
	layers, stages := t.number("num-layers", 0), max(t.number("pipeline-model-parallel-size", 1), 1)
	each, err := strconv.Atoi(f.value())
	if err != nil || each < 1 || layers/stages%each != 0 {
		t.wrong(f, virtualPath, fmt.Sprintf("got %s, want a divisor of the %d layers of a stage", scenario.Quote(f.value()), layers/stages))
		return
	}
	t.used(f, virtualPath, strconv.Itoa(max(layers/stages/each, 1)))
}

// gradients applies the rule that bf16 training reduces in fp32 unless it is told otherwise.
func (t *translation) gradients(f *option) {
	if f.name == "main-grads-dtype" {
		switch main := strings.ToLower(f.value()); {
		case main != "fp32" && main != scenario.BF16:
			t.wrong(f, gradSyncPath, "got "+scenario.Quote(main)+", want fp32 or bf16")
			return
		case main == scenario.BF16 && !t.has("use-precision-aware-optimizer"):
			t.wrong(f, gradSyncPath, "got bf16, want fp32 without --use-precision-aware-optimizer")
			return
		}
	}
	t.used(f, gradSyncPath, t.gradDType())
}

// gradDType returns the dtype in which gradients are accumulated and reduced.
func (t *translation) gradDType() string {
	fp32 := t.has("accumulate-allreduce-grads-in-fp32")
	switch {
	case t.has("bf16") && (t.has("grad-reduce-in-bf16") || !fp32 && strings.EqualFold(t.text("main-grads-dtype"), scenario.BF16)):
		return scenario.BF16
	case t.has("fp16") && !fp32:
		return "fp16"
	}
	return "fp32"
}

// without gives a field that no flag gave its value.
//
//go:noinline
func (t *translation) without(path, value, comment string) {
	if !t.doc.has(path) {
		t.doc.set(path, value, nil, comment)
	}
}

const (
	theirs = "Megatron-LM's default"
	// Flags that Megatron-LM asks for.
	required = "num-layers hidden-size num-attention-heads seq-length micro-batch-size"
	// What Megatron-LM does without a flag and NeMo does not; later those with model chunks.
	defaults = `
		trainer.precision 32 model.gradient_accumulation_fusion true model.optim.average_in_collective false
		framework.mcore.use_distributed_optimizer false model.ffn_hidden_size null`
	chunkDefaults = ` model.optim.align_param_gather true model.overlap_p2p_comm true`
)

// rest writes what Megatron-LM does without a flag and NeMo does not.
func (t *translation) rest() {
	for _, name := range strings.Fields(required) {
		if path := megatron.rule(name).path; !t.doc.has(path) && !t.faulty(path) {
			f, _ := scenario.ByPath(path)
			t.report(Warning, t.first, path, "Megatron-LM asks for --"+name+", which is not given; "+f.Default+" is assumed.")
			t.doc.set(path, f.Default, nil, assumed)
		}
	}
	t.doc.set(namePath, scenario.MCoreAdam, nil, "")
	t.doc.set("framework.mcore.training_code", "true", nil, "")
	t.doc.set("model.mcore_gpt", "true", nil, "")
	t.doc.set("model.megatron_amp_O2", strconv.FormatBool(t.has("bf16") || t.has("fp16")), nil, "")
	t.without(gradSyncPath, t.gradDType(), theirs)
	if t.has("swiglu") {
		t.without("model.ffn_hidden_size", strconv.Itoa(t.number("hidden-size", 768)*4*2/3/64*64), theirs)
	}
	if !t.has("fp16") || t.has("loss-scale") {
		t.without("model.optim.check_for_nan_in_grad", "true", theirs)
	}
	if t.doc.value(positionPath) == scenario.Rope {
		t.without("model.apply_rope_fusion", "true", theirs)
	}
	apply := defaults
	if t.doc.number(virtualPath, 1) > 1 {
		apply += chunkDefaults
	}
	pairs := strings.Fields(apply)
	for i := 0; i < len(pairs); i += 2 {
		t.without(pairs[i], pairs[i+1], theirs)
	}
	if t.doc.value(p2pPath) == "true" {
		t.doc.set("model.batch_p2p_comm", "false", nil, "")
	}
	t.vocabulary()
	if !t.doc.has(connections) && (t.doc.number(tpPath, 1) > 1 || t.doc.number(cpPath, 1) > 1) {
		t.report(Info, t.first, connections, "CUDA_DEVICE_MAX_CONNECTIONS is assumed to be 1, which Megatron-LM asks for here before Blackwell GPUs.")
		t.doc.set(connections, "1", nil, assumed)
	}
}

// faulty reports whether an error about a field was found already.
func (t *translation) faulty(path string) bool {
	for i := range t.out.Diagnostics {
		if d := &t.out.Diagnostics[i]; d.Path == path && d.Severity == Error {
			return true
		}
	}
	return false
}
