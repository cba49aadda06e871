package mcore

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

// fusedGrad reports whether the weight gradient GEMM adds the gradient to main_grad.
func (p *Param) fusedGrad() bool {
	return len(p.Shape) == 2 && p.Role != model.WordEmbedding && p.Role != model.PositionEmbedding
}

// PostBackward is the hook of a parameter whose gradient autograd has accumulated: it is added to
// main_grad and, in the last microbatch, registered.
func (s *Sharded) PostBackward(p bucket.ParamID) {
	if s.err != nil {
		return
	}
	s.w.oneParam[0] = p
	s.accumulate(s.w.oneParam[:])
	if s.QuietBackward() {
		return
	}
	s.observeParam(optim.OpGradReady, p)
	g := s.l.Owner(p)
	st := &s.groups[g]
	if s.ready[p] == 0 {
		st.registered++
	}
	before := s.ready[p] == s.golden[p]
	s.ready[p]++
	if st.firstBatch {
		return
	}
	switch after := s.ready[p] == s.golden[p]; {
	case before && !after:
		st.unequal++
	case after && !before:
		st.unequal--
	}
	if st.unequal == 0 {
		s.startGradSync(g)
	}
}

// PostBackwardAll is PostBackward for each of params.
func (s *Sharded) PostBackwardAll(params []bucket.ParamID) {
	if s.err == nil && s.QuietBackward() {
		s.accumulate(params)
		return
	}
	for _, p := range params {
		s.PostBackward(p)
	}
}

// QuietBackward reports that hooks register nothing at present.
func (s *Sharded) QuietBackward() bool { return s.noSync || !s.l.Options.OverlapGradReduce }

func (s *Sharded) accumulate(params []bucket.ParamID) {
	a := &s.w.accumulation
	*a = optim.Accumulation{Params: params, Paths: s.w.paths[:0]}
	for _, p := range params {
		path := optim.Added
		if s.fused[p] {
			path = optim.Fused
		}
		a.Paths = append(a.Paths, path)
	}
	s.w.paths = a.Paths
	s.rt.AccumulateGrad(a)
}

// GradSyncFunc is start_grad_sync of a model chunk, which the schedule calls where reductions are
// aligned over stages.
func (s *Sharded) GradSyncFunc(chunk int) {
	o := &s.l.Options
	if s.err != nil || chunk < 0 || chunk >= len(s.l.Chunks) || !o.OverlapGradReduce || !o.AlignGradReduce {
		return
	}
	for g := s.l.Chunks[chunk].Groups[0]; g < s.l.Chunks[chunk].Groups[1]; g++ {
		s.startGradSync(g)
	}
}

// startGradSync launches the reduction of a group's buckets as one call. In a first batch that the
// schedule has launched already it does nothing.
func (s *Sharded) startGradSync(g int) {
	st, group, o := &s.groups[g], &s.l.Groups[g], &s.l.Options
	launched := st.firstBatch && st.reduction > 0
	s.observeStart(optim.OpStartGradSync, g, launched)
	if launched {
		return
	}
	if prev := group.Previous; prev >= 0 && s.groups[prev].reduction > 0 {
		s.finishGradSync(prev) // only one exchange may hold its memory
	}
	op := optim.Sum
	if o.AverageInCollective {
		op = optim.Average
	}
	async := o.OverlapGradReduce && o.Instances == 1
	stream, shards, copies := s.communicators(group.Expert)
	s.rt.Wait(stream, optim.Main)

	if !o.DistributedOptimizer {
		c := s.collective(stream, copies, o.GroupSize(group.Expert), op)
		s.addGrads(c, group)
		s.observeCollective(optim.OpAllReduce, c, s.l.GroupName(group.Expert), async)
		s.rt.AllReduceShards(c)
	} else {
		c := s.collective(stream, shards, o.GroupSize(group.Expert), op)
		c.FP32Sum = o.FP32Accumulation
		s.addGrads(c, group)
		event := optim.OpReduceScatter
		if o.FP32Accumulation {
			event = optim.OpAllToAll
		}
		s.observeCollective(event, c, s.l.GroupName(group.Expert), async)
		s.rt.ReduceScatter(c)
	}
	if o.Instances > 1 {
		c := s.collective(stream, copies, o.Instances, op)
		for _, id := range group.Buckets {
			c.Add(id, s.l.Buckets[id].DTypes.GradSync, s.l.Buckets[id].Shard)
		}
		s.observeCollective(optim.OpAllReduce, c, "inter_dist_opt", async)
		s.rt.AllReduceShards(c)
	}
	if async {
		st.reduction = s.calls
	} else if !o.OverlapGradReduce {
		s.rt.WaitCall(optim.Main, stream, s.calls)
	}
}

// communicators returns the stream of a kind of buffer, the group over which it is sharded and that of
// the copies of its shards.
func (s *Sharded) communicators(expert bool) (stream optim.Stream, shards, copies optim.Group) {
	if expert {
		return optim.Comm + 1, optim.ExpertDistributed, optim.ExpertRedundant
	}
	return optim.Comm, optim.Distributed, optim.Redundant
}

// collective begins a coalesced call.
func (s *Sharded) collective(stream optim.Stream, group optim.Group, size int, op optim.ReduceOp) *optim.Collective {
	s.calls++
	c := &s.w.collective
	*c = optim.Collective{Stream: stream, Group: group, Size: size, Op: op, Members: c.Members[:0], Call: s.calls}
	return c
}

// addGrads adds the gradients of a group's buckets, and says what is done to them first.
func (s *Sharded) addGrads(c *optim.Collective, group *Group) {
	o := &s.l.Options
	c.Scale, c.Check = o.Scaling(group.Expert), o.CheckForNaN
	for _, id := range group.Buckets {
		b := &s.l.Buckets[id]
		c.Add(id, b.DTypes.GradSync, b.Size)
		if len(o.FP32Patterns) == 0 {
			continue
		}
		for _, f := range b.Fragments {
			if s.private[f.Param] {
				c.Private.Tensors++
				c.Private.Bytes += 4 * units.Bytes(f.InParam.Len())
			}
		}
	}
}

// finishGradSync makes Main wait for a group's reduction; what was not launched is launched first.
func (s *Sharded) finishGradSync(g int) {
	st, group, o := &s.groups[g], &s.l.Groups[g], &s.l.Options
	s.observeGroup(optim.OpFinishGradSync, g)
	st.dispatched = false
	switch {
	case !o.OverlapGradReduce:
		s.startGradSync(g)
	case st.finished:
		return
	default:
		if st.firstBatch {
			s.startGradSync(g)
		}
		stream, _, _ := s.communicators(group.Expert)
		switch {
		case o.Instances > 1:
			s.rt.Wait(optim.Main, stream)
		case st.reduction == 0:
			s.fail("bucket group %d of model chunk %d: got no reduction to wait for: gradients of %d of %d parameters arrived as often as in the first step; use every parameter in every step",
				g-s.l.Chunks[group.Chunk].Groups[0], group.Chunk, group.Params-st.unequal, group.Params)
			return
		default:
			s.observeWait(st.reduction)
			s.rt.WaitCall(optim.Main, stream, st.reduction)
			st.reduction = 0
		}
	}
	st.finished = true
	k := &s.w.kept
	*k = optim.Kept{Stored: group.Buckets}
	s.rt.KeepShards(k)
}

// AfterBackward is finalize_model_grads: all reductions end, chunk by chunk, then gradients that other
// groups hold a part of are added up, then they are divided by the number of tokens.
func (s *Sharded) AfterBackward() {
	for g := range s.groups {
		if s.err != nil {
			return
		}
		s.finishGradSync(g)
	}
	if s.err != nil {
		return
	}
	s.reduceSequenceParallel()
	if s.tied >= 0 {
		q := &s.l.Params[s.tied]
		d := s.l.key(s.tied).Grad
		s.w.oneParam[0] = s.tied
		r := &s.w.grads
		*r = optim.GradReduction{
			Group: optim.Embedding, Size: s.c.EmbeddingSize, Params: s.w.oneParam[:], DType: d,
			Elems: q.Numel, Bytes: units.Bytes(q.Numel) * d.Size(),
		}
		s.observeTied(r, s.bucketOf(s.tied))
		s.rt.AllReduceGrads(r)
	}
	if s.l.Options.PerTokenLoss {
		s.scaleByTokens()
	}
}

// reduceSequenceParallel adds up gradients over the tensor-parallel group, flattened into one tensor.
func (s *Sharded) reduceSequenceParallel() {
	if s.c.Tensor == 1 {
		return
	}
	r := &s.w.grads
	*r = optim.GradReduction{Group: optim.Tensor, Size: s.c.Tensor, Params: s.w.list[:0], Flatten: true}
	for p := range s.l.Params {
		if !s.l.Params[p].SequenceParallel {
			continue
		}
		d := s.l.key(bucket.ParamID(p)).Grad
		if len(r.Params) == 0 {
			r.DType = d
		}
		r.Params = append(r.Params, bucket.ParamID(p))
		r.Elems += s.l.Params[p].Numel
		r.Bytes += units.Bytes(s.l.Params[p].Numel) * d.Size()
	}
	s.w.list = r.Params
	if len(r.Params) > 0 {
		s.observeSequenceParallel(r)
		s.rt.AllReduceGrads(r)
	}
}

// scaleByTokens tells every stage the number of tokens, adds it up over the data-parallel group and
// makes a second pass over all gradients.
func (s *Sharded) scaleByTokens() {
	o := &s.l.Options
	g := &s.w.scaling
	one := optim.Reduction{DType: dtype.I32, Elems: 1, Bytes: 4, Divide: 1}
	*g = optim.GradScaling{Broadcast: one, Count: one, Buffers: s.zero.Buffers, Bytes: s.zero.Bytes}
	g.Broadcast.Group, g.Broadcast.Size = optim.Pipeline, o.Pipeline
	g.Count.Group, g.Count.Size, g.Count.Op = optim.Distributed, o.World, optim.Sum
	if o.Instances > 1 || !o.DistributedOptimizer {
		g.Count.Group = optim.Process
	}
	s.observeReduction(optim.OpBroadcast, &g.Broadcast, "pp")
	s.observeReduction(optim.OpAllReduce, &g.Count, "dp_cp")
	s.rt.ScaleGrads(g)
}

// bucketOf returns the bucket that holds a parameter.
func (s *Sharded) bucketOf(p bucket.ParamID) bucket.ID {
	for _, id := range s.l.Groups[s.l.Owner(p)].Buckets {
		for _, f := range s.l.Buckets[id].Fragments {
			if f.Param == p {
				return id
			}
		}
	}
	return -1
}
