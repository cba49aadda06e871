package ddp

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// PostBackward is the hook of a parameter whose gradient autograd has accumulated: in the pass that
// synchronizes it is copied into its bucket, divided by the number of ranks, and the last one of a
// bucket starts the all-reduce, unless an earlier bucket still waits.
func (s *Sharded) PostBackward(p bucket.ParamID) {
	if s.err != nil {
		return
	}
	r := int(s.l.owner[p])
	k := &s.reducers[r]
	if s.noSync {
		s.w.oneParam[0] = p
		s.accumulate(s.w.oneParam[:], false, 0)
		return
	}
	s.observeParam(optim.OpGradReady, p)
	if s.ready[p] {
		s.fail("%s: got a second gradient in one pass, want one; use the parameter once, or set static_graph", s.l.Params[p].Name)
		return
	}
	s.ready[p] = true
	first := len(k.arrived) == 0
	k.arrived = append(k.arrived, int(s.l.place[p]))
	if s.counting() {
		if len(k.arrived) == len(s.l.Reducers[r].Params) {
			s.reduceLate(r)
		}
		return
	}
	searched := 0
	if first && s.searches() {
		searched = len(s.l.Reducers[r].Params)
	}
	s.w.oneParam[0] = p
	s.accumulate(s.w.oneParam[:], true, searched)
	s.mark(r, p)
}

// PostBackwardAll is PostBackward for each of params.
func (s *Sharded) PostBackwardAll(params []bucket.ParamID) {
	if s.err == nil && s.noSync {
		s.accumulate(params, false, 0)
		return
	}
	for _, p := range params {
		s.PostBackward(p)
	}
}

// counting reports that this is the first pass of a static graph, in which hooks only count.
func (s *Sharded) counting() bool { return s.l.Options.StaticGraph && !s.warm && s.synced == 0 }

// searches reports that the graph of every pass is searched for what it uses.
func (s *Sharded) searches() bool { return s.l.Options.FindUnused && !s.l.Options.StaticGraph }

// accumulate moves gradients into param.grad, and on into buckets in the pass that synchronizes.
func (s *Sharded) accumulate(params []bucket.ParamID, sync bool, searched int) {
	a := &s.w.accumulation
	*a = optim.Accumulation{Params: params, Paths: s.w.paths[:0], Searched: searched}
	for _, p := range params {
		path := optim.Stolen
		switch {
		case s.has[p] && sync:
			path = optim.InPlaceScaled
		case s.has[p]:
			path = optim.InPlace
		case sync:
			path = optim.StolenScaled
		}
		s.has[p] = true
		a.Paths = append(a.Paths, path)
	}
	s.w.paths = a.Paths
	s.rt.AccumulateGrad(a)
}

// mark counts a gradient, and launches what may now be launched.
func (s *Sharded) mark(r int, p bucket.ParamID) {
	s.pending[s.bucketOf[p]]--
	k, span := &s.reducers[r], s.span(r)
	for k.next < span[1] && s.pending[k.next] == 0 {
		s.reduce(r, k.next)
		k.next++
	}
	if k.next == span[1] {
		if s.searches() {
			s.reduceUsed(r)
		}
		s.finish(r)
	}
}

// reduceLate is the end of a static graph's first pass: everything is copied and reduced at once.
func (s *Sharded) reduceLate(r int) {
	s.reduceUsed(r)
	s.w.list = s.w.list[:0]
	for _, p := range s.l.Reducers[r].Params {
		if s.ready[p] {
			s.w.list = append(s.w.list, p)
		}
	}
	s.accumulate(s.w.list, true, 0)
	span := s.span(r)
	for id := span[0]; id < span[1]; id++ {
		s.pending[id] = 0
		s.reduce(r, id)
	}
	s.reducers[r].next = span[1]
	s.finish(r)
}

// reduce launches the all-reduce of one bucket.
func (s *Sharded) reduce(r, id int) {
	b := &s.buckets()[id]
	c := s.collective(r)
	c.Scale, c.Prescaled = 1/float64(c.Size), true
	c.Add(b.ID, b.DTypes.GradSync, b.Size)
	s.call[id] = s.calls
	s.observeCollective(c, b.DTypes.GradSync)
	s.rt.AllReduceShards(c)
}

// reduceUsed launches the all-reduce of the map of used parameters.
func (s *Sharded) reduceUsed(r int) {
	c := s.collective(r)
	c.Elems = units.Elems(len(s.l.Reducers[r].Params))
	c.Bytes = units.Bytes(c.Elems) * dtype.I32.Size()
	s.reducers[r].used = s.calls
	s.observeCollective(c, dtype.I32)
	s.rt.AllReduceShards(c)
}

// collective begins an all-reduce behind what was computed up to now.
func (s *Sharded) collective(r int) *optim.Collective {
	stream, group := s.communicator(r)
	s.rt.Wait(stream, optim.Main)
	s.calls++
	c := &s.w.collective
	*c = optim.Collective{
		Stream: stream, Group: group, Size: s.l.Options.GroupSize(s.l.Reducers[r].Expert), Op: optim.Sum,
		Members: c.Members[:0], Call: s.calls,
	}
	return c
}

// communicator returns the stream and the process group of a reducer.
func (s *Sharded) communicator(r int) (optim.Stream, optim.Group) {
	if s.l.Reducers[r].Expert {
		return optim.Comm + 1, optim.ExpertRedundant
	}
	return optim.Comm, optim.Redundant
}

// finish is the callback at the end of the backward pass: the compute stream waits for one bucket after
// the other, and gradients are copied back unless they are views.
func (s *Sharded) finish(r int) {
	k, span := &s.reducers[r], s.span(r)
	stream, _ := s.communicator(r)
	list := s.buckets()
	s.observeBuckets(optim.OpFinishGradSync, list[span[0]:span[1]])
	for id := span[0]; id < span[1]; id++ {
		s.observeWait(s.call[id])
		s.rt.WaitCall(optim.Main, stream, s.call[id])
		s.w.oneBucket[0] = list[id].ID
		kept := &s.w.kept
		*kept = optim.Kept{Stored: s.w.oneBucket[:], Copied: kept.Copied[:0]}
		if !s.l.Options.BucketView {
			for _, f := range list[id].Fragments {
				kept.Copied = append(kept.Copied, f.Param)
			}
		}
		s.rt.KeepShards(kept)
	}
	if k.used > 0 {
		s.observeWait(k.used)
		s.rt.WaitCall(optim.Main, stream, k.used)
	}
	k.done = true
}

// AfterBackward is what Megatron's and NeMo's training steps do beside any DistributedDataParallel:
// gradients that other groups hold a part of are added up. A reducer that was not left a gradient of
// everything raises in the next forward pass of the real code, already here in this one; with
// find_unused_parameters or a static graph what did not come is zero on this rank. (The real reducer
// knows that before the pass.)
func (s *Sharded) AfterBackward() {
	for r := range s.reducers {
		k := &s.reducers[r]
		if s.err != nil {
			return
		}
		if k.done {
			continue
		}
		params := s.l.Reducers[r].Params
		if !s.l.Options.FindUnused && !s.l.Options.StaticGraph || len(k.arrived) == 0 {
			s.fail("model chunk %d: got gradients of %d parameters in the last pass, want all %d; use every parameter, or set find_unused_parameters",
				s.l.Reducers[r].Chunk, len(k.arrived), len(params))
			return
		}
		s.markUnused(r)
	}
	if s.err == nil {
		s.reduceSequenceParallel()
		s.reduceTied()
	}
}

// markUnused goes on as if the gradients that did not come had been zero.
func (s *Sharded) markUnused(r int) {
	k := &s.reducers[r]
	for i, p := range s.l.Reducers[r].Params {
		if s.ready[p] {
			continue
		}
		k.arrived = append(k.arrived, i)
		if !s.counting() {
			s.mark(r, p)
		}
	}
	if s.counting() {
		s.reduceLate(r)
	}
}

// reduceSequenceParallel adds up gradients over the tensor-parallel group, flattened into one tensor.
func (s *Sharded) reduceSequenceParallel() {
	r := &s.w.grads
	*r = optim.GradReduction{Group: optim.Tensor, Size: s.c.Tensor, Params: s.w.list[:0], Flatten: true}
	for p := range s.l.Params {
		q := &s.l.Params[p]
		if s.c.Tensor > 1 && q.SequenceParallel {
			r.Params = append(r.Params, bucket.ParamID(p))
			r.DType = q.DType
			r.Elems += q.Numel
			r.Bytes += units.Bytes(q.Numel) * q.DType.Size()
		}
	}
	s.w.list = r.Params
	if len(r.Params) > 0 {
		s.observeGradReduction(r)
		s.rt.AllReduceGrads(r)
	}
}

// reduceTied adds up both copies of a tied embedding's gradient.
func (s *Sharded) reduceTied() {
	if s.tied < 0 {
		return
	}
	q := &s.l.Params[s.tied]
	s.w.oneParam[0] = s.tied
	r := &s.w.grads
	*r = optim.GradReduction{
		Group: optim.Embedding, Size: s.c.EmbeddingSize, Params: s.w.oneParam[:], DType: q.DType,
		Elems: q.Numel, Bytes: units.Bytes(q.Numel) * q.DType.Size(),
	}
	s.observeGradReduction(r)
	s.rt.AllReduceGrads(r)
}
