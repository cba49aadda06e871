package apex

import (
	"distopt/core/bucket"
	"distopt/core/units"
)

// LocalRange is the part of a fragment that one rank of the distributed group owns.
type LocalRange struct {
	Shard       bucket.Range // within that rank's shard
	ShardBucket bucket.Range // the same elements within the bucket
	ShardParam  bucket.Range // the same elements within the parameter
}

// Local returns the part of f that rank owns, where f is a fragment of a bucket whose shards have
// shard elements and rank is the position in the distributed group. ok is false for none.
func Local(f bucket.Fragment, shard units.Elems, rank int) (r LocalRange, ok bool) {
	base := shard * units.Elems(rank)
	lo := min(max(f.InBucket.Start-base, 0), shard)
	hi := min(max(f.InBucket.End-base, 0), shard)
	if lo >= hi || f.Dependency() {
		return LocalRange{}, false
	}
	r.Shard = bucket.Range{Start: lo, End: hi}
	r.ShardBucket = bucket.Range{Start: lo + base, End: hi + base}
	shift := f.InParam.Start - f.InBucket.Start
	r.ShardParam = bucket.Range{Start: r.ShardBucket.Start + shift, End: r.ShardBucket.End + shift}
	return r, true
}

// Local returns the part that rank owns of the fragment at ref.
func (l *Layout) Local(ref FragmentRef, rank int) (LocalRange, bool) {
	return Local(l.Buckets[ref.Bucket].Fragments[ref.Index], l.ShardSize, rank)
}

// DistributedRank returns the position in the distributed group of a rank of the process group,
// which is a grid: rank = redundant position * W + distributed position.
func (o Options) DistributedRank(rank int) int { return rank % o.Distributed }
