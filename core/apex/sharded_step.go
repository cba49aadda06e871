package apex

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Step updates the parameters. With overlapping, the first group of buckets is updated before the
// others and gathered while they are; the rest follows in the next forward pass. Otherwise
// everything is gathered at the end.
func (s *Sharded) Step() {
	if s.err != nil {
		return
	}
	o := &s.l.Options
	s.observe(optim.OpStepBegin)
	if o.NewApex {
		s.placeAll()
	}
	s.paramSync()
	s.gradSync()
	if s.c.GradScaler {
		s.gradNorm(nil)
		if !s.rt.CheckFinite() {
			s.observeBuckets(optim.OpStepEnd, nil)
			return
		}
	}
	s.createParamBuckets()
	if s.err != nil {
		return
	}
	s.steps++
	overlap := o.Distributed > 1 && o.OverlapParamSync

	all := s.w.step[:0]
	if overlap && len(s.gathers) > 0 && (o.NewApex || !s.gathersIntegers()) {
		first := s.firstGroup(s.w.first[:0])
		for id := range s.gathers {
			if s.gathers[id].mark != s.w.mark {
				all = append(all, bucket.ID(id))
			}
		}
		s.w.first, s.w.step = first, all
		s.localStep(first, false)
		s.startParamSync(first)
		s.localStep(all, !o.NewApex)
	} else {
		for id := range s.gathers {
			all = append(all, bucket.ID(id))
		}
		s.w.step = all
		s.localStep(all, false)
		if !o.NewApex {
			s.convertTable()
		}
	}
	if s.err != nil {
		return
	}
	if overlap {
		s.prefetch()
		for _, p := range s.order {
			s.params[p].pendingForward = true
		}
		s.pending = len(s.order)
	} else {
		s.paramSync()
	}
	if s.obs != nil {
		ids := s.w.ids[:0]
		for id := len(s.gathers) - 1; id >= 0; id-- {
			if s.gathers[id].status != optim.ParamConsumed {
				ids = append(ids, bucket.ID(id))
			}
		}
		s.w.ids = ids
		s.observeBuckets(optim.OpStepEnd, ids)
	}
}

// createParamBuckets begins the parameter side of every bucket, each with its shard.
func (s *Sharded) createParamBuckets() {
	n := len(s.l.Buckets)
	if s.l.Options.ContiguousParamBuffer {
		s.buildViews() // places what Step has not: too late for this step
	}
	for len(s.gathers) < n {
		s.gathers = append(s.gathers, gatherBucket{})
	}
	for id := range s.gathers {
		if len(s.l.Buckets[id].Fragments) == 0 {
			s.fail("bucket %d: got no parameter with elements, want one; leave empty parameters out", id)
			return
		}
		s.gathers[id] = gatherBucket{status: optim.ParamSharded}
	}
	s.left = len(s.gathers)
	s.next = bucket.ID(len(s.gathers)) - 1
	s.w.mark = 0
}

// gathersIntegers reports whether any bucket is gathered in an integer dtype, as FP8 is.
func (s *Sharded) gathersIntegers() bool {
	for id := range s.l.Buckets {
		if !s.l.Buckets[id].DTypes.ParamSync.Float() {
			return true
		}
	}
	return false
}

// firstGroup returns the buckets that are updated and gathered first: all of the parameter that
// stands last in the newest bucket. They carry the present mark.
func (s *Sharded) firstGroup(ids []bucket.ID) []bucket.ID {
	fragments := s.l.Buckets[len(s.gathers)-1].Fragments
	p := fragments[len(fragments)-1].Param
	s.w.mark++
	for _, ref := range s.l.Fragments[p] {
		s.gathers[ref.Bucket].mark = s.w.mark
		ids = append(ids, ref.Bucket)
	}
	slices.Sort(ids)
	return ids
}

// localStep updates the shards of buckets. once says that Apex before PR #1771 passed them as a
// generator: where the search for remainders uses it up, buckets without them are left out.
func (s *Sharded) localStep(ids []bucket.ID, once bool) {
	s.observeBuckets(optim.OpLocalStep, ids)
	s.buildLocals()
	o := &s.l.Options
	switch {
	case once && s.c.ListedOnce:
	case o.WithScaledStates:
		for i := range ids {
			s.updateScaled(ids[i : i+1])
		}
	case o.StoreParamRemainders:
		with, without := s.w.with[:0], s.w.without[:0]
		for _, id := range ids {
			if s.l.Buckets[id].StoresRemainders {
				with = append(with, id)
			} else {
				without = append(without, id)
			}
		}
		s.w.with, s.w.without = with, without
		if len(with) > 0 {
			s.update(with, true)
		}
		if !once && len(without) > 0 {
			s.update(without, false)
		}
	default:
		s.update(ids, false)
	}
	s.observe(optim.OpLocalStepEnd)
}

// update runs Adam on the shards of ids and, in Apex after PR #1771, converts them.
func (s *Sharded) update(ids []bucket.ID, remainders bool) {
	u := &s.w.update
	*u = optim.Update{Step: s.steps, Buckets: ids}
	s.launches(u, remainders)
	s.observeAdam(u)
	s.rt.Adam(u)
	if s.l.Options.NewApex {
		s.convert(ids)
	}
}

// updateScaled runs Adam on one bucket whose states are stored scaled: they are unpacked to fp32
// before, and packed again after the conversion, which reads the unpacked values.
func (s *Sharded) updateScaled(ids []bucket.ID) {
	u := &s.w.update
	*u = optim.Update{Step: s.steps, Buckets: ids, Scaled: true}
	s.launches(u, false)
	var pack optim.Copy
	for _, l := range u.Launches {
		u.Unpack.Tensors += 3 * l.Tensors
		u.Unpack.Bytes += 3 * bytesOf(l.Elems, dtype.FP32)
		pack.Tensors += 3 * l.Tensors
		pack.Bytes += 3 * bytesOf(l.Elems, s.l.Options.State)
	}
	s.observeCopy(u.Unpack)
	s.observeAdam(u)
	s.rt.Adam(u)
	s.w.pack = pack
	s.convert(ids)
	s.observeCopy(pack)
	s.w.pack = optim.Copy{}
}
