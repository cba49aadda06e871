package apex

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// PendingForward reports whether the pre-forward hook of p is still to run.
func (s *Sharded) PendingForward(p bucket.ParamID) bool { return s.params[p].pendingForward }

// PreForward is the one-shot hook at the first access of p after a step: its values are gathered
// if need be and copied, and the next group of buckets is prefetched.
func (s *Sharded) PreForward(p bucket.ParamID) {
	st := &s.params[p]
	if s.err != nil || !st.pendingForward {
		return
	}
	s.observeParam(optim.OpParamAccess, p)
	st.pendingForward = false
	s.pending--
	if !s.l.Placed(p) {
		return
	}
	s.w.oneParam[0] = p
	s.useParams(s.w.oneParam[:])
	s.prefetch()
}

// prefetch launches the next gather if none is in flight: of all buckets of the parameter that
// stands last in the highest bucket not yet gathered.
func (s *Sharded) prefetch() {
	if len(s.gathering) > 0 || s.left == 0 {
		return
	}
	for s.next >= 0 && s.gathers[s.next].status != optim.ParamSharded {
		s.next--
	}
	if s.next < 0 {
		return
	}
	fragments := s.l.Buckets[s.next].Fragments
	s.w.oneParam[0] = fragments[len(fragments)-1].Param
	s.tryParamSync(s.w.oneParam[:])
}

// tryParamSync launches the gather of those buckets of params that still hold shards.
func (s *Sharded) tryParamSync(params []bucket.ParamID) {
	ids := s.w.need[:0]
	s.w.mark++
	for _, p := range params {
		for _, ref := range s.l.Fragments[p] {
			if int(ref.Bucket) >= len(s.gathers) {
				continue
			}
			if g := &s.gathers[ref.Bucket]; g.status == optim.ParamSharded && g.mark != s.w.mark {
				g.mark = s.w.mark
				ids = append(ids, ref.Bucket)
			}
		}
	}
	slices.Sort(ids)
	s.w.need = ids
	if len(ids) > 0 {
		s.startParamSync(ids)
	}
}

// startParamSync launches the gather of those of ids that still hold shards as one group, after
// Main has waited for the gather before: only one is in flight.
func (s *Sharded) startParamSync(ids []bucket.ID) {
	s.observeBuckets(optim.OpStartParamSync, ids)
	s.finishParamSync()
	o := &s.l.Options
	for _, id := range ids {
		if g := &s.gathers[id]; g.status == optim.ParamSharded {
			g.status = optim.ParamSyncing
			s.gathering = append(s.gathering, id)
		}
	}
	stream := s.nextComm()
	s.rt.Wait(stream, optim.Main)
	if o.Distributed == 1 || (len(s.gathering) == 0 && o.Later.SkipEmptyGroups) {
		return
	}
	c := s.collective(stream, optim.Distributed, o.Distributed, optim.NoReduce)
	for _, id := range s.gathering {
		b := &s.l.Buckets[id]
		c.Add(id, b.DTypes.ParamSync, b.Size)
	}
	s.observeCollective(optim.OpAllGather, c)
	s.rt.AllGather(c)
}

// finishParamSync makes Main wait for the gather in flight.
func (s *Sharded) finishParamSync() {
	// The table of parameter buckets begins with the highest id.
	ids := append(s.w.finish[:0], s.gathering...)
	slices.Sort(ids)
	slices.Reverse(ids)
	s.w.finish = ids
	s.observeBuckets(optim.OpFinishParamSync, ids)
	s.waitComm()
	for _, id := range ids {
		s.gathers[id].status = optim.ParamReady
	}
	s.gathering = s.gathering[:0]
}

// useParams brings parameters up to date: their buckets are gathered if need be, in the order of
// the parameters' own fragments, values are copied out, and buckets that every parameter has been
// copied out of are dropped.
func (s *Sharded) useParams(params []bucket.ParamID) {
	if s.left == 0 {
		return
	}
	need := s.w.need[:0]
	ready := true
	s.w.mark++
	for _, p := range params {
		for _, ref := range s.l.Fragments[p] {
			if int(ref.Bucket) >= len(s.gathers) {
				continue
			}
			g := &s.gathers[ref.Bucket]
			if g.status == optim.ParamConsumed || g.mark == s.w.mark {
				continue
			}
			g.mark = s.w.mark
			need = append(need, ref.Bucket)
			ready = ready && g.status == optim.ParamReady
		}
	}
	s.w.need = need
	if len(need) == 0 {
		return
	}
	if !ready {
		s.startParamSync(need)
		s.finishParamSync()
	}
	s.copyParams(params)
	for _, p := range params {
		s.consume(p)
	}
}

// copyParams copies the gathered fragments of params.
func (s *Sharded) copyParams(params []bucket.ParamID) {
	u := &s.w.use
	*u = optim.ParamUse{Copies: s.w.copies[:0], Transposed: s.w.fp8[:0]}
	for _, p := range params {
		q := &s.l.Params[p]
		shared := s.sharesMemory(p)
		any := false
		for _, ref := range s.l.Fragments[p] {
			if int(ref.Bucket) >= len(s.gathers) || s.gathers[ref.Bucket].status == optim.ParamConsumed {
				continue
			}
			any = true
			b := &s.l.Buckets[ref.Bucket]
			n := b.Fragments[ref.Index].InParam.Len()
			if q.FP8 && n > 0 && b.DTypes.ParamSync != dtype.U8 {
				s.fail("%s: got an FP8 parameter gathered in %s with bucket %d, want uint8; place it in a bucket of its own", q.Name, b.DTypes.ParamSync, ref.Bucket)
				return
			}
			u.Copies = append(u.Copies, optim.ParamCopy{Bucket: ref.Bucket, Param: p, N: int64(n)})
			if n > 0 && !shared {
				d := q.DType
				if q.FP8 {
					d = dtype.U8
				}
				u.Kernel.Tensors++
				u.Kernel.Bytes += bytesOf(n, d)
			}
		}
		if any && q.FP8 {
			u.Transposed = append(u.Transposed, p)
		}
	}
	s.w.copies, s.w.fp8 = u.Copies, u.Transposed
	if e := s.event(optim.OpParamCopy); e != nil {
		e.Copies = u.Copies
		s.obs.Event(e)
	}
	s.observeCopy(u.Kernel)
	for _, p := range u.Transposed {
		s.observeElems(optim.OpTransposeFP8, int64(s.l.Params[p].Numel))
	}
	s.rt.UseParams(u)
}

// sharesMemory reports whether gathered values are in place at once: with a contiguous parameter
// buffer, but for FP8 tensors in Apex before PR #1771, which gathered bytes elsewhere.
func (s *Sharded) sharesMemory(p bucket.ParamID) bool {
	o := &s.l.Options
	return o.ContiguousParamBuffer && (o.NewApex || !s.l.Params[p].FP8)
}

// consume counts p as copied out of its buckets.
func (s *Sharded) consume(p bucket.ParamID) {
	if len(s.l.Fragments[p]) == 0 {
		return
	}
	used := s.used[s.refStart[p]:]
	for i, ref := range s.l.Fragments[p] {
		if int(ref.Bucket) >= len(s.gathers) {
			continue
		}
		g := &s.gathers[ref.Bucket]
		if g.status == optim.ParamConsumed || used[i] == uint32(s.steps) {
			continue
		}
		used[i] = uint32(s.steps)
		g.copied++
		if int(g.copied) == len(s.l.Buckets[ref.Bucket].Fragments) {
			g.status = optim.ParamConsumed
			s.left--
		}
	}
}

// paramSync brings all parameters up to date now, blocking: with a contiguous buffer in one
// gather, else bucket by bucket from the last, each bucket's fragments backwards.
func (s *Sharded) paramSync() {
	s.observe(optim.OpParamSync)
	switch {
	case s.left == 0:
	case s.l.Options.ContiguousParamBuffer:
		s.useParams(s.order)
	default:
		for id := len(s.gathers) - 1; id >= 0 && s.left > 0; id-- {
			if s.gathers[id].status == optim.ParamConsumed {
				continue
			}
			fragments := s.l.Buckets[id].Fragments
			for i := len(fragments) - 1; i >= 0; i-- {
				s.w.oneParam[0] = fragments[i].Param
				s.useParams(s.w.oneParam[:])
			}
		}
	}
	for id := range s.gathers {
		s.gathers[id].status = optim.ParamConsumed
	}
	s.left = 0
	s.observe(optim.OpParamSyncEnd)
}

// buildViews moves all parameters into the contiguous parameter buffers, of which they are views
// from now on.
func (s *Sharded) buildViews() {
	if s.viewsBuilt {
		return
	}
	s.viewsBuilt = true
	s.placeAll()
	var c optim.Copy
	for _, p := range s.order {
		refs := s.l.Fragments[p]
		if len(refs) == 0 {
			continue
		}
		q, sync := &s.l.Params[p], s.l.Buckets[refs[0].Bucket].DTypes.ParamSync
		// Apex itself takes integers of the same size.
		fits := q.DType == sync || !s.l.Options.NeMo && !sync.Float() && sync.Size() == q.DType.Size()
		if !q.FP8 && !fits {
			s.fail("contiguous_param_buffer: got %s with %s values in a %s buffer, want the same dtype; set param_sync_dtype to %s", q.Name, q.DType, sync, q.DType)
			return
		}
		c.Tensors++
		c.Bytes += bytesOf(q.Numel, sync)
	}
	s.observeCopy(c)
}
