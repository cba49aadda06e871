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
		if a.Paths[i] != optim.Fused {
			alone = r.add(alone, p, r.addOf[p])
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
		ks = append(ks, r.works.kernel(model.Kernel{
			Name: "squared norm", Kind: model.MultiTensor, Multi: hw.SquaredNorm, DType: k.DType,
			Tensors: k.Tensors, PerLaunch: perLaunch(1), Elems: k.Elems, Bytes: units.Bytes(k.Elems) * k.DType.Size(),
		}))
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
	ks := r.appendCopies(r.scratch[:0], "unscale states", a.Unpack, 0)
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
		ks = append(ks, r.works.kernel(model.Kernel{
			Name: "Adam", Kind: model.MultiTensor, Multi: hw.AdamUpdate, DType: l.Operands[last],
			Tensors: l.Tensors, PerLaunch: perLaunch(len(l.Operands)), Elems: l.Elems, Bytes: units.Bytes(l.Elems) * each,
		}))
	}
	r.scratch = ks
	r.kernels(Adam, ks, a.Buckets...)
}

// Cast launches a kernel for every FP8 fragment of this rank, and multi-tensor copies.
func (r *recorder) Cast(c *optim.Cast) {
	ks := r.scratch[:0]
	for i := range c.FP8 {
		ks = append(ks, r.works.kernel(model.Kernel{
			Name: "FP8 cast", Kind: model.MemoryBound, Pattern: hw.CastFP8, DType: dtype.U8,
			Bytes: units.Bytes(c.FP8[i].Elems) * (dtype.FP32.Size() + dtype.U8.Size()),
		}))
	}
	ks = r.appendCopies(ks, "convert", c.Copies, 0)
	ks = r.appendCopies(ks, "rescale states", c.Pack, 0)
	r.scratch = ks
	r.kernels(Cast, ks, c.Buckets...)
}

// appendCopies appends a multi-tensor copy of elems elements, which reads about as much as it writes.
// Elements that are not counted (0) are taken for 16-bit ones.
func (r *recorder) appendCopies(ks []kernelID, name string, c optim.Copy, elems units.Elems) []kernelID {
	if c.Tensors == 0 {
		return ks
	}
	if elems == 0 {
		elems = units.Elems(c.Bytes / dtype.BF16.Size())
	}
	return append(ks, r.works.kernel(model.Kernel{
		Name: name, Kind: model.MultiTensor, Multi: hw.ConvertCopy,
		Tensors: c.Tensors, PerLaunch: perLaunch(2), Elems: elems, Bytes: 2 * c.Bytes,
	}))
}

// perLaunch returns how many tensors one launch of a multi-tensor kernel over n lists takes at most
// (depth_to_max_tensors of Apex's multi_tensor_apply.cuh).
func perLaunch(lists int) int { return [...]int{110, 64, 48, 36, 30, 24}[min(lists, 6)-1] }

// UpdateScaleInv packs all scales, inverts them and unpacks them.
func (r *recorder) UpdateScaleInv(n *optim.Reduction) {
	r.scratch = append(r.scratch[:0], r.works.kernel(packing("scale inverses", n)))
	r.kernels(Cast, r.scratch)
}

// AllReduceAmax queues behind the gathers of its communicator. Amaxes are packed before it and
// unpacked after it.
func (r *recorder) AllReduceAmax(n *optim.Reduction) {
	r.scratch = append(r.scratch[:0], r.works.kernel(packing("amaxes", n)))
	if n.Size == 1 {
		r.kernels(Cast, r.scratch)
		return
	}
	r.flush()
	r.emit(mainStream, AmaxAllReduce, r.works.intern(small(AmaxAllReduce, n), r.scratch...), r.comm(n.Group))
}

// packing is two copies between one small tensor and its elements, which are tensors of their own.
func packing(name string, n *optim.Reduction) model.Kernel {
	return model.Kernel{
		Name: name, Kind: model.MultiTensor, Multi: hw.ConvertCopy, DType: n.DType,
		Tensors: int(n.Elems), PerLaunch: perLaunch(2), Elems: n.Elems, Bytes: 2 * n.Bytes, Repeat: 2,
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
	elems := units.Elems(0)
	for i := range u.Copies {
		elems += units.Elems(u.Copies[i].N)
	}
	r.copies = r.appendCopies(r.copies, "copy parameters", u.Kernel, elems)
	for _, p := range u.Transposed {
		n := r.model.Params[p].Numel
		r.copies = append(r.copies, r.works.kernel(model.Kernel{
			Name: "FP8 transpose", Kind: model.MemoryBound, Pattern: hw.TransposeFP8, DType: dtype.U8, Bytes: 2 * units.Bytes(n),
		}))
	}
}

// flushCopies makes a task of the copies that are not one yet.
func (r *recorder) flushCopies() {
	if len(r.copies) > 0 {
		r.emit(mainStream, ParamCopy, r.works.intern(Work{Kind: ParamCopy}, r.copies...), sched.None)
		r.copies = r.copies[:0]
	}
}
