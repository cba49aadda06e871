package optim

import "distopt/core/bucket"

// Op names an event, in the words of the reference traces ("start_grad_sync", ...).
type Op string

// Events of the optimizer. Those of a schedule (fwd, forward_step, ...) belong to core/step.
const (
	OpZeroGrad         Op = "zero_grad"
	OpGradReady        Op = "grad_ready"   // Param: its post-backward hook fires
	OpGradCopy         Op = "grad_copy"    // Param
	OpParamAccess      Op = "param_access" // Param: its pre-forward hook fires
	OpParamCopy        Op = "param_copy"   // Copies
	OpStartGradSync    Op = "start_grad_sync"
	OpStartParamSync   Op = "start_param_sync"  // Buckets given
	OpFinishGradSync   Op = "finish_grad_sync"  // Buckets still in flight
	OpFinishParamSync  Op = "finish_param_sync" // likewise, in table order
	OpReduceScatter    Op = "reduce_scatter"    // one bucket; Coalesced, N, Bytes, DTypes, Group, GroupSize, Reduce
	OpAllGather        Op = "all_gather"        // likewise without Reduce
	OpAllReduce        Op = "all_reduce"        // a bucket only over the redundant group, Param only for a tied embedding
	OpBroadcast        Op = "broadcast"         // Param, Coalesced, N, Bytes
	OpGradSync         Op = "grad_sync"
	OpGradSyncEnd      Op = "grad_sync_end"
	OpParamSync        Op = "param_sync"
	OpParamSyncEnd     Op = "param_sync_end"
	OpGradNorm         Op = "grad_norm"
	OpL2Norm           Op = "l2norm" // Tensors, N, DTypes
	OpStepBegin        Op = "step_begin"
	OpStepEnd          Op = "step_end" // Buckets: parameter buckets left, in table order
	OpLocalStep        Op = "local_step"
	OpLocalStepEnd     Op = "local_step_end"
	OpAdam             Op = "adam" // Kind, Tensors, N, DTypes of the operands
	OpCheckDTypes      Op = "check_dtypes"
	OpCastFP8          Op = "cast_fp8"      // N
	OpTransposeFP8     Op = "transpose_fp8" // N
	OpCopy             Op = "copy"          // Tensors, Bytes
	OpGradSyncFunc     Op = "grad_sync_func"
	OpGradSyncFuncEnd  Op = "grad_sync_func_end" // Chunk
	OpParamSyncFunc    Op = "param_sync_func"
	OpParamSyncFuncEnd Op = "param_sync_func_end" // Chunk
)

// Events of Megatron-Core alone. Its syncs name a BucketGroup.
const (
	OpWait             Op = "wait"              // Coalesced: the compute stream waits for that call
	OpAllToAll         Op = "all_to_all"        // as OpReduceScatter without Reduce
	OpPostAllGather    Op = "post_all_gather"   // Tensors
	OpCopyToQuantized  Op = "copy_to_quantized" // Tensors, N
	OpCopyMainToBuffer Op = "copy_main_to_param_buffer"
)

// Events of PyTorch's DistributedDataParallel alone.
const OpRebuildBuckets Op = "rebuild_buckets" // Buckets: all that there are now

// Event is one thing that the optimizer or the step did, in host order. Only the fields that
// its Op documents are set; the reference traces (oracle README) define which.
//
// Micro and Chunk are -1 in what the optimizer emits, but for Chunk of its two callbacks: where an
// event lies in the step is known to the one who drives the optimizer.
type Event struct {
	Op           Op
	Param        bucket.ParamID // -1: none
	Buckets      []bucket.ID    // only valid during the call
	Coalesced    int            // number of the coalesced group, 0: none
	N            int64          // elements
	Bytes        int64
	Tensors      int      // multi-tensor kernels: number of tensors
	DTypes       []string // one, or Adam's operand list
	Group        string   // "distributed", "redundant", "world", "tensor", "embedding"
	GroupSize    int
	Reduce       string      // "SUM", "AVG", "MAX"
	Kind         string      // adam: "fused" or "remainders"
	Module       string      // fwd, bwd
	Copies       []ParamCopy // param_copy; only valid during the call
	Micro, Chunk int         // -1: not in a microbatch
	Batch        int         // p2p: number of the batched call, 0: none
	Request      int         // p2p: number of the request, 0: none
	On           int         // no_sync
	Peer         int         // send_loss, recv_loss: global rank

	BucketGroup         int  // of the rank, all chunks
	NoOp                bool // start_grad_sync: launched already
	Pending, Dispatched bool // finish_param_sync: before the call, a gather is in flight, was started
	Async               bool // a collective that is waited for later
	Optimizer           int  // adam: place in the chain
}

// About makes e an event about nothing yet: no parameter, microbatch, chunk or bucket group.
func (e *Event) About(op Op) *Event {
	*e = Event{Op: op, Param: -1, Micro: -1, Chunk: -1, BucketGroup: -1}
	return e
}

// ParamCopy is one fragment that is copied out of its gathered bucket.
type ParamCopy struct {
	Bucket bucket.ID
	Param  bucket.ParamID
	N      int64
}

// Observer sees every event beside Runtime. It is nil in production: events cost nothing then.
type Observer interface{ Event(e *Event) }
