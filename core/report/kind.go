package report

import "distopt/core/step"

// role says what a task's time counts as.
type role uint8

const (
	computes role = iota
	communicates
	hosts
)

// share is a row of "where the step goes".
type share uint8

const (
	forward share = iota
	backward
	optimizer
	exposed
	bubble
	idle
	numShares
)

var shareNames = [numShares]string{"Forward", "Backward", "Optimizer", "Exposed", "Bubble", "Idle"}

// family groups the kinds of communication for ExposedBy.
type family uint8

const (
	gradSync family = iota
	paramSync
	amax
	norm
	embedding
	tensorParallel
	pipeline
	numFamilies
)

var familyNames = [numFamilies]string{"grad sync", "param sync", "amax", "norm", "embedding", "tensor parallel", "pipeline"}

// kindInfo is what the report knows of a kind of task.
type kindInfo struct {
	name   string
	role   role
	lane   Lane
	share  share  // computes
	family family // communicates
	row    bool   // communicates: has a row in the table of collectives
}

var kinds = [step.NumKinds]kindInfo{
	step.Forward:                   {name: "Forward", lane: LaneCompute, share: forward},
	step.Backward:                  {name: "Backward", lane: LaneCompute, share: backward},
	step.ZeroGrad:                  {name: "Zero gradients", lane: LaneOptimizer, share: optimizer},
	step.GradCopy:                  {name: "Gradient copy", lane: LaneCompute, share: optimizer},
	step.ReduceScatter:             {name: "Reduce-scatter", role: communicates, lane: LaneGradSync, family: gradSync, row: true},
	step.ShardAllReduce:            {name: "All-reduce of shards", role: communicates, lane: LaneGradSync, family: gradSync, row: true},
	step.GradAllReduce:             {name: "All-reduce", role: communicates, lane: LaneGradSync, family: gradSync, row: true},
	step.AllGather:                 {name: "All-gather", role: communicates, lane: LaneParamSync, family: paramSync, row: true},
	step.SequenceParallelAllReduce: {name: "All-reduce of sequence-parallel gradients", role: communicates, lane: LaneTensor, family: tensorParallel, row: true},
	step.EmbeddingAllReduce:        {name: "All-reduce of tied embeddings", role: communicates, lane: LaneGradSync, family: embedding, row: true},
	step.GradNorm:                  {name: "Gradient norm", lane: LaneOptimizer, share: optimizer},
	step.NormAllReduce:             {name: "All-reduce of the gradient norm", role: communicates, lane: LaneGradSync, family: norm, row: true},
	step.Adam:                      {name: "Adam", lane: LaneOptimizer, share: optimizer},
	step.Cast:                      {name: "Casts", lane: LaneOptimizer, share: optimizer},
	step.AmaxAllReduce:             {name: "All-reduce of FP8 amaxes", role: communicates, lane: LaneParamSync, family: amax, row: true},
	step.ParamCopy:                 {name: "Parameter copy", lane: LaneCompute, share: optimizer},
	step.Exchange:                  {name: "Messages", role: communicates, lane: LanePipeline, family: pipeline},
	step.LossSend:                  {name: "Loss", role: communicates, lane: LanePipeline, family: pipeline},
	step.HostSync:                  {name: "Host waits for the device", role: hosts, lane: LaneHost},
}

var groupNames = [step.NumGroups]string{
	step.NoGroup: "", step.Distributed: "distributed", step.Redundant: "redundant", step.World: "world",
	step.Tensor: "tensor parallel", step.EmbeddingGroup: "embedding", step.Pipeline: "pipeline",
	step.Process: "data and context parallel", step.Instance: "optimizer instance", step.Stages: "model parallel",
	step.ExpertDistributed: "expert distributed", step.ExpertRedundant: "expert instances",
}
