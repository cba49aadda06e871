package finding

import (
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/units"
)

// Names of collectives in a report.
const (
	reduceScatter = "Reduce-scatter"
	allGather     = "All-gather"
	allReduce     = "All-reduce"
	tiedReduce    = "All-reduce of tied embeddings"
)

const inMCore = scenario.Families(1 << scenario.FamilyMCore)

// Keys that mend.
const (
	overlapGrad    = "model.optim.overlap_grad_sync"
	overlapParam   = "model.optim.overlap_param_sync"
	alignGrad      = "model.optim.align_grad_reduce"
	alignParam     = "model.optim.align_param_gather"
	withStep       = "model.optim.overlap_param_gather_with_optimizer_step"
	average        = "model.optim.average_in_collective"
	bucketSize     = "model.optim.ddp_bucket_size"
	checkNaN       = "model.optim.check_for_nan_in_grad"
	padBuckets     = "framework.mcore.ddp_pad_buckets_for_high_nccl_busbw"
	precisionAware = "framework.mcore.use_precision_aware_optimizer"
	connections    = "framework.mcore.cuda_device_max_connections"
)

var rules = []rule{
	{"mcore-no-overlap", inMCore, noOverlap},
	{"mcore-first-stage-only", inMCore, firstStageOnly},
	{"mcore-whole-chunk", inMCore, wholeChunk},
	{"mcore-gather-order", inMCore, gatherOrder},
	{"mcore-first-gather", inMCore, firstGather},
	{"mcore-chunk-starts", inMCore, chunkStarts},
	{"mcore-experts-twice", inMCore, expertsTwice},
	{"mcore-fp8-last-group", inMCore, fp8LastGroup},
	{"mcore-padding", inMCore, padding},
	{"mcore-scaling-pass", inMCore, scalingPass},
	{"mcore-nan-check", inMCore, nanCheck},
	{"mcore-fp32-copies", inMCore, fp32Copies},
	{"mcore-tied-embedding", inMCore, tiedEmbedding},
	{"mcore-max-connections", inMCore, maxConnections},
	{"mcore-first-step", inMCore, firstStep},
}

func noOverlap(l *look) report.Finding {
	if l.s.Optim.OverlapGradSync {
		return report.Finding{}
	}
	cost, stage := l.worst(reduceName(l.s))
	return report.Finding{
		Stage: stage, Cost: cost, Path: overlapGrad, Changes: change(overlapGrad, "true"),
		Text: "Gradients are reduced in one piece when the backward pass is over: " + ms(cost) + " exposed on stage " + count(stage) + ". overlap_grad_sync is off, and without it there are no buckets.",
	}
}

func reduceName(s *scenario.Scenario) string {
	if s.Optim.MCore.DistributedOptimizer {
		return reduceScatter
	}
	return allReduce
}

func firstStageOnly(l *look) report.Finding {
	o := &l.s.Optim
	if l.s.Parallel.PP == 1 || l.s.Parallel.VP > 1 || !o.OverlapGradSync || o.MCore.GatherWithStep {
		return report.Finding{}
	}
	delays, bubble, n := l.exposed(reduceName(l.s), func(stage int) bool { return stage > 0 })
	f := report.Finding{
		Stage: 1, Cost: delays, Path: bucketSize,
		Text: "Only the first pipeline stage has buckets. Stages 1 to " + count(l.s.Parallel.PP-1) + " reduce each buffer in one piece, " + count(n) + " in all: " +
			ms(delays) + " exposed and " + ms(bubble) + " in bubbles, which delay nothing.",
	}
	if o.MCore.AlignGradReduce {
		f.Changes = change(alignGrad, "false")
		f.Text += " They start after the last backward pass (align_grad_reduce)."
	}
	return f
}

func wholeChunk(l *look) report.Finding {
	o := &l.s.Optim
	if l.s.Parallel.VP <= 1 || !o.OverlapGradSync || !o.MCore.AlignGradReduce {
		return report.Finding{}
	}
	cost, stage := l.worst(reduceName(l.s))
	return report.Finding{
		Stage: stage, Cost: cost, Path: alignGrad, Changes: change(alignGrad, "false"),
		Text: "All reductions of a model chunk start together after its last backward pass, so buckets overlap no finer than chunks; of the last chunk " +
			ms(cost) + " are exposed on stage " + count(stage) + ".",
	}
}

func gatherOrder(l *look) report.Finding {
	if !l.s.Optim.OverlapParamSync || !l.s.AlignParamGather() {
		return report.Finding{}
	}
	cost, stage := l.worst(allGather)
	return report.Finding{
		Stage: stage, Cost: cost, Path: alignParam, Changes: change(alignParam, "false"),
		Text: "The schedule gathers a model chunk from its output side, but its first module needs the last bucket: it waits for all gathers of the chunk, " +
			ms(cost) + " exposed on stage " + count(stage) + ".",
	}
}

func firstGather(l *look) report.Finding {
	o := &l.s.Optim
	if !o.OverlapParamSync || l.s.AlignParamGather() || o.MCore.GatherWithStep {
		return report.Finding{}
	}
	for i := range l.r.Collectives {
		c := &l.r.Collectives[i]
		if c.Kind != allGather || c.Stage != l.r.Figures.WorstStage {
			continue
		}
		if c.Exposed == 0 {
			return report.Finding{}
		}
		f := report.Finding{
			Stage: c.Stage, Cost: c.Exposed, Path: overlapParam,
			Text: "The first all-gather of a step starts with the first module, which waits for it at once: " + ms(c.Exposed) + " exposed for " + units.Bytes(c.Bytes).String() +
				". Nothing is prefetched beside the optimizer step.",
		}
		if l.s.Parallel.VP > 1 {
			f.Changes = change(withStep, "true")
		}
		return f
	}
	return report.Finding{}
}

func chunkStarts(l *look) report.Finding {
	o := &l.s.Optim
	if l.s.Parallel.VP <= 1 || !o.OverlapParamSync || l.s.AlignParamGather() {
		return report.Finding{}
	}
	cost, stage := l.worst(allGather)
	return report.Finding{
		Stage: stage, Cost: cost, Path: alignParam, Changes: change(alignParam, "true"),
		Text: "Each of the " + count(l.s.Parallel.VP) + " model chunks of a stage begins with a gather that nothing prefetches, since hooks look one group ahead inside a chunk only: " +
			ms(cost) + " of all-gathers exposed on stage " + count(stage) + ".",
	}
}

func expertsTwice(l *look) report.Finding {
	if !l.s.SeparateExperts() || l.s.Optim.OverlapParamSync || !l.s.Optim.MCore.DistributedOptimizer {
		return report.Finding{}
	}
	cost, stage := l.worst(allGather)
	return report.Finding{
		Stage: stage, Cost: cost / 2, Path: overlapParam, Changes: change(overlapParam, "true"),
		Text: "Every bucket is gathered twice: the optimizer of the dense parameters and that of the experts each gather everything (Megatron-LM issue 1527). Half of " +
			ms(cost) + " on stage " + count(stage) + " is for nothing.",
	}
}

func fp8LastGroup(l *look) report.Finding {
	if l.s.Quant() == mcore.Plain || !l.s.Optim.OverlapParamSync {
		return report.Finding{}
	}
	for i := range l.r.Collectives {
		c := &l.r.Collectives[i]
		if c.Kind == allGather && c.Stage == 0 && len(c.Buckets) > 1 {
			return report.Finding{
				Stage: 0, Cost: c.Exposed, Path: "model.fp8_params",
				Text: "The group that forward needs first holds an FP8 bucket and all buckets that are not FP8, " + count(len(c.Buckets)) + " in one call of " +
					units.Bytes(c.Bytes).String() + ": " + ms(c.Exposed) + " exposed.",
			}
		}
	}
	return report.Finding{}
}

func padding(l *look) report.Finding {
	wasted, moved := l.r.Figures.WastedBytes, int64(0)
	for i := range l.r.Collectives {
		if c := &l.r.Collectives[i]; c.Stage == 0 && (c.Kind == reduceScatter || c.Kind == allGather) {
			moved += c.Bytes
		}
	}
	if wasted == 0 || float64(wasted) < 0.01*float64(moved) {
		return report.Finding{}
	}
	f := report.Finding{
		Stage: -1, Bytes: wasted, Path: bucketSize,
		Text: "Padding is " + units.Percent(float64(wasted)/float64(max(moved, 1))) + " of what is moved. A bucket ends at a common multiple of the " +
			count(l.s.MCoreOptions(0).GroupSize(false)) + " ranks that share it and 128 elements, and a parameter begins at a multiple of 64.",
	}
	if l.s.Optim.MCore.PadBuckets {
		f.Path, f.Changes = padBuckets, change(padBuckets, "false")
		f.Text += " ddp_pad_buckets_for_high_nccl_busbw makes that a multiple of 65,536, too."
	}
	return f
}

func scalingPass(l *look) report.Finding {
	m := &l.s.Optim.MCore
	if m.AverageInCollective || m.PerTokenLoss || l.s.Process() == 1 {
		return report.Finding{}
	}
	f := report.Finding{
		Stage: -1, Bytes: 2 * gradBytes(l), Path: average,
		Text: "Gradients are multiplied by 1/" + count(l.s.Process()) + " before they are reduced, which reads and writes every bucket once more: " +
			units.Bytes(2*gradBytes(l)).String() + " of memory traffic a step.",
	}
	if !l.s.FP32Accumulation() {
		f.Changes = change(average, "true")
	}
	return f
}

func nanCheck(l *look) report.Finding {
	if !l.s.Optim.MCore.CheckNaN {
		return report.Finding{}
	}
	return report.Finding{
		Stage: -1, Bytes: gradBytes(l), Path: checkNaN, Changes: change(checkNaN, "false"),
		Text: "The norm of every bucket is computed before its reduction, to find NaN: " + units.Bytes(gradBytes(l)).String() + " are read once more a step.",
	}
}

func fp32Copies(l *look) report.Finding {
	m := &l.s.Optim.MCore
	if m.PrecisionAware || l.s.GradDType() == dtype.FP32 || !m.DistributedOptimizer {
		return report.Finding{}
	}
	n := int64(0)
	for _, b := range l.r.Stages[0].Buckets {
		n += 4 * b.Shard
	}
	return report.Finding{
		Stage: 0, Bytes: n, Path: precisionAware, Changes: change(precisionAware, "true"),
		Text: "Adam reads fp32 gradients, so each step makes fp32 copies of this rank's " + l.s.GradDType().String() + " ones: " + units.Bytes(n).String() + " more at the peak.",
	}
}

func tiedEmbedding(l *look) report.Finding {
	if !l.s.Model.Tied || l.s.Parallel.PP == 1 {
		return report.Finding{}
	}
	cost, stage := l.worst(tiedReduce)
	bytes := int64(0)
	for i := range l.r.Collectives {
		if c := &l.r.Collectives[i]; c.Kind == tiedReduce {
			bytes = c.Bytes
		}
	}
	if bytes == 0 {
		return report.Finding{}
	}
	return report.Finding{
		Stage: stage, Cost: cost, Bytes: bytes, Path: "model.share_embeddings_and_output_weights",
		Text: "The tied embedding's gradient is added up over the first and the last stage in full, " + units.Bytes(bytes).String() +
			", after its reduction, though each rank needs only its own shard: " + ms(cost) + " exposed.",
	}
}

func maxConnections(l *look) report.Finding {
	n := l.s.Optim.MCore.MaxConnections
	if n != 1 || l.s.Parallel.TP > 1 || l.s.Parallel.CP > 1 {
		return report.Finding{}
	}
	return report.Finding{
		Stage: -1, Path: connections, Changes: change(connections, scenario.Null),
		Text: "CUDA_DEVICE_MAX_CONNECTIONS=1 feeds all streams through one hardware queue: a collective that waits holds up the kernels issued after it. Without tensor or context parallelism nothing needs it (Megatron-LM issue 1468 saw no overlap with it). This effect is not simulated.",
	}
}

func firstStep(l *look) report.Finding {
	if !l.s.Optim.OverlapGradSync {
		return report.Finding{}
	}
	return report.Finding{
		Stage: -1, Path: overlapGrad,
		Text: "The first step of a training run overlaps nothing: hooks learn in it how many gradients a group waits for, and gathers are off. It is not the step shown, and timings should leave it out.",
	}
}

// gradBytes is the size of all buckets of the fullest stage.
func gradBytes(l *look) int64 {
	most := int64(0)
	for p := range l.r.Stages {
		n := int64(0)
		for i := range l.r.Stages[p].Buckets {
			n += l.r.Stages[p].Buckets[i].Size * int64(l.s.GradDType().Size())
		}
		most = max(most, n)
	}
	return most
}

func ms[T ~int64](t T) string { return units.Milliseconds(int64(t)) }

func count(n int) string { return units.Count(int64(n)) }
