// Package mcore is Megatron-Core's distributed optimizer (DistributedDataParallel, its parameter and
// gradient buffers, DistributedOptimizer): how parameters become buckets of contiguous buffers, what
// of them each rank owns, and who is synchronized when.
//
// Units are elements unless bytes are said. Source: the behaviour of Megatron-Core at commit
// d98e8a64dd, as the reference data records it. Not modelled: FSDP, user buffers, CUDA graphs, the
// older layer-wise path without a layout of its own.
package mcore

import (
	"fmt"

	"distopt/core/units"
)

// Options are the settings that decide layout or control flow, named as
// DistributedDataParallelConfig and the command line name them. They are those of one rank's stage.
type Options struct {
	World       int // W: data-parallel times context-parallel ranks of a stage (dp_cp)
	Data        int // without context parallelism; 0: World
	Expert      int // E: expert-parallel size; 0 is 1
	ExpertWorld int // We: ranks that hold the same experts; 0: World / Expert
	Instances   int // num_distributed_optimizer_instances; 0 is 1
	Pipeline    int // stages; 0 is 1
	Stage       int

	DistributedOptimizer bool // use_distributed_optimizer
	OverlapGradReduce    bool
	OverlapParamGather   bool
	GatherWithStep       bool // overlap_param_gather_with_optimizer_step
	AlignGradReduce      bool // the schedule starts reductions
	AlignParamGather     bool // the schedule starts gathers; false without virtual stages

	GradReduceInFP32    bool
	AverageInCollective bool
	PerTokenLoss        bool // calculate_per_token_loss
	FP32Accumulation    bool // reduce_scatter_with_fp32_accumulation
	HighBusBandwidth    bool // pad_buckets_for_high_nccl_busbw
	ReuseGradBuffer     bool // reuse_grad_buf_for_mxfp8_param_ag
	CheckForNaN         bool // check_for_nan_in_grad
	LayerWise           bool // matrices belong to a layer-wise optimizer (Muon)

	BucketSize units.Elems // 0: default
	NumBuckets int         // instead of BucketSize, training code only; 0: not given
	// Library: the library is used without Megatron's training code, as NeMo does, so the default
	// bucket size follows Data.
	Library bool

	// FP32Patterns (param_name_patterns_for_fp32_local_accumulation) are shell patterns; those that
	// match accumulate in a private fp32 gradient. "all" matches everything.
	FP32Patterns []string
}

// maxRanks bounds the ranks of a group, so that paddings stay far inside int64.
const maxRanks = 1 << 20

// withDefaults fills in what 0 stands for.
func (o Options) withDefaults() Options {
	for _, n := range []*int{&o.Expert, &o.Instances, &o.Pipeline} {
		*n = max(*n, 1)
	}
	if o.Data == 0 {
		o.Data = o.World
	}
	if o.ExpertWorld == 0 {
		o.ExpertWorld = max(o.World/o.Expert, 1)
	}
	return o
}

// Check refuses what Megatron-Core refuses, for a stage of so many model chunks.
func (o Options) Check(chunks int) error {
	derived := o.ExpertWorld == 0
	o = o.withDefaults()
	for _, f := range []struct {
		path string
		got  int
	}{
		{"data_parallel_size", o.World},
		{"data_parallel_size without context parallelism", o.Data},
		{"expert_model_parallel_size", o.Expert},
		{"expert_data_parallel_size", o.ExpertWorld},
		{"num_distributed_optimizer_instances", o.Instances},
		{"pipeline_model_parallel_size", o.Pipeline},
	} {
		if f.got < 1 || f.got > maxRanks {
			return fmt.Errorf("%s: got %d, want 1 to %d", f.path, f.got, maxRanks)
		}
	}
	needs := func(flag bool, path string, other bool, want, fix string) error {
		if flag && !other {
			return fmt.Errorf("%s: got true, want %s; %s", path, want, fix)
		}
		return nil
	}
	for _, err := range []error{
		needs(o.OverlapParamGather, "overlap_param_gather", o.DistributedOptimizer, "use_distributed_optimizer too", "set it, or overlap_param_gather to false"),
		needs(o.OverlapParamGather, "overlap_param_gather", o.OverlapGradReduce, "overlap_grad_reduce too", "set it, or overlap_param_gather to false"),
		needs(o.GatherWithStep, "overlap_param_gather_with_optimizer_step", o.OverlapParamGather, "overlap_param_gather too", "set it"),
		needs(o.GatherWithStep, "overlap_param_gather_with_optimizer_step", chunks > 1, "virtual pipeline stages", "set it to false"),
		needs(o.GatherWithStep, "overlap_param_gather_with_optimizer_step", !o.ReuseGradBuffer, "reuse_grad_buf_for_mxfp8_param_ag off", "set one of them to false"),
		needs(o.GatherWithStep, "overlap_param_gather_with_optimizer_step", !o.LayerWise, "no layer-wise optimizer", "set it to false"),
		needs(o.AverageInCollective, "average_in_collective", !o.PerTokenLoss, "calculate_per_token_loss off", "set one of them to false"),
		needs(o.AverageInCollective, "average_in_collective", !o.FP32Accumulation, "sums in reduce_scatter_with_fp32_accumulation", "set one of them to false"),
		needs(o.FP32Accumulation, "reduce_scatter_with_fp32_accumulation", o.Instances == 1, "one optimizer instance", "set num_distributed_optimizer_instances to 1"),
		needs(o.Instances > 1, "num_distributed_optimizer_instances above 1", o.DistributedOptimizer, "use_distributed_optimizer too", "set it"),
		needs(o.LayerWise, "layer-wise optimizer", o.Instances == 1, "one optimizer instance", "set num_distributed_optimizer_instances to 1"),
		needs(len(o.FP32Patterns) > 0, "param_name_patterns_for_fp32_local_accumulation", !o.GradReduceInFP32, "grad_reduce_in_fp32 off", "leave the patterns out"),
		needs(o.BucketSize > 0, "ddp_bucket_size with ddp_num_buckets", o.NumBuckets == 0, "one of them", "leave one of them out"),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case o.Stage < 0 || o.Stage >= o.Pipeline:
		return fmt.Errorf("pipeline stage: got %d, want 0 to %d", o.Stage, o.Pipeline-1)
	case o.BucketSize < 0:
		return fmt.Errorf("ddp_bucket_size: got %d, want at least 1", o.BucketSize)
	case o.NumBuckets < 0:
		return fmt.Errorf("ddp_num_buckets: got %d, want at least 1", o.NumBuckets)
	case o.World%o.Instances != 0:
		return fmt.Errorf("num_distributed_optimizer_instances: got %d, want a divisor of %d data-parallel ranks", o.Instances, o.World)
	case (o.Expert > 1 || o.ExpertWorld != o.World) && o.ExpertWorld%o.Instances != 0:
		return fmt.Errorf("num_distributed_optimizer_instances: got %d, want a divisor of %d expert-data-parallel ranks", o.Instances, o.ExpertWorld)
	case derived && o.World%o.Expert != 0:
		return fmt.Errorf("expert_model_parallel_size: got %d, want a divisor of %d data-parallel ranks", o.Expert, o.World)
	}
	return nil
}

// GroupSize returns G: the ranks over which a dense or an expert buffer is reduced, and sharded with
// the distributed optimizer.
func (o Options) GroupSize(expert bool) int {
	o = o.withDefaults()
	if expert {
		return o.ExpertWorld / o.Instances
	}
	return o.World / o.Instances
}

// Position returns where a rank of the dp_cp group stands in the group of GroupSize. Ranks with equal
// remainders modulo E hold the same experts (with an expert-tensor-parallel size of its own: as many
// ranks follow each other as World / ExpertWorld tells); instances are contiguous parts.
func (o Options) Position(rank int, expert bool) int {
	o = o.withDefaults()
	if expert {
		rank = rank * o.ExpertWorld / o.World
	}
	return rank % o.GroupSize(expert)
}

// Scaling returns the factor by which gradients are multiplied before they are reduced.
func (o Options) Scaling(expert bool) float64 {
	o = o.withDefaults()
	switch {
	case o.PerTokenLoss:
		return 1
	case !o.AverageInCollective:
		return 1 / float64(o.World)
	case expert:
		return float64(o.ExpertWorld) / float64(o.World)
	}
	return 1
}
