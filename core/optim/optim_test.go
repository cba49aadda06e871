package optim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/units"
)

// Every value has a name of its own, the one that the reference traces or the real code use.
func TestNames(t *testing.T) {
	var names []string
	for g := range numGroups {
		names = append(names, g.String())
	}
	require.Equal(t, []string{
		"distributed", "redundant", "world", "tensor", "embedding",
		"process", "instance", "pipeline", "expert distributed", "expert redundant",
	}, names)
	names = nil
	for r := range numReduceOps {
		names = append(names, r.String())
	}
	require.Equal(t, []string{"", "SUM", "AVG", "MAX"}, names)
	require.Equal(t, "READY PARTIALLY_FILLED FULLY_FILLED SYNCING",
		GradReady.String()+" "+GradPartial.String()+" "+GradFilled.String()+" "+GradSyncing.String())
	require.Equal(t, "CONSUMED SHARDED SYNCING READY",
		ParamConsumed.String()+" "+ParamSharded.String()+" "+ParamSyncing.String()+" "+ParamReady.String())
}

// A coalesced group adds up its members, each in its own dtype.
func TestCollectiveAdd(t *testing.T) {
	var c Collective
	c.Add(3, dtype.BF16, 100)
	c.Add(1, dtype.FP32, 10)
	c.Add(2, dtype.U8, 1)
	require.Equal(t, units.Elems(111), c.Elems)
	require.Equal(t, units.Bytes(241), c.Bytes)
	require.Equal(t, Member{Bucket: 1, DType: dtype.FP32, Elems: 10}, c.Members[1])
}
