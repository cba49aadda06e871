// Package apex is the distributed optimizer of Apex (DistributedFusedAdam) with the wrapper that NeMo
// puts around it: how parameters become fragments of buckets, and who is synchronized when.
//
// Units are elements unless bytes are said. Source: the behaviour of Apex before and after PR #1771
// and of NeMo before and after PR #8221, as the reference data records it.
package apex

import (
	"fmt"

	"distopt/core/dtype"
	"distopt/core/units"
)

// Options are the constructor's arguments that decide layout or control flow, after NeMo's
// overrides (NeMo computes ParamSync, StoreParams and StoreParamRemainders itself).
type Options struct {
	Distributed int // W: ranks that shard the optimizer state
	Redundant   int // R: copies of the distributed group, normally 1

	State     dtype.DType // dtype
	GradSync  dtype.DType // grad_sync_dtype; its size decides bucket size and alignment
	ParamSync dtype.DType // param_sync_dtype

	BucketCapMB float64 // bucket_cap_mb: MiB of the default grad-sync dtype per bucket

	AverageGradSync       bool
	OverlapGradSync       bool
	OverlapParamSync      bool
	ContiguousGradBuffer  bool
	ContiguousParamBuffer bool
	StoreParams           bool // shards hold main parameters
	StoreParamRemainders  bool // shards hold the low 16 bits of main parameters
	WithScaledStates      bool

	NeMo      bool // NeMo's subclass and its way to build bucket lists; false: plain Apex
	NewNeMo   bool // with NeMo PR #8221
	NewApex   bool // with Apex PR #1771
	NormDecay bool // do_layer_norm_weight_decay: one parameter group instead of two
	O2        bool // megatron_amp_O2: gradients are copied into buckets after every microbatch

	Later Later
}

// Later are changes made after NeMo PR #8221, each off by default.
type Later struct {
	StageBuckets       bool // NeMo PR #9408: with virtual stages, one bucket list per model chunk
	FP32EmbeddingGrads bool // NeMo PR #8792: fp32 embedding gradients flagged stage by stage, also with virtual stages

	SkipEmptyGroups bool // Apex PR #1847: an all-gather of nothing opens no coalesced group
	CommStreams     int  // Apex PR #1895: pipeline_size communication streams, used in turn; 0 or 1: one
	NCCLUserBuffers bool // Apex PR #1797 (nccl_ub): gradients are divided before they are summed
}

// Alignment returns the elements to which fragments and shards are aligned: 128 bytes of the
// default grad-sync dtype, whatever the dtype of the bucket.
func (o Options) Alignment() units.Elems {
	return units.Elems(128 / o.GradSync.Size())
}

// maxBucket bounds a bucket, so that offsets of 100,000 buckets stay far inside int64.
const maxBucket = 1 << 44

// BucketSize returns the elements of every bucket and of one of its W shards. The quotient is
// taken in floating point and truncated, then rounded down to the alignment, but never to
// nothing: with many ranks a bucket may exceed bucket_cap_mb.
func (o Options) BucketSize() (size, shard units.Elems, err error) {
	if o.Distributed < 1 {
		return 0, 0, fmt.Errorf("distributed_size: got %d, want at least 1; set it to 1 or more", o.Distributed)
	}
	if !(o.BucketCapMB > 0) {
		return 0, 0, fmt.Errorf("bucket_cap_mb: got %v, want more than 0; set it to 100", o.BucketCapMB)
	}
	bytes := float64(1048576 * o.BucketCapMB)
	quotient := bytes / float64(o.GradSync.Size()) / float64(o.Distributed)
	if !(quotient*float64(o.Distributed) < maxBucket) {
		return 0, 0, fmt.Errorf("bucket_cap_mb: got %v, want a bucket below 2^44 elements; set it to 100", o.BucketCapMB)
	}
	align := o.Alignment()
	shard = max(units.Elems(quotient)/align*align, align)
	return shard * units.Elems(o.Distributed), shard, nil
}
