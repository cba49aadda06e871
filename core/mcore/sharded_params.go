package mcore

import (
	"distopt/core/bucket"
	"distopt/core/optim"
	"distopt/core/units"
)

// PendingForward reports whether the pre-forward hook of the module of p would start or wait for
// anything.
func (s *Sharded) PendingForward(p bucket.ParamID) bool {
	if !s.hooks() {
		return false
	}
	st := &s.groups[s.l.Owner(p)]
	return !st.dispatched || st.gather > 0
}

// PreForward is what the pre-forward hook of a module does for p, one of its own parameters: the
// gather of its group ends, and that of the next group begins.
func (s *Sharded) PreForward(p bucket.ParamID) {
	if s.err != nil || !s.hooks() {
		return
	}
	s.finishParamSync(s.l.Owner(p))
}

// ParamSyncFunc is start_param_sync of a model chunk, which the schedule calls where gathers are
// aligned over stages. A chunk that was gathered during the step is left alone.
func (s *Sharded) ParamSyncFunc(chunk int) {
	o := &s.l.Options
	if s.err != nil || chunk < 0 || chunk >= len(s.l.Chunks) || !s.hooks() || !o.AlignParamGather || s.withStep(chunk) {
		return
	}
	s.gatherChunk(chunk, false)
}

// withStep reports whether a chunk is gathered while the others are updated.
func (s *Sharded) withStep(chunk int) bool { return s.l.Options.GatherWithStep && chunk == 0 }

// gatherChunk starts the gathers of all groups of a chunk, dense ones first, each list from its first
// group on: the output side first, though forward needs the last group first.
func (s *Sharded) gatherChunk(chunk int, force bool) {
	c := &s.l.Chunks[chunk]
	for g := c.Groups[0]; g < c.Groups[1]; g++ {
		s.startParamSync(g, force)
		if !s.l.Options.OverlapParamGather {
			s.processGathered(g)
		}
	}
}

// startParamSync launches the gather of a group's buckets as one call, in place; forced, Main waits
// for it at once.
func (s *Sharded) startParamSync(g int, force bool) {
	st, group, o := &s.groups[g], &s.l.Groups[g], &s.l.Options
	s.observeGroup(optim.OpStartParamSync, g)
	async := o.OverlapParamGather && !force
	stream, shards, _ := s.communicators(group.Expert)
	s.rt.Wait(stream, optim.Main)
	c := s.collective(stream, shards, o.GroupSize(group.Expert), optim.NoReduce)
	for _, id := range group.Buckets {
		gather := s.l.Places[id].Gather
		c.Add(id, gather.DType, gather.Elems)
	}
	s.observeCollective(optim.OpAllGather, c, s.l.GroupName(group.Expert), async)
	s.rt.AllGather(c)
	st.dispatched = true
	if async {
		st.gather = s.calls
	} else {
		s.rt.WaitCall(optim.Main, stream, s.calls)
	}
}

// finishParamSync makes sure that a group's parameters are up to date. What nothing has prefetched
// starts only now. After the wait the next group's gather begins, unless the schedule does that.
func (s *Sharded) finishParamSync(g int) {
	st, group := &s.groups[g], &s.l.Groups[g]
	s.observeFinishParams(g)
	if !st.dispatched {
		s.startParamSync(g, false)
	}
	if st.gather == 0 {
		return
	}
	stream, _, _ := s.communicators(group.Expert)
	s.observeWait(st.gather)
	s.rt.WaitCall(optim.Main, stream, st.gather)
	st.gather = 0
	if next := group.Next; next >= 0 && !s.l.Options.AlignParamGather && !s.withStep(group.Chunk) && !s.groups[next].dispatched {
		s.startParamSync(next, false)
	}
	s.processGathered(g)
}

// processGathered brings quantized weights of a gathered group into the form that GEMMs read: FP8
// weights get their column-wise copies; where wide values were gathered in the gradient buffer they
// are quantized, and the buffer is cleared for gradients.
func (s *Sharded) processGathered(g int) {
	u := &s.w.use
	*u = optim.ParamUse{Transposed: s.w.list[:0]}
	copies := optim.Copy{}
	elems := units.Elems(0)
	for _, id := range s.l.Groups[g].Buckets {
		for _, f := range s.l.Buckets[id].Fragments {
			switch q := &s.l.Params[f.Param]; {
			case q.Quant == Plain:
			case q.Quant == MXFP8 && s.l.Options.ReuseGradBuffer:
				copies.Tensors++
				copies.Bytes += units.Bytes(q.Numel)
				elems += q.Numel
			default:
				u.Transposed = append(u.Transposed, f.Param)
			}
		}
	}
	s.w.list = u.Transposed
	if n := len(u.Transposed); n > 0 {
		s.observeKernel(optim.OpPostAllGather, n, 0)
	}
	if copies.Tensors > 0 {
		u.Kernel = copies
		s.observeKernel(optim.OpCopyToQuantized, copies.Tensors, int64(elems))
	}
	if len(u.Transposed)+copies.Tensors > 0 {
		s.rt.UseParams(u)
	}
}
