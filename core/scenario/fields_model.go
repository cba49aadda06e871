package scenario

import "distopt/core/model"

// Bounds of sizes: far beyond any model, and such that every product of them fits an int64.
const (
	maxLayers = 10_000
	maxWidth  = 1 << 20
	maxFFN    = 1 << 23
	maxSeq    = 1 << 27
	maxVocab  = 1 << 27
	maxRanks  = 1 << 20
	maxBatch  = 1 << 30
	maxStages = 1 << 10
	maxChunks = 1 << 7
	maxExpert = 1 << 14
)

var modelFields = []Field{
	{
		Path: pathLayers, Label: "Layers", Kind: Int, Min: 1, Max: maxLayers, Default: "12",
		Help:  "Transformer layers of the whole model. Each pipeline stage gets num_layers / PP of them, rounded down.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Layers },
	},
	{
		Path: pathHidden, Label: "Hidden size", Kind: Int, Min: 1, Max: maxWidth, Default: "768",
		Help:  "Width of the residual stream.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Hidden },
	},
	{
		Path: pathFFN, Label: "FFN hidden size", Kind: Int, Min: 1, Max: maxFFN, Default: "3072", Optional: true, Null: "4 × hidden_size",
		Help:  "Width between the two linear layers of the MLP; of each half when it is gated.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.FFN },
	},
	{
		Path: pathHeads, Label: "Attention heads", Kind: Int, Min: 1, Max: maxWidth, Default: "12",
		Help:  "Query heads. A multiple of TP.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Heads },
	},
	{
		Path: pathGroups, Label: "Query groups", Kind: Int, Min: 1, Max: maxWidth, Default: Null, Optional: true, Null: "one per head",
		Help:  "Key and value heads (grouped-query attention). A divisor of the heads and a multiple of TP.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.QueryGroups },
	},
	{
		Path: pathSeq, Label: "Sequence length", Kind: Int, Unit: "tokens", Min: 1, Max: maxSeq, Default: "512",
		Help:  "Tokens of one sequence, and rows of learned position embeddings.",
		Group: GroupModel, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.SeqLength },
	},
	{
		Path: pathVocab, Label: "Vocabulary", Kind: Int, Unit: "tokens", Min: 1, Max: maxVocab, Default: "50257",
		Help:  "Size of the tokenizer, before padding. NeMo asks the tokenizer; a file that names a known one need not say it.",
		Group: GroupModel, Source: "the tokenizer", at: func(s *Scenario) any { return &s.Model.TokenizerVocab },
	},
	{
		Path: pathVocabDivisor, Label: "Vocabulary multiple", Kind: Int, Min: 1, Max: 1 << 20, Default: "128",
		Help:  "The vocabulary is padded to a multiple of this × TP.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.VocabDivisor },
	},
	{
		Path: pathOverride, Label: "Padded vocabulary", Kind: Int, Min: 1, Max: maxVocab, Default: Null, Optional: true, Null: "computed from the vocabulary",
		Help:  "Rows of the word embeddings as they are, in place of the padded vocabulary.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.OverrideVocab },
	},
	{
		Path: pathKV, Label: "Channels per head", Kind: Int, Min: 1, Max: maxWidth, Default: Null, Optional: true, Null: "hidden / heads",
		Help:  "Width of one attention head.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.KVChannels },
	},
	{
		Path: pathPosition, Label: "Positions", Kind: Choice, Choices: []string{LearnedAbsolute, Rope}, Default: LearnedAbsolute,
		Help:  "Learned positions are parameters of the first stage; rotary ones (rope) have none.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Position },
	},
	{
		Path: "model.activation", Label: "Activation", Kind: Choice,
		Choices: []string{"gelu", "squared-relu", "geglu", "reglu", "swiglu", "fast-geglu", "fast-reglu", "fast-swiglu"}, Default: "gelu",
		Help:  "Of the MLP. One whose name ends in glu is gated: the first linear layer is twice as wide.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Activation },
	},
	{
		Path: "model.normalization", Label: "Normalization", Kind: Choice, Choices: []string{"layernorm", "layernorm1p", "rmsnorm"}, Default: "layernorm",
		Help:  "rmsnorm has no bias; layernorm1p is a LayerNorm whose weight is stored less one.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Normalization },
	},
	{
		Path: pathBias, Label: "Linear biases", Kind: Bool, Default: "true",
		Help:  "All linear layers have a bias, or none.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Bias },
	},
	{
		Path: "model.share_embeddings_and_output_weights", Label: "Tied embeddings", Kind: Bool, Default: "true",
		Help:  "The output layer uses the word embeddings. With PP, first and last stage hold a copy each and add their gradients.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Tied },
	},
	{
		Path: pathDropout, Label: "Hidden dropout", Kind: Float, Min: 0, Max: 1, Default: "0.1",
		Help:  "Probability of dropout behind embeddings, attention and MLP. 0: its kernels do not run.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.HiddenDropout },
	},
	{
		Path: pathRopeFusion, Label: "Fused rotary positions", Kind: Bool, Default: "false",
		Help:  "One kernel turns queries and keys, in place of a chain of elementwise ones.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.RopeFusion },
	},
	{
		Path: pathMCore, Label: "Megatron-core GPT", Kind: Bool, Default: "false",
		Help:  "The model of Megatron-core with Transformer Engine layers. Only this one is simulated.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.MCore },
	},
	{
		Path: pathQKNorm, Label: "Query and key norms", Kind: Bool, Default: "false",
		Help:  "Queries and keys are normalized head by head.",
		Group: GroupModel, Rare: true, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.QKNorm },
	},
	{
		Path: pathExperts, Label: "Experts", Kind: Int, Min: 1, Max: maxExpert, Default: Null, Optional: true, Null: "none",
		Help:  "A mixture of that many MLPs in place of one, of which each token passes a few. Not with Apex's optimizers.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.Count },
	},
	{
		Path: pathTopK, Label: "Experts of a token", Kind: Int, Min: 1, Max: maxExpert, Default: "2",
		Help:  "How many experts each token passes.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.TopK },
	},
	{
		Path: pathExpertFFN, Label: "FFN size of an expert", Kind: Int, Min: 1, Max: maxFFN, Default: Null, Optional: true, Null: "ffn_hidden_size",
		Help:  "Width between the two linear layers of one expert.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.FFN },
	},
	{
		Path: pathSharedFFN, Label: "FFN size of shared experts", Kind: Int, Min: 1, Max: maxFFN, Default: Null, Optional: true, Null: "no shared experts",
		Help:  "Width of the experts that every token passes, together.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.SharedFFN },
	},
	{
		Path: pathGroupedGEMM, Label: "Grouped GEMM", Kind: Bool, Default: "false",
		Help:  "The experts of a rank multiply in one kernel, not one after the other.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.GroupedGEMM },
	},
	{
		Path: pathDispatcher, Label: "Token dispatcher", Kind: Choice, Choices: []string{AllGather, AllToAll, Flex}, Default: AllGather,
		Aliases: map[string]string{"alltoall_seq": AllToAll},
		Help:    "How tokens reach their experts: all gathered on every rank, or sent to the ranks that hold them; flex sends with a library made for it.",
		Group:   GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.Dispatcher },
	},
	{
		Path: pathLayerFreq, Label: "Layers with experts", Kind: Text, Default: "1", check: layerFreq, form: "a number, or a list of 0 and 1 such as ([0]*3+[1]*58)",
		Help:  "A number n: every n-th layer from the first on. A list says it for each layer, and is repeated over them.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.LayerFreq },
	},
	{
		Path: pathRouterDType, Label: "Router dtype", Kind: Choice, Choices: []string{"fp32", "fp64"}, Default: Null, Optional: true, Null: "as the model",
		Help:  "In which the router multiplies.",
		Group: GroupModel, Rare: true, ReadBy: byExperts, Source: nemoModel, at: func(s *Scenario) any { return &s.Model.Experts.RouterDType },
	},
}

func layerFreq(text string) error {
	_, err := model.ExpertPattern(text)
	return err
}
