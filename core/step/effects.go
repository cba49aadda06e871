package step

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/sched"
	"distopt/core/units"
)

// The effects of the optimizer. Everything that it launches first closes what is open, so that
// tasks stand in host order.

var groups = [...]Group{
	optim.Distributed: Distributed,
	optim.Redundant:   Redundant,
	optim.World:       World,
	optim.Tensor:      Tensor,
	optim.Embedding:   EmbeddingGroup,

	optim.Process:           Process,
	optim.Instance:          Instance,
	optim.Pipeline:          Stages,
	optim.ExpertDistributed: ExpertDistributed,
	optim.ExpertRedundant:   ExpertRedundant,
}

// Wait is optim.Runtime's.
func (r *recorder) Wait(waiter, on optim.Stream) { r.wait(local(waiter), local(on)) }

// launch appends a task of the optimizer, with the buckets that it is about.
func (r *recorder) launch(s optim.Stream, w Work, comm sched.CommID, ids ...bucket.ID) {
	r.flush()
	r.emit(local(s), w.Kind, r.works.intern(w), comm)
	r.buckets(ids...)
}

// kernels appends a task of kernels on main, unless there are none.
func (r *recorder) kernels(kind Kind, kernels []kernelID, ids ...bucket.ID) {
	if len(kernels) > 0 {
		r.flush()
		r.emit(mainStream, kind, r.works.intern(Work{Kind: kind}, kernels...), sched.None)
		r.buckets(ids...)
	}
}

// ZeroGrad clears the buffers.
func (r *recorder) ZeroGrad(z *optim.Zero) {
	if z.Bytes > 0 {
		r.launch(optim.Main, Work{Kind: ZeroGrad, Memory: z.Bytes, Count: z.Buffers}, sched.None)
	}
}

// AccumulateGrad adds gradients into buckets: kernels of the backward pass that made them, else a
// task of their own.
func (r *recorder) AccumulateGrad(a *optim.Accumulation) {
	alone := r.scratch[:0]
	for i, p := range a.Params {
		switch a.Paths[i] {
		case optim.Added, optim.InPlace, optim.InPlaceScaled:
			alone = r.add(alone, p, r.addOf[p])
		}
		switch a.Paths[i] {
		case optim.StolenScaled, optim.InPlaceScaled:
			alone = r.add(alone, p, r.works.kernel(gradientCopy(&r.model.Params[p])))
		}
	}
	if a.ZeroedBytes > 0 {
		alone = append(alone, r.works.kernel(model.Kernel{
			Name: "clear bucket", Kind: model.MemoryBound, Pattern: hw.Fill, Bytes: a.ZeroedBytes,
		}))
	}
	r.scratch = alone
	r.kernels(GradCopy, alone)
}

// add gives a kernel for the gradient of p to the pass that made it, if it is still open, else to
// alone.
func (r *recorder) add(alone []kernelID, p bucket.ParamID, k kernelID) []kernelID {
	switch {
	case r.accumulating:
		m := r.model.Params[p].Module
		r.perModule[m] = append(r.perModule[m], k)
	case r.back && r.open.last > r.open.first:
		r.adds = append(r.adds, k)
	default:
		alone = append(alone, k)
	}
	return alone
}

// gradientAdd is the kernel that adds a gradient to the sum in its bucket: in place autograd runs
// it, otherwise the hook. Either way it reads both and writes one.
func gradientAdd(p *model.Param, sum dtype.DType) model.Kernel {
	if p.FP32Grads {
		sum = dtype.FP32
	}
	return model.Kernel{
		Name: "gradient add", Kind: model.MemoryBound, Pattern: hw.Elementwise, DType: sum,
		Bytes: units.Bytes(p.Numel) * (p.DType.Size() + 2*sum.Size()),
	}
}

// gradientCopy copies a gradient between its tensor and its bucket.
func gradientCopy(p *model.Param) model.Kernel {
	return model.Kernel{
		Name: "gradient copy", Kind: model.MemoryBound, Pattern: hw.Elementwise, DType: p.DType, Bytes: 2 * units.Bytes(p.Numel) * p.DType.Size(),
	}
}

// beginAccumulation and endAccumulation enclose the accumulation of a whole chunk's gradients,
// which then becomes part of that chunk's backward passes.
func (r *recorder) beginAccumulation(c int) {
	r.accumulating = true
	span := r.model.Chunks[c].Modules
	for m := span[0]; m < span[1]; m++ {
		r.perModule[m] = r.perModule[m][:0]
	}
}

func (r *recorder) endAccumulation(c int) {
	r.accumulating = false
	r.planAdds(c)
}

// ReduceScatter is one coalesced group.
func (r *recorder) ReduceScatter(c *optim.Collective) {
	r.collective(ReduceScatter, OpReduceScatter, c)
	for _, m := range c.Members {
		for int(m.Bucket) >= len(r.shards) {
			r.shards = append(r.shards, 0)
		}
		r.shards[m.Bucket] = units.Bytes(m.Elems) / units.Bytes(c.Size) * m.DType.Size()
	}
}

// AllReduceShards is one coalesced group: of shards, or of whole buckets that nothing scattered.
func (r *recorder) AllReduceShards(c *optim.Collective) {
	kind := ShardAllReduce
	if n := len(c.Members); n > 0 && (int(c.Members[0].Bucket) >= len(r.shards) || r.shards[c.Members[0].Bucket] == 0) {
		kind = GradAllReduce
	}
	r.collective(kind, OpAllReduce, c)
}

// AllGather is one coalesced group.
func (r *recorder) AllGather(c *optim.Collective) { r.collective(AllGather, OpAllGather, c) }

func (r *recorder) collective(kind Kind, op Collective, c *optim.Collective) {
	if len(c.Members) == 0 {
		return
	}
	w := Work{Kind: kind, Op: op, Bytes: c.Bytes, Count: len(c.Members), Group: groups[c.Group], DType: c.Members[0].DType}
	if c.Divide {
		w.Memory = 2 * c.Bytes
	}
	if c.FP32Sum { // each rank adds up what the others send
		w.Op, w.Memory = OpAllToAll, c.Bytes
	}
	ids := r.ids[:0]
	for _, m := range c.Members {
		ids = append(ids, m.Bucket)
	}
	r.ids = ids
	r.scale(c)
	r.launch(c.Stream, w, r.comm(c.Group), ids...)
	r.number(c.Call)
}

// KeepShards adds shards to those of an earlier sync; storing one moves nothing.
func (r *recorder) KeepShards(k *optim.Kept) {
	var bytes units.Bytes
	for _, id := range k.Added {
		if int(id) < len(r.shards) {
			bytes += r.shards[id]
		}
	}
	ks := r.scratch[:0]
	for _, p := range k.Copied {
		ks = append(ks, r.works.kernel(gradientCopy(&r.model.Params[p])))
	}
	r.scratch = ks
	r.kernels(GradCopy, ks)
	if bytes > 0 {
		r.launch(optim.Main, Work{Kind: GradCopy, Memory: 3 * bytes, Count: len(k.Added)}, sched.None, k.Added...)
	}
}

// AllReduceGrads runs over the tensor-parallel group, or over first and last stage.
func (r *recorder) AllReduceGrads(g *optim.GradReduction) {
	w := Work{Kind: EmbeddingAllReduce, Op: OpAllReduce, Bytes: g.Bytes, Count: 1, Group: groups[g.Group], DType: g.DType}
	if g.Flatten {
		w.Memory = 4 * g.Bytes // copied into one tensor and back
	}
	if g.Group == optim.Embedding {
		r.joint(jointEmbedding, w, r.comm(g.Group))
		return
	}
	w.Kind = SequenceParallelAllReduce
	r.launch(optim.Main, w, r.comm(g.Group))
}
