package model

import (
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/units"
)

// Execution is how a model is run: everything beside its architecture that decides which kernels
// one rank launches.
type Execution struct {
	Micro        int64 // sequences of a microbatch
	Microbatches int64 // per step and rank; 0 counts as 1
	TP           int64
	SP           bool // sequence parallelism; without effect at TP 1
	CP           int64
	EP           int64 // expert-parallel size; 0 counts as 1
	ETP          int64 // tensor-parallel size of experts; 0: TP

	// Dispatch says how tokens reach their experts. Load is balanced: every expert gets as many.
	Dispatch Dispatch
	// Capacity bounds the tokens of an expert (moe_expert_capacity_factor), in parts of a balanced
	// load; with PadToCapacity each gets exactly as many. 0: no bound.
	Capacity      float64
	PadToCapacity bool

	// TPOverlap: with SP, gathers and scatters run beside the product that needs or makes them
	// (ub_tp_comm_overlap), and what is longer than it shows.
	TPOverlap bool

	// GradDType is what weight gradients are added in, by the GEMM itself with GradFusion;
	// without it they are written in the model's dtype and added by a kernel of the optimizer.
	GradDType  dtype.DType
	GradFusion bool
	// BF16Wgrad: with FP8, weight gradients are still computed from 16-bit operands.
	BF16Wgrad bool

	// Autocast: weights are fp32 and cast to the model's dtype for every product that reads them.
	Autocast bool

	Dropout   bool // hidden_dropout is not 0
	FusedRope bool // apply_rope_fusion
	Attention hw.Backend

	Recompute Recompute
	// RecomputeLayers are the layers of each model chunk, from its first on, that full recompute
	// covers; 0: all.
	RecomputeLayers int
}

// Dispatch is a token dispatcher (moe_token_dispatcher_type).
type Dispatch uint8

// The dispatchers.
const (
	AllToAll  Dispatch = iota
	AllGather          // every rank gets all tokens of the group and keeps those of its experts
	Flex               // DeepEP: a token is sent once to each rank that has one of its experts
)

// Recompute says which activations are computed again in the backward pass.
type Recompute uint8

// The granularities of Megatron-core.
const (
	NoRecompute   Recompute = iota
	CoreAttention           // selective: without the rotary positions before it
	FullLayers              // full, uniform or block
)

// Recomputes reports whether pass p begins with computing its module's forward pass, or the core
// of it, again.
func (e *Execution) Recomputes(p Pass) bool {
	if !p.Backward {
		return false
	}
	switch e.Recompute {
	case CoreAttention:
		return p.Module == Attention
	case FullLayers:
		return layered(p.Module) && (e.RecomputeLayers == 0 || p.Layer < e.RecomputeLayers)
	}
	return false
}

// Tokens returns the tokens of a microbatch that one rank holds outside sequence parallelism.
func (e *Execution) tokens(c *Config) int64 { return e.Micro * c.Seq / max(e.CP, 1) }

// ModelFLOPs counts the arithmetic of one training step over sequences whole sequences, forward
// and backward, whatever is recomputed: the products of all weights and of attention. Of experts
// those count that a token is sent to, and the shared one; routers do not, as in Megatron Bridge.
//
// Causal counts the half of the score matrix that causal attention needs, as Megatron Bridge
// does; Full counts all of it, as Megatron-LM's 72BsLh²(1 + s/6h + V/12Lh) and NeMo 24.07 do.
func (c *Config) ModelFLOPs(sequences int64) (causal, full units.FLOPs) {
	query, qkv := c.heads()
	h := float64(c.Hidden)
	perLayer := h * (float64(qkv) + float64(query) + float64(c.fc1()) + float64(c.FFN))
	weights := float64(float64(c.Layers)*perLayer) + float64(h*float64(c.Vocab))
	if n := c.numExpertLayers(); n > 0 {
		k, ffn := max(c.TopK, 1), c.expertFFN()
		chosen := k*(c.wide(ffn)+ffn) + c.wide(c.SharedFFN) + c.SharedFFN - c.fc1() - c.FFN
		weights += float64(float64(n) * (h * float64(chosen)))
	}
	attention := float64(c.Layers) * float64(query) * float64(c.Seq)
	tokens := float64(sequences) * float64(c.Seq)
	causal = units.FLOPs(tokens * (float64(6*weights) + float64(6*attention)))
	full = units.FLOPs(tokens * (float64(6*weights) + float64(12*attention)))
	return causal, full
}
