package arrays

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// AllGather collects the updated shards of buckets: in place where parameters lie in contiguous
// buffers, else in one bucket for all ranks of a group.
func (r *Ranks) AllGather(c *optim.Collective) {
	buckets := r.follow()
	for _, m := range c.Members {
		b := &buckets[m.Bucket]
		for first := 0; first < len(r.ranks); first += r.c.Distributed {
			group := r.ranks[first : first+r.c.Distributed]
			whole := &r.gathered[first/r.c.Distributed][b.ID]
			if group[0].paramViews == nil {
				*whole = grown(*whole, b.DTypes.ParamSync, held(b))
			}
			for i := range group {
				start := min(i*int(b.Shard), held(b))
				end := start + heldShard(b, i)
				shard := group[i].shards[b.ID].updated
				if group[0].paramViews == nil {
					whole.Slice(start, end).copyBits(shard)
					continue
				}
				for j := range group {
					if to, ok := group[j].paramViews.bucket(b); ok && j != i {
						to.Slice(start, end).copyBits(shard)
					}
				}
			}
		}
	}
}

// UseParams copies gathered fragments into their parameters and counts transposes.
func (r *Ranks) UseParams(u *optim.ParamUse) {
	buckets := r.follow()
	r.transposes += len(u.Transposed)
	if r.c.ContiguousParams {
		return // they are there
	}
	for _, c := range u.Copies {
		if c.N == 0 {
			continue
		}
		for _, ref := range r.refs[c.Param] {
			if ref.bucket == c.Bucket {
				b := &buckets[c.Bucket]
				r.use(b, &b.Fragments[ref.fragment])
			}
		}
	}
}

// use copies one fragment on every rank.
func (r *Ranks) use(b *bucket.Bucket, f *bucket.Fragment) {
	for n := range r.ranks {
		k := &r.ranks[n]
		whole := k.shards[b.ID].updated // of a group of one
		if r.c.Distributed > 1 {
			whole = r.gathered[n/r.c.Distributed][b.ID]
		}
		if whole.Len() < int(f.InBucket.End) {
			r.fail("bucket %d: got no gathered values, want them before their use", b.ID)
			return
		}
		from := whole.Slice(int(f.InBucket.Start), int(f.InBucket.End))
		to := k.params[f.Param].Slice(int(f.InParam.Start), int(f.InParam.End))
		if r.copiesOff(k) && fusedCopy(to.DType, from.DType) {
			continue
		}
		to.convert(from, r.work[0])
	}
}

// fusedCopy reports whether the multi-tensor copy kernel does a copy: those between equal formats or
// of raw bytes, and casts between fp32 and fp16.
func fusedCopy(to, from dtype.DType) bool {
	return to == from || !to.Float() || !from.Float() || to != dtype.BF16 && from != dtype.BF16
}
