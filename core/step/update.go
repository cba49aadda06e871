package step

import (
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/sched"
	"distopt/core/units"
)

// The effects of clipping, of the optimizer's step and of parameters that are used again.

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
	case r.stages > 1 && (n.Group == optim.World || n.Group == optim.Instance || n.Group == optim.Pipeline):
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
	ks = r.appendCopies(ks, "clip gradients", a.Clipped, 0)
	ks = r.appendCopies(ks, "copy gradients", a.GradCopies, units.Elems(a.GradCopies.Bytes/dtype.FP32.Size()))
	for i := range a.Launches {
		l := &a.Launches[i]
		each := units.Bytes(0) // of one element
		last := len(l.Operands) - 1
		gradient := last - 1
		if len(l.Operands) == 4 { // p, m, v, g: what is gathered is converted by a Cast
			gradient = last
		}
		for j, d := range l.Operands {
			// The gradient is read and the gathered value written; with remainders the upper
			// half of the parameter is only read. All else is read and written.
			if n := d.Size(); j >= gradient || j == 0 && l.Remainders {
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
