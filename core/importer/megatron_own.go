package importer

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/scenario"
	"distopt/core/units"
)

// own translates a flag whose meaning depends on others, or lists it where rest needs it.
func (t *translation) own(f *option) {
	const position, activation, norm = "model.position_embedding_type", "model.activation", "model.normalization"
	value := f.value()
	switch f.name {
	case "num-query-groups":
		if t.has("group-query-attention") {
			t.used(f, "model.num_query_groups", value)
		} else {
			t.key(f, Key{Status: NoEffect, Why: "only with --group-query-attention"})
		}
	case "group-query-attention":
		t.used(f, "model.num_query_groups", strconv.Itoa(t.number("num-query-groups", 1)))
	case "position-embedding-type":
		switch low := strings.ToLower(value); low {
		case scenario.Rope, scenario.LearnedAbsolute:
			t.used(f, position, low)
		case "yarn", "mrope", "none":
			t.report(Warning, f.values[0], position, "Positions "+low+" are simulated as rope: neither has parameters.")
			t.used(f, position, scenario.Rope)
		default:
			t.wrong(f, position, "got "+scenario.Quote(value)+", want rope or learned_absolute")
		}
	case "use-rotary-position-embeddings":
		t.used(f, position, scenario.Rope)
	case "no-position-embedding":
		if t.rope() {
			t.key(f, Key{Status: NoEffect, Why: "positions are rotary"})
		} else {
			t.report(Warning, f.at, position, "A model without positions is simulated with rope: neither has parameters.")
			t.used(f, position, scenario.Rope)
		}
	case "no-rope-fusion":
		t.used(f, "model.apply_rope_fusion", "false")
	case "normalization":
		if low := strings.ToLower(value); low == "layernorm" || low == "rmsnorm" {
			t.used(f, norm, low)
		} else {
			t.wrong(f, norm, "got "+scenario.Quote(value)+", want LayerNorm or RMSNorm")
		}
	case "apply-layernorm-1p":
		t.used(f, norm, "layernorm1p")
	case "swiglu", "squared-relu":
		t.used(f, activation, f.name)
	case "quick-geglu":
		t.used(f, activation, "geglu")
	case "recompute-activations":
		t.used(f, "model.activations_checkpoint_granularity", scenario.Selective)
	case "num-layers-per-virtual-pipeline-stage":
		t.virtual(f)
	case "bf16":
		t.used(f, "trainer.precision", scenario.BF16)
	case "fp16":
		t.used(f, "trainer.precision", scenario.FP16)
	case "fp8-format":
		t.fp8(f)
	case "no-gradient-accumulation-fusion":
		t.used(f, "model.gradient_accumulation_fusion", "false")
	case "no-overlap-p2p-communication":
		t.used(f, "model.overlap_p2p_comm", "false")
	case "no-align-param-gather":
		t.used(f, "model.optim.align_param_gather", "false")
	case "no-check-for-nan-in-loss-and-grad":
		t.used(f, "model.optim.check_for_nan_in_grad", "false")
	case "main-grads-dtype", "accumulate-allreduce-grads-in-fp32", "grad-reduce-in-bf16":
		t.gradients(f)
	case "max-position-embeddings":
		if t.rope() || t.number(f.name, 0) == t.number("seq-length", 0) {
			t.key(f, Key{Status: NoEffect, Why: "position embeddings have as many rows as sequences have tokens"})
		} else {
			t.report(Warning, f.values[0], "model.encoder_seq_length", "Learned positions are simulated with a row for each token of a sequence (--seq-length), not with this many.")
			t.key(f, Key{Status: Unsupported, Why: "--seq-length counts"})
		}
	case "tokenizer-type", "tokenizer-model":
		if !t.has("vocab-size") && !t.has("padded-vocab-size") && vocabulary(value) > 0 && (f.name == "tokenizer-model" || vocabulary(t.text("tokenizer-model")) == 0) {
			return // vocabulary lists it
		}
		t.key(f, Key{Status: NoEffect, Why: "the size of the vocabulary is what counts"})
	default: // loss-scale
		t.key(f, Key{Status: NoEffect, Why: "changes values, not layout or time"})
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

// virtual makes model chunks of a stage from the layers of one.
func (t *translation) virtual(f *option) {
	const path = "model.virtual_pipeline_model_parallel_size"
	layers, stages := t.number("num-layers", 0), max(t.number("pipeline-model-parallel-size", 1), 1)
	each, err := strconv.Atoi(f.value())
	if err != nil || each < 1 || layers/stages%each != 0 {
		t.wrong(f, path, fmt.Sprintf("got %s, want a divisor of the %d layers of a stage", scenario.Quote(f.value()), layers/stages))
		return
	}
	t.used(f, path, strconv.Itoa(max(layers/stages/each, 1)))
}

func (t *translation) fp8(f *option) {
	switch value := strings.ToLower(f.value()); value {
	case "hybrid", "e4m3":
		t.used(f, "model.fp8", "true")
		if value == "e4m3" {
			t.doc.set("model.fp8_e4m3", "true", f, "")
		}
	default:
		t.wrong(f, "model.fp8", "got "+scenario.Quote(value)+", want hybrid or e4m3")
	}
}

// gradients applies the rule that bf16 training reduces in fp32 unless it is told otherwise.
func (t *translation) gradients(f *option) {
	const path = "model.optim.grad_sync_dtype"
	main := strings.ToLower(t.text("main-grads-dtype"))
	if f.name == "main-grads-dtype" && main != "fp32" && main != "bf16" {
		t.wrong(f, path, "got "+scenario.Quote(main)+", want fp32 or bf16")
		return
	}
	if f.name == "main-grads-dtype" && main == "bf16" && !t.has("use-precision-aware-optimizer") {
		t.wrong(f, path, "got bf16, want fp32 without --use-precision-aware-optimizer")
		return
	}
	t.used(f, path, t.gradDType())
}

// gradDType returns the dtype in which gradients are accumulated and reduced.
func (t *translation) gradDType() string {
	switch fp32 := t.has("accumulate-allreduce-grads-in-fp32"); {
	case t.has("bf16") && t.has("grad-reduce-in-bf16"):
		return scenario.BF16
	case t.has("bf16") && !fp32 && strings.EqualFold(t.text("main-grads-dtype"), scenario.BF16):
		return scenario.BF16
	case t.has("fp16") && !fp32:
		return "fp16"
	}
	return "fp32"
}

// rest writes what Megatron-LM does without a flag and NeMo does not.
func (t *translation) rest() {
	const theirs = "Megatron-LM's default"
	t.doc.set("model.optim.name", scenario.MCoreAdam, nil, "")
	t.doc.set("framework.mcore.training_code", "true", nil, "")
	t.doc.set("model.mcore_gpt", "true", nil, "")
	without := func(path, value, comment string) {
		if !t.doc.has(path) {
			t.doc.set(path, value, nil, comment)
		}
	}
	for _, name := range []string{"num-layers", "hidden-size", "num-attention-heads", "seq-length", "micro-batch-size"} {
		if path := megatron.rule(name).path; !t.doc.has(path) && !t.faulty(path) {
			f, _ := scenario.ByPath(path)
			t.report(Warning, t.first, path, "Megatron-LM asks for --"+name+", which is not given; "+f.Default+" is assumed.")
			t.doc.set(path, f.Default, nil, "assumed")
		}
	}
	without("trainer.precision", scenario.FP32, theirs)
	half := t.has("bf16") || t.has("fp16")
	t.doc.set("model.megatron_amp_O2", strconv.FormatBool(half), nil, "")
	without("model.optim.grad_sync_dtype", t.gradDType(), theirs)
	without("model.gradient_accumulation_fusion", "true", theirs)
	without("model.optim.average_in_collective", "false", theirs)
	without("framework.mcore.use_distributed_optimizer", "false", theirs)
	if !t.has("fp16") || t.has("loss-scale") {
		without("model.optim.check_for_nan_in_grad", "true", theirs)
	}
	if t.has("swiglu") {
		without("model.ffn_hidden_size", strconv.Itoa(t.number("hidden-size", 768)*4*2/3/64*64), theirs)
	} else {
		without("model.ffn_hidden_size", scenario.Null, theirs)
	}
	if t.doc.value("model.position_embedding_type") == scenario.Rope {
		without("model.apply_rope_fusion", "true", theirs)
	}
	if vp, _ := strconv.Atoi(t.doc.value("model.virtual_pipeline_model_parallel_size")); vp > 1 {
		without("model.optim.align_param_gather", "true", theirs)
		without("model.overlap_p2p_comm", "true", theirs)
		if t.doc.value("model.overlap_p2p_comm") == "true" {
			t.doc.set("model.batch_p2p_comm", "false", nil, "")
		}
	}
	t.vocabulary()
	const connections = "framework.mcore.cuda_device_max_connections"
	if !t.doc.has(connections) && (t.number("tensor-model-parallel-size", 1) > 1 || t.number("context-parallel-size", 1) > 1) {
		t.report(Info, t.first, connections, "CUDA_DEVICE_MAX_CONNECTIONS is assumed to be 1, which Megatron-LM asks for here before Blackwell GPUs.")
		t.doc.set(connections, "1", nil, "assumed")
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

// world chooses a number of ranks, which flags do not tell: the fewest whole nodes of 8 over which
// the model, its experts and the batch divide, else the fewest ranks.
func (t *translation) world() {
	const node, most = 8, 4096 // ranks of a node; model copies that are tried
	tp, cp, pp := t.number("tensor-model-parallel-size", 1), t.number("context-parallel-size", 1), t.number("pipeline-model-parallel-size", 1)
	ep, etp := t.number("expert-model-parallel-size", 1), t.number("expert-tensor-parallel-size", tp)
	experts := ep * etp
	micro, err := strconv.Atoi(t.doc.value("model.micro_batch_size"))
	global := t.number("global-batch-size", 0)
	model := tp * cp * pp
	if err != nil || min(tp, cp, pp, ep, etp, micro) < 1 || max(tp, cp, pp, ep, etp) > 1<<10 || micro > 1<<30 {
		return // an error of its own
	}
	least := experts / gcd(experts, tp*cp) // copies
	nodes, devices := t.number("nnodes", 0), t.number("nproc-per-node", 0)
	for _, x := range []struct {
		path string
		n    *int
	}{{"trainer.num_nodes", &nodes}, {"trainer.devices", &devices}} {
		if n, err := strconv.Atoi(t.doc.value(x.path)); err == nil {
			*x.n = n
		}
	}
	copies := 0
	if nodes == 0 || devices == 0 {
		per, step := max(devices, node), max(nodes, 1)
		if devices > 0 {
			per = devices
		}
		fits := func(dp, whole int) bool {
			return model*dp%whole == 0 && model*dp/whole%step == 0 && (global == 0 || global%(micro*dp) == 0)
		}
		for k := 1; k <= most && (copies == 0); k++ {
			if fits(least*k, per) {
				copies = least * k
			}
		}
		if copies == 0 {
			copies = least
			per = gcd(model*copies, per)
		}
		ranks := model * copies
		if nodes == 0 {
			nodes = max(ranks/per, 1)
		}
		if devices == 0 {
			devices = max(ranks/nodes, 1)
		}
		if !t.doc.has("trainer.num_nodes") {
			t.doc.set("trainer.num_nodes", strconv.Itoa(nodes), nil, "assumed")
		}
		if !t.doc.has("trainer.devices") {
			t.doc.set("trainer.devices", strconv.Itoa(devices), nil, "assumed")
		}
		t.report(Warning, t.first, "trainer.num_nodes", fmt.Sprintf("Flags do not tell the number of GPUs: %s are assumed (trainer.num_nodes %d × trainer.devices %d), the fewest nodes over which the model and the batch divide.",
			units.Count(int64(nodes*devices)), nodes, devices))
		t.out.Diagnostics[len(t.out.Diagnostics)-1].Fix = "set trainer.num_nodes and trainer.devices"
	}
	if global == 0 && !t.faulty("model.global_batch_size") {
		t.doc.set("model.global_batch_size", strconv.Itoa(micro*max(nodes*devices/model, 1)), nil, "Megatron-LM's default: one microbatch")
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
