package mcore

import (
	"distopt/core/bucket"
	"distopt/core/units"
)

// Owned is the part of a parameter that one rank reduces, updates and stores state for.
type Owned struct {
	Buffer, Bucket int
	Param          bucket.ParamID
	World          bucket.Range // in the buffer (gbuf_world)
	InBucket       bucket.Range // gbuf_world_in_bucket
	InShard        bucket.Range // gbuf_local
	InParam        bucket.Range
}

// Local lists what a position of a buffer's group owns of it, bucket by bucket, in the order in which
// parameters were placed. Without the distributed optimizer nothing is sharded: the list is empty.
func (l *Layout) Local(chunk, buffer, position int) []Owned {
	b := &l.Chunks[chunk].Buffers[buffer]
	if !l.Options.DistributedOptimizer || position >= b.GroupSize {
		return nil
	}
	var list []Owned
	for i := range b.Buckets {
		k := &b.Buckets[i]
		n := k.Range.Len() / units.Elems(b.GroupSize)
		base := k.Range.Start + n*units.Elems(position)
		for _, p := range b.Params[k.Params[0]:k.Params[1]] {
			lo, hi := max(p.Range.Start, base), min(p.Range.End, base+n)
			if lo >= hi {
				continue
			}
			shifted := func(by units.Elems) bucket.Range { return bucket.Range{Start: lo - by, End: hi - by} }
			list = append(list, Owned{
				Buffer: buffer, Bucket: i, Param: p.Param,
				World: bucket.Range{Start: lo, End: hi}, InBucket: shifted(k.Range.Start),
				InShard: shifted(base), InParam: shifted(p.Range.Start),
			})
		}
	}
	return list
}

// GroupName returns Megatron-Core's name of the group over which a buffer is reduced and gathered.
func (l *Layout) GroupName(expert bool) string {
	name := "dp_cp"
	if expert {
		name = "expt_dp"
	}
	if l.Options.Instances > 1 {
		name = "intra_" + name
	}
	return name
}
