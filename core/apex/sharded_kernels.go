package apex

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// launchKey is what must agree for two fragments to be updated by one kernel.
type launchKey struct {
	group  int32
	dtypes bucket.DTypes
}

// buildLocals lists the fragments of every bucket that this rank owns.
func (s *Sharded) buildLocals() {
	if s.localSeen == s.l.fragments && s.local != nil {
		return
	}
	s.localSeen = s.l.fragments
	s.local = make([][2]int32, len(s.l.Buckets))
	s.locals = s.locals[:0]
	for id := range s.l.Buckets {
		b := &s.l.Buckets[id]
		start := int32(len(s.locals))
		for _, f := range b.Fragments {
			if r, ok := Local(f, b.Shard, s.c.Rank); ok {
				s.locals = append(s.locals, localFragment{param: f.Param, elems: r.Shard.Len()})
			}
		}
		s.local[id] = [2]int32{start, int32(len(s.locals))}
	}
}

// localOf returns the fragments of a bucket that this rank owns, in bucket order.
func (s *Sharded) localOf(id bucket.ID) []localFragment {
	return s.locals[s.local[id][0]:s.local[id][1]]
}

// launches lists the Adam kernels of an update: one for each parameter group and dtype triple, in
// order of first appearance.
func (s *Sharded) launches(u *optim.Update, remainders bool) {
	u.Launches = s.w.launches[:0]
	keys := s.w.keys[:0]
	for _, id := range u.Buckets {
		d := s.l.Buckets[id].DTypes
		for _, f := range s.localOf(id) {
			key := launchKey{group: s.l.Group[f.param].Group, dtypes: d}
			at := 0
			for at < len(keys) && keys[at] != key {
				at++
			}
			if at == len(keys) {
				keys = append(keys, key)
				u.Launches = append(u.Launches, optim.AdamLaunch{Group: int(key.group), Remainders: remainders})
			}
			u.Launches[at].Tensors++
			u.Launches[at].Elems += f.elems
		}
	}
	s.w.launches, s.w.keys = u.Launches, keys
	s.w.operands = s.w.operands[:0]
	for i := range u.Launches {
		start := len(s.w.operands)
		s.w.operands = operands(s.w.operands, keys[i].dtypes, remainders, u.Scaled)
		u.Launches[i].Operands = s.w.operands[start:]
	}
}

// operands appends the dtypes of an Adam kernel's operands. Where integers are gathered, the
// kernel writes the main parameters only and a conversion follows.
func operands(buf []dtype.DType, d bucket.DTypes, remainders, scaled bool) []dtype.DType {
	out := d.ParamSync
	if !out.Float() {
		out = d.State
	}
	switch {
	case remainders:
		return append(buf, dtype.BF16, dtype.I16, d.State, d.State, d.GradSync, dtype.BF16)
	case scaled:
		return append(buf, dtype.FP32, dtype.FP32, dtype.FP32, d.GradSync, dtype.FP32)
	}
	return append(buf, d.State, d.State, d.State, d.GradSync, out)
}

func (s *Sharded) observeAdam(u *optim.Update) {
	if s.obs == nil {
		return
	}
	for _, l := range u.Launches {
		e := s.event(optim.OpAdam)
		e.Kind, e.Tensors, e.N = "fused", l.Tensors, int64(l.Elems)
		if l.Remainders {
			e.Kind = "remainders"
		}
		for _, d := range l.Operands {
			e.DTypes = append(e.DTypes, d.String())
		}
		s.obs.Event(e)
	}
}

// convertTable converts all buckets at once after the update, as Apex before PR #1771 did, in the
// order of the parameter bucket table.
func (s *Sharded) convertTable() {
	ids := s.w.ids[:0]
	for id := len(s.gathers) - 1; id >= 0; id-- {
		ids = append(ids, bucket.ID(id))
	}
	s.w.ids = ids
	s.convert(ids)
}

// convert brings updated shards into the dtype that is gathered. For FP8 parameters NeMo also
// renews scale_inv and reduces the amaxes: before PR #8221 in every call, after it once per step,
// when the last bucket has been cast. What NeMo has not cast, Apex converts last: before PR #8221
// that includes the bytes of a bucket of which this rank owns nothing but padding.
func (s *Sharded) convert(ids []bucket.ID) {
	s.observeBuckets(optim.OpCheckDTypes, ids)
	o := &s.l.Options
	fp8 := o.NeMo && len(s.fp8Order) > 0
	c := &s.w.cast
	*c = optim.Cast{Buckets: ids, FP8: s.w.casts[:0], Rescale: o.WithScaledStates, Pack: s.w.pack}
	work := o.WithScaledStates
	for _, id := range ids {
		b := &s.l.Buckets[id]
		integers := !b.DTypes.ParamSync.Float()
		bytes := b.DTypes.ParamSync == dtype.U8
		work = work || integers
		switch {
		case bytes && fp8 && o.NewNeMo:
			for _, f := range s.localOf(id) {
				c.FP8 = append(c.FP8, optim.FP8Cast{Param: f.param, Bucket: id, Elems: f.elems})
			}
		case bytes && fp8 && len(s.localOf(id)) > 0:
		case integers, o.WithScaledStates && b.DTypes.ParamSync != dtype.FP32:
			c.Copies.Tensors++
			c.Copies.Bytes += bytesOf(b.Shard, b.DTypes.ParamSync)
		}
	}
	if fp8 && !o.NewNeMo {
		s.castsInOrder(c, ids)
		s.updateScaleInv()
	}
	s.w.casts = c.FP8
	for _, f := range c.FP8 {
		s.observeElems(optim.OpCastFP8, int64(f.Elems))
	}
	if work { // of some rank, if not of this one
		s.rt.Cast(c)
	}
	switch {
	case !fp8:
	case !o.NewNeMo:
		s.reduceAmax()
	default:
		s.fp8Cast += len(ids)
		if s.fp8Cast > len(s.l.Buckets) {
			panic("apex: a bucket was cast twice in a step")
		}
		if s.fp8Cast == len(s.l.Buckets) {
			s.fp8Cast = 0
			s.updateScaleInv()
			s.reduceAmax()
		}
	}
	s.observeCopy(c.Copies)
}

// castsInOrder lists the FP8 casts by parameter, in optimizer order (before PR #8221).
func (s *Sharded) castsInOrder(c *optim.Cast, ids []bucket.ID) {
	s.w.mark++
	for _, id := range ids {
		s.gathers[id].mark = s.w.mark
	}
	for _, p := range s.fp8Order {
		for _, ref := range s.l.Fragments[p] {
			if s.gathers[ref.Bucket].mark != s.w.mark {
				continue
			}
			if r, ok := s.l.Local(ref, s.c.Rank); ok {
				c.FP8 = append(c.FP8, optim.FP8Cast{Param: p, Bucket: ref.Bucket, Elems: r.Shard.Len()})
			}
		}
	}
}

// amaxes describes one fp32 value for each FP8 parameter of the rank.
func (s *Sharded) amaxes() *optim.Reduction {
	n := units.Elems(len(s.fp8Order))
	r := &s.w.reduction
	*r = optim.Reduction{
		Group: optim.Distributed, Size: s.l.Options.Distributed, Op: optim.Max, DType: dtype.FP32,
		Elems: n, Bytes: bytesOf(n, dtype.FP32), Divide: 1,
	}
	return r
}

// updateScaleInv renews every FP8 parameter's scale_inv: scales are packed, inverted, unpacked.
func (s *Sharded) updateScaleInv() {
	r := s.amaxes()
	pack := optim.Copy{Tensors: int(r.Elems), Bytes: r.Bytes}
	s.observeCopy(pack)
	s.observeCopy(pack)
	s.rt.UpdateScaleInv(r)
}

// reduceAmax takes the maximum of the amaxes over the distributed group: they are packed, reduced
// while Main waits, unpacked.
func (s *Sharded) reduceAmax() {
	r := s.amaxes()
	pack := optim.Copy{Tensors: int(r.Elems), Bytes: r.Bytes}
	s.observeCopy(pack)
	s.observeReduction(r)
	s.observeCopy(pack)
	s.rt.AllReduceAmax(r)
}
