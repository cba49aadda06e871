package ddp

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// stepLists are what every update is about.
type stepLists struct {
	buckets  []bucket.ID
	launches []optim.AdamLaunch
	norm     []bucket.ParamID   // that count in the norm, in registration order
	kernels  []optim.NormKernel // of all gradients
	grads    optim.Copy         // all of them
	toFP32   optim.Copy         // 16-bit ones, for main parameters
	back     optim.Copy         // main parameters to 16-bit ones
}

// listUpdates lists the work of an update: that of all parameters, on every rank.
func (s *Sharded) listUpdates() {
	t := &s.step
	*t = stepLists{}
	for id := range s.buckets() {
		t.buckets = append(t.buckets, bucket.ID(id))
	}
	for p := range s.l.Params {
		q := &s.l.Params[p]
		n := units.Bytes(q.Numel)
		t.grads.Tensors++
		t.grads.Bytes += n * q.DType.Size()
		at := slices.IndexFunc(t.kernels, func(k optim.NormKernel) bool { return k.DType == q.DType })
		if at < 0 {
			at = len(t.kernels)
			t.kernels = append(t.kernels, optim.NormKernel{DType: q.DType})
		}
		t.kernels[at].Tensors++
		t.kernels[at].Elems += q.Numel
		// Second copies do not count: a tied embedding's, and what other tensor-parallel ranks hold too.
		if !q.Shared && (q.TensorParallel || q.Expert || s.c.TensorRank == 0) {
			t.norm = append(t.norm, bucket.ParamID(p))
		}
		state := s.l.Options.State
		operands := []dtype.DType{q.DType, state, state, q.DType}
		if s.l.main(q.DType) {
			operands = []dtype.DType{dtype.FP32, dtype.FP32, dtype.FP32, dtype.FP32}
			t.toFP32.Tensors++
			t.toFP32.Bytes += n * dtype.FP32.Size()
			t.back.Tensors++
			t.back.Bytes += n * q.DType.Size()
		}
		group := 0
		if !s.l.Options.NormDecay && (len(q.Shape) < 2 || q.Bias) {
			group = 1
		}
		s.addLaunch(group, operands, q.Numel)
	}
}

// addLaunch adds a parameter to the kernels of its parameter group and formats.
func (s *Sharded) addLaunch(group int, operands []dtype.DType, n units.Elems) {
	t := &s.step
	at := slices.IndexFunc(t.launches, func(l optim.AdamLaunch) bool {
		return l.Group == group && slices.Equal(l.Operands, operands)
	})
	if at < 0 {
		at = len(t.launches)
		t.launches = append(t.launches, optim.AdamLaunch{Group: group, Operands: operands, Foreach: s.l.Options.Foreach})
	}
	t.launches[at].Tensors++
	t.launches[at].Elems += n
}

// ClipGradNorm is clip_grad_norm_: every rank has all gradients, so nothing is communicated but over
// the ranks that hold other parts of the model. With loss scaling gradients are unscaled before, which
// finds infinite ones; the host looks at that here, a little before the real step does.
func (s *Sharded) ClipGradNorm() {
	s.finite = true
	if s.err != nil || !(s.c.MaxNorm > 0) && !s.c.GradScaler {
		return
	}
	n := &s.w.norm
	*n = optim.Norm{Params: s.step.norm, Kernels: s.step.kernels}
	s.observe(optim.OpGradNorm)
	s.rt.LocalNorm(n)
	r := &s.w.reduction
	*r = optim.Reduction{
		Group: optim.Pipeline, Size: s.c.Tensor * s.c.Pipeline, Op: optim.Sum, DType: dtype.FP32,
		Elems: 1, Bytes: dtype.FP32.Size(), Divide: 1,
	}
	s.observeReduction(r)
	s.rt.AllReduceNorm(r)
	if s.c.GradScaler {
		s.finite = s.rt.CheckFinite()
	}
	if s.c.MaxNorm > 0 {
		s.rt.Clip(s.c.MaxNorm)
	}
}

// Step updates all parameters on this rank. Nothing is gathered: every rank has computed the same.
func (s *Sharded) Step() {
	if s.err != nil {
		return
	}
	s.observe(optim.OpStepBegin)
	if s.finite {
		s.steps++
		t := &s.step
		u := &s.w.update
		*u = optim.Update{Step: s.steps, Buckets: t.buckets, Launches: t.launches, GradCopies: t.toFP32}
		if s.c.MaxNorm > 0 {
			u.Clipped = t.grads
		}
		for i := range t.launches {
			s.observeAdam(&t.launches[i])
		}
		s.rt.Adam(u)
		if t.back.Tensors > 0 {
			c := &s.w.cast
			*c = optim.Cast{Buckets: t.buckets, Copies: t.back}
			s.observeCopy(t.back)
			s.rt.Cast(c)
		}
	}
	s.observe(optim.OpStepEnd)
}
