// Package scenario is one training configuration as plain values, and the table of its fields.
//
// A field's path is the key path that NeMo's own YAML uses (model.optim.bucket_cap_mb), so a
// NeMo file is a document already; hardware.* and framework.* are added for what NeMo does not
// say. The table (Fields) gives every field its unit, range, default and help, and everything
// else reads it: form, documents, validation, documentation.
//
// A Scenario holds what the user chose, with zero for "not given" where a field is Optional.
// What follows from that (data-parallel size, padded vocabulary, the optimizer's dtypes) comes
// from methods. Rules are those that NeMo, Megatron-core, Transformer Engine and Apex enforce.
//
// Not modelled: learning rate and the other numbers that change values but neither layout nor time.
package scenario

// Scenario is one training configuration. It is comparable: equal scenarios give equal results.
type Scenario struct {
	Name      string // for the reader only; not a field
	Model     Model
	Batch     Batch
	Recompute Recompute
	Parallel  Parallel
	Precision Precision
	Optim     Optim
	Hardware  Hardware
	Framework Framework
}

// Model is the architecture.
type Model struct {
	Layers         int
	Hidden         int
	FFN            int // 0: 4 × Hidden
	Heads          int
	KVChannels     int // 0: Hidden / Heads
	QueryGroups    int // 0: Heads
	SeqLength      int
	TokenizerVocab int // size of the tokenizer, before padding
	OverrideVocab  int // padded size as it is, 0: computed
	VocabDivisor   int // make_vocab_size_divisible_by
	Position       string
	Activation     string
	Normalization  string
	Bias           bool
	Tied           bool // share_embeddings_and_output_weights
	HiddenDropout  float64
	RopeFusion     bool
	MCore          bool // mcore_gpt
	QKNorm         bool // qk_layernorm
	Experts        Experts
}

// Experts is a mixture of experts in place of the MLP, in every layer or in some.
type Experts struct {
	Count       int    // num_moe_experts, 0: none
	TopK        int    // experts of one token
	FFN         int    // of one expert, 0: ffn_hidden_size
	SharedFFN   int    // of the shared experts together, 0: none
	GroupedGEMM bool   // all local experts in one kernel
	Dispatcher  string // how tokens reach their experts
	LayerFreq   string // moe_layer_freq: which layers have experts
	RouterDType string // of the router's products, "": the model's
}

// Batch is how sequences are grouped.
type Batch struct {
	Micro  int
	Global int
}

// Recompute is what the backward pass computes again.
type Recompute struct {
	Granularity string // "": nothing
	Method      string // of Full
	Layers      int    // of Full: of one group with Uniform, of each model chunk with Block; 0: not given
}

// Parallel is the parallel layout asked for.
type Parallel struct {
	TP, PP, CP       int
	VP               int // model chunks per stage, 0: not interleaved
	EP               int // ranks that share the experts
	ETP              int // ranks that share an expert's matrices, 0: TP
	SequenceParallel bool
	TPOverlap        bool // ub_tp_comm_overlap
	OverlapP2P       bool
	BatchP2P         bool
}

// Precision says in which formats the model is stored and multiplied.
type Precision struct {
	Trainer   string // trainer.precision: "16", "bf16" or "32"
	O2        bool   // megatron_amp_O2: 16-bit parameters
	FP8       bool
	FP8Params bool // FP8-stored weights
	FP8Hybrid bool
	FP8E4M3   bool
	FP8Wgrad  bool
	// GradFusion is gradient_accumulation_fusion: weight gradients are added into the bucket by the GEMM.
	GradFusion bool
}

// Optim is the section model.optim, with the norm clipping of trainer.
type Optim struct {
	Name                  string
	BucketCapMB           float64 // MiB of the default grad-sync dtype
	State                 string  // dtype
	GradSync              string  // grad_sync_dtype, "": State
	OverlapGradSync       bool
	OverlapParamSync      bool
	ContiguousGradBuffer  bool
	ContiguousParamBuffer bool
	WithScaledStates      bool
	AverageGradSync       bool
	OneRankState          bool    // disable_distributed_parameters: every rank holds the whole state
	OneParamGroup         bool    // do_layer_norm_weight_decay
	ClipNorm              float64 // gradient_clip_val, 0: no clipping
	Plain                 PlainOptim
	MCore                 MCoreOptim
	DDP                   DDPOptim
}

// PlainOptim is what only Apex's class by itself is asked for; NeMo computes the first three.
type PlainOptim struct {
	ParamSync            string // param_sync_dtype, "": State
	StoreParams          bool
	StoreParamRemainders bool
	DistributedSize      int // ranks that share the state, 0: all
	Init                 string
}

// MCoreOptim is what Megatron-Core's distributed optimizer is asked for: DistributedDataParallelConfig,
// OptimizerConfig and what decides their schedule. Its overlap switches and the gradients' dtype are
// those of Optim.
type MCoreOptim struct {
	BucketSize           int  // ddp_bucket_size, in parameters, 0: default
	NumBuckets           int  // in place of BucketSize, 0: not given
	PadBuckets           bool // pad_buckets_for_high_nccl_busbw
	DistributedOptimizer bool // use_distributed_optimizer
	AverageInCollective  bool
	AlignGradReduce      bool
	AlignParamGather     bool
	GatherWithStep       bool // overlap_param_gather_with_optimizer_step
	Instances            int  // num_distributed_optimizer_instances
	CheckNaN             bool // check_for_nan_in_grad
	FP32Accumulation     bool // reduce_scatter_with_fp32_accumulation
	FP32Grads            string
	PerTokenLoss         bool // calculate_per_token_loss
	MicrobatchGroup      int  // microbatch_group_size_per_vp_stage, 0: PP
	PrecisionAware       bool // use_precision_aware_optimizer
	MainParams           string
	ExpAvg, ExpAvgSq     string
	StoreRemainders      bool // of bf16 parameters, with PrecisionAware
	FP8Recipe            string
	ReuseGradBuffer      bool // reuse_grad_buf_for_mxfp8_param_ag
	MaxConnections       int  // CUDA_DEVICE_MAX_CONNECTIONS, 0: not set
	TrainingCode         bool // Megatron-LM's, not NeMo's
}

// DDPOptim is what PyTorch's DistributedDataParallel is asked for.
type DDPOptim struct {
	BucketCapMB      float64 // MiB, 0: 25 with a first bucket of 1
	FindUnused       bool    // find_unused_parameters
	StaticGraph      bool
	GradAsBucketView bool // gradient_as_bucket_view
}

// Hardware is what the job runs on.
type Hardware struct {
	GPU     string // an hw.GPU's ID
	Network string // an hw.Network's ID
	Nodes   int
	Devices int // ranks on each node
}

// Framework says which version of the code is simulated.
type Framework struct {
	Version string
	Later   Later
}

// Later are changes made after the commit that AFTER stands for, each by itself.
type Later struct {
	StageBuckets       bool // NeMo PR 9408
	FP32EmbeddingGrads bool // NeMo PR 8792
}

// Framework.Version: which NeMo on which Apex.
const (
	Before        = "before"          // NeMo before PR 8221 on Apex before PR 1771
	BeforeNewApex = "before-new-apex" // the old NeMo on the new Apex, never shipped
	AfterOldApex  = "after-old-apex"  // the new NeMo on the old Apex
	After         = "after"           // both new
)

// Optim.Name.
const (
	NeMoAdam  = "distributed_fused_adam"      // NeMo's subclass of Apex's class
	PlainApex = "apex_distributed_fused_adam" // Apex's class by itself
	MCoreAdam = "mcore_distributed_optim"     // Megatron-Core's distributed optimizer
	TorchDDP  = "torch_ddp"                   // PyTorch's DistributedDataParallel and any Adam
)

// MCoreOptim.FP8Recipe.
const (
	Delayed    = "delayed"    // one scale for a tensor, from earlier steps
	Tensorwise = "tensorwise" // one scale for a tensor, of its present values
	Blockwise  = "blockwise"  // one scale for a block
	MXFP8      = "mxfp8"      // one scale for 32 elements
)

// Experts.Dispatcher.
const (
	AllGather = "allgather" // every rank sees all tokens
	AllToAll  = "alltoall"
	Flex      = "flex" // alltoall by a library of its own, such as DeepEP
)

// AllParameters is the one pattern of MCoreOptim.FP32Grads.
const AllParameters = "all"

// PlainOptim.Init: when parameters are placed in buckets.
const (
	InitLazy     = "lazy"     // as their first gradients arrive, in backward order
	InitExplicit = "explicit" // init_params(), in the optimizer's order
	InitReversed = "reversed" // init_params(), last parameter first
)

// Trainer precisions.
const (
	FP16 = "16"
	BF16 = "bf16"
	FP32 = "32"
)

// Model.Position.
const (
	LearnedAbsolute = "learned_absolute"
	Rope            = "rope"
)

// Recompute.Granularity.
const (
	Selective = "selective" // the core of attention
	Full      = "full"      // whole layers
)

// Recompute.Method.
const (
	Uniform = "uniform" // all layers, in groups of which only the input is kept
	Block   = "block"   // the first layers of each model chunk, one by one
)
