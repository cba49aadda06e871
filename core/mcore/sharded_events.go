package mcore

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// scratch holds descriptions that are used again, so that effects allocate nothing in steady state.
type scratch struct {
	oneBucket [1]bucket.ID
	oneParam  [1]bucket.ParamID
	list      []bucket.ParamID
	normed    []bucket.ParamID
	paths     []optim.GradPath

	collective   optim.Collective
	accumulation optim.Accumulation
	kept         optim.Kept
	grads        optim.GradReduction
	scaling      optim.GradScaling
	use          optim.ParamUse
	norm         optim.Norm
	kernels      [1]optim.NormKernel
	reduction    optim.Reduction
	update       optim.Update
	cast         optim.Cast
	event        optim.Event
}

// event returns a blank event to fill in, or nil if nobody looks.
func (s *Sharded) event(op optim.Op) *optim.Event {
	if s.obs == nil {
		return nil
	}
	return s.w.event.About(op)
}

func (s *Sharded) observe(op optim.Op) {
	if e := s.event(op); e != nil {
		s.obs.Event(e)
	}
}

func (s *Sharded) observeParam(op optim.Op, p bucket.ParamID) {
	if e := s.event(op); e != nil {
		e.Param = p
		s.obs.Event(e)
	}
}

func (s *Sharded) observeGroup(op optim.Op, g int) { s.observeStart(op, g, false) }

func (s *Sharded) observeStart(op optim.Op, g int, noop bool) {
	if e := s.event(op); e != nil {
		e.BucketGroup = g
		e.NoOp = noop
		s.obs.Event(e)
	}
}

func (s *Sharded) observeFinishParams(g int) {
	if e := s.event(optim.OpFinishParamSync); e != nil {
		e.BucketGroup = g
		e.Pending, e.Dispatched = s.groups[g].gather > 0, s.groups[g].dispatched
		s.obs.Event(e)
	}
}

func (s *Sharded) observeWait(call int) {
	if e := s.event(optim.OpWait); e != nil {
		e.Coalesced = call
		s.obs.Event(e)
	}
}

// observeCollective reports the members of a coalesced call, each an event of its own.
func (s *Sharded) observeCollective(op optim.Op, c *optim.Collective, group string, async bool) {
	if s.obs == nil {
		return
	}
	for _, m := range c.Members {
		e := s.event(op)
		s.w.oneBucket[0] = m.Bucket
		e.Buckets = s.w.oneBucket[:]
		e.Coalesced, e.Async = c.Call, async
		e.N, e.Bytes, e.DTypes = int64(m.Elems), int64(units.Bytes(m.Elems)*m.DType.Size()), []string{m.DType.String()}
		e.Group, e.GroupSize = group, c.Size
		if op != optim.OpAllToAll {
			e.Reduce = c.Op.String()
		}
		s.obs.Event(e)
	}
}

// observeReduction reports a small collective that is waited for at once.
func (s *Sharded) observeReduction(op optim.Op, r *optim.Reduction, group string) {
	if e := s.event(op); e != nil {
		e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), []string{r.DType.String()}
		e.Group, e.GroupSize, e.Reduce = group, r.Size, r.Op.String()
		s.obs.Event(e)
	}
}

// observeTied reports the all-reduce of a tied embedding, which works on its part of a bucket.
func (s *Sharded) observeTied(r *optim.GradReduction, id bucket.ID) {
	if e := s.event(optim.OpAllReduce); e != nil {
		s.w.oneBucket[0] = id
		e.Buckets = s.w.oneBucket[:]
		s.gradReduction(e, r, "embd")
	}
}

func (s *Sharded) observeSequenceParallel(r *optim.GradReduction) {
	if e := s.event(optim.OpAllReduce); e != nil {
		s.gradReduction(e, r, "tp")
	}
}

func (s *Sharded) gradReduction(e *optim.Event, r *optim.GradReduction, group string) {
	e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), []string{r.DType.String()}
	e.Group, e.GroupSize, e.Reduce = group, r.Size, optim.Sum.String()
	s.obs.Event(e)
}

// observeKernel reports work on some tensors.
func (s *Sharded) observeKernel(op optim.Op, tensors int, elems int64) {
	if e := s.event(op); e != nil {
		e.Tensors, e.N = tensors, elems
		s.obs.Event(e)
	}
}

func (s *Sharded) observeAdam(optimizer, tensors int, elems units.Elems) {
	if e := s.event(optim.OpAdam); e != nil {
		e.Optimizer, e.Tensors, e.N = optimizer, tensors, int64(elems)
		s.obs.Event(e)
	}
}

// scalar is a reduction of one value.
func (s *Sharded) scalar(group optim.Group, size int, op optim.ReduceOp, d dtype.DType) *optim.Reduction {
	r := &s.w.reduction
	*r = optim.Reduction{Group: group, Size: size, Op: op, DType: d, Elems: 1, Bytes: d.Size(), Divide: 1}
	return r
}
