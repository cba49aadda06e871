package bucket

import (
	"fmt"

	"distopt/core/units"
)

// Check reports the first thing that must hold of any layout and does not: numel holds the
// elements of every parameter, align what fragments and shards are aligned to.
//
//   - each element of each parameter that has fragments lies in exactly one of them, and a
//     parameter's fragments follow each other in order of buckets;
//   - fragments begin aligned, in ascending order, inside their bucket and without overlap;
//   - dependencies stand after the last element of their parameter and of their bucket;
//   - a bucket is a whole number of aligned shards, and its filled size is its last fragment's end;
//   - buckets of one triple do not overlap in its contiguous buffer.
func Check(buckets []Bucket, numel []units.Elems, align units.Elems) error {
	next := make([]units.Elems, len(numel)) // elements placed so far
	ends := map[DTypes]units.Elems{}
	for i := range buckets {
		b := &buckets[i]
		if b.ID != ID(i) {
			return fmt.Errorf("bucket %d: has id %d", i, b.ID)
		}
		if b.Shard <= 0 || b.Shard%align != 0 || b.Size%b.Shard != 0 {
			return fmt.Errorf("bucket %d: size %d is not a whole number of aligned shards of %d", i, b.Size, b.Shard)
		}
		if b.Offset < ends[b.DTypes] {
			return fmt.Errorf("bucket %d: begins at %d of its buffer, inside the bucket before it", i, b.Offset)
		}
		ends[b.DTypes] = b.Offset + b.Size
		if err := b.check(next, numel, align); err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
	}
	for p, n := range next {
		if n != 0 && n != numel[p] {
			return fmt.Errorf("parameter %d: %d of %d elements are placed", p, n, numel[p])
		}
	}
	return nil
}

// check looks at one bucket and moves next along.
func (b *Bucket) check(next, numel []units.Elems, align units.Elems) error {
	filled := units.Elems(0)
	seen := make(map[ParamID]bool, len(b.Fragments))
	for j, f := range b.Fragments {
		if f.Param < 0 || int(f.Param) >= len(numel) {
			return fmt.Errorf("fragment %d: no parameter %d", j, f.Param)
		}
		if seen[f.Param] {
			return fmt.Errorf("fragment %d: parameter %d is in the bucket already", j, f.Param)
		}
		seen[f.Param] = true
		n := numel[f.Param]
		if f.Dependency() {
			if f.InParam != (Range{n, n}) || f.InBucket != (Range{b.Size, b.Size}) {
				return fmt.Errorf("fragment %d: dependency at %v of its parameter and %v of the bucket", j, f.InParam, f.InBucket)
			}
			continue
		}
		switch {
		case f.InParam.Len() != f.InBucket.Len() || f.InParam.Len() < 0:
			return fmt.Errorf("fragment %d: %v of its parameter in %v of the bucket", j, f.InParam, f.InBucket)
		case f.InParam.Start != next[f.Param] || f.InParam.End > n:
			return fmt.Errorf("fragment %d: %v of parameter %d, of which %d elements were placed", j, f.InParam, f.Param, next[f.Param])
		case f.InBucket.Start < filled || f.InBucket.Start%align != 0 || f.InBucket.End > b.Size:
			return fmt.Errorf("fragment %d: %v of the bucket, filled to %d", j, f.InBucket, filled)
		}
		next[f.Param] = f.InParam.End
		filled = f.InBucket.End
	}
	if filled != b.Filled {
		return fmt.Errorf("filled size %d, but its last fragment ends at %d", b.Filled, filled)
	}
	return nil
}
