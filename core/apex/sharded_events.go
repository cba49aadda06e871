package apex

import (
	"distopt/core/bucket"
	"distopt/core/optim"
)

// event returns a blank event to fill in, or nil if nobody looks. There is one, used again by the
// next event.
func (s *Sharded) event(op optim.Op) *optim.Event {
	if s.obs == nil {
		return nil
	}
	return s.w.event.About(op)
}

// observe reports an event without fields.
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

func (s *Sharded) observeBuckets(op optim.Op, ids []bucket.ID) {
	if e := s.event(op); e != nil {
		e.Buckets = ids
		s.obs.Event(e)
	}
}

func (s *Sharded) observeChunk(op optim.Op, chunk int) {
	if e := s.event(op); e != nil {
		e.Chunk = chunk
		s.obs.Event(e)
	}
}

func (s *Sharded) observeElems(op optim.Op, n int64) {
	if e := s.event(op); e != nil {
		e.N = n
		s.obs.Event(e)
	}
}

// observeCopy reports a multi-tensor copy; without tensors there is none.
func (s *Sharded) observeCopy(c optim.Copy) {
	if c.Tensors == 0 {
		return
	}
	if e := s.event(optim.OpCopy); e != nil {
		e.Tensors, e.Bytes = c.Tensors, int64(c.Bytes)
		s.obs.Event(e)
	}
}

// observeCollective reports the members of a coalesced group, each an event of its own.
func (s *Sharded) observeCollective(op optim.Op, c *optim.Collective) {
	if s.obs == nil {
		return
	}
	for _, m := range c.Members {
		e := s.event(op)
		e.Buckets = append(s.w.one[:0], m.Bucket)
		e.Coalesced = s.coalesced
		e.N, e.Bytes, e.DTypes = int64(m.Elems), int64(bytesOf(m.Elems, m.DType)), []string{m.DType.String()}
		e.Group, e.GroupSize, e.Reduce = c.Group.String(), c.Size, c.Op.String()
		s.obs.Event(e)
	}
}

// observeReduction reports a small all-reduce.
func (s *Sharded) observeReduction(r *optim.Reduction) {
	if e := s.event(optim.OpAllReduce); e != nil {
		e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), []string{r.DType.String()}
		e.Group, e.GroupSize, e.Reduce = r.Group.String(), r.Size, r.Op.String()
		s.obs.Event(e)
	}
}

// observeSetup reports what constructor and setup communicate: plain Apex broadcasts every
// parameter from the first rank, NeMo adds up the copies of tied weights.
func (s *Sharded) observeSetup() {
	if s.obs == nil {
		return
	}
	if s.l.Options.NeMo {
		if p := s.tied(); p >= 0 {
			q := &s.l.Params[p]
			s.observeGradReduction(&optim.GradReduction{
				Group: optim.Embedding, Size: s.c.EmbeddingSize, DType: q.DType,
				Elems: q.Numel, Bytes: bytesOf(q.Numel, q.DType),
			}, p)
		}
		return
	}
	s.coalesced++
	for _, p := range s.order {
		q := &s.l.Params[p]
		e := s.event(optim.OpBroadcast)
		e.Param, e.Coalesced = p, s.coalesced
		e.N, e.Bytes = int64(q.Numel), int64(bytesOf(q.Numel, q.DType))
		s.obs.Event(e)
	}
}

// observeGradReduction reports an all-reduce of gradients; p is -1 for a flattened group.
func (s *Sharded) observeGradReduction(r *optim.GradReduction, p bucket.ParamID) {
	if e := s.event(optim.OpAllReduce); e != nil {
		e.Param = p
		e.N, e.Bytes, e.DTypes = int64(r.Elems), int64(r.Bytes), []string{r.DType.String()}
		e.Group, e.GroupSize, e.Reduce = r.Group.String(), r.Size, optim.Sum.String()
		s.obs.Event(e)
	}
}
