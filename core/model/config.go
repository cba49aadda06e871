package model

import (
	"fmt"
	"slices"

	"distopt/core/dtype"
	"distopt/core/units"
)

// Config is the architecture of a GPT, before any splitting.
type Config struct {
	Layers     int64
	Hidden     int64
	FFN        int64 // ffn_hidden_size, per half of a gated MLP
	Heads      int64
	Groups     int64 // num_query_groups: key and value heads; Heads for plain attention
	KVChannels int64 // elements per head
	Vocab      int64 // padded (PadVocab)
	Seq        int64 // encoder_seq_length, also the rows of learned position embeddings

	LearnedPositions bool // position_embedding_type learned_absolute; false: rope, no parameters
	RMSNorm          bool // no norm biases; false: LayerNorm
	Bias             bool // of all linear layers together
	Gated            bool // activation ends in "glu": two halves in FC1
	Tied             bool // share_embeddings_and_output_weights

	QKNorm bool // qk_layernorm: queries and keys are normalized head by head

	Experts          int64  // num_moe_experts; 0: every layer is dense
	TopK             int64  // moe_router_topk; 0 counts as 1
	ExpertFFN        int64  // moe_ffn_hidden_size; 0: FFN
	SharedFFN        int64  // moe_shared_expert_intermediate_size; 0: no shared expert
	ExpertLayers     string // which layers have experts, '1' or '0', repeated over the layers; "": all (ExpertPattern)
	FP32Router       bool   // moe_router_dtype fp32: logits and routing in fp32
	FP32RouterWeight bool   // the router's weight is stored so

	FP8       bool // GEMMs of the layers run in FP8
	FP8Params bool // and their weights are stored as FP8 tensors, or in another quantized format

	DType dtype.DType // of all parameters that are not FP8
}

// Split is the part of the model that a stage holds, and how it is cut over tensor-parallel ranks.
type Split struct {
	TP    int  // tensor-parallel size
	SP    bool // sequence parallelism; NeMo turns it off when TP is 1
	PP    int  // pipeline stages
	Index int  // this stage
	VP    int  // model chunks on each stage, 1: no virtual stages

	EP  int // expert-parallel size; 0 counts as 1
	ETP int // tensor-parallel size of experts; 0: TP
}

// Bounds that keep every product inside int64, far beyond any model.
const (
	maxDim    = 1 << 31
	maxLayers = 10_000
	maxNumel  = 1 << 50
)

// PadVocab returns the smallest multiple of divisor*tp that holds tokens.
func PadVocab(tokens, divisor int64, tp int) (int64, error) {
	for _, f := range []struct {
		path string
		got  int64
	}{
		{"vocab_size", tokens},
		{"make_vocab_size_divisible_by", divisor},
		{"tensor_model_parallel_size", int64(tp)},
	} {
		if f.got < 1 || f.got > maxDim {
			return 0, fmt.Errorf("%s: got %d, want 1 to %d", f.path, f.got, int64(maxDim))
		}
	}
	step := divisor * int64(tp)
	return (tokens + step - 1) / step * step, nil
}

// check refuses what Megatron refuses when it builds the model, and numbers beyond any model.
func (c *Config) check(s Split) error {
	tp := int64(s.TP)
	for _, f := range []struct {
		path     string
		got, top int64
	}{
		{"num_layers", c.Layers, maxLayers},
		{"hidden_size", c.Hidden, maxDim},
		{"ffn_hidden_size", c.FFN, maxDim},
		{"num_attention_heads", c.Heads, maxDim},
		{"num_query_groups", c.Groups, maxDim},
		{"kv_channels", c.KVChannels, maxDim},
		{"vocab_size", c.Vocab, maxDim},
		{"encoder_seq_length", c.Seq, maxDim},
		{"tensor_model_parallel_size", tp, maxDim},
		{"pipeline_model_parallel_size", int64(s.PP), maxDim},
		{"virtual_pipeline_model_parallel_size", int64(s.VP), maxDim},
	} {
		if f.got < 1 || f.got > f.top {
			return fmt.Errorf("%s: got %d, want 1 to %d", f.path, f.got, f.top)
		}
	}
	if s.Index < 0 || s.Index >= s.PP {
		return fmt.Errorf("pipeline stage: got %d, want 0 to %d", s.Index, s.PP-1)
	}
	if c.Layers/int64(s.PP)/int64(s.VP) == 0 {
		return fmt.Errorf("num_layers: got %d, want at least one for each of %d model chunks; use fewer stages or more layers",
			c.Layers, int64(s.PP)*int64(s.VP))
	}
	for _, f := range []struct {
		path string
		got  int64
	}{
		{"num_attention_heads", c.Heads},
		{"num_query_groups", c.Groups},
		{"ffn_hidden_size", c.FFN},
		{"vocab_size", c.Vocab},
	} {
		if f.got%tp != 0 {
			return fmt.Errorf("%s: got %d, want a multiple of tensor_model_parallel_size %d; set it to %d",
				f.path, f.got, tp, (f.got/tp+1)*tp)
		}
	}
	if err := c.checkExperts(s); err != nil {
		return err
	}
	if c.Heads > maxDim/c.KVChannels || c.Groups > maxDim/c.KVChannels {
		return fmt.Errorf("kv_channels: got %d for %d heads, want at most %d elements in all heads", c.KVChannels, c.Heads, int64(maxDim))
	}
	return nil
}

// heads returns the width of all query heads, and of all query, key and value heads.
func (c *Config) heads() (query, qkv int64) {
	query = c.KVChannels * c.Heads
	return query, query + 2*c.KVChannels*c.Groups
}

// fc1 returns the rows of the first MLP projection.
func (c *Config) fc1() int64 { return c.wide(c.FFN) }

// wide returns the rows of a first projection whose activation has ffn elements.
func (c *Config) wide(ffn int64) int64 {
	if c.Gated {
		return 2 * ffn
	}
	return ffn
}

// Numel multiplies dimensions and refuses what is beyond any parameter.
func Numel(shape []int64) (units.Elems, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: want no negative dimension", slices.Clone(shape))
		}
		if d != 0 && n > maxNumel/d {
			return 0, fmt.Errorf("shape %v: want at most %d elements", slices.Clone(shape), int64(maxNumel))
		}
		n *= d
	}
	return units.Elems(n), nil
}
