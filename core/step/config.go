package step

import (
	"fmt"

	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

// Config is what the schedule needs beside its stages.
type Config struct {
	Microbatches int         // per step and data-parallel rank
	Activation   units.Elems // of the tensor that one stage hands to the next
	DType        dtype.DType // of that tensor

	BatchP2P    bool // batch_p2p_comm: each call is one NCCL group, then the host waits for the device
	OverlapP2P  bool // overlap_p2p_comm: single sends and receives, waited for late; not with BatchP2P
	CommStreams int  // communication streams of the optimizer; 0 means 1

	// Megatron: the schedules of Megatron-LM at d98e8a64dd in place of those that NeMo pins. Modules
	// wait for their parameters themselves, so no embedding is read before the first forward pass.
	Megatron bool
	// Unaligned: there is no grad_sync_func. Gradients are synchronized as they become ready in a
	// chunk's last backward pass, on every stage.
	Unaligned bool
	// Group is microbatch_group_size_per_vp_stage: microbatches that pass a chunk before the next
	// chunk's turn; 0 means as many as stages.
	Group int

	// RecomputeLayers are the first layers of each chunk whose backward passes differ from those of
	// the others, since only they compute their forward pass again; 0: layers are alike.
	RecomputeLayers int

	// WorldNorm: the gradient norm is summed over all stages (NeMo with clipping). They meet there,
	// so what the drawn step finds does not depend on how many microbatches came before.
	WorldNorm bool

	GradSync dtype.DType // of gradients in their buckets, but for parameters with FP32Grads
}

// StageInput is one pipeline stage, as its representative rank holds it.
type StageInput struct {
	Model *model.Stage
	// New builds the rank's optimizer. The observer may be nil.
	New func(optim.Runtime, optim.Observer) (optim.Sharded, error)
}

// MaxTasks bounds a recording, so that it fits into the memory of a browser tab.
const MaxTasks = 4 << 20

// Bounds of a label's fields.
const (
	maxChunks  = 1 << 7
	maxStages  = 1 << 10
	maxModules = 1 << 15
)

// firstMicrobatches returns how many microbatches the first step has, which is not drawn: all of them
// unless all stages meet at its end, hosts included, and it is long enough to fill the pipeline.
func (c *Config) firstMicrobatches(stages int) int {
	if stages > 1 && c.BatchP2P && c.WorldNorm {
		group := c.group(stages)
		if group < 2*stages {
			group *= 2
		}
		return min(c.Microbatches, group)
	}
	return c.Microbatches
}

// group returns Group with its default.
func (c *Config) group(stages int) int {
	if c.Group > 0 {
		return c.Group
	}
	return stages
}

// maxCommStreams bounds Config.CommStreams.
const maxCommStreams = 4

// check refuses what Megatron's schedules refuse for stages of v chunks, and what a recording
// cannot hold. Interleaving over two stages passes: only Megatron's start-up refuses it.
func (c *Config) check(stages, v int) error {
	switch {
	case c.Microbatches < 1:
		return fmt.Errorf("microbatches: got %d, want at least 1; raise the global batch size", c.Microbatches)
	case c.BatchP2P && c.OverlapP2P:
		return fmt.Errorf("overlap_p2p_comm: got true together with batch_p2p_comm, want one of them; set batch_p2p_comm to false")
	case stages > maxStages:
		return fmt.Errorf("pipeline_model_parallel_size: got %d, want at most %d", stages, maxStages)
	case v > maxChunks:
		return fmt.Errorf("virtual_pipeline_model_parallel_size: got %d, want at most %d", v, maxChunks)
	case v > 1 && stages == 1:
		return fmt.Errorf("virtual_pipeline_model_parallel_size: got %d with one pipeline stage, want null; use more stages or no virtual ones", v)
	case v > 1 && c.Group != 0 && c.Group < stages:
		return fmt.Errorf("microbatch_group_size_per_vp_stage: got %d, want at least pipeline_model_parallel_size (%d); set it to %d", c.Group, stages, stages)
	case v > 1 && !c.Megatron && c.Microbatches%stages != 0:
		return fmt.Errorf("microbatches: got %d, want a multiple of pipeline_model_parallel_size (%d) with virtual stages; set it to %d",
			c.Microbatches, stages, (c.Microbatches/stages+1)*stages)
	case v > 1 && c.Microbatches%c.group(stages) != 0 && c.Microbatches%c.group(stages) < stages:
		return fmt.Errorf("microbatches: got %d, want a multiple of microbatch_group_size_per_vp_stage (%d), or at least %d more; raise the global batch size",
			c.Microbatches, c.group(stages), stages)
	case v == 1 && stages > 1 && c.OverlapP2P:
		return fmt.Errorf("overlap_p2p_comm: got true without virtual stages, want false; set it to false or use virtual stages")
	case c.CommStreams > maxCommStreams:
		return fmt.Errorf("pipeline_size: got %d communication streams, want at most %d", c.CommStreams, maxCommStreams)
	}
	return nil
}

// checkStages refuses stages that do not form one pipeline.
func checkStages(stages []StageInput, cfg *Config) error {
	if len(stages) == 0 {
		return fmt.Errorf("pipeline: got no stages, want at least one")
	}
	v := len(stages[0].Model.Chunks)
	for p := range stages {
		m := stages[p].Model
		if len(m.Chunks) != v || m.PP != len(stages) || m.Index != p {
			return fmt.Errorf("pipeline: stage %d is stage %d of %d with %d chunks, want stage %d of %d with %d",
				p, m.Index, m.PP, len(m.Chunks), p, len(stages), v)
		}
		if len(m.Modules) >= maxModules {
			return fmt.Errorf("num_layers: got %d modules on one stage, want fewer than %d; use more pipeline stages", len(m.Modules), maxModules)
		}
	}
	return cfg.check(len(stages), v)
}
