package mcore

import (
	"strconv"
	"strings"

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
	Path      string // the name inside its model chunk
	Quant     Quant
	LayerWise bool // managed by a layer-wise optimizer; set by the layout
}

// Owner returns the path of the module that holds the parameter directly.
func (p *Param) Owner() string {
	if i := strings.LastIndexByte(p.Path, '.'); i >= 0 {
		return p.Path[:i]
	}
	return ""
}

// Params returns the parameters of a stage, with the same ids. q is how its FP8 weights are stored.
func Params(s *model.Stage, q Quant) []Param {
	list := make([]Param, len(s.Params))
	for i := range list {
		p := &s.Params[i]
		list[i] = Param{Param: *p, Path: strings.TrimPrefix(p.Name, "chunk"+strconv.Itoa(p.Chunk)+".")}
		list[i].quantize(p.FP8, q)
	}
	return list
}

func (p *Param) quantize(linear bool, q Quant) {
	p.FP8 = linear && q != Plain
	if p.FP8 {
		p.Quant = q
	}
}
