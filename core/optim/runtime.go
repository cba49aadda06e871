package optim

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/units"
)

// Runtime carries out what a Sharded optimizer decides. There are two: one executes the effects
// on arrays over all ranks, the other records them as tasks of one rank to be priced.
//
// Calls arrive in host order. An effect runs on the stream that it names, after everything that
// was queued there before, else on Main. Descriptions and their slices are valid only during the
// call: a runtime that keeps them copies them. Sizes are those of the rank that the optimizer was
// built for; the arrays runtime finds every rank's part from the bucket ids and the layout.
type Runtime interface {
	// Wait makes everything queued later on waiter run after all that is now queued on on.
	Wait(waiter, on Stream)
	// WaitCall makes everything queued later on waiter run after one collective that was queued on
	// on: the last one with that number (Collective.Call).
	WaitCall(waiter, on Stream, call int)
	// ZeroGrad clears the contiguous gradient buffers (none: only host work).
	ZeroGrad(z *Zero)
	// AccumulateGrad makes the gradients of parameters part of their buckets.
	AccumulateGrad(a *Accumulation)
	// ReduceScatter reduces whole buckets; each rank of the group keeps its shard.
	ReduceScatter(c *Collective)
	// AllReduceShards reduces the shards over the redundant group, in place.
	AllReduceShards(c *Collective)
	// KeepShards ends grad syncs that have been waited for: each bucket's shard is stored, or added
	// to the one that an earlier sync of this step left, and the bucket's memory is released. A
	// bucket that was never synchronized gets a shard of zeros.
	KeepShards(k *Kept)
	// AllReduceGrads sums gradients before they are reduced over the data-parallel group: those
	// of sequence-parallel parameters, flattened, or one tied word embedding.
	AllReduceGrads(r *GradReduction)
	// ScaleGrads divides all reduced gradients by the number of tokens that the job's microbatches had.
	ScaleGrads(s *GradScaling)
	// LocalNorm computes the squared norm of the local gradient shards.
	LocalNorm(n *Norm)
	// AllReduceNorm sums it over a group, after division by the redundant size.
	AllReduceNorm(r *Reduction)
	// Clip multiplies the gradient scale by min(1, maxNorm / norm); no gradient is touched.
	Clip(maxNorm float64)
	// CheckFinite makes the host wait for the gradient norm and reports whether it is finite.
	// The loss scale is divided out of the gradient scale before.
	CheckFinite() bool
	// Adam updates the main parameters and states of the buckets' shards.
	Adam(a *Update)
	// Cast converts updated shards to the dtype that is gathered.
	Cast(c *Cast)
	// UpdateScaleInv sets scale_inv = 1/scale of all FP8 parameters.
	UpdateScaleInv(r *Reduction)
	// AllReduceAmax takes the maximum of all FP8 parameters' amaxes over the group; Main waits.
	AllReduceAmax(r *Reduction)
	// AllGather collects the updated shards of whole buckets.
	AllGather(c *Collective)
	// UseParams copies gathered fragments into their parameters and rebuilds FP8 transposes.
	UseParams(u *ParamUse)
}

// Stream is an in-order queue of one rank's device. Streams after Comm are further communication
// streams (with Apex #1895, and those of expert buffers in Megatron-Core).
type Stream uint8

// The streams of a rank.
const (
	Main Stream = iota // compute
	Comm               // communication of the optimizer
)

// Group names a process group of the rank.
type Group uint8

// The groups that an optimizer communicates in. One group is one communicator: its collectives
// run in issue order.
const (
	Distributed Group = iota // shards the optimizer state
	Redundant                // copies of the distributed group
	World
	Tensor
	Embedding // first and last pipeline stage

	// These exist in Megatron-Core only.

	Process           // data and context parallel ranks: Distributed and Redundant together
	Instance          // all stages' ranks that hold one copy of the state
	Pipeline          // one rank of each stage
	ExpertDistributed // shards the state of the experts
	ExpertRedundant   // copies of that group
	numGroups
)

var groupNames = [numGroups]string{
	"distributed", "redundant", "world", "tensor", "embedding",
	"process", "instance", "pipeline", "expert distributed", "expert redundant",
}

// String returns the name that the reference traces use.
func (g Group) String() string { return groupNames[g] }

// ReduceOp is how a collective combines contributions.
type ReduceOp uint8

// The reductions. Average scales each contribution by 1/size, rounded to the dtype, before the sum.
const (
	NoReduce ReduceOp = iota
	Sum
	Average
	Max
	numReduceOps
)

var reduceNames = [numReduceOps]string{"", "SUM", "AVG", "MAX"}

// String returns the name that the reference traces use.
func (r ReduceOp) String() string { return reduceNames[r] }

// Member is one bucket of a coalesced group.
type Member struct {
	Bucket bucket.ID
	DType  dtype.DType
	Elems  units.Elems // of the whole bucket; of the shard in AllReduceShards
}

// Collective is one coalesced group of collectives: submitted, and complete, as one unit.
// Without members it is a group that is opened and closed for nothing, unless it has elements: those
// are PyTorch's map of used parameters, one int32 each.
type Collective struct {
	Stream  Stream
	Group   Group
	Size    int // ranks of the group
	Op      ReduceOp
	Members []Member
	Bytes   units.Bytes // of all members
	Elems   units.Elems
	// Divide: the bucket is divided by Size on Stream first, and Op is Sum (Apex #1797).
	Divide bool
	// Scale: the bucket is multiplied by this on Main first; 0 and 1: it is not.
	Scale float64
	// Prescaled: Scale was applied when gradients were copied into the bucket: no pass of its own.
	Prescaled bool
	// Check: the norm of each bucket is computed on Main first, to find NaNs before they spread.
	Check bool
	// Private are gradients with an fp32 sum of their own: it is rounded into the bucket on Main first,
	// and the result widened after it.
	Private Copy
	// FP32Sum: whole contributions are exchanged, added up in fp32 and rounded once (an all-to-all).
	FP32Sum bool
	// Call numbers the group for WaitCall; 0: nobody waits for it alone.
	Call int
}

// Add appends n elements of a bucket to the group.
func (c *Collective) Add(id bucket.ID, d dtype.DType, n units.Elems) {
	c.Members = append(c.Members, Member{Bucket: id, DType: d, Elems: n})
	c.Elems += n
	c.Bytes += units.Bytes(n) * d.Size()
}

// Zero describes ZeroGrad.
type Zero struct {
	Bytes   units.Bytes // cleared
	Buffers int         // contiguous buffers
}

// GradPath is how a gradient gets into its bucket.
type GradPath uint8

// The paths of a gradient.
const (
	Added   GradPath = iota // an add kernel per fragment takes param.grad, which is then dropped
	InPlace                 // param.grad is a view of the bucket: autograd has added there itself
	Fused                   // the weight gradient GEMM has added it: no kernel anywhere

	// These exist in PyTorch's DistributedDataParallel only, whose param.grad is no part of a bucket
	// until the backward pass that synchronizes.

	Stolen        // it has become param.grad as it was: no kernel. InPlace: autograd adds it to that
	StolenScaled  // Stolen, and a kernel writes Collective.Scale times param.grad into the bucket
	InPlaceScaled // InPlace, and that kernel too
)

// Accumulation describes AccumulateGrad for one or more parameters.
type Accumulation struct {
	Params []bucket.ParamID
	Paths  []GradPath // of each
	// Zeroed buckets get zeroed memory first (a fresh allocation, or a slice used before in
	// this step).
	Zeroed      []bucket.ID
	ZeroedBytes units.Bytes
	// Searched are parameters that the host looks for in the graph of the pass first, node by node
	// (PyTorch's find_unused_parameters); 0: it does not.
	Searched int
}

// Kept describes KeepShards.
type Kept struct {
	Stored []bucket.ID // first sync of this step; all lists ascending
	Added  []bucket.ID // to the shard of an earlier one
	Zeroed []bucket.ID // no sync in this step
	// Copied are parameters whose reduced gradients are copied out of the bucket to param.grad, one
	// kernel each.
	Copied []bucket.ParamID
}

// GradReduction describes AllReduceGrads, on Main.
type GradReduction struct {
	Group  Group
	Size   int
	Params []bucket.ParamID
	DType  dtype.DType
	Elems  units.Elems
	Bytes  units.Bytes
	// Flatten: the gradients are copied into one tensor and back.
	Flatten bool
}

// GradScaling describes ScaleGrads, on Main: the count is broadcast from the last stage and added up
// over Count's group, and the buffers are multiplied by its reciprocal.
type GradScaling struct {
	Broadcast Reduction // NoReduce
	Count     Reduction
	Buffers   int
	Bytes     units.Bytes // of all gradient buffers
}

// NormKernel is one multi-tensor L2 norm.
type NormKernel struct {
	DType   dtype.DType
	Tensors int
	Elems   units.Elems
}

// Norm describes LocalNorm.
type Norm struct {
	// Buckets whose whole shards count, in order; or, where Params is not nil, the local
	// fragments of those parameters in their order count instead.
	Buckets []bucket.ID
	Params  []bucket.ParamID
	Kernels []NormKernel // one per gradient dtype, in order of first appearance
}

// Reduction describes a small all-reduce on Main.
type Reduction struct {
	Group Group
	Size  int
	Op    ReduceOp
	DType dtype.DType
	Elems units.Elems
	Bytes units.Bytes
	// Divide the value by this first (1: as it is).
	Divide int
}

// AdamLaunch is one multi-tensor Adam kernel of this rank. Operands are, in order, p, m, v, g,
// p_out, or with Remainders p, remainder, m, v, g, p_out. Where a Cast writes what is gathered there is
// no p_out.
type AdamLaunch struct {
	Group      int // parameter group
	Remainders bool
	Tensors    int
	Elems      units.Elems
	Operands   []dtype.DType
	// Foreach: a chain of multi-tensor kernels, one for each operation, in place of a fused one.
	Foreach bool
}

// Update describes Adam.
type Update struct {
	Step     int         // 1 in the first step
	Buckets  []bucket.ID // in order of processing
	Launches []AdamLaunch
	// Scaled: states are unscaled into fp32 work space before, and the bucket's shards are
	// scaled and stored by a Cast with Rescale.
	Scaled bool
	Unpack Copy // its kernel
	// Clipped are gradients that one kernel multiplies by the gradient scale before; without tensors
	// the update does that by itself.
	Clipped Copy
	// GradCopies are gradients converted to fp32 before; without tensors they are read as they are.
	GradCopies Copy
}

// Copy is one multi-tensor copy kernel; without tensors there is none.
type Copy struct {
	Tensors int
	Bytes   units.Bytes // written
}

// FP8Cast is one fragment cast to FP8: its amax is recorded, its scale is the delayed one.
type FP8Cast struct {
	Param  bucket.ParamID
	Bucket bucket.ID
	Elems  units.Elems
}

// Cast describes the conversion of updated shards.
type Cast struct {
	Buckets []bucket.ID // all that are looked at
	FP8     []FP8Cast   // of this rank, one kernel each, in order
	Copies  Copy        // other conversions, one kernel
	// Rescale: states and main parameters are scaled and stored after it.
	Rescale bool
	Pack    Copy // its kernel
}

// ParamUse describes UseParams.
type ParamUse struct {
	Copies []ParamCopy // gathered fragments, parameter after parameter; empty ones too
	Kernel Copy        // without tensors where buckets and parameters share memory
	// Transposed are the FP8 parameters among them, one transpose kernel each.
	Transposed []bucket.ParamID
}
