package ddp

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// scratch holds descriptions that are used again, so that effects allocate nothing in steady state.
type scratch struct {
	oneBucket [1]bucket.ID
	oneParam  [1]bucket.ParamID
	list      []bucket.ParamID
	paths     []optim.GradPath
	ids       []bucket.ID
	dtypes    [1]string

	zero         optim.Zero
	collective   optim.Collective
	accumulation optim.Accumulation
	kept         optim.Kept
	grads        optim.GradReduction
	norm         optim.Norm
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

func (s *Sharded) observeBuckets(op optim.Op, list []bucket.Bucket) {
	if e := s.event(op); e != nil {
		s.w.ids = s.w.ids[:0]
		for i := range list {
			s.w.ids = append(s.w.ids, list[i].ID)
		}
		e.Buckets = s.w.ids
		s.obs.Event(e)
	}
}

func (s *Sharded) observeWait(call int) {
	if e := s.event(optim.OpWait); e != nil {
		e.Coalesced = call
		s.obs.Event(e)
	}
}

// observeCollective reports an all-reduce of one bucket, or of the map of used parameters.
func (s *Sharded) observeCollective(c *optim.Collective, d dtype.DType) {
	e := s.event(optim.OpAllReduce)
	if e == nil {
		return
	}
	if len(c.Members) > 0 {
		s.w.oneBucket[0] = c.Members[0].Bucket
		e.Buckets = s.w.oneBucket[:]
	}
	s.w.dtypes[0] = d.String()
	e.Coalesced, e.Async = c.Call, true
	e.N, e.Bytes, e.DTypes = int64(c.Elems), int64(c.Bytes), s.w.dtypes[:]
	e.Group, e.GroupSize, e.Reduce = c.Group.String(), c.Size, c.Op.String()
	s.obs.Event(e)
}

// observeReduction reports the all-reduce of a norm, where there is one.
func (s *Sharded) observeReduction(r *optim.Reduction) {
	if r.Size == 1 {
		return
	}
	if e := s.event(optim.OpAllReduce); e != nil {
		s.w.dtypes[0] = r.DType.String()
		e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), s.w.dtypes[:]
		e.Group, e.GroupSize, e.Reduce = r.Group.String(), r.Size, r.Op.String()
		s.obs.Event(e)
	}
}

func (s *Sharded) observeGradReduction(r *optim.GradReduction) {
	if e := s.event(optim.OpAllReduce); e != nil {
		if !r.Flatten {
			e.Param = r.Params[0]
		}
		s.w.dtypes[0] = r.DType.String()
		e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), s.w.dtypes[:]
		e.Group, e.GroupSize, e.Reduce = r.Group.String(), r.Size, optim.Sum.String()
		s.obs.Event(e)
	}
}

func (s *Sharded) observeAdam(l *optim.AdamLaunch) {
	if e := s.event(optim.OpAdam); e != nil {
		e.Kind, e.Tensors, e.N = "fused", l.Tensors, int64(l.Elems)
		if l.Foreach {
			e.Kind = "foreach"
		}
		for _, d := range l.Operands {
			e.DTypes = append(e.DTypes, d.String())
		}
		s.obs.Event(e)
	}
}

func (s *Sharded) observeCopy(c optim.Copy) {
	if e := s.event(optim.OpCopy); e != nil {
		e.Tensors, e.Bytes = c.Tensors, int64(c.Bytes)
		s.obs.Event(e)
	}
}
