package apex

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/optim"
)

// PostBackward is the hook of a parameter whose gradient autograd has accumulated.
func (s *Sharded) PostBackward(p bucket.ParamID) {
	if s.err != nil {
		return
	}
	s.observeParam(optim.OpGradReady, p)
	st := &s.params[p]
	switch {
	case st.pendingForward:
		s.fail("%s: its gradient arrived before its pre-forward hook ran, so its values were stale (overlap_param_sync); use the parameter in forward, or set overlap_param_sync to false", s.l.Params[p].Name)
		return
	case s.l.Group[p].Group < 0:
		s.fail("%s: got a gradient of a parameter that is in no parameter group; add it to one", s.l.Params[p].Name)
		return
	}
	fresh := !s.l.Placed(p)
	s.place(p)
	st.arrived = true
	if !st.fused && !st.hasGrad {
		st.hasGrad = true
		s.ungiven++
	}
	if !s.greedyCopy || st.noGreedy {
		return
	}
	s.copyGrad(p)
	if s.overlapGrad && !st.noOverlap {
		s.tryGradSync(p, fresh)
	}
}

// PostBackwardAll is PostBackward for each of params. While nothing but accumulation can follow,
// it is one effect.
func (s *Sharded) PostBackwardAll(params []bucket.ParamID) {
	if s.err != nil {
		return
	}
	if s.obs != nil || !s.QuietBackward() || s.partial < len(s.grads) || s.ungiven > 0 {
		for _, p := range params {
			s.PostBackward(p)
		}
		return
	}
	a := optim.Accumulation{Params: params, Paths: s.w.paths[:0]}
	for _, p := range params {
		st := &s.params[p]
		if !s.greedyCopy || st.noGreedy || s.l.Group[p].Group < 0 {
			for _, p := range params {
				s.PostBackward(p)
			}
			return
		}
		path := optim.Added
		if st.fused {
			path = optim.Fused
		}
		a.Paths = append(a.Paths, path)
	}
	s.w.paths = a.Paths
	s.w.accumulation = a
	s.rt.AccumulateGrad(&s.w.accumulation)
}

// QuietBackward reports that hooks launch nothing and wait for nothing at present.
func (s *Sharded) QuietBackward() bool {
	return !s.overlapGrad && s.l.AllPlaced() && len(s.syncing) == 0 && s.pending == 0
}

// copyGrad moves the gradient of p, if there is one, into its buckets, dependencies included: all
// of them count as partially filled from now on. A sync in flight of any of them ends first.
func (s *Sharded) copyGrad(p bucket.ParamID) {
	s.observeParam(optim.OpGradCopy, p)
	if s.l.Options.ContiguousGradBuffer && len(s.l.Fragments[p]) > 0 {
		s.placeAll()
	}
	a := &s.w.accumulation
	*a = optim.Accumulation{Zeroed: s.w.zeroed[:0]}
	for _, ref := range s.l.Fragments[p] {
		b := &s.grads[ref.Bucket]
		if b.status == optim.GradSyncing {
			s.finishGradSync()
		}
		s.setGradStatus(ref.Bucket, optim.GradPartial)
		s.enterTable(ref.Bucket)
		if !b.memory {
			b.memory = true
			if b.released || !s.l.Options.ContiguousGradBuffer {
				lb := &s.l.Buckets[ref.Bucket]
				a.Zeroed = append(a.Zeroed, ref.Bucket)
				a.ZeroedBytes += bytesOf(lb.Size, lb.DTypes.GradSync)
			}
		}
	}
	s.w.zeroed = a.Zeroed
	st := &s.params[p]
	path := optim.Added
	switch {
	case st.fused:
		path = optim.Fused
	case st.view:
		path = optim.InPlace
	}
	if st.arrived {
		s.w.oneParam[0] = p
		a.Params = s.w.oneParam[:]
		a.Paths = append(s.w.paths[:0], path)
		s.w.paths = a.Paths
	}
	if st.hasGrad {
		s.ungiven--
	}
	st.arrived, st.hasGrad, st.view = false, false, false
	if len(a.Params)+len(a.Zeroed) > 0 {
		s.rt.AccumulateGrad(a)
	}
}

// setGradStatus keeps count of the partially filled buckets.
func (s *Sharded) setGradStatus(id bucket.ID, status optim.GradStatus) {
	b := &s.grads[id]
	if b.status == optim.GradPartial {
		s.partial--
	}
	if status == optim.GradPartial {
		s.partial++
	}
	b.status = status
}

// enterTable appends a bucket to the gradient bucket table at its first use in a step.
func (s *Sharded) enterTable(id bucket.ID) {
	if b := &s.grads[id]; !b.inTable {
		b.inTable = true
		s.table = append(s.table, id)
	}
}

// tryGradSync counts p as generated in all its buckets and launches every bucket that is complete,
// but for the newest bucket if ignoreLast (lazy initialisation may still fill it).
func (s *Sharded) tryGradSync(p bucket.ParamID, ignoreLast bool) {
	s.generated(p)
	s.launchFilled(ignoreLast)
}

// generated adds p to the generated set of each of its buckets; a bucket whose set is complete is
// filled.
func (s *Sharded) generated(p bucket.ParamID) {
	if len(s.l.Fragments[p]) == 0 {
		return
	}
	gen := s.gen[s.refStart[p]:]
	for i, ref := range s.l.Fragments[p] {
		b := &s.grads[ref.Bucket]
		if gen[i] != b.epoch {
			gen[i] = b.epoch
			b.generated++
		}
		if int(b.generated) == len(s.l.Buckets[ref.Bucket].Fragments) {
			s.enterTable(ref.Bucket)
			s.setGradStatus(ref.Bucket, optim.GradFilled)
			s.filled = append(s.filled, ref.Bucket)
		}
	}
}

// launchFilled launches the filled buckets, ascending, as one group.
func (s *Sharded) launchFilled(ignoreLast bool) {
	if len(s.filled) == 0 {
		return
	}
	last := bucket.ID(-1)
	if ignoreLast {
		last = bucket.ID(len(s.grads)) - 1
	}
	slices.Sort(s.filled)
	s.filled = slices.Compact(s.filled)
	launch, kept := s.w.launch[:0], s.filled[:0]
	for _, id := range s.filled {
		switch {
		case s.grads[id].status != optim.GradFilled:
		case id == last:
			kept = append(kept, id)
		default:
			launch = append(launch, id)
		}
	}
	s.filled = kept
	s.w.launch = launch
	if len(launch) > 0 {
		s.startGradSync(launch)
	}
}

// startGradSync launches the reduction of buckets as one group. Without a contiguous buffer only
// one group may be in flight.
func (s *Sharded) startGradSync(ids []bucket.ID) {
	s.observeBuckets(optim.OpStartGradSync, ids)
	o := &s.l.Options
	if !o.ContiguousGradBuffer {
		s.finishGradSync()
	}
	for _, id := range ids {
		b := &s.grads[id]
		s.setGradStatus(id, optim.GradSyncing)
		b.epoch++
		b.generated = 0
		s.syncing = append(s.syncing, id)
	}
	stream := s.nextComm()
	s.rt.Wait(stream, optim.Main)
	op := optim.Sum
	if o.AverageGradSync {
		op = optim.Average
	}
	if o.Distributed > 1 {
		c := s.collective(stream, optim.Distributed, o.Distributed, op)
		if o.Later.NCCLUserBuffers {
			c.Op, c.Divide = optim.Sum, o.AverageGradSync
		}
		for _, id := range ids {
			b := &s.l.Buckets[id]
			c.Add(id, b.DTypes.GradSync, b.Size)
		}
		s.observeCollective(optim.OpReduceScatter, c)
		s.rt.ReduceScatter(c)
	}
	if o.Redundant > 1 {
		c := s.collective(stream, optim.Redundant, o.Redundant, op)
		if o.Later.NCCLUserBuffers {
			c.Op = optim.Sum // of quotients by the distributed size alone
		}
		for _, id := range ids {
			b := &s.l.Buckets[id]
			c.Add(id, b.DTypes.GradSync, b.Shard)
		}
		s.observeCollective(optim.OpAllReduce, c)
		s.rt.AllReduceShards(c)
	}
}

// finishGradSync makes Main wait for the syncs in flight and keeps their shards.
func (s *Sharded) finishGradSync() {
	slices.Sort(s.syncing)
	s.observeBuckets(optim.OpFinishGradSync, s.syncing)
	s.waitComm()
	if len(s.syncing) == 0 {
		return
	}
	k := &s.w.kept
	*k = optim.Kept{Stored: k.Stored[:0], Added: k.Added[:0]}
	for _, id := range s.syncing {
		b := &s.grads[id]
		if b.shard {
			k.Added = append(k.Added, id)
		} else {
			k.Stored = append(k.Stored, id)
		}
		b.shard, b.memory, b.released = true, false, true
		s.setGradStatus(id, optim.GradReady)
	}
	s.syncing = s.syncing[:0]
	s.normCached = false
	s.rt.KeepShards(k)
}

// gradSync synchronizes whatever is left: gradients that no bucket holds yet, then every bucket
// that is neither ready nor in flight, as one group. Afterwards each bucket has a shard.
func (s *Sharded) gradSync() {
	s.observe(optim.OpGradSync)
	if s.ungiven > 0 {
		s.copyLeft()
	}
	ids := s.w.ids[:0]
	for id := range s.grads {
		if st := s.grads[id].status; st == optim.GradPartial || st == optim.GradFilled {
			ids = append(ids, bucket.ID(id))
		}
	}
	s.w.ids = ids
	if len(ids) > 0 {
		s.filled = s.filled[:0]
		s.startGradSync(ids)
	}
	s.finishGradSync()
	k := &s.w.kept
	*k = optim.Kept{Stored: k.Stored[:0], Added: k.Added[:0], Zeroed: s.w.zeroed[:0]}
	for id := range s.grads {
		if b := &s.grads[id]; !b.shard {
			b.shard = true
			s.enterTable(bucket.ID(id))
			k.Zeroed = append(k.Zeroed, bucket.ID(id))
		}
	}
	s.w.zeroed = k.Zeroed
	if len(k.Zeroed) > 0 {
		s.rt.KeepShards(k)
	}
	s.observe(optim.OpGradSyncEnd)
}

// copyLeft moves the gradients that are still in param.grad into their buckets, bucket by bucket.
func (s *Sharded) copyLeft() {
	for id := range s.l.Buckets {
		for _, f := range s.l.Buckets[id].Fragments {
			if !s.params[f.Param].hasGrad {
				continue
			}
			s.copyGrad(f.Param)
			if !s.l.Options.ContiguousGradBuffer {
				s.tryGradSync(f.Param, false)
			}
		}
	}
}
