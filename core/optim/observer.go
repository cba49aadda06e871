package optim

import "distopt/core/bucket"

// Op names an event, in the words of the reference traces ("start_grad_sync", ...).
type Op string

// Event is one thing that the optimizer or the step did, in host order. Only the fields that
// its Op documents are set; the reference traces (oracle README) define which.
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
	Copies       []ParamCopy // param_copy
	Micro, Chunk int         // -1: not in a microbatch
	Batch        int         // p2p: number of the batched call, 0: none
	Request      int         // p2p: number of the request, 0: none
	On           int         // no_sync
	Peer         int         // send_loss, recv_loss: global rank
}

// ParamCopy is one fragment that is copied out of its gathered bucket.
type ParamCopy struct {
	Bucket bucket.ID
	Param  bucket.ParamID
	N      int64
}

// Observer sees every event beside Runtime. It is nil in production: events cost nothing then.
type Observer interface{ Event(e *Event) }
