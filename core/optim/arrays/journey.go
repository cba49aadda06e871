package arrays

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
)

// Home returns where an element of a parameter is reduced and updated: bucket, position in the
// distributed group, and index in that shard. ok is false for an element that no bucket has yet.
func (r *Ranks) Home(p bucket.ParamID, element int) (id bucket.ID, position, index int, ok bool) {
	buckets := r.follow()
	for _, ref := range r.refs[p] {
		b := &buckets[ref.bucket]
		f := &b.Fragments[ref.fragment]
		if at := element - int(f.InParam.Start); at >= 0 && element < int(f.InParam.End) {
			inBucket := int(f.InBucket.Start) + at
			return b.ID, inBucket / int(b.Shard), inBucket % int(b.Shard), true
		}
	}
	return 0, 0, 0, false
}

// LocalGrad reads what a rank has added up of a parameter's gradient in its buckets. The memory stays
// as it was reduced until it is filled again, so after a step it still tells the rank's own part.
func (r *Ranks) LocalGrad(rank int, p bucket.ParamID, dst []float32) {
	buckets := r.follow()
	k := &r.ranks[rank]
	for _, ref := range r.refs[p] {
		b := &buckets[ref.bucket]
		f := &b.Fragments[ref.fragment]
		part := dst[f.InParam.Start:f.InParam.End]
		whole := k.shards[b.ID].bucket
		if whole.Len() < int(f.InBucket.End) {
			clear(part)
			continue
		}
		whole.Slice(int(f.InBucket.Start), int(f.InBucket.End)).Load(part)
	}
}

// MainValues reads a parameter's main values from the shards that own them: unscaled, remainders
// joined; where nothing is stored, the model's own.
func (r *Ranks) MainValues(p bucket.ParamID, dst []float32) {
	buckets := r.follow()
	for _, ref := range r.refs[p] {
		b := &buckets[ref.bucket]
		for n := range r.c.Distributed {
			k := &r.ranks[n]
			locals(b, ref.fragment, k.position, func(l local) {
				if l.fragment == ref.fragment {
					r.mainValues(k, &k.shards[b.ID], b, l, dst[l.inParam:l.inParam+l.end-l.start])
				}
			})
		}
	}
	dtype.CanonicalAll(dst)
}
