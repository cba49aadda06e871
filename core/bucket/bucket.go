// Package bucket holds the words that every sharded optimizer shares: bucket, fragment, shard.
//
// All ranges are half-open and count elements. A layout is built by a framework's own
// package (core/apex is the first); this package knows what must hold of any layout.
package bucket

import (
	"fmt"

	"distopt/core/dtype"
	"distopt/core/units"
)

// ID numbers the buckets of one rank in order of creation.
type ID int32

// ParamID numbers the parameters of one rank (one pipeline stage, all its model chunks) in
// registration order.
type ParamID int32

// Range is a half-open range of elements.
type Range struct{ Start, End units.Elems }

// Len returns the number of elements.
func (r Range) Len() units.Elems { return r.End - r.Start }

// String prints the range as [start,end).
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }

// DTypes is the dtype triple of a bucket.
type DTypes struct {
	State     dtype.DType // of the optimizer state
	GradSync  dtype.DType // of the reduce-scatter
	ParamSync dtype.DType // of the all-gather; U8 carries FP8
}

// String prints the triple as the reference data names its buffers: state/grad sync/param sync.
func (d DTypes) String() string {
	return d.State.String() + "/" + d.GradSync.String() + "/" + d.ParamSync.String()
}

// Fragment is the part of one parameter inside one bucket. A fragment without elements is a
// dependency: the bucket waits for that parameter though it holds none of it.
type Fragment struct {
	Param    ParamID
	InParam  Range // within the flattened parameter; [n,n) for a dependency
	InBucket Range // within the bucket; [size,size) for a dependency
}

// Dependency reports whether f holds no elements.
func (f Fragment) Dependency() bool { return f.InParam.Len() == 0 }

// Bucket is a fixed-size run of elements that one collective synchronizes.
type Bucket struct {
	ID     ID
	Size   units.Elems // always the full size, whatever is in it
	Shard  units.Elems // Size / distributed size
	Filled units.Elems // end of the last fragment
	Open   bool        // may still be filled
	DTypes DTypes
	Offset units.Elems // start in the contiguous buffers of its triple

	StoresParams     bool // shards hold main parameters in the state dtype
	StoresRemainders bool // shards hold 16-bit remainders

	Fragments []Fragment // in order of insertion, dependencies last
}
