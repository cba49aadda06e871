// Package model turns a transformer architecture into ordered parameters, modules and kernels
// as one tensor-parallel rank of one pipeline stage holds them.
package model

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/units"
)

// Param is a named tensor as one rank holds it, after tensor- and pipeline-parallel splitting.
type Param struct {
	Name  string // Megatron-core's name; "chunkN." in front with virtual stages
	Shape []int64
	Numel units.Elems
	DType dtype.DType // nominal: bf16 also for an FP8 weight

	Role   Role
	Chunk  int // model chunk on this stage
	Layer  int // local layer index inside the chunk, -1 outside the layers
	Module int // index into Stage.Modules of the module that owns it

	FP8              bool // weight is an FP8 tensor
	Bias             bool // named exactly "bias": no weight decay
	SequenceParallel bool // gradient is all-reduced over the TP group after backward
	FP32Grads        bool // _with_fp32_optimizer: own bucket with fp32 gradients (set by the optimizer's layout)
	NoOverlap        bool // _disable_overlap_grad_sync (set by the optimizer's layout)
	Shared           bool // last stage's copy of tied weights: not in the gradient norm
	SharedEmbedding  bool // either copy of tied weights that two stages hold
	Expert           bool // reduced over the expert-data-parallel group (allreduce is False)
	TensorParallel   bool // sharded over TP, experts over ETP; replicated ones count in the norm on TP rank 0 only
}

// Role says which parameter of the architecture a parameter is.
type Role uint8

// The parameters of a GPT with the Transformer Engine layer spec, in registration order.
const (
	Other Role = iota // of another model
	WordEmbedding
	PositionEmbedding
	ProjWeight
	ProjBias
	QKVNormWeight
	QKVNormBias
	QKVWeight
	QKVBias
	FC1NormWeight
	FC1NormBias
	FC1Weight
	FC1Bias
	FC2Weight
	FC2Bias
	FinalNormWeight
	FinalNormBias
	OutputLayer

	// Of attention with QKNorm, and of layers with experts.
	QNormWeight
	QNormBias
	KNormWeight
	KNormBias
	MLPNormWeight
	MLPNormBias
	RouterWeight
	RouterBias
	ExpertFC1Weight
	ExpertFC1Bias
	ExpertFC2Weight
	ExpertFC2Bias
	SharedFC1Weight
	SharedFC2Weight
)

// ModuleKind says which computation a module is.
type ModuleKind uint8

// The modules of a GPT chunk, as the reference traces name them.
const (
	Embedding    ModuleKind = iota // "embedding": lookup
	EmbeddingOut                   // "embedding_out": position add, dropout, scatter to sequence parallel
	QKV                            // "L0.qkv": norm and fused qkv projection
	Attention                      // "L0.attn": core attention, no parameters but QKNorm's
	Proj                           // "L0.proj": output projection, residual
	FC1                            // "L0.fc1": norm, first MLP projection, activation
	FC2                            // "L0.fc2"
	FinalNorm                      // "final_layernorm"
	Output                         // "output_layer": logits
	Loss                           // "loss"

	// Of a layer with experts, in the place of FC1 and FC2.
	MLPNorm   // "L0.mlp_norm"
	Router    // "L0.router": logits, top-k, load balancing
	ExpertFC1 // "L0.experts.fc1": dispatch, first projections, activation
	ExpertFC2 // "L0.experts.fc2": second projections, combination
	SharedFC1 // "L0.shared.fc1"
	SharedFC2 // "L0.shared.fc2"; the residual if there is a shared expert
	NumModuleKind

	// NumDenseKind counts the kinds of models without experts.
	NumDenseKind = MLPNorm
)

// Module is one node of the forward pass, in execution order.
type Module struct {
	Name   string // "L0.qkv", "embedding", ...
	Kind   ModuleKind
	Chunk  int
	Layer  int              // local layer index, -1 outside layers
	Params []bucket.ParamID // its own, in the order in which forward reads them; a tied output layer on the embedding's chunk has none
}

// Stage is what one pipeline stage holds: Params in registration order, chunks ascending,
// and the modules of each chunk in forward order.
type Stage struct {
	Config Config
	Split

	Params  []Param
	Modules []Module
	Chunks  []ChunkSpan
}

// ChunkSpan says which parameters and modules belong to a model chunk (half-open ranges).
type ChunkSpan struct {
	Params     [2]int
	Modules    [2]int
	FirstLayer int // global index of its first layer
	Layers     int
	Pre, Post  bool // holds the first / last layers of the whole model
}
