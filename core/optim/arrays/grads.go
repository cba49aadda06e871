package arrays

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// AddGrad adds what a backward pass computed to a parameter's gradient on a rank, as autograd does:
// rounded to the parameter's format, and so is the sum with a gradient that no bucket has taken
// yet. It comes before the post-backward hook. NaNs become the GPU's.
func (r *Ranks) AddGrad(rank int, p bucket.ParamID, grad []float32) {
	q := &r.c.Params[p]
	if len(grad) != int(q.Numel) {
		r.fail("parameter %d: got a gradient of %d elements, want %d", p, len(grad), q.Numel)
		return
	}
	d := q.DType
	if q.Fused {
		d = dtype.FP32
		if refs := r.refs[p]; len(refs) > 0 {
			d = r.c.Buckets()[refs[0].bucket].DTypes.GradSync
		}
	}
	g := &r.ranks[rank].grads[p]
	if g.values == nil {
		g.values = make([]float32, len(grad))
	}
	if !g.present {
		copy(g.values, grad)
		if !q.Fused {
			d.RoundAll(g.values)
		}
		dtype.CanonicalAll(g.values)
		g.present = true
		return
	}
	for i, x := range grad {
		if !q.Fused {
			x = d.Round(x)
		}
		g.values[i] = dtype.Canonical(d.Round(g.values[i] + x))
	}
}

// ZeroGrad begins a step: gradients are dropped, contiguous buffers cleared, the gradient scale is
// 1 again.
func (r *Ranks) ZeroGrad(*optim.Zero) {
	r.follow()
	for n := range r.ranks {
		k := &r.ranks[n]
		if k.gradViews != nil {
			for _, memory := range k.gradViews.memory {
				memory.Clear()
			}
		}
		for p := range k.grads {
			k.grads[p].present = false
			clear(k.grads[p].private)
		}
		k.nonFinite = false
	}
	r.gradScale, r.gradNorm, r.norm = 1, 0, 0
}

// gradBucket returns the memory of a whole bucket's gradients on a rank.
func (r *Ranks) gradBucket(k *rank, b *bucket.Bucket) Tensor {
	s := &k.shards[b.ID]
	if s.bucket.Len() == held(b) && s.bucket.DType == b.DTypes.GradSync {
		return s.bucket
	}
	if r.c.ContiguousGrads {
		if k.gradViews == nil {
			k.gradViews = newBuffers(r.c.Buckets(), func(d bucket.DTypes) dtype.DType { return d.GradSync })
		}
		t, ok := k.gradViews.bucket(b)
		if ok {
			s.bucket = t
			return t
		}
		r.fail("contiguous_grad_buffer: bucket %d was filled after the buffers were made; place all parameters before", b.ID)
	}
	s.bucket = grown(s.bucket, b.DTypes.GradSync, held(b))
	return s.bucket
}

// AccumulateGrad adds gradients to their buckets: in fp32, rounded to the bucket's format.
func (r *Ranks) AccumulateGrad(a *optim.Accumulation) {
	buckets := r.follow()
	for n := range r.ranks {
		k := &r.ranks[n]
		for _, id := range a.Zeroed {
			r.gradBucket(k, &buckets[id]).Clear()
		}
		for _, p := range a.Params {
			g := &k.grads[p]
			if !g.present {
				r.fail("parameter %d: got no gradient on rank %d, want one before its post-backward hook; call AddGrad", p, n)
				continue
			}
			r.accumulate(k, buckets, p, g.values)
			g.present = false
		}
	}
}

// accumulate adds a whole gradient to the fragments of its parameter, or to its private sum.
func (r *Ranks) accumulate(k *rank, buckets []bucket.Bucket, p bucket.ParamID, grad []float32) {
	if r.c.Params[p].Private {
		g := &k.grads[p]
		if g.private == nil {
			g.private = make([]float32, len(grad))
		}
		for i, x := range grad {
			g.private[i] = dtype.Canonical(g.private[i] + x)
		}
		return
	}
	for _, ref := range r.refs[p] {
		b := &buckets[ref.bucket]
		f := &b.Fragments[ref.fragment]
		part := r.gradBucket(k, b).Slice(int(f.InBucket.Start), int(f.InBucket.End))
		r.add(part, grad[f.InParam.Start:f.InParam.End])
	}
}

// settle rounds private sums into a bucket that is about to be reduced.
func (r *Ranks) settle(b *bucket.Bucket) {
	for i := range b.Fragments {
		f := &b.Fragments[i]
		if !r.c.Params[f.Param].Private || f.Dependency() {
			continue
		}
		for n := range r.ranks {
			k := &r.ranks[n]
			if sum := k.grads[f.Param].private; sum != nil {
				part := r.gradBucket(k, b).Slice(int(f.InBucket.Start), int(f.InBucket.End))
				part.Store(sum[f.InParam.Start:f.InParam.End])
			}
		}
	}
}

// add adds x to t, rounding once.
func (r *Ranks) add(t Tensor, x []float32) {
	for start := 0; start < len(x); start += block {
		end := min(start+block, len(x))
		part := t.Slice(start, end)
		sum := part.values(r.work[0])
		for i, v := range x[start:end] {
			sum[i] = dtype.Canonical(sum[i] + v)
		}
		part.keep(sum)
	}
}

// KeepShards ends grad syncs: shards are stored, added to those of an earlier sync, or zero.
func (r *Ranks) KeepShards(kept *optim.Kept) {
	buckets := r.follow()
	for n := range r.ranks {
		k := &r.ranks[n]
		for _, id := range kept.Stored {
			r.reduced(k, &buckets[id])
			s := &k.shards[id]
			s.Grad, s.sync = s.sync, s.Grad
			s.kept = true
		}
		for _, id := range kept.Added {
			sync := r.reduced(k, &buckets[id])
			for start := 0; start < sync.Len(); start += block {
				end := min(start+block, sync.Len())
				r.add(k.grad(&buckets[id]).Slice(start, end), sync.Slice(start, end).values(r.work[1]))
			}
		}
		for _, id := range kept.Zeroed {
			b, s := &buckets[id], &k.shards[id]
			k.grad(b).Clear()
			s.kept = true
		}
	}
}

// grad returns a rank's reduced gradients of a bucket. Fragments that were placed since they were
// reduced have zeros.
func (k *rank) grad(b *bucket.Bucket) Tensor {
	s := &k.shards[b.ID]
	s.Grad = grown(s.Grad, b.DTypes.GradSync, heldShard(b, k.position))
	return s.Grad
}

// syncShard returns the memory for a reduced shard.
func (k *rank) syncShard(b *bucket.Bucket) Tensor {
	s := &k.shards[b.ID]
	s.sync = grown(s.sync, b.DTypes.GradSync, heldShard(b, k.position))
	return s.sync
}

// reduced returns a shard that was reduced; on a single rank maybe nothing was, and it is the bucket.
func (r *Ranks) reduced(k *rank, b *bucket.Bucket) Tensor {
	sync := k.syncShard(b)
	s := &k.shards[b.ID]
	if r.c.Distributed == 1 && r.c.Redundant == 1 && !s.scattered {
		sync.copyBits(r.gradBucket(k, b))
	}
	s.scattered = false
	return sync
}
