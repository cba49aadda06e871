package optim

import (
	"math"

	"distopt/core/dtype"
)

// L2Norm adds up the squares of tensors in the order of Apex's multi-tensor kernel. The real norm can
// still differ in its last bit: that kernel takes an approximate root.
//
// The kernel splits tensors into chunks. A launch takes up to 320 chunks, or 110 tensors, and adds
// chunk k to accumulator k; within a chunk each of 512 threads adds up four lanes. At the end all
// accumulators are added in a tree.
type L2Norm struct {
	sums    [320]float32
	chunk   int // of this launch
	tensors int // in this launch
	lanes   [normLanes]float32

	// NonFinite: some chunk's sum was infinite or NaN, which the kernel tells through the flag that
	// all multi-tensor kernels share.
	NonFinite bool
}

// The shape of the kernel.
const (
	NormChunk   = 65536 // elements of a chunk
	normThreads = 512
	normILP     = 4 // lanes of a thread
	normLanes   = normThreads * normILP
	normTensors = 110 // of a launch
)

// Reset begins a norm.
func (s *L2Norm) Reset() { *s = L2Norm{} }

// Chunk adds the next chunk of a tensor: NormChunk elements but for its last one. rest counts the
// elements of the tensor from the chunk's first one on. Threads load vectors of four where that is
// a multiple of four (tensors begin aligned), else single elements.
func (s *L2Norm) Chunk(x []float32, rest int) {
	if s.tensors == 0 {
		s.tensors = 1 // the launch begins with this tensor, maybe in its middle
	}
	clear(s.lanes[:])
	for i := 0; i < len(x); i += normLanes {
		part := x[i:min(i+normLanes, len(x))]
		lanes := s.lanes[:len(part)]
		for j, v := range part {
			sum := float64(v)*float64(v) + float64(lanes[j]) // as dtype.FMA does it
			if dtype.Unsure(sum) {
				lanes[j] = dtype.FMA(v, v, lanes[j])
				continue
			}
			lanes[j] = float32(sum)
		}
	}
	// Which lanes belong to a thread depends on how it loads.
	var threads [normThreads]float32
	step, next := normThreads, 1
	if rest%normILP == 0 {
		step, next = 1, normILP
	}
	for t := range threads {
		at := t * next
		threads[t] = ((s.lanes[at] + s.lanes[at+step]) + s.lanes[at+2*step]) + s.lanes[at+3*step]
	}
	sum := tree(&threads)
	s.NonFinite = s.NonFinite || sum-sum != 0
	s.sums[s.chunk] += sum
	s.chunk++
	last := rest <= NormChunk
	if s.chunk == len(s.sums) || last && s.tensors == normTensors {
		s.chunk, s.tensors = 0, 0
	} else if last {
		s.tensors++
	}
}

// Norm returns the root of the sum.
func (s *L2Norm) Norm() float32 {
	var threads [normThreads]float32
	copy(threads[:], s.sums[:])
	return dtype.Canonical(float32(math.Sqrt(float64(tree(&threads)))))
}

// tree adds one value of each thread of a block.
func tree(x *[normThreads]float32) float32 {
	for n := normThreads / 2; n > 0; n /= 2 {
		for t := range n {
			x[t] += x[t+n]
		}
	}
	return x[0]
}
