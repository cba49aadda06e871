package hw

import (
	"math"

	"distopt/core/units"
)

// Pattern is how a memory-bound kernel goes through memory: which measured curve it follows.
type Pattern uint8

// The patterns of kernels priced by bytes read plus written.
const (
	Elementwise      Pattern = iota // copy, add, cast, exp: everything coalesced
	Fill                            // memset
	Upcast                          // 16 bit to fp32 by a PyTorch kernel
	NormForward                     // LayerNorm
	RMSNormForward                  //
	NormBackward                    // both kinds: input gradient, weight and bias gradient
	Activation                      // GELU, SwiGLU with or without bias, both directions
	Dropout                         // bias, dropout and residual in one kernel
	ColumnSum                       // bias gradient
	CastFP8                         // to FP8 with amax
	CastTransposeFP8                // the same with a transposed copy
	TransposeFP8                    // of FP8 bytes
	Softmax                         // over the vocabulary, PyTorch's, fp32
	Scatter                         // rows of an embedding gradient; bytes of the rows
	NumPattern
)

// StreamCurve is the time of a memory-bound kernel: a floor, a rate for the bytes that fit into
// the L2 cache, where an operand that the kernel before has written may still be, and a rate for
// the rest.
type StreamCurve struct {
	Floor     units.Seconds
	Near      units.BytesPerSecond
	Bandwidth units.BytesPerSecond
}

// Time returns the time to read and write b bytes on a GPU with an L2 cache of l2.
func (c *StreamCurve) Time(b, l2 units.Bytes) units.Seconds {
	near := min(b, l2)
	return c.Floor + units.Seconds(float64(near)/float64(c.Near)) + units.Seconds(float64(b-near)/float64(c.Bandwidth))
}

// MultiTensor is a kernel of Apex's multi-tensor launcher.
type MultiTensor uint8

// The multi-tensor kernels.
const (
	AdamUpdate  MultiTensor = iota
	SquaredNorm             // l2norm: blocks, then one block that sums them
	ConvertCopy             // maybe_cast
	NumMultiTensor
)

// ChunkCurve is the time of a multi-tensor kernel: a block takes one chunk of one tensor, and a
// launch takes a bounded number of blocks and tensors (multi_tensor_apply.cuh of Apex).
type ChunkCurve struct {
	Floor     units.Seconds // of a launch
	Latency   units.Seconds // of a block with a full chunk, beyond Floor
	Bandwidth units.BytesPerSecond
	Elements  float64 // elements a second at most, whatever their size
}

// The launcher's chunk size in elements and its most blocks in one launch.
const (
	MultiTensorChunk  = 65_536
	MultiTensorBlocks = 320
)

// Time returns the time for elems elements in tensors tensors of like size, bytes read and
// written in all, at most perLaunch tensors a launch, and the number of launches.
// Tensors whose size is not a multiple of 4 elements run at about half this speed; buckets
// align their fragments, so this does not happen in one.
func (c *ChunkCurve) Time(tensors int, elems units.Elems, bytes units.Bytes, perLaunch int) (units.Seconds, int) {
	if tensors == 0 || elems == 0 {
		return 0, 0
	}
	each := (int64(elems) + int64(tensors) - 1) / int64(tensors)
	chunks := (each + MultiTensorChunk - 1) / MultiTensorChunk
	blocks := chunks * int64(tensors)
	launches := (blocks + MultiTensorBlocks - 1) / MultiTensorBlocks
	if perLaunch > 0 {
		launches = max(launches, int64((tensors+perLaunch-1)/perLaunch))
	}
	n := float64(launches)
	chunk := float64(min(each, MultiTensorChunk)) / MultiTensorChunk
	latency := float64(c.Latency) * chunk
	moved := max(float64(bytes)/float64(c.Bandwidth), float64(elems)/c.Elements) / n
	one := float64(c.Floor) + math.Sqrt(float64(latency*latency)+float64(moved*moved))
	return units.Seconds(n * one), int(launches)
}
