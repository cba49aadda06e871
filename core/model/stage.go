package model

import (
	"fmt"
	"strconv"

	"distopt/core/bucket"
	"distopt/core/dtype"
)

// BuildStage returns the parameters of one pipeline stage in the order in which Megatron-core
// registers them with the Transformer Engine layer spec, and its modules in forward order. The
// attention class builds its output projection before the fused qkv projection.
func BuildStage(c Config, split Split) (*Stage, error) {
	if split.TP == 1 {
		split.SP = false
	}
	if err := c.check(split); err != nil {
		return nil, err
	}
	split.EP = max(split.EP, 1)
	if split.ETP == 0 {
		split.ETP = split.TP
	}
	perChunk := int(c.Layers) / split.PP / split.VP
	s := &Stage{Config: c, Split: split}
	b := stageBuilder{stage: s, tp: int64(split.TP)}
	count := split.VP * (12*perChunk + 5)
	s.Params = make([]Param, 0, count)
	s.Modules = make([]Module, 0, split.VP*(5*perChunk+5))
	b.shapes = make([]int64, 0, 2*count)
	b.ids = make([]bucket.ParamID, 0, count)
	for v := range split.VP {
		first := split.Index * perChunk
		if split.VP > 1 {
			first += v * (int(c.Layers) / split.VP)
		}
		b.chunk(v, ChunkSpan{
			FirstLayer: first,
			Layers:     perChunk,
			Pre:        split.Index == 0 && v == 0,
			Post:       split.Index == split.PP-1 && v == split.VP-1,
		})
	}
	if b.err != nil {
		return nil, b.err
	}
	return s, nil
}

// stageBuilder appends parameters and modules to a stage and keeps the first error.
type stageBuilder struct {
	stage  *Stage
	tp     int64
	prefix string
	layer  int
	global int // index of the layer in the whole model
	index  int
	// module indexes the modules of the chunk, or of its present layer, by kind.
	module [NumModuleKind]int
	// shapes and ids back the shapes of parameters and the lists of modules.
	shapes []int64
	ids    []bucket.ParamID
	err    error
}

func (b *stageBuilder) chunk(v int, span ChunkSpan) {
	s, c := b.stage, &b.stage.Config
	span.Params[0], span.Modules[0] = len(s.Params), len(s.Modules)
	b.index, b.layer, b.prefix = v, -1, ""
	if s.VP > 1 {
		b.prefix = "chunk" + strconv.Itoa(v) + "."
	}
	h := c.Hidden
	if span.Pre {
		b.add(Embedding, "embedding")
		b.add(EmbeddingOut, "embedding_out")
		b.param(WordEmbedding, Embedding, "embedding.word_embeddings.weight", c.Vocab/b.tp, h)
		if c.LearnedPositions {
			b.param(PositionEmbedding, EmbeddingOut, "embedding.position_embeddings.weight", c.Seq, h)
		}
	}
	for b.layer = range span.Layers {
		b.global = span.FirstLayer + b.layer
		b.transformerLayer()
	}
	b.layer = -1
	if span.Post {
		b.add(FinalNorm, "final_layernorm")
		b.add(Output, "output_layer")
		b.add(Loss, "loss")
		b.param(FinalNormWeight, FinalNorm, "decoder.final_layernorm.weight", h)
		if !c.RMSNorm {
			b.param(FinalNormBias, FinalNorm, "decoder.final_layernorm.bias", h)
		}
		if !(span.Pre && c.Tied) {
			b.param(OutputLayer, Output, "output_layer.weight", c.Vocab/b.tp, h)
		}
	}
	span.Params[1], span.Modules[1] = len(s.Params), len(s.Modules)
	s.Chunks = append(s.Chunks, span)
}

func (b *stageBuilder) transformerLayer() {
	c, h, tp := &b.stage.Config, b.stage.Config.Hidden, b.tp
	query, qkv := c.heads()
	local := strconv.Itoa(b.layer)
	trace, layer := "L"+local+".", "decoder.layers."+local+"."
	b.add(QKV, trace+"qkv")
	b.add(Attention, trace+"attn")
	b.add(Proj, trace+"proj")
	experts := c.expertLayer(b.global)
	if experts {
		b.expertModules(trace)
	} else {
		b.add(FC1, trace+"fc1")
		b.add(FC2, trace+"fc2")
	}

	attention, mlp := layer+"self_attention.", layer+"mlp."
	b.param(ProjWeight, Proj, attention+"linear_proj.weight", h, query/tp)
	if c.Bias {
		b.param(ProjBias, Proj, attention+"linear_proj.bias", h)
	}
	b.param(QKVNormWeight, QKV, attention+"linear_qkv.layer_norm_weight", h)
	if !c.RMSNorm {
		b.param(QKVNormBias, QKV, attention+"linear_qkv.layer_norm_bias", h)
	}
	b.param(QKVWeight, QKV, attention+"linear_qkv.weight", qkv/tp, h)
	if c.Bias {
		b.param(QKVBias, QKV, attention+"linear_qkv.bias", qkv/tp)
	}
	if c.QKNorm {
		b.norm(QNormWeight, Attention, attention+"q_layernorm", c.KVChannels)
		b.norm(KNormWeight, Attention, attention+"k_layernorm", c.KVChannels)
	}
	if experts {
		b.experts(layer)
		return
	}
	b.param(FC1NormWeight, FC1, mlp+"linear_fc1.layer_norm_weight", h)
	if !c.RMSNorm {
		b.param(FC1NormBias, FC1, mlp+"linear_fc1.layer_norm_bias", h)
	}
	b.param(FC1Weight, FC1, mlp+"linear_fc1.weight", c.fc1()/tp, h)
	if c.Bias {
		b.param(FC1Bias, FC1, mlp+"linear_fc1.bias", c.fc1()/tp)
	}
	b.param(FC2Weight, FC2, mlp+"linear_fc2.weight", h, c.FFN/tp)
	if c.Bias {
		b.param(FC2Bias, FC2, mlp+"linear_fc2.bias", h)
	}
}

// add appends a module of the present layer or chunk.
//
//go:noinline
func (b *stageBuilder) add(kind ModuleKind, name string) {
	b.module[kind] = len(b.stage.Modules)
	b.stage.Modules = append(b.stage.Modules, Module{Name: name, Kind: kind, Chunk: b.index, Layer: b.layer})
}

// param appends a parameter and gives it to the module of kind owner.
func (b *stageBuilder) param(role Role, owner ModuleKind, name string, shape ...int64) {
	s := b.stage
	n, err := Numel(shape)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s%s: %w; use a smaller model", b.prefix, name, err)
		return
	}
	at := len(b.shapes)
	b.shapes = append(b.shapes, shape...)
	p := Param{
		Name: b.prefix + name, Shape: b.shapes[at:len(b.shapes):len(b.shapes)], Numel: n, DType: s.Config.DType,
		Role: role, Chunk: b.index, Layer: b.layer, Module: b.module[owner],
	}
	switch role {
	case ExpertFC1Weight, ExpertFC2Weight:
		p.Expert = s.expert()
		fallthrough
	case ProjWeight, QKVWeight, FC1Weight, FC2Weight, SharedFC1Weight, SharedFC2Weight:
		p.FP8 = s.Config.FP8Params
		p.TensorParallel = true
	case QKVBias, FC1Bias:
		p.Bias = true
		p.TensorParallel = true
	case ExpertFC1Bias, ExpertFC2Bias: // not named exactly "bias"
		p.Expert = s.expert()
		p.TensorParallel = role == ExpertFC1Bias
	case WordEmbedding:
		p.TensorParallel = true
		p.SharedEmbedding = s.Config.Tied && s.PP > 1
	case OutputLayer:
		p.TensorParallel = true
		p.Shared = s.Config.Tied && s.PP > 1
		p.SharedEmbedding = p.Shared
	case QNormWeight, QNormBias, KNormWeight, KNormBias:
		p.Bias = role == QNormBias || role == KNormBias
		p.SequenceParallel = s.TP > 1 // each rank has other heads
	case RouterWeight:
		if s.Config.FP32RouterWeight {
			p.DType = dtype.FP32
		}
		p.SequenceParallel = s.SP
	case PositionEmbedding:
	case ProjBias, FC2Bias, FinalNormBias, MLPNormBias, RouterBias:
		p.Bias = true
		p.SequenceParallel = s.SP
	default: // norms; those inside fused layers are not named "bias"
		p.SequenceParallel = s.SP
	}
	b.ids = append(b.ids, bucket.ParamID(len(s.Params)))
	s.Params = append(s.Params, p)
	// A module's parameters are registered one after the other.
	m := &s.Modules[p.Module]
	end := len(b.ids)
	m.Params = b.ids[end-len(m.Params)-1 : end : end]
}

// OptimizerGroups returns NeMo's parameter groups: with weight decay everything that is not named
// exactly "bias", norm weights included; without it the rest. normDecay (do_layer_norm_weight_decay)
// keeps a single group.
func (s *Stage) OptimizerGroups(normDecay bool) [][]bucket.ParamID {
	var decay, none []bucket.ParamID
	for p := range s.Params {
		if s.Params[p].Bias && !normDecay {
			none = append(none, bucket.ParamID(p))
		} else {
			decay = append(decay, bucket.ParamID(p))
		}
	}
	if normDecay {
		return [][]bucket.ParamID{decay}
	}
	return [][]bucket.ParamID{decay, none}
}
