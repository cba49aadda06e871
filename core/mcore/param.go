package mcore

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/dtype"
	"distopt/core/model"
)

// Quant is how a quantized weight is stored.
type Quant uint8

// The ways. All of them share one kind of buffer, of bytes.
const (
	Plain    Quant = iota // in the parameter's own dtype
	FP8                   // one scale for a tensor: delayed or current scaling
	BlockFP8              // one scale for a block
	MXFP8                 // one scale for 32 elements, row- and column-wise copies
	NVFP4                 // two elements in a byte
	numQuants
)

var quantNames = [numQuants]string{"", "fp8", "blockwise", "mxfp8", "nvfp4"}

// String returns the word of the reference data, nothing for Plain.
func (q Quant) String() string { return quantNames[q] }

// ParseQuant reads it.
func ParseQuant(s string) (Quant, bool) {
	for q, name := range quantNames {
		if s == name {
			return Quant(q), true
		}
	}
	return Plain, false
}

// Param is a parameter with what Megatron-Core's buffers ask about it. DType stays the nominal one of
// a quantized weight.
type Param struct {
	model.Param
	Path            string // the name inside its model chunk
	Quant           Quant
	Expert          bool // reduced over the expert-data-parallel group (allreduce is False)
	SharedEmbedding bool // one of the two copies of a tied embedding
	LayerWise       bool // managed by a layer-wise optimizer; set by the layout
}

// Owner returns the path of the module that holds the parameter directly.
func (p *Param) Owner() string {
	if i := strings.LastIndexByte(p.Path, '.'); i >= 0 {
		return p.Path[:i]
	}
	return ""
}

// Bounds of the parameters of a stage, and of the size of an expert.
const (
	maxParams = 1 << 20
	maxSize   = 1 << 31
)

// Experts is a mixture of experts in every layer.
type Experts struct {
	Count     int64 // 0: none, layers are dense
	FFN       int64 // of one expert
	SharedFFN int64 // of the shared experts together; 0: none
	Parallel  int   // E; 0 is 1
	Router    dtype.DType
}

// Params returns the parameters of a stage, chunks ascending, each in the order in which
// Megatron-Core registers them. With experts the two MLP projections of a layer become a norm, a
// router and the local experts.
func Params(s *model.Stage, e Experts, q Quant) ([]Param, error) {
	e.Parallel = max(e.Parallel, 1)
	if e.Count < 0 || e.Count/int64(e.Parallel) > maxParams/int64(max(len(s.Params), 1)) {
		return nil, fmt.Errorf("num_moe_experts: got %d for %d dense parameters, want at most %d parameters on a stage; use more expert-parallel ranks",
			e.Count, len(s.Params), maxParams)
	}
	if e.Count > 0 && (e.Count%int64(e.Parallel) != 0 || e.FFN < 1 || e.FFN > maxSize || e.SharedFFN < 0 || e.SharedFFN > maxSize) {
		return nil, fmt.Errorf("num_moe_experts: got %d of size %d on %d ranks, want a multiple of the ranks and a size above 0",
			e.Count, e.FFN, e.Parallel)
	}
	b := builder{stage: s, experts: e, quant: q}
	for i := range s.Params {
		b.param(&s.Params[i])
	}
	return b.list, b.err
}

type builder struct {
	stage   *model.Stage
	experts Experts
	quant   Quant
	list    []Param
	err     error
}

// param takes over one parameter of the dense model, or what stands in its place.
func (b *builder) param(p *model.Param) {
	moe := b.experts.Count > 0
	path := strings.TrimPrefix(p.Name, "chunk"+strconv.Itoa(p.Chunk)+".")
	layer, _, _ := strings.Cut(path, "mlp.")
	switch {
	case moe && p.Role == model.FC1NormWeight:
		b.add(p, layer+"pre_mlp_layernorm.weight", p.Shape...)
	case moe && p.Role == model.FC1NormBias:
		b.add(p, layer+"pre_mlp_layernorm.bias", p.Shape...)
	case moe && p.Role == model.FC1Weight:
		b.mixture(p, layer+"mlp.")
	case moe && (p.Role == model.FC1Bias || p.Role == model.FC2Weight || p.Role == model.FC2Bias):
	default:
		n := b.add(p, path, p.Shape...)
		switch p.Role {
		case model.ProjWeight, model.QKVWeight, model.FC1Weight, model.FC2Weight:
			n.quantize(b.quant)
		case model.WordEmbedding:
			n.SharedEmbedding = b.stage.Config.Tied && b.stage.PP > 1
		case model.OutputLayer:
			n.SharedEmbedding = p.Shared
		}
	}
}

// mixture appends router, local experts and shared experts.
func (b *builder) mixture(fc1 *model.Param, path string) {
	e, h, tp := b.experts, b.stage.Config.Hidden, int64(max(b.stage.TP, 1))
	wide := int64(1)
	if b.stage.Config.Gated {
		wide = 2
	}
	b.add(fc1, path+"router.weight", e.Count, h).DType = e.Router
	local := e.Count / int64(e.Parallel)
	for k := range local {
		n := b.add(fc1, path+"experts.linear_fc1.weight"+strconv.FormatInt(k, 10), wide*e.FFN/tp, h)
		n.Expert = e.Parallel > 1
		n.quantize(b.quant)
	}
	for k := range local {
		n := b.add(fc1, path+"experts.linear_fc2.weight"+strconv.FormatInt(k, 10), h, e.FFN/tp)
		n.Expert = e.Parallel > 1
		n.quantize(b.quant)
	}
	if e.SharedFFN > 0 {
		b.add(fc1, path+"shared_experts.linear_fc1.weight", wide*e.SharedFFN/tp, h).quantize(b.quant)
		b.add(fc1, path+"shared_experts.linear_fc2.weight", h, e.SharedFFN/tp).quantize(b.quant)
	}
}

// add appends a parameter that is like p but for path and shape.
func (b *builder) add(p *model.Param, path string, shape ...int64) *Param {
	own := strings.TrimPrefix(p.Name, "chunk"+strconv.Itoa(p.Chunk)+".")
	n := Param{Param: *p, Path: path}
	n.Name = strings.TrimSuffix(p.Name, own) + path
	n.Shape = shape
	n.FP8 = false
	if path != own {
		n.Role, n.Bias = model.Other, false
	}
	numel, err := model.Numel(shape)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s: %w; use a smaller model", n.Name, err)
	}
	n.Numel = numel
	b.list = append(b.list, n)
	return &b.list[len(b.list)-1]
}

func (p *Param) quantize(q Quant) {
	p.Quant = q
	p.FP8 = q != Plain
}
