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
	ours        = "this program"
)

// Fields is the table of all fields, in the order of the form.
var Fields = concat(modelFields, batchFields, precisionFields, optimFields, jobFields)

func concat(tables ...[]Field) []Field {
	var all []Field
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}
