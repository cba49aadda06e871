package scenario

var batchFields = []Field{
	{
		Path: pathMicro, Label: "Microbatch", Kind: Int, Unit: "sequences", Min: 1, Max: maxBatch, Default: "4",
		Help:  "Sequences in one forward and backward pass.",
		Group: GroupBatch, Source: nemoModel, at: func(s *Scenario) any { return &s.Batch.Micro },
	},
	{
		Path: pathGlobal, Label: "Global batch", Kind: Int, Unit: "sequences", Min: 1, Max: maxBatch, Default: "8",
		Help:  "Sequences in one step, over all ranks. A multiple of microbatch × DP.",
		Group: GroupBatch, Source: nemoModel, at: func(s *Scenario) any { return &s.Batch.Global },
	},
	{
		Path: pathRecompute, Label: "Recompute", Kind: Choice, Choices: []string{Selective, Full}, Default: Null, Optional: true, Null: "nothing",
		Help:  "What the backward pass computes again in place of keeping it: the core of attention (selective) or whole layers (full).",
		Group: GroupBatch, Source: nemoModel, at: func(s *Scenario) any { return &s.Recompute.Granularity },
	},
	{
		Path: pathRecomputeMethod, Label: "Recompute method", Kind: Choice, Choices: []string{Uniform, Block}, Default: Null, Optional: true, Null: "none",
		Help:  "Of full recompute: all layers, in groups of which only the input is kept (uniform), or the first layers of each model chunk (block).",
		Group: GroupBatch, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Recompute.Method },
	},
	{
		Path: pathRecomputeLayers, Label: "Recompute layers", Kind: Int, Unit: "layers", Min: 0, Max: maxLayers, Default: Null, Optional: true, Null: "none",
		Help:  "Of full recompute: layers of one group (uniform), or recomputed layers of each model chunk (block). 0 is null.",
		Group: GroupBatch, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Recompute.Layers },
	},
	{
		Path: pathTP, Label: "Tensor parallel", Kind: Int, Unit: "ranks", Min: 1, Max: maxRanks, Default: "1",
		Help:  "Ranks that share every layer's matrices (TP).",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.TP },
	},
	{
		Path: pathPP, Label: "Pipeline stages", Kind: Int, Unit: "stages", Min: 1, Max: maxStages, Default: "1",
		Help:  "Groups of consecutive layers, each on its own ranks (PP).",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.PP },
	},
	{
		Path: pathVP, Label: "Chunks per stage", Kind: Int, Unit: "chunks", Min: 1, Max: maxChunks, Default: Null, Optional: true, Null: "not interleaved",
		Help:  "Interleaved schedule: groups of layers on each stage (VP). Older Megatron-core, of NeMo's Apex optimizer, asks for more than two stages.",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.VP },
	},
	{
		Path: pathCP, Label: "Context parallel", Kind: Int, Unit: "ranks", Min: 1, Max: maxRanks, Default: "1",
		Help:  "Ranks that share every sequence (CP). The optimizer state is sharded over DP × CP.",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.CP },
	},
	{
		Path: pathEP, Label: "Expert parallel", Kind: Int, Unit: "ranks", Min: 1, Max: maxRanks, Default: "1",
		Help:  "Ranks that share the experts of a layer (EP): part of the data-parallel ranks.",
		Group: GroupParallelism, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.EP },
	},
	{
		Path: pathETP, Label: "Expert tensor parallel", Kind: Int, Unit: "ranks", Min: 1, Max: maxRanks, Default: Null, Optional: true, Null: "as TP",
		Help:  "Ranks that share the matrices of one expert.",
		Group: GroupParallelism, Rare: true, ReadBy: byMCore, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.ETP },
	},
	{
		Path: pathSP, Label: "Sequence parallel", Kind: Bool, Default: "false",
		Help:  "Norms and dropout are split over the tensor-parallel ranks. NeMo turns it off when TP is 1.",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.SequenceParallel },
	},
	{
		Path: pathTPOverlap, Label: "Overlap tensor parallel", Kind: Bool, Default: "false",
		Help:  "Gathers and scatters of sequence parallelism run beside the products that need or make them. NeMo turns it off without sequence parallelism.",
		Group: GroupParallelism, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.TPOverlap },
	},
	{
		Path: pathOverlapP2P, Label: "Overlap messages", Kind: Bool, Default: "false",
		Help:  "Messages between stages run beside compute. Only with the interleaved schedule, and not with batch_p2p_comm.",
		Group: GroupParallelism, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.OverlapP2P },
	},
	{
		Path: pathBatchP2P, Label: "Batch messages", Kind: Bool, Default: "true",
		Help:  "Messages of one exchange are one NCCL group, after which the host waits for the whole device.",
		Group: GroupParallelism, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Parallel.BatchP2P },
	},
}
