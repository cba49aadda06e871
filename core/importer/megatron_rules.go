package importer

import "strings"

// Megatron-LM's flags. Those of which a field holds the value, each with the field's path from
// model, or from the section that is named.
const (
	megatronValues = `
		num-layers num_layers hidden-size hidden_size num-attention-heads num_attention_heads kv-channels kv_channels
		ffn-hidden-size ffn_hidden_size seq-length encoder_seq_length vocab-size tokenizer.vocab_size padded-vocab-size override_vocab_size
		normalization normalization make-vocab-size-divisible-by make_vocab_size_divisible_by hidden-dropout hidden_dropout
		num-experts num_moe_experts moe-router-topk moe_router_topk moe-ffn-hidden-size moe_ffn_hidden_size
		moe-shared-expert-intermediate-size moe_shared_expert_intermediate_size moe-token-dispatcher-type moe_token_dispatcher_type
		moe-layer-freq moe_layer_freq moe-router-dtype moe_router_dtype
		micro-batch-size micro_batch_size global-batch-size global_batch_size
		recompute-granularity activations_checkpoint_granularity recompute-method activations_checkpoint_method
		recompute-num-layers activations_checkpoint_num_layers
		tensor-model-parallel-size tensor_model_parallel_size pipeline-model-parallel-size pipeline_model_parallel_size
		num-virtual-stages-per-pipeline-rank virtual_pipeline_model_parallel_size context-parallel-size context_parallel_size
		expert-model-parallel-size expert_model_parallel_size expert-tensor-parallel-size expert_tensor_parallel_size
		ddp-bucket-size optim.ddp_bucket_size num-distributed-optimizer-instances optim.num_distributed_optimizer_instances
		clip-grad trainer.gradient_clip_val nnodes trainer.num_nodes nproc-per-node trainer.devices
		ddp-num-buckets mcore.ddp_num_buckets main-params-dtype mcore.main_params_dtype
		exp-avg-dtype mcore.exp_avg_dtype exp-avg-sq-dtype mcore.exp_avg_sq_dtype fp8-recipe mcore.fp8_recipe
		microbatch-group-size-per-virtual-pipeline-stage mcore.microbatch_group_size_per_vp_stage
		ddp-param-name-patterns-for-fp32-local-accumulation mcore.ddp_param_name_patterns_for_fp32_local_accumulation`

	// Switches that set a field to true, with an exclamation mark to false, or to another value.
	megatronSwitches = `
		use-rotary-position-embeddings position_embedding_type=rope no-rope-fusion !apply_rope_fusion
		swiglu activation=swiglu squared-relu activation=squared-relu quick-geglu activation=geglu apply-layernorm-1p normalization=layernorm1p
		recompute-activations activations_checkpoint_granularity=selective bf16 trainer.precision=bf16 fp16 trainer.precision=16
		no-gradient-accumulation-fusion !gradient_accumulation_fusion no-overlap-p2p-communication !overlap_p2p_comm
		no-align-param-gather !optim.align_param_gather no-check-for-nan-in-loss-and-grad !optim.check_for_nan_in_grad
		disable-bias-linear !bias untie-embeddings-and-output-weights !share_embeddings_and_output_weights
		sequence-parallel sequence_parallel tp-comm-overlap ub_tp_comm_overlap moe-grouped-gemm moe_grouped_gemm qk-layernorm qk_layernorm qk-l2-norm qk_layernorm
		fp8-param-gather fp8_params no-fp8-wgrad !fp8_wgrad
		overlap-grad-reduce optim.overlap_grad_sync overlap-param-gather optim.overlap_param_sync
		overlap-param-gather-with-optimizer-step optim.overlap_param_gather_with_optimizer_step
		ddp-average-in-collective optim.average_in_collective no-align-grad-reduce !optim.align_grad_reduce
		use-distributed-optimizer mcore.use_distributed_optimizer
		ddp-pad-buckets-for-high-nccl-busbw mcore.ddp_pad_buckets_for_high_nccl_busbw
		ddp-reduce-scatter-with-fp32-accumulation mcore.ddp_reduce_scatter_with_fp32_accumulation
		reuse-grad-buf-for-mxfp8-param-ag mcore.reuse_grad_buf_for_mxfp8_param_ag
		calculate-per-token-loss mcore.calculate_per_token_loss use-precision-aware-optimizer mcore.use_precision_aware_optimizer`

	// Flags that the translator treats by itself: with a value, and switches.
	megatronOwnValues = `
		num-query-groups max-position-embeddings position-embedding-type tokenizer-type tokenizer-model
		num-layers-per-virtual-pipeline-stage main-grads-dtype fp8-format loss-scale`
	megatronOwnSwitches = `group-query-attention no-position-embedding accumulate-allreduce-grads-in-fp32 grad-reduce-in-bf16`
)

// megatronNoEffect lists flags that change neither layout nor time of a step. A star stands for
// any ending.
var megatronNoEffect = []struct{ why, names string }{
	{"changes values, not layout or time", `
		lr lr-* min-lr override-opt-param-scheduler use-checkpoint-opt-param-scheduler weight-decay start-weight-decay end-weight-decay weight-decay-incr-style
		adam-* init-method-* use-mup seed attention-dropout norm-epsilon layernorm-epsilon rotary-* use-rope-scaling rope-scaling-factor no-rope-freq
		attention-softmax-in-fp32 apply-query-key-layer-scaling initial-loss-scale min-loss-scale loss-scale-window hysteresis
		fp8-margin fp8-interval fp8-amax-* decoupled-lr decoupled-min-lr embedding-init-method-std
		moe-router-load-balancing-type moe-aux-loss-coeff moe-z-loss-coeff moe-input-jitter-eps moe-router-* moe-per-layer-logging`},
	{"the model is Megatron-Core's with Transformer Engine's fused kernels", `
		use-mcore-models use-legacy-models use-flash-attn attention-backend no-bias-* no-masked-softmax-fusion no-persist-layer-norm bias-*
		cross-entropy-* openai-gelu no-bias-gelu-fusion disable-bf16-reduced-precision-matmul spec export-*
		te-rng-tracker fused-padded-mla-attention moe-permute-fusion moe-use-legacy-grouped-gemm moe-router-fusion batch-invariant-mode`},
	{"about data, tokens or checkpoints, not about a step", `
		data-* train-data-path valid-data-path test-data-path per-split-data-args-path mock-data split vocab-file merge-file tokenizer-* tiktoken-* vocab-extra-ids
		num-workers no-mmap-bin-files no-create-attention-mask-in-dataloader reset-* eod-mask-loss dataloader-type num-dataset-builder-threads s3-cache-path
		save save-* load load-* no-load-* no-save-* non-persistent-* ckpt-* dist-ckpt-* use-dist-ckpt auto-detect-ckpt-format async-save use-persistent-ckpt-worker
		finetune pretrained-checkpoint ckpt-step exit-on-missing-checkpoint use-checkpoint-args use-mp-args-from-checkpoint-args no-use-tokenizer-model-from-checkpoint-args
		no-ckpt-fully-parallel-save replication* perform-initialization no-initialization use-cpu-initialization legacy-tokenizer trust-remote-code`},
	{"about starting, logging or profiling, not about a step", `
		log-* timing-* tensorboard-* wandb-* one-logger-* enable-one-logger no-one-logger app-tag-* mlflow-* barrier-with-L1-time no-barrier-with-level-1-timing
		profile profile-* use-pytorch-profiler record-memory-history memory-snapshot-path nvtx-ranges logging-level
		distributed-* local-rank lazy-mpu-init standalone-embedding-stage use-tp-pp-dp-mapping enable-gloo-process-groups disable-gloo-process-groups
		rdzv-* master-addr master-port node-rank max-restarts monitor-interval tee redirects no-python
		deterministic-mode check-weight-hash-across-dp-replicas-interval error-injection-* rerun-mode ft-* enable-ft-package calc-ft-timeouts inprocess-* config-logger-dir run-workload-inspector-server enable-experimental`},
	{"about the loop around the steps, not about a step", `
		train-iters train-samples exit-* eval-* full-validation test-mode skip-train iterations-to-skip inference-* rl-* decrease-batch-size-if-needed manual-gc manual-gc-*
		empty-unused-memory-level adlr-autoresume adlr-autoresume-interval phase-transition-iterations`},
	{"part of what a switch turns on, which is simulated as a whole", `tp-comm-* disable-tp-comm-* cp-comm-type hierarchical-context-parallel-sizes
		q-lora-rank kv-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim`},
	{"only Megatron-FSDP uses the extra groups", `create-all-gather-group`},
}

// megatronUnsupported lists flags whose effect is not simulated, and what is in place of it; behind
// an equals sign stands the value that is. Those in megatronRefused change the model or its split,
// so that nothing can be said.
var (
	megatronRefused = []struct{ why, names string }{
		{"fully sharded data parallelism has other buckets and is not simulated", `use-torch-fsdp2 use-megatron-fsdp use-custom-fsdp data-parallel-sharding-strategy`},
		{"the stages are simulated with equal numbers of layers", `
			decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers pipeline-model-parallel-layout account-for-embedding-in-pipeline-split
			account-for-loss-in-pipeline-split encoder-num-layers decoder-num-layers encoder-tensor-model-parallel-size encoder-pipeline-model-parallel-size`},
		{"multi-latent attention has other parameters", `multi-latent-attention`},
		{"state-space layers have other parameters", `is-hybrid-model hybrid-* mamba-*`},
		{"no other optimizer than Adam is simulated", `optimizer=adam`},
		{"multi-token prediction has parameters of its own", `mtp-num-layers`},
	}
	megatronUnsupported = []struct{ why, names string }{
		{"the biases of queries, keys and values follow all others", `add-qkv-bias`},
		{"the batch is simulated as constant", `rampup-batch-size`},
		{"selective recompute is simulated as that of the core of attention", `recompute-modules=core_attn`},
		{"weight gradients are simulated in the backward pass", `delay-wgrad-compute`},
		{"NCCL user buffers are not simulated: fewer SMs are taken", `use-nccl-ub disable-symmetric-registration`},
		{"reductions in the network are not simulated", `use-sharp sharp-enabled-group`},
		{"streams are simulated with equal priority", `high-priority-stream-groups`},
		{"the optimizer is simulated on the GPU", `optimizer-cpu-offload optimizer-offload-fraction overlap-cpu-optimizer-d2h-h2d`},
		{"the host is simulated as launching every kernel", `enable-cuda-graph cuda-graph-* external-cuda-graph optimizer-cuda-graph`},
		{"FP4 is not simulated", `fp4-format fp4-param-gather fp4-recipe`},
		{"all layers are simulated in FP8", `first-last-layers-bf16 num-layers-at-start-in-bf16 num-layers-at-end-in-bf16 fp8-output-proj`},
		{"tokens are simulated as evenly spread over the experts, none dropped", `moe-expert-capacity-factor moe-pad-expert-input-to-capacity moe-token-drop-policy`},
		{"it is simulated as off", `moe-shared-expert-overlap overlap-moe-expert-parallel-comm moe-enable-deepep overlap-p2p-communication-warmup-flush
			defer-embedding-wgrad-compute cpu-offloading-num-layers distribute-saved-activations fp32-residual-connection fp16-lm-cross-entropy
			apply-residual-connection-post-layernorm window-size freeze-all-layers no-use-layer-wise-param-layout variable-seq-lengths`},
		{"layers are simulated with Transformer Engine", `transformer-impl=transformer_engine`},
	}
)

// flagKind says what is known of a flag.
type flagKind uint8

const (
	unknownFlag flagKind = iota
	valueFlag            // holds the value of a field
	switchFlag           // sets a field to target's value
	ownFlag              // the translator treats it
	idleFlag             // no effect
	unsupportedFlag
	refusedFlag
)

// flagRule is what is known of a flag.
type flagRule struct {
	kind   flagKind
	takes  bool   // a value
	path   string // of a field
	value  string // that a switch sets, or with which an unsupported flag has no effect
	reason string
}

// flagTable indexes the flags by name; those with a star by what stands before it.
type flagTable struct {
	rules    map[string]flagRule
	prefixes []string
	names    []string
}

var megatron = indexMegatron()

// add lists a flag. The first of two counts: those that hold a value come first.
//
//go:noinline
func (t *flagTable) add(name string, r *flagRule) {
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		t.prefixes = append(t.prefixes, prefix)
	} else {
		t.names = append(t.names, name)
	}
	t.rules[name] = *r
}

func indexMegatron() flagTable {
	t := flagTable{rules: make(map[string]flagRule, 512)}
	pairs := strings.Fields(megatronValues)
	for i := 0; i < len(pairs); i += 2 {
		t.add(pairs[i], &flagRule{kind: valueFlag, takes: true, path: fieldPath(pairs[i+1])})
	}
	pairs = strings.Fields(megatronSwitches)
	for i := 0; i < len(pairs); i += 2 {
		path, off := strings.CutPrefix(pairs[i+1], "!")
		path, value, given := strings.Cut(path, "=")
		switch {
		case off:
			value = "false"
		case !given:
			value = "true"
		}
		t.add(pairs[i], &flagRule{kind: switchFlag, path: fieldPath(path), value: value})
	}
	for i, names := range [...]string{megatronOwnSwitches, megatronOwnValues} {
		for _, name := range strings.Fields(names) {
			t.add(name, &flagRule{kind: ownFlag, takes: i > 0})
		}
	}
	for kind, groups := range [...][]struct{ why, names string }{megatronNoEffect, megatronUnsupported, megatronRefused} {
		for _, g := range groups {
			for _, name := range strings.Fields(g.names) {
				name, same, _ := strings.Cut(name, "=")
				t.add(name, &flagRule{kind: idleFlag + flagKind(kind), takes: true, value: same, reason: g.why})
			}
		}
	}
	return t
}

// fieldPath completes the path of a table.
func fieldPath(short string) string {
	switch section, _, _ := strings.Cut(short, "."); section {
	case "trainer":
		return short
	case "mcore":
		return "framework." + short
	}
	return "model." + short
}

// rule returns what is known of a flag.
func (t *flagTable) rule(name string) flagRule {
	if r, ok := t.rules[name]; ok {
		return r
	}
	best := ""
	for _, p := range t.prefixes {
		if strings.HasPrefix(name, p) && len(p) > len(best) {
			best = p
		}
	}
	return t.rules[best+"*"]
}

// isSwitch reports whether a flag takes no value.
func (t *flagTable) isSwitch(name string) bool {
	r := t.rule(name)
	return r.kind != unknownFlag && !r.takes
}
