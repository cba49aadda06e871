package importer

// noEffect lists keys, and sections with all that is in them, that change neither layout nor
// time of a step. A section ends in a dot.
var noEffect = []struct{ why, keys string }{
	{"changes values, not layout or time", `
		model.optim.lr model.optim.weight_decay model.optim.betas. model.optim.eps model.optim.bias_correction
		model.optim.adam_w_mode model.optim.sched. model.init_method_std model.use_scaled_init_method
		model.attention_dropout model.ffn_dropout model.layernorm_epsilon
		model.native_amp_init_scale model.native_amp_growth_interval model.hysteresis
		model.fp8_margin model.fp8_interval model.fp8_amax_history_len model.fp8_amax_compute_algo
		model.seed model.apply_query_key_layer_scaling model.rotary_percentage model.rotary_base
		model.seq_len_interpolation_factor model.normalize_attention_scores model.scale_positional_embedding
		model.label_smoothing model.embedding_dropout seed. model.moe_router_load_balancing_type model.moe_aux_loss_coeff
		model.moe_z_loss_coeff model.moe_input_jitter_eps model.moe_router_pre_softmax model.moe_router_score_function`},
	{"Megatron-core takes encoder_seq_length", `model.max_position_embeddings`},
	{"Megatron-core's GPT always has Transformer Engine layers", `model.transformer_engine model.name`},
	{"attention is simulated as the fused kernel that Transformer Engine prefers", `
		model.use_flash_attention model.masked_softmax_fusion model.attention_type model.attention_backend`},
	{"the fused kernels of Transformer Engine are simulated", `
		model.bias_activation_fusion model.bias_gelu_fusion model.bias_dropout_add_fusion model.bias_dropout_fusion model.persist_layer_norm
		model.cross_entropy_loss_fusion model.openai_gelu model.onnx_safe`},
	{"Transformer Engine always reduces amaxes here", `model.reduce_amax`},
	{"part of FSDP, which model.fsdp turns on", `
		model.fsdp_sharding_strategy model.fsdp_grad_reduce_dtype model.fsdp_sharded_checkpoint model.fsdp_use_orig_params`},
	{"part of the overlap of tensor-parallel communication, which is simulated as a whole", `
		model.tp_comm_atomic_ag model.tp_comm_atomic_rs model.ub_tp_comm_overlap_cfg. model.tp_comm_bootstrap_backend
		model.tp_comm_overlap_ag model.tp_comm_overlap_rs model.tp_comm_overlap_disable_qkv model.tp_comm_overlap_disable_fc1`},
	{"not used by the distributed optimizer", `
		model.grad_allreduce_chunk_size_mb model.grad_div_ar_fusion model.gradient_as_bucket_view
		model.async_grad_allreduce model.barrier_with_L1_time`},
	{"side streams of checkpoints only", `model.optim.pipeline_size`},
	{"a lock that the simulation does not contend for", `model.optim.lock_timeout`},
	{"names the class, which model.optim.name stands for", `model.optim.cls model.optim._target_`},
	{"about data, tokens or checkpoints, not about a step", `
		model.data. model.tokenizer. model.resume_from_checkpoint model.restore_from_path model.inference.
		model.sync_batch_comm model.dist_ckpt_format model.dist_ckpt_load_on_device model.dist_ckpt_parallel_save
		model.dist_ckpt_parallel_load model.dist_ckpt_torch_dist_multiproc model.dist_ckpt_assume_constant_structure
		model.dist_ckpt_load_strictness model.save_nemo_on_validation_end model.validation_drop_last restore_from_path ckpt_path inference.`},
	{"about starting, logging or profiling, not about a step", `
		model.use_cpu_initialization model.apex_transformer_log_level model.nsys_profile. model.memory_profile.
		model.enable_megatron_timers model.megatron_timer_kwargs. model.gc_interval model.precision model.target model.nemo_version
		model.deterministic_mode model.pretraining. run. exp_manager. hydra. defaults. env_vars. cluster. cluster_type stages.
		base_results_dir data_dir launcher_scripts_path container container_mounts. debug. name model_type
		custom_metrics. logging. wandb.`},
	{"about the loop around the steps, not about a step", `
		trainer.accelerator trainer.strategy. trainer.logger. trainer.enable_checkpointing trainer.use_distributed_sampler
		trainer.replace_sampler_ddp trainer.max_epochs trainer.max_steps trainer.max_time trainer.min_steps trainer.min_epochs
		trainer.log_every_n_steps trainer.val_check_interval trainer.check_val_every_n_epoch trainer.limit_train_batches
		trainer.limit_val_batches trainer.limit_test_batches trainer.num_sanity_val_steps trainer.benchmark
		trainer.enable_model_summary trainer.enable_progress_bar trainer.callbacks. trainer.plugins. trainer.profiler
		trainer.deterministic trainer.detect_anomaly trainer.sync_batchnorm trainer.fast_dev_run trainer.inference_mode
		trainer.default_root_dir trainer.gradient_clip_algorithm trainer.reload_dataloaders_every_n_epochs trainer.overfit_batches
		trainer.barebones`},
}

// assumption is a key of which one value is simulated.
type assumption struct {
	path     string
	value    string // as simulated; null always is
	why      string // what another would change
	severity Severity
}

// assumptions lists the keys whose other values are not simulated. An error is about what NeMo
// or Apex itself refuses with this optimizer, or what would change the parameters.
var assumptions = []assumption{
	{"trainer.accumulate_grad_batches", "1", "NeMo accumulates over microbatches and refuses another number", Error},
	{"model.rampup_batch_size", "null", "NeMo only allows it with fused_adam", Error},
	{"model.fsdp", "false", "NeMo refuses it together with this optimizer", Error},
	{"model.use_emha", "false", "NeMo refuses it", Error},
	{"model.optim.amsgrad", "false", "Apex refuses it", Error},
	{"model.optim.device", "cuda", "Apex refuses another one", Error},
	{"model.moe_expert_capacity_factor", "null", "tokens are simulated as evenly spread over the experts, none dropped", Warning},
	{"model.moe_shared_expert_overlap", "false", "it is simulated as off", Warning},
	{"model.transformer_block_type", "pre_ln", "layers are simulated as pre_ln", Warning},
	{"model.headscale", "false", "it is simulated as off", Warning},
	{"model.pre_process", "true", "the first stage is simulated with embeddings", Warning},
	{"model.post_process", "true", "the last stage is simulated with an output layer", Warning},
	{"model.num_micro_batches_with_partial_activation_checkpoints", "null", "every microbatch is simulated with the same recomputation", Warning},
	{"model.activations_checkpoint_layers_per_pipeline", "null", "every stage is simulated with the same recomputation", Warning},
	{"model.cpu_offloading", "false", "it is simulated as off", Warning},
	{"model.fp32_residual_connection", "false", "the residual stream is simulated in 16 bits", Warning},
	{"model.fp16_lm_cross_entropy", "false", "the loss is simulated in fp32", Warning},
	{"model.window_size", "null", "attention is simulated over the whole sequence", Warning},
	{"model.fp8_dot_product_attention", "false", "attention is simulated in 16 bits", Warning},
	{"model.fp8_multi_head_attention", "false", "attention is simulated in 16 bits", Warning},
	{"model.sharp", "false", "reductions in the network are not simulated", Warning},
	{"model.enable_cuda_graph", "false", "the host is simulated as launching every kernel", Warning},
	{"model.optim.nccl_ub", "false", "NCCL user buffers are not simulated: sums instead of averages, fewer SMs taken", Warning},
	{"model.optim.capturable", "false", "it is simulated as off", Warning},
	{"model.optim.distribute_within_nodes", "false", "the state is simulated as sharded over the whole data-parallel group", Warning},
	{"model.optim.distributed_size", "null", "the state is simulated as sharded over the whole data-parallel group", Warning},
	{"model.optim.with_fp32_embedding_grads", "true", "embeddings are simulated with fp32 gradients", Warning},
}

// ownKeys are those that the reader treats by itself.
const ownKeys = `name run.name model.data.seq_length model.tokenizer.library model.tokenizer.type model.tokenizer.model`
