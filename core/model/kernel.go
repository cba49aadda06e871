package model

import (
	"distopt/core/dtype"
	"distopt/core/units"
)

// KernelKind says how a kernel is priced.
type KernelKind uint8

// The kinds of kernel.
const (
	GEMM KernelKind = iota
	FlashForward
	FlashBackward
	MemoryBound // priced by bytes
	MultiTensor // optimizer kernels with chunked launches
	TensorComm  // collective of the tensor-parallel group inside a module, on the compute path
)

// Kernel is one kernel as the cost model sees it.
type Kernel struct {
	Name    string // for the reader: "qkv forward", "layer norm", "FP8 cast"
	Kind    KernelKind
	M, N, K int64       // GEMM: C[M,N] over K; flash: M = batch*heads, N = sequence, K = head dim
	FP8     bool        // operands are FP8
	Wgrad   bool        // weight gradient; accumulates into DType
	DType   dtype.DType // of the output
	FLOPs   units.FLOPs
	Bytes   units.Bytes // memory read plus written, or the full buffer of a collective
	Tensors int         // MultiTensor: tensors; TensorComm: unused
	Elems   units.Elems // MultiTensor: elements
	Gather  bool        // TensorComm: all-gather
	Scatter bool        // TensorComm: reduce-scatter (neither: all-reduce)
}

// Pass is one module run in one direction, the unit in which layers are priced.
type Pass struct {
	Module   ModuleKind
	Chunk    int
	Layer    int
	Backward bool
}
