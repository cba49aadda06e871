package scenario

var jobFields = []Field{
	{
		Path: pathGPU, Label: "GPU", Kind: Choice, Choices: gpuIDs, Names: gpuNames, Aliases: gpuAliases, Default: DefaultGPU,
		Help:  "Decides compute, memory and NVLink rates.",
		Group: GroupHardware, Source: ours, at: func(s *Scenario) any { return &s.Hardware.GPU },
	},
	{
		Path: pathNodes, Label: "Nodes", Kind: Int, Min: 1, Max: maxRanks, Default: "1",
		Help:  "Machines of the job.",
		Group: GroupHardware, Source: nemoTrainer, at: func(s *Scenario) any { return &s.Hardware.Nodes },
	},
	{
		Path: pathDevices, Label: "GPUs per node", Kind: Int, Min: 1, Max: 1024, Default: "1",
		Help:  "Ranks on each machine. World size is num_nodes × devices.",
		Group: GroupHardware, Source: nemoTrainer, at: func(s *Scenario) any { return &s.Hardware.Devices },
	},
	{
		Path: "hardware.network", Label: "Network", Kind: Choice, Choices: networkIDs, Names: networkNames, Aliases: networkAliases, Default: DefaultNetwork,
		Help:  "Between nodes.",
		Group: GroupHardware, Source: ours, at: func(s *Scenario) any { return &s.Hardware.Network },
	},
	{
		Path: pathVersion, Label: "Version", Kind: Choice, Choices: []string{Before, BeforeNewApex, AfterOldApex, After}, Default: After,
		Help: "NeMo and Apex before or after NeMo PR 8221 and Apex PR 1771: both old, old NeMo on new Apex, " +
			"new NeMo on old Apex, both new.",
		Group: GroupSimulation, ReadBy: byApex, Source: ours, at: func(s *Scenario) any { return &s.Framework.Version },
	},
	{
		Path: pathLaterBuckets, Label: "Buckets per chunk", Kind: Bool, Default: "false",
		Help:  "NeMo PR 9408: with the interleaved schedule, one list of buckets per model chunk instead of one per layer.",
		Group: GroupSimulation, Rare: true, ReadBy: byApex, Source: ours, at: func(s *Scenario) any { return &s.Framework.Later.StageBuckets },
	},
	{
		Path: pathLaterFP32, Label: "FP32 embedding gradients", Kind: Bool, Default: "false",
		Help:  "NeMo PR 8792: embeddings get fp32 gradients with the interleaved schedule too.",
		Group: GroupSimulation, Rare: true, ReadBy: byApex, Source: ours, at: func(s *Scenario) any { return &s.Framework.Later.FP32EmbeddingGrads },
	},
	{
		Path: pathInit, Label: "Placement", Kind: Choice, Choices: []string{InitLazy, InitExplicit, InitReversed}, Default: InitLazy,
		Help:  "Plain Apex: parameters are placed in buckets as their first gradients arrive (lazy), or before by init_params in the optimizer's order or the reverse.",
		Group: GroupSimulation, Rare: true, ReadBy: byPlain, Source: ours, at: func(s *Scenario) any { return &s.Optim.Plain.Init },
	},
	{
		Path: pathDistributed, Label: "Distributed size", Kind: Int, Unit: "ranks", Min: 1, Max: maxRanks, Default: Null, Optional: true, Null: "the data-parallel size",
		Help:  "Plain Apex: ranks that share the optimizer state (distributed_process_group); the rest hold copies of it.",
		Group: GroupSimulation, Rare: true, ReadBy: byPlain, Source: ours, at: func(s *Scenario) any { return &s.Optim.Plain.DistributedSize },
	},
}
