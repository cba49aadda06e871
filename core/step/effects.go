package step

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
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
func (r *recorder) kernels(kind Kind, kernels []model.Kernel, ids ...bucket.ID) {
	if len(kernels) > 0 {
		r.launch(optim.Main, Work{Kind: kind, Kernels: kernels}, sched.None, ids...)
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
	inPass := r.back && (r.accumulating || r.open.last > r.open.first)
	alone := r.scratch[:0]
	add := func(p bucket.ParamID, k model.Kernel) {
		switch {
		case !inPass:
			alone = append(alone, k)
		case r.accumulating:
			m := r.model.Params[p].Module
			r.perModule[m] = append(r.perModule[m], k)
		default:
			r.adds = append(r.adds, k)
		}
	}
	for i, p := range a.Params {
		if a.Paths[i] == optim.Fused {
			continue
		}
		// In place, autograd adds; otherwise the hook does. Either way one kernel reads the
		// gradient and the sum and writes the sum.
		q := &r.model.Params[p]
		sum := r.cfg.GradSync
		if q.FP32Grads {
			sum = dtype.FP32
		}
		add(p, model.Kernel{
			Name: "gradient add", Kind: model.MemoryBound, DType: sum, Elems: q.Numel,
			Bytes: units.Bytes(q.Numel) * (q.DType.Size() + 2*sum.Size()),
		})
	}
	if a.ZeroedBytes > 0 && len(a.Params) > 0 {
		add(a.Params[0], model.Kernel{Name: "zero gradients", Kind: model.MemoryBound, Bytes: a.ZeroedBytes})
	}
	r.scratch = alone
	r.kernels(GradCopy, alone)
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

// AllReduceShards is one coalesced group.
func (r *recorder) AllReduceShards(c *optim.Collective) {
	r.collective(ShardAllReduce, OpAllReduce, c)
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
	ids := r.ids[:0]
	for _, m := range c.Members {
		ids = append(ids, m.Bucket)
	}
	r.ids = ids
	r.launch(c.Stream, w, r.comm(c.Group), ids...)
}

// KeepShards adds shards to those of an earlier sync; storing one moves nothing.
func (r *recorder) KeepShards(k *optim.Kept) {
	var bytes units.Bytes
	for _, id := range k.Added {
		if int(id) < len(r.shards) {
			bytes += r.shards[id]
		}
	}
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

// LocalNorm reads the local gradient shards.
func (r *recorder) LocalNorm(n *optim.Norm) {
	ks := r.scratch[:0]
	for _, k := range n.Kernels {
		ks = append(ks, model.Kernel{
			Name: "squared norm", Kind: model.MultiTensor, DType: k.DType, Tensors: k.Tensors, Elems: k.Elems,
			Bytes: units.Bytes(k.Elems) * k.DType.Size(),
		})
	}
	r.scratch = ks
	r.kernels(GradNorm, ks)
}

// AllReduceNorm runs over the distributed group, or over the whole job, all stages included.
func (r *recorder) AllReduceNorm(n *optim.Reduction) {
	w := small(NormAllReduce, n)
	switch {
	case n.Group == optim.World && r.stages > 1:
		r.joint(jointWorld, w, r.comm(n.Group))
	case n.Size > 1:
		r.launch(optim.Main, w, r.comm(n.Group))
	}
}

func small(kind Kind, n *optim.Reduction) Work {
	return Work{Kind: kind, Op: OpAllReduce, Bytes: n.Bytes, Count: 1, Group: groups[n.Group], DType: n.DType}
}

// Clip costs nothing worth a task.
func (r *recorder) Clip(float64) {}

// CheckFinite makes the host wait for the norm.
func (r *recorder) CheckFinite() bool {
	r.flush()
	if t := r.streams[mainStream].tail; t != sched.None {
		r.host(t)
	}
	return true
}

// Adam launches its multi-tensor kernels.
func (r *recorder) Adam(a *optim.Update) {
	ks := r.copy(r.scratch[:0], "unscale states", a.Unpack)
	for i := range a.Launches {
		l := &a.Launches[i]
		each := units.Bytes(0) // of one element
		last := len(l.Operands) - 1
		for j, d := range l.Operands {
			// The gradient is read and the gathered value written; with remainders the upper
			// half of the parameter is only read. All else is read and written.
			if n := d.Size(); j >= last-1 || j == 0 && l.Remainders {
				each += n
			} else {
				each += 2 * n
			}
		}
		ks = append(ks, model.Kernel{
			Name: "Adam", Kind: model.MultiTensor, DType: l.Operands[last], Tensors: l.Tensors, Elems: l.Elems,
			Bytes: units.Bytes(l.Elems) * each,
		})
	}
	r.scratch = ks
	r.kernels(Adam, ks, a.Buckets...)
}

// Cast launches a kernel for every FP8 fragment of this rank, and multi-tensor copies.
func (r *recorder) Cast(c *optim.Cast) {
	ks := r.scratch[:0]
	for i := range c.FP8 {
		ks = append(ks, model.Kernel{
			Name: "FP8 cast", Kind: model.MemoryBound, DType: dtype.U8, Elems: c.FP8[i].Elems,
			Bytes: units.Bytes(c.FP8[i].Elems) * (dtype.FP32.Size() + dtype.U8.Size()),
		})
	}
	ks = r.copy(ks, "convert", c.Copies)
	ks = r.copy(ks, "rescale states", c.Pack)
	r.scratch = ks
	r.kernels(Cast, ks, c.Buckets...)
}

// copy appends a multi-tensor copy, which reads about as much as it writes.
func (r *recorder) copy(ks []model.Kernel, name string, c optim.Copy) []model.Kernel {
	if c.Tensors == 0 {
		return ks
	}
	return append(ks, model.Kernel{Name: name, Kind: model.MultiTensor, Tensors: c.Tensors, Bytes: 2 * c.Bytes})
}

// UpdateScaleInv is one small kernel per FP8 parameter.
func (r *recorder) UpdateScaleInv(n *optim.Reduction) {
	r.kernels(Cast, append(r.scratch[:0], model.Kernel{
		Name: "scale inverse", Kind: model.MultiTensor, DType: n.DType, Tensors: int(n.Elems), Elems: n.Elems, Bytes: 2 * n.Bytes,
	}))
}

// AllReduceAmax queues behind the gathers of its communicator.
func (r *recorder) AllReduceAmax(n *optim.Reduction) {
	if n.Size > 1 {
		r.launch(optim.Main, small(AmaxAllReduce, n), r.comm(n.Group))
	}
}

// UseParams copies parameters and rebuilds transposes. Consecutive copies become one task.
func (r *recorder) UseParams(u *optim.ParamUse) {
	if u.Kernel.Tensors == 0 && len(u.Transposed) == 0 {
		return
	}
	if r.open.last > r.open.first {
		r.flush()
	}
	r.copies = r.copy(r.copies, "copy parameters", u.Kernel)
	for _, p := range u.Transposed {
		n := r.model.Params[p].Numel
		r.copies = append(r.copies, model.Kernel{
			Name: "FP8 transpose", Kind: model.MemoryBound, DType: dtype.U8, Elems: n, Bytes: 2 * units.Bytes(n),
		})
	}
}

// flushCopies makes a task of the copies that are not one yet.
func (r *recorder) flushCopies() {
	if len(r.copies) > 0 {
		r.emit(mainStream, ParamCopy, r.works.intern(Work{Kind: ParamCopy, Kernels: r.copies}), sched.None)
		r.copies = r.copies[:0]
	}
}
