package scenario

// Paths that rules refer to.
const (
	pathNodes           = "trainer.num_nodes"
	pathDevices         = "trainer.devices"
	pathPrecision       = "trainer.precision"
	pathClip            = "trainer.gradient_clip_val"
	pathMicro           = "model.micro_batch_size"
	pathGlobal          = "model.global_batch_size"
	pathTP              = "model.tensor_model_parallel_size"
	pathPP              = "model.pipeline_model_parallel_size"
	pathVP              = "model.virtual_pipeline_model_parallel_size"
	pathCP              = "model.context_parallel_size"
	pathSP              = "model.sequence_parallel"
	pathTPOverlap       = "model.ub_tp_comm_overlap"
	pathOverlapP2P      = "model.overlap_p2p_comm"
	pathBatchP2P        = "model.batch_p2p_comm"
	pathLayers          = "model.num_layers"
	pathHidden          = "model.hidden_size"
	pathFFN             = "model.ffn_hidden_size"
	pathHeads           = "model.num_attention_heads"
	pathGroups          = "model.num_query_groups"
	pathKV              = "model.kv_channels"
	pathSeq             = "model.encoder_seq_length"
	pathVocab           = "model.tokenizer.vocab_size"
	pathOverride        = "model.override_vocab_size"
	pathVocabDivisor    = "model.make_vocab_size_divisible_by"
	pathPosition        = "model.position_embedding_type"
	pathDropout         = "model.hidden_dropout"
	pathRopeFusion      = "model.apply_rope_fusion"
	pathRecompute       = "model.activations_checkpoint_granularity"
	pathRecomputeMethod = "model.activations_checkpoint_method"
	pathRecomputeLayers = "model.activations_checkpoint_num_layers"
	pathMCore           = "model.mcore_gpt"
	pathBias            = "model.bias"
	pathExperts         = "model.num_moe_experts"
	pathTopK            = "model.moe_router_topk"
	pathExpertFFN       = "model.moe_ffn_hidden_size"
	pathSharedFFN       = "model.moe_shared_expert_intermediate_size"
	pathQKNorm          = "model.qk_layernorm"
	pathLayerFreq       = "model.moe_layer_freq"
	pathRouterDType     = "model.moe_router_dtype"
	pathGroupedGEMM     = "model.moe_grouped_gemm"
	pathDispatcher      = "model.moe_token_dispatcher_type"
	pathEP              = "model.expert_model_parallel_size"
	pathETP             = "model.expert_tensor_parallel_size"
	pathO2              = "model.megatron_amp_O2"
	pathFP8             = "model.fp8"
	pathFP8Params       = "model.fp8_params"
	pathFP8Hybrid       = "model.fp8_hybrid"
	pathFP8E4M3         = "model.fp8_e4m3"
	pathGradFusion      = "model.gradient_accumulation_fusion"
	pathName            = "model.optim.name"
	pathCap             = "model.optim.bucket_cap_mb"
	pathState           = "model.optim.dtype"
	pathGradSync        = "model.optim.grad_sync_dtype"
	pathParamSync       = "model.optim.param_sync_dtype"
	pathStore           = "model.optim.store_params"
	pathRemainders      = "model.optim.store_param_remainders"
	pathScaled          = "model.optim.with_scaled_states"
	pathContigGrad      = "model.optim.contiguous_grad_buffer"
	pathContigParam     = "model.optim.contiguous_param_buffer"
	pathOneRank         = "model.optim.disable_distributed_parameters"
	pathOverlapGrad     = "model.optim.overlap_grad_sync"
	pathOverlapParam    = "model.optim.overlap_param_sync"
	pathBucketSize      = "model.optim.ddp_bucket_size"
	pathAverage         = "model.optim.average_in_collective"
	pathAlignGrad       = "model.optim.align_grad_reduce"
	pathAlignParam      = "model.optim.align_param_gather"
	pathWithStep        = "model.optim.overlap_param_gather_with_optimizer_step"
	pathInstances       = "model.optim.num_distributed_optimizer_instances"
	pathCheckNaN        = "model.optim.check_for_nan_in_grad"
	pathNumBuckets      = "framework.mcore.ddp_num_buckets"
	pathPadBuckets      = "framework.mcore.ddp_pad_buckets_for_high_nccl_busbw"
	pathUseDistOpt      = "framework.mcore.use_distributed_optimizer"
	pathFP32Accum       = "framework.mcore.ddp_reduce_scatter_with_fp32_accumulation"
	pathFP32Grads       = "framework.mcore.ddp_param_name_patterns_for_fp32_local_accumulation"
	pathPerToken        = "framework.mcore.calculate_per_token_loss"
	pathGroupSize       = "framework.mcore.microbatch_group_size_per_vp_stage"
	pathPrecisionAware  = "framework.mcore.use_precision_aware_optimizer"
	pathMainParams      = "framework.mcore.main_params_dtype"
	pathExpAvg          = "framework.mcore.exp_avg_dtype"
	pathExpAvgSq        = "framework.mcore.exp_avg_sq_dtype"
	pathMCoreRemainders = "framework.mcore.store_param_remainders"
	pathRecipe          = "framework.mcore.fp8_recipe"
	pathReuse           = "framework.mcore.reuse_grad_buf_for_mxfp8_param_ag"
	pathConnections     = "framework.mcore.cuda_device_max_connections"
	pathTrainingCode    = "framework.mcore.training_code"
	pathDDPCap          = "framework.ddp.bucket_cap_mb"
	pathFindUnused      = "framework.ddp.find_unused_parameters"
	pathStaticGraph     = "framework.ddp.static_graph"
	pathBucketView      = "framework.ddp.gradient_as_bucket_view"
	pathGPU             = "hardware.gpu"
	pathVersion         = "framework.version"
	pathLaterBuckets    = "framework.later.vpp_stage_buckets"
	pathLaterFP32       = "framework.later.vpp_fp32_embedding_grads"
	pathInit            = "framework.plain_init"
	pathDistributed     = "framework.distributed_size"
)

// Spellings of dtypes that Apex and NeMo accept, a "torch." prefix apart.
var dtypeChoices = []string{"fp32", "bf16", "fp16"}

var dtypeAliases = map[string]string{
	"float32": "fp32", "float": "fp32", "torch.float32": "fp32", "torch.float": "fp32", "torch.fp32": "fp32", "32": "fp32",
	"bfloat16": "bf16", "torch.bfloat16": "bf16", "torch.bf16": "bf16",
	"float16": "fp16", "half": "fp16", "torch.float16": "fp16", "torch.half": "fp16", "torch.fp16": "fp16", "16": "fp16",
}

// Origins of keys.
const (
	nemoModel   = "NeMo megatron_gpt_config.yaml"
	nemoTrainer = "PyTorch Lightning trainer"
	nemoOptim   = "Apex DistributedFusedAdam, through NeMo"
	plainOptim  = "Apex DistributedFusedAdam; NeMo computes it"
	nemoMCore   = "NeMo, for Megatron-Core"
	megatron    = "Megatron-LM's flag of that name"
	torchDDP    = "torch.nn.parallel.DistributedDataParallel"
	ours        = "this program"
)

// Fields is the table of all fields, in the order of the form.
var Fields = concat(modelFields, batchFields, precisionFields, optimFields, mcoreFields, jobFields, frameworkFields)

func concat(tables ...[]Field) []Field {
	var all []Field
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}
