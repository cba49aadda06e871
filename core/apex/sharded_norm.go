package apex

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// ClipGradNorm computes the norm of the reduced gradients and clips by it. NeMo leaves out shared
// parameters and, but on the first tensor-parallel rank, replicated ones.
func (s *Sharded) ClipGradNorm() {
	if s.err != nil || !(s.c.MaxNorm > 0) {
		return
	}
	if s.l.Options.NeMo {
		s.gradNorm(s.normParams())
	} else {
		s.gradNorm(nil)
	}
	s.rt.Clip(s.c.MaxNorm)
}

// normParams returns the parameters that count in NeMo's norm, in optimizer order; nil if all do.
func (s *Sharded) normParams() []bucket.ParamID {
	counts := func(p bucket.ParamID) bool {
		q := &s.l.Params[p]
		return !q.Shared && (q.TensorParallel || s.c.TensorRank == 0)
	}
	all := true
	for _, p := range s.order {
		all = all && counts(p)
	}
	if all {
		return nil
	}
	list := s.w.normParams[:0]
	for _, p := range s.order {
		if counts(p) {
			list = append(list, p)
		}
	}
	s.w.normParams = list
	return list
}

// gradNorm makes sure that the norm is known: it is kept until gradients are synchronized again.
// NeMo's method ends in Apex's, which finds the norm cached.
func (s *Sharded) gradNorm(params []bucket.ParamID) {
	o := &s.l.Options
	s.observe(optim.OpGradNorm)
	if !s.normCached {
		s.localNorm(params)
		r := &s.w.reduction
		*r = optim.Reduction{Group: optim.Distributed, Size: o.Distributed, Op: optim.Sum, DType: dtype.FP32, Elems: 1, Divide: 1}
		if !o.NewApex {
			r.DType = o.State
		}
		if o.NeMo {
			r.Group, r.Size = optim.World, s.c.World
			r.Divide = max(o.Redundant, 1)
		}
		r.Bytes = r.DType.Size()
		s.observeReduction(r)
		s.rt.AllReduceNorm(r)
		s.normCached = true
	}
	if o.NeMo {
		s.observe(optim.OpGradNorm)
	}
}

// localNorm synchronizes what is left and measures this rank's shards: whole ones, padding and
// all, unless only some parameters count; one kernel for each gradient dtype.
func (s *Sharded) localNorm(params []bucket.ParamID) {
	s.gradSync()
	n := &s.w.norm
	*n = optim.Norm{Params: params, Kernels: s.w.norms[:0]}
	if params == nil {
		n.Buckets = s.table
		for _, id := range s.table {
			b := &s.l.Buckets[id]
			addNorm(n, b.DTypes.GradSync, b.Shard)
		}
	} else {
		for _, p := range params {
			for _, ref := range s.l.Fragments[p] {
				if r, ok := s.l.Local(ref, s.c.Rank); ok {
					addNorm(n, s.l.Buckets[ref.Bucket].DTypes.GradSync, r.Shard.Len())
				}
			}
		}
	}
	s.w.norms = n.Kernels
	for _, k := range n.Kernels {
		if e := s.event(optim.OpL2Norm); e != nil {
			e.Tensors, e.N, e.DTypes = k.Tensors, int64(k.Elems), []string{k.DType.String()}
			s.obs.Event(e)
		}
	}
	s.rt.LocalNorm(n)
}

// addNorm adds one tensor to the kernel of its dtype.
func addNorm(n *optim.Norm, d dtype.DType, elems units.Elems) {
	for i := range n.Kernels {
		if n.Kernels[i].DType == d {
			n.Kernels[i].Tensors++
			n.Kernels[i].Elems += elems
			return
		}
	}
	n.Kernels = append(n.Kernels, optim.NormKernel{DType: d, Tensors: 1, Elems: elems})
}
