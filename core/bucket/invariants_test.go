package bucket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

// two buckets of 128 elements over shards of 64: parameter 0 fills the first and goes on in the
// second, which parameter 1 shares; both depend on the other's parameter.
func twoBuckets() ([]Bucket, []units.Elems) {
	return []Bucket{
		{ID: 0, Size: 128, Shard: 64, Filled: 128, Fragments: []Fragment{
			{Param: 0, InParam: Range{0, 128}, InBucket: Range{0, 128}},
			{Param: 1, InParam: Range{10, 10}, InBucket: Range{128, 128}},
		}},
		{ID: 1, Size: 128, Shard: 64, Filled: 74, Offset: 128, Fragments: []Fragment{
			{Param: 0, InParam: Range{128, 140}, InBucket: Range{0, 12}},
			{Param: 1, InParam: Range{0, 10}, InBucket: Range{64, 74}},
		}},
	}, []units.Elems{140, 10, 5}
}

func TestCheck(t *testing.T) {
	buckets, numel := twoBuckets()
	require.NoError(t, Check(buckets, numel, 64))
	for name, damage := range map[string]func(b []Bucket){
		"id":                      func(b []Bucket) { b[1].ID = 0 },
		"shard not aligned":       func(b []Bucket) { b[0].Shard = 32 },
		"size not in shards":      func(b []Bucket) { b[0].Size = 130 },
		"buffers overlap":         func(b []Bucket) { b[1].Offset = 100 },
		"lengths differ":          func(b []Bucket) { b[1].Fragments[0].InBucket.End = 13 },
		"elements twice":          func(b []Bucket) { b[1].Fragments[0].InParam = Range{127, 139} },
		"elements missing":        func(b []Bucket) { b[1].Fragments[0].InParam = Range{129, 141} },
		"end missing":             func(b []Bucket) { b[1].Fragments = b[1].Fragments[1:] },
		"overlap":                 func(b []Bucket) { b[1].Fragments[1].InBucket = Range{0, 10} },
		"not aligned":             func(b []Bucket) { b[1].Fragments[1].InBucket = Range{63, 73} },
		"beyond the bucket":       func(b []Bucket) { b[1].Fragments[1].InBucket = Range{128, 138} },
		"filled":                  func(b []Bucket) { b[1].Filled = 70 },
		"dependency in the midst": func(b []Bucket) { b[0].Fragments[1].InParam = Range{5, 5} },
		"parameter twice":         func(b []Bucket) { b[0].Fragments[1].Param = 0 },
		"no such parameter":       func(b []Bucket) { b[0].Fragments[1].Param = 3 },
	} {
		buckets, numel := twoBuckets()
		damage(buckets)
		require.Error(t, Check(buckets, numel, 64), name)
	}
}
