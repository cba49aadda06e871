package scenario

// Bounds of bucket_cap_mb, in MiB.
const (
	minCap = 1e-6
	maxCap = 1e6
)

var precisionFields = []Field{
	{
		Path: pathPrecision, Label: "Precision", Kind: Choice, Choices: []string{BF16, FP16, FP32}, Default: FP16,
		Aliases: map[string]string{
			"bf16-mixed": BF16, "bf16-true": BF16, "bfloat16": BF16,
			"16-mixed": FP16, "16-true": FP16, "fp16": FP16, "32-true": FP32, "fp32": FP32,
		},
		Help:  "Of the computation; with megatron_amp_O2 also of the parameters.",
		Group: GroupPrecision, Source: nemoTrainer, at: func(s *Scenario) any { return &s.Precision.Trainer },
	},
	{
		Path: pathO2, Label: "16-bit parameters", Kind: Bool, Default: "false",
		Help:  "megatron_amp_O2: parameters are stored in 16 bits, gradients go into the buckets after every microbatch.",
		Group: GroupPrecision, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.O2 },
	},
	{
		Path: pathFP8, Label: "FP8 GEMMs", Kind: Bool, Default: "false",
		Help:  "The linear layers multiply in FP8.",
		Group: GroupPrecision, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.FP8 },
	},
	{
		Path: pathFP8Params, Label: "FP8 parameters", Kind: Bool, Default: "false",
		Help:  "The weights of the linear layers are stored and gathered as FP8. Needs fp8.",
		Group: GroupPrecision, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.FP8Params },
	},
	{
		Path: pathFP8Hybrid, Label: "FP8 hybrid", Kind: Bool, Default: "true",
		Help:  "E4M3 forward, E5M2 for gradients.",
		Group: GroupPrecision, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.FP8Hybrid },
	},
	{
		Path: pathFP8E4M3, Label: "FP8 E4M3", Kind: Bool, Default: "false",
		Help:  "E4M3 for all; wins over fp8_hybrid.",
		Group: GroupPrecision, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.FP8E4M3 },
	},
	{
		Path: "model.fp8_wgrad", Label: "FP8 weight gradients", Kind: Bool, Default: "true",
		Help:  "Off: the GEMM of weight gradients stays in 16 bits.",
		Group: GroupPrecision, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.FP8Wgrad },
	},
	{
		Path: pathGradFusion, Label: "Fused accumulation", Kind: Bool, Default: "false",
		Help:  "The GEMM of a weight gradient adds into the bucket. NeMo turns it off without megatron_amp_O2.",
		Group: GroupPrecision, Rare: true, ReadBy: byApex | byMCore, Source: nemoModel, at: func(s *Scenario) any { return &s.Precision.GradFusion },
	},
}

var optimFields = []Field{
	{
		Path: pathName, Label: "Framework", Kind: Choice, Choices: optimNames, Names: familyNames, Default: NeMoAdam,
		Help:  "Whose distributed optimizer: NeMo's subclass of Apex's, Apex's class by itself, Megatron-Core's, or plain PyTorch DDP with an Adam on every rank.",
		Group: GroupOptimizer, Source: nemoModel, at: func(s *Scenario) any { return &s.Optim.Name },
	},
	{
		Path: pathCap, Label: "Bucket size", Kind: Float, Unit: "MiB", Min: minCap, Max: maxCap, Default: "100",
		Help:  "Target size of one bucket in grad_sync_dtype. The code multiplies by 1,048,576, whatever the key's name says.",
		Group: GroupOptimizer, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.BucketCapMB },
	},
	{
		Path: pathGradSync, Label: "Grad sync dtype", Kind: Choice, Choices: dtypeChoices, Aliases: dtypeAliases, Default: Null, Optional: true, Null: "dtype",
		Help:  "Of the reduce-scatter. Decides bucket size and alignment with Apex; with Megatron-Core gradients are fp32, or in the parameters' dtype for any other value.",
		Group: GroupOptimizer, ReadBy: byApex | byMCore, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.GradSync },
	},
	{
		Path: pathOverlapGrad, Label: "Overlap grad sync", Kind: Bool, Default: "true", MCoreDefault: "false",
		Help:  "Reduce-scatter buckets during the backward pass.",
		Group: GroupOptimizer, ReadBy: byApex | byMCore, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.OverlapGradSync },
	},
	{
		Path: pathOverlapParam, Label: "Overlap param sync", Kind: Bool, Default: "false",
		Help:  "All-gather buckets during the next forward pass; with Apex the first beside the optimizer step.",
		Group: GroupOptimizer, ReadBy: byApex | byMCore, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.OverlapParamSync },
	},
	{
		Path: pathContigGrad, Label: "Contiguous grad buffer", Kind: Bool, Default: "true", PlainDefault: "false",
		Help:  "One buffer for all gradients. megatron_amp_O2 needs it.",
		Group: GroupOptimizer, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.ContiguousGradBuffer },
	},
	{
		Path: pathContigParam, Label: "Contiguous param buffer", Kind: Bool, Default: "false",
		Help:  "Parameters are views of one buffer, so that a gathered bucket needs no copy.",
		Group: GroupOptimizer, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.ContiguousParamBuffer },
	},
	{
		Path: pathState, Label: "State dtype", Kind: Choice, Choices: dtypeChoices, Aliases: dtypeAliases, Default: "fp32",
		Help:  "Of both moments and of stored main parameters.",
		Group: GroupOptimizer, Rare: true, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.State },
	},
	{
		Path: pathScaled, Label: "Scaled states", Kind: Bool, Default: "false",
		Help:  "16-bit state with one fp32 scale per fragment. Needs a 16-bit dtype, stored main parameters and the new Apex.",
		Group: GroupOptimizer, Rare: true, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.WithScaledStates },
	},
	{
		Path: "model.optim.average_grad_sync", Label: "Average gradients", Kind: Bool, Default: "true",
		Help:  "The reduce-scatter averages; off: it sums.",
		Group: GroupOptimizer, Rare: true, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.AverageGradSync },
	},
	{
		Path: pathOneRank, Label: "State on every rank", Kind: Bool, Default: "false",
		Help:  "Every rank holds the whole state; gradients are all-reduced.",
		Group: GroupOptimizer, Rare: true, ReadBy: byApex, Source: nemoOptim, at: func(s *Scenario) any { return &s.Optim.OneRankState },
	},
	{
		Path: "model.do_layer_norm_weight_decay", Label: "One parameter group", Kind: Bool, Default: "false",
		Help:  "Off: parameters named bias form a second group without weight decay, which changes the optimizer's order.",
		Group: GroupOptimizer, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Optim.OneParamGroup },
	},
	{
		Path: pathClip, Label: "Gradient clipping", Kind: Float, Min: -1e9, Max: 1e9, Default: "1", Optional: true, Null: "no clipping",
		Help:  "Largest gradient norm. Null, zero or less: no norm is computed, and what is left is reduced in the step.",
		Group: GroupOptimizer, Rare: true, Source: nemoTrainer, at: func(s *Scenario) any { return &s.Optim.ClipNorm },
	},
	{
		Path: pathParamSync, Label: "Param sync dtype", Kind: Choice, Choices: dtypeChoices, Aliases: dtypeAliases, Default: Null, Optional: true, Null: "dtype",
		Help:  "Of the all-gather, with plain Apex. NeMo takes the model's dtype.",
		Group: GroupOptimizer, Rare: true, ReadBy: byPlain, Source: plainOptim, at: func(s *Scenario) any { return &s.Optim.Plain.ParamSync },
	},
	{
		Path: pathStore, Label: "Store main parameters", Kind: Bool, Default: "true",
		Help:  "Shards hold main parameters in the state dtype, with plain Apex.",
		Group: GroupOptimizer, Rare: true, ReadBy: byPlain, Source: plainOptim, at: func(s *Scenario) any { return &s.Optim.Plain.StoreParams },
	},
	{
		Path: pathRemainders, Label: "Store remainders", Kind: Bool, Default: "false",
		Help:  "Shards hold the low 16 bits of main parameters whose high 16 bits are the bf16 parameters, with plain Apex.",
		Group: GroupOptimizer, Rare: true, ReadBy: byPlain, Source: plainOptim, at: func(s *Scenario) any { return &s.Optim.Plain.StoreParamRemainders },
	},
}
