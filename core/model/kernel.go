package model

import (
	"distopt/core/dtype"
	"distopt/core/hw"
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
	TensorComm  // collective inside a module, on the compute path
)

// CommGroup is the group of a collective inside a module.
type CommGroup uint8

// The groups.
const (
	OverTensor CommGroup = iota
	OverExpert
	OverExpertTensor
	OverExpertModel // both: all ranks that hold the experts of a layer
	NumCommGroup
)

// Kernel is one kernel as the cost model sees it.
type Kernel struct {
	Name    string // for the reader: "qkv forward", "layer norm", "FP8 cast"
	Kind    KernelKind
	M, N, K int64       // GEMM: C[M,N] over K; flash: M = batch*heads, N = queries, K = head dim
	Groups  int64       // GEMM: so many products of these sizes in one kernel; 0: one
	FP8     bool        // operands are FP8
	TF32    bool        // operands are fp32, multiplied in TF32
	Grad    bool        // GEMM of a backward pass: FP8 accumulates with more bits
	Wgrad   bool        // weight gradient
	Add     bool        // GEMM: the result is added to what C holds (fused gradient accumulation)
	DType   dtype.DType // of the result
	FLOPs   units.FLOPs // GEMM, flash
	Bytes   units.Bytes // memory read plus written, or the full buffer of a collective

	Pattern hw.Pattern // MemoryBound: how it goes through memory
	Repeat  int        // number of such kernels in a row, Bytes, FLOPs and Elems each; 0: one

	Multi     hw.MultiTensor // MultiTensor: which one
	Tensors   int            // MultiTensor: tensors
	Elems     units.Elems    // MultiTensor: elements
	PerLaunch int            // MultiTensor: most tensors of one launch; 0: no bound

	Over     CommGroup // TensorComm
	Gather   bool      // TensorComm: all-gather
	Scatter  bool      // TensorComm: reduce-scatter
	AllToAll bool      // TensorComm (none of these: all-reduce)
	Beside   bool      // TensorComm: runs beside the kernel that follows it

	Backend hw.Backend // flash: the implementation

	// Ring is the number of context-parallel ranks among which keys and values go round, beside
	// a flash kernel; 0 or 1: none. Bytes is what each step sends.
	Ring int
}

// Pass is one module run in one direction, the unit in which layers are priced.
type Pass struct {
	Module   ModuleKind
	Chunk    int
	Layer    int
	Backward bool
}
