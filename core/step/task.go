// Package step lays out training steps of every pipeline stage as tasks: the microbatch order of
// the schedule, the hooks it fires in the optimizer, the messages between stages.
//
// Each stage is one representative rank: the first stage's is global rank 0, the last one's the last
// rank. A runner is its host. It follows Megatron-core's schedules and NeMo's training step
// (behaviour recorded in the reference data) and drives an optim.Sharded; a recorder is that
// optimizer's Runtime and turns effects, passes and messages into tasks on streams. No decision
// looks at a clock, so stages are run one after the other and tasks have no times yet.
//
// Tensor-parallel collectives lie inside passes, as kernels. Not modelled: other ranks of a stage
// that come late, the data loader, logging beside the loss, validation, checkpoints.
package step

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/units"
)

// Kind says what a task is.
type Kind uint8

// The kinds of task. One Forward or Backward task is a run of modules of one layer: its kernels
// are listed by its Work and expanded only for what is on screen.
const (
	Forward Kind = iota
	Backward
	ZeroGrad
	GradCopy      // gradients added into buckets by a kernel of their own
	ReduceScatter // one coalesced group
	ShardAllReduce
	AllGather // one coalesced group
	SequenceParallelAllReduce
	EmbeddingAllReduce
	GradNorm // local norm kernels
	NormAllReduce
	Adam
	Cast // dtype conversion of updated shards
	AmaxAllReduce
	ParamCopy // gathered fragments copied into parameters, FP8 transposes rebuilt
	Exchange  // point-to-point messages of one call
	LossSend
	HostSync      // the host waits for the whole device
	GradAllReduce // one coalesced group of whole buckets
	NumKinds
)

// WorkID indexes Recording.Works.
type WorkID int32

// Work is what one or many tasks do, priced once.
type Work struct {
	Kind Kind

	// Compute: kernels in order, or the passes of modules (priced by their kernels).
	Kernels []model.Kernel
	Passes  []model.Pass

	// Communication: one collective over Group, sizes summed over a coalesced group.
	Op     Collective
	Bytes  units.Bytes // full buffer
	Count  int         // members of the coalesced group
	Group  Group
	DType  dtype.DType
	Memory units.Bytes // memory traffic of plain copies and memsets
}

// Collective is a collective operation.
type Collective uint8

// The collectives.
const (
	NoCollective Collective = iota
	OpReduceScatter
	OpAllGather
	OpAllReduce
	OpSend
	OpAllToAll
)

// Group names a process group of the representative rank.
type Group uint8

// The groups of one rank. Their sizes and placement are parallel.Grid's.
const (
	NoGroup     Group = iota
	Distributed       // shards the optimizer state
	Redundant         // copies of the distributed group
	World
	Tensor
	EmbeddingGroup // first and last stage
	Pipeline       // neighbouring stages

	// These exist in Megatron-Core only.

	Process           // data and context parallel ranks
	Instance          // all ranks that hold one copy of the state
	Stages            // one rank of each stage, and those of its tensor-parallel groups
	ExpertDistributed // shards the state of the experts
	ExpertRedundant   // copies of that group
	NumGroups
)

// Label says what a task is for the reader; one per sched.Task, same index.
type Label struct {
	Kind    Kind
	Chunk   int8
	Stage   int16
	Layer   int16 // local layer, -1: none
	Step    int8
	Micro   int32
	Work    WorkID
	Buckets [2]int32 // half-open range into Recording.BucketIDs
	Module  [2]int16 // half-open range of the stage's modules (Forward, Backward)
}

// Recording is the outcome of the record pass: tasks without times yet.
type Recording struct {
	Program   sched.Program // Work and Launch are filled in by pricing
	Labels    []Label
	Works     []Work
	BucketIDs []bucket.ID
	// MessageWork is what every message carries; Program.Messages has their ends. The messages of
	// a task run side by side and it ends with the last of them; its own Work is what the busier
	// direction of the device's links carries in all, which bounds it from below.
	MessageWork []WorkID
	// StepStart[s][k] is the first forward task of step k on stage s.
	StepStart [][]sched.TaskID
}
