package arrays

import (
	"distopt/core/bucket"
	"distopt/core/optim"
)

// Cast brings updated shards into the format that is gathered where the kernel could not: FP8 with
// each parameter's delayed scale, other integers by their most significant bytes, and everything
// where the state is scaled. Scaled states are stored only afterwards: storing changes the work
// space that is cast.
func (r *Ranks) Cast(c *optim.Cast) {
	buckets := r.follow()
	for n := range r.ranks {
		k := &r.ranks[n]
		for _, id := range c.Buckets {
			b := &buckets[id]
			s := &k.shards[id]
			if s.updated.Len() < heldShard(b, k.position) {
				r.fail("bucket %d: got no updated values on rank %d, want them before the cast", id, n)
				return
			}
			if r.c.Scaled || !b.DTypes.ParamSync.Float() {
				locals(b, 0, k.position, func(l local) { r.cast(k, s, b, l) })
			}
			if c.Rescale {
				locals(b, 0, k.position, func(l local) { k.store(s, l) })
			}
		}
	}
}

// cast converts one fragment.
func (r *Ranks) cast(k *rank, s *Shard, b *bucket.Bucket, l local) {
	to, from := s.updated.Slice(l.start, l.end), s.main.Slice(l.start, l.end)
	if !r.c.Params[l.param].FP8 || to.DType.Size() != 1 {
		to.convert(from, r.work[0])
		return
	}
	for start := 0; start < to.Len(); start += block {
		end := min(start+block, to.Len())
		k.meta[l.param].Cast(to.Bytes[start:end], from.Slice(start, end).values(r.work[0]))
	}
}

// store scales one fragment's state and rounds it to its format.
func (k *rank) store(s *Shard, l local) {
	scales := &s.Scales[l.fragment]
	for _, t := range []struct {
		work   []float32
		stored Tensor
		scale  *float32
	}{{k.scaled[0], s.Param, &scales.Param}, {k.scaled[1], s.ExpAvg, &scales.ExpAvg}, {k.scaled[2], s.ExpAvgSq, &scales.ExpAvgSq}} {
		x := t.work[l.start:l.end]
		*t.scale = optim.Rescale(x, t.stored.DType)
		t.stored.Slice(l.start, l.end).Store(x)
	}
}

// UpdateScaleInv sets the inverse scale of the bytes that every FP8 parameter will hold. On a rank
// whose copies are off it keeps the old one.
func (r *Ranks) UpdateScaleInv(*optim.Reduction) {
	for n := range r.ranks {
		k := &r.ranks[n]
		for p := range k.meta {
			if r.c.Params[p].FP8 && !r.copiesOff(k) {
				k.meta[p].ScaleInv = 1 / k.meta[p].Scale
			}
		}
	}
}

// AllReduceAmax takes the largest amax of every FP8 parameter over each distributed group. A rank
// whose copies are off neither gives nor takes any.
func (r *Ranks) AllReduceAmax(*optim.Reduction) {
	for first := 0; first < len(r.ranks); first += r.c.Distributed {
		group := r.ranks[first : first+r.c.Distributed]
		for p := range r.c.Params {
			if !r.c.Params[p].FP8 {
				continue
			}
			largest := float32(0)
			for n := range group {
				if !r.copiesOff(&group[n]) {
					largest = max(largest, group[n].meta[p].Amax[0])
				}
			}
			for n := range group {
				if !r.copiesOff(&group[n]) {
					group[n].meta[p].Amax[0] = largest
				}
			}
		}
	}
}

// copiesOff reports whether the fused copy kernel does nothing on a rank.
func (r *Ranks) copiesOff(k *rank) bool { return r.c.FusedCopy && k.nonFinite }
