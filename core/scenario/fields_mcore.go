package scenario

const maxBucket = 1 << 40 // parameters

var stateDTypes = []string{"fp32", "fp16", "bf16", "fp8"}

// mcoreFields are the keys of model.optim that only Megatron-Core's optimizer reads, with NeMo's
// defaults.
var mcoreFields = []Field{
	{
		Path: pathBucketSize, Label: "DDP bucket size", Kind: Int, Unit: "parameters", Min: 1, Max: maxBucket, Default: Null, Optional: true, Null: "40 million, or a million for each data-parallel rank if that is more",
		Help:  "A bucket closes as soon as it holds that many parameters, whatever their dtype. Only the first model chunk of the first stage is cut, and only with overlap_grad_sync.",
		Group: GroupOptimizer, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.BucketSize },
	},
	{
		Path: pathAverage, Label: "Average in collective", Kind: Bool, Default: "true",
		Help:  "The reduction averages. Off: gradients are multiplied before, which reads and writes each bucket once more.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.AverageInCollective },
	},
	{
		Path: pathAlignGrad, Label: "Align grad reduce", Kind: Bool, Default: "true",
		Help:  "The pipeline schedule starts reductions, on all stages at the same time; off: they start as gradients become ready.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.AlignGradReduce },
	},
	{
		Path: pathAlignParam, Label: "Align param gather", Kind: Bool, Default: "false",
		Help:  "The pipeline schedule starts gathers of whole model chunks; off: modules start them one group ahead. Only with model chunks.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.AlignParamGather },
	},
	{
		Path: pathWithStep, Label: "Gather with step", Kind: Bool, Default: "false",
		Help:  "The first model chunk is gathered while the others are updated. Needs overlap_param_sync and model chunks; switches all bucketing off.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.GatherWithStep },
	},
	{
		Path: pathInstances, Label: "Optimizer instances", Kind: Int, Min: 1, Max: maxRanks, Default: "1",
		Help:  "Copies of the sharded state: each is sharded over that part of the data-parallel ranks, and shards are all-reduced over the copies.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.Instances },
	},
	{
		Path: pathCheckNaN, Label: "Check gradients", Kind: Bool, Default: "false",
		Help:  "The norm of each bucket is computed before its reduction, to find NaN.",
		Group: GroupOptimizer, Rare: true, ReadBy: byMCore, Source: nemoMCore, at: func(s *Scenario) any { return &s.Optim.MCore.CheckNaN },
	},
}

// frameworkFields are settings for which NeMo has no key: Megatron-LM's, named as its flags, and
// PyTorch DDP's.
var frameworkFields = []Field{
	{
		Path: pathTrainingCode, Label: "Megatron-LM's training code", Kind: Bool, Default: "false",
		Help:  "Megatron-LM trains, not NeMo: the default bucket size follows data times context parallel ranks, and its own checks apply.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: ours, at: func(s *Scenario) any { return &s.Optim.MCore.TrainingCode },
	},
	{
		Path: pathUseDistOpt, Label: "Shard the state", Kind: Bool, Default: "true",
		Help:  "Gradients are reduce-scattered and the state is sharded; off: gradients are all-reduced and every rank holds the whole state.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.DistributedOptimizer },
	},
	{
		Path: pathNumBuckets, Label: "DDP buckets", Kind: Int, Min: 1, Max: maxBucket, Default: Null, Optional: true, Null: "by ddp_bucket_size",
		Help:  "The bucket size is all parameters of the rank divided by this: a target, not a promise.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.NumBuckets },
	},
	{
		Path: pathPadBuckets, Label: "Pad buckets for bandwidth", Kind: Bool, Default: "false",
		Help:  "Buckets end at a multiple of 65,536 elements, too, which is dear where the ranks have odd factors.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.PadBuckets },
	},
	{
		Path: pathFP32Accum, Label: "Sum shards in fp32", Kind: Bool, Default: "false",
		Help:  "An all-to-all of 16-bit gradients and a local sum in fp32, in place of the reduce-scatter.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.FP32Accumulation },
	},
	{
		Path: pathFP32Grads, Label: "Private fp32 gradients", Kind: Choice, Choices: []string{AllParameters}, Default: Null, Optional: true, Null: "none",
		Help:  "Microbatches add up in an fp32 gradient of its own, 4 bytes for each parameter, and are reduced in 16 bits.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.FP32Grads },
	},
	{
		Path: pathPerToken, Label: "Loss per token", Kind: Bool, Default: "false",
		Help:  "Gradients are summed, and multiplied by the number of tokens after their reduction: a second pass over the buffers.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.PerTokenLoss },
	},
	{
		Path: pathGroupSize, Label: "Microbatch group", Kind: Int, Unit: "microbatches", Min: 1, Max: maxBatch, Default: Null, Optional: true, Null: "as many as stages",
		Help:  "Interleaved schedule: microbatches that pass a model chunk before the next chunk's turn.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.MicrobatchGroup },
	},
	{
		Path: pathPrecisionAware, Label: "Precision-aware optimizer", Kind: Bool, Default: "false",
		Help:  "Transformer Engine's Adam: no fp32 copies of 16-bit gradients, and the dtypes below.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.PrecisionAware },
	},
	{
		Path: pathMainParams, Label: "Main parameters", Kind: Choice, Choices: []string{"fp32", "fp16"}, Default: "fp32",
		Help:  "Their dtype. fp16 needs the precision-aware optimizer.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.MainParams },
	},
	{
		Path: pathExpAvg, Label: "First moment", Kind: Choice, Choices: stateDTypes, Aliases: dtypeAliases, Default: "fp32",
		Help:  "Its dtype. Another than fp32 needs the precision-aware optimizer.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.ExpAvg },
	},
	{
		Path: pathExpAvgSq, Label: "Second moment", Kind: Choice, Choices: stateDTypes, Aliases: dtypeAliases, Default: "fp32",
		Help:  "Its dtype. Another than fp32 needs the precision-aware optimizer.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.ExpAvgSq },
	},
	{
		Path: pathMCoreRemainders, Label: "Keep remainders", Kind: Bool, Default: "true",
		Help:  "The precision-aware optimizer keeps the low 16 bits of fp32 main parameters, whose high 16 bits are the bf16 parameters.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: "Megatron-Core OptimizerConfig", at: func(s *Scenario) any { return &s.Optim.MCore.StoreRemainders },
	},
	{
		Path: pathRecipe, Label: "FP8 recipe", Kind: Choice, Choices: []string{Delayed, Tensorwise, Blockwise, MXFP8}, Default: Delayed,
		Help:  "How FP8 is scaled: by tensor from earlier steps (delayed) or from present values (tensorwise), by block, or by 32 elements (mxfp8).",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.FP8Recipe },
	},
	{
		Path: pathReuse, Label: "Gather MXFP8 in the gradient buffer", Kind: Bool, Default: "false",
		Help:  "MXFP8 weights are gathered in bf16 in the gradient buffer, and quantized on every rank.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: megatron, at: func(s *Scenario) any { return &s.Optim.MCore.ReuseGradBuffer },
	},
	{
		Path: pathConnections, Label: "Device connections", Kind: Int, Min: 1, Max: 32, Default: Null, Optional: true, Null: "not set: streams are independent",
		Help:  "CUDA_DEVICE_MAX_CONNECTIONS. 1: kernels of all streams start in the order in which the host issues them.",
		Group: GroupSimulation, Rare: true, ReadBy: byMCore, Source: "environment", at: func(s *Scenario) any { return &s.Optim.MCore.MaxConnections },
	},
	{
		Path: pathDDPCap, Label: "DDP bucket cap", Kind: Float, Unit: "MiB", Min: minCap, Max: maxCap, Default: Null, Optional: true, Null: "25, and 1 for the first bucket",
		Help:  "A bucket closes as soon as it holds that much. Any value given, even 25, is that of the first bucket too.",
		Group: GroupSimulation, Rare: true, ReadBy: byDDP, Source: torchDDP, at: func(s *Scenario) any { return &s.Optim.DDP.BucketCapMB },
	},
	{
		Path: pathFindUnused, Label: "Find unused parameters", Kind: Bool, Default: "false",
		Help:  "Buckets are those of the registration order, and never rebuilt in the order in which gradients arrive.",
		Group: GroupSimulation, Rare: true, ReadBy: byDDP, Source: torchDDP, at: func(s *Scenario) any { return &s.Optim.DDP.FindUnused },
	},
	{
		Path: pathStaticGraph, Label: "Static graph", Kind: Bool, Default: "false",
		Help:  "What is used does not change from step to step, so buckets are rebuilt even with find_unused_parameters.",
		Group: GroupSimulation, Rare: true, ReadBy: byDDP, Source: torchDDP, at: func(s *Scenario) any { return &s.Optim.DDP.StaticGraph },
	},
	{
		Path: pathBucketView, Label: "Gradients as bucket views", Kind: Bool, Default: "false",
		Help:  "Gradients are views of the buckets after their reduction: no copy back, and half the memory.",
		Group: GroupSimulation, Rare: true, ReadBy: byDDP, Source: torchDDP, at: func(s *Scenario) any { return &s.Optim.DDP.GradAsBucketView },
	},
}
