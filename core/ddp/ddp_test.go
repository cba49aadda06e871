package ddp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

// resnet18 lists torchvision's model, fp32, in registration order.
func resnet18() []Param {
	var list []Param
	add := func(name string, shape ...int) {
		n := 4
		for _, d := range shape {
			n *= d
		}
		list = append(list, Param{Name: name, Dims: len(shape), Format: "fp32", Bytes: units.Bytes(n)})
	}
	norm := func(name string, c int) {
		add(name+".weight", c)
		add(name+".bias", c)
	}
	add("conv1.weight", 64, 3, 7, 7)
	norm("bn1", 64)
	in := 64
	for layer, c := range []int{64, 128, 256, 512} {
		for block := range 2 {
			at := fmt.Sprintf("layer%d.%d.", layer+1, block)
			add(at+"conv1.weight", c, in, 3, 3)
			norm(at+"bn1", c)
			add(at+"conv2.weight", c, c, 3, 3)
			norm(at+"bn2", c)
			if in != c {
				add(at+"downsample.0.weight", c, in, 1, 1)
				norm(at+"downsample.1", c)
			}
			in = c
		}
	}
	add("fc.weight", 1000, 512)
	add("fc.bias", 1000)
	return list
}

// The published lists of ResNet-18 (pytorch issue 48880): 25 MiB by default, with a first bucket of
// 1 MiB; 35 with the old first bucket; 25 and 35 given, which hold for the first bucket too.
func TestResNet18(t *testing.T) {
	params := resnet18()
	require.Len(t, params, 62)
	sizes := func(buckets []Bucket, err error) (list []units.Bytes) {
		require.NoError(t, err)
		for _, b := range buckets {
			list = append(list, b.Bytes)
		}
		return list
	}
	arrival := Arrival(params)
	require.Equal(t, []units.Bytes{2052000, 28852224, 15853824}, sizes(Rebuilt(params, arrival, 0)))
	require.Equal(t, []units.Bytes{2052000, 38297600, 6408448}, sizes(Assign(params, arrival, []units.Bytes{FirstBucket, 35 << 20})))
	require.Equal(t, []units.Bytes{30904224, 15853824}, sizes(Rebuilt(params, arrival, 25)))
	require.Equal(t, []units.Bytes{37988256, 8769792}, sizes(Rebuilt(params, arrival, 35)))
	require.Equal(t, []units.Bytes{46758048}, sizes(First(params, 0, false)))
	first, err := First(params, 0, true)
	require.NoError(t, err)
	require.Equal(t, FirstBucket, first[len(first)-1].Limit, "the small bucket is last at first")
}

// Every parameter is in one bucket; a bucket has one format and reaches its limit unless it was left
// over, and would not without its last parameter.
func TestAssignProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	for range 500 {
		var params []Param
		for i := range r.IntN(40) {
			params = append(params, Param{
				Name: fmt.Sprint("m", i/2, ".p", i), Dims: 1 + r.IntN(2), Format: []string{"fp32", "bf16", "fp16"}[r.IntN(3)],
				Bytes: units.Bytes(r.IntN(3000)),
			})
		}
		limits := []units.Bytes{units.Bytes(1 + r.IntN(2000)), units.Bytes(1 + r.IntN(6000))}
		order := Arrival(params)
		require.ElementsMatch(t, registration(params), order)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		buckets, err := Assign(params, order, limits)
		require.NoError(t, err)
		var all []int
		under := map[string]int{}
		for _, b := range buckets {
			all = append(all, b.Params...)
			sum := units.Bytes(0)
			for _, p := range b.Params {
				require.Equal(t, params[b.Params[0]].Format, params[p].Format)
				sum += params[p].Bytes
			}
			require.Equal(t, sum, b.Bytes)
			require.Less(t, sum-params[b.Params[len(b.Params)-1]].Bytes, b.Limit)
			require.Contains(t, limits, b.Limit)
			if b.Bytes < b.Limit {
				under[params[b.Params[0]].Format]++
			}
		}
		slices.Sort(all)
		require.Equal(t, len(params), len(slices.Compact(all)))
		for format, n := range under {
			require.Equal(t, 1, n, format)
		}
	}
}

func TestErrors(t *testing.T) {
	params := []Param{{Name: "a", Bytes: 4}}
	for _, tt := range []struct {
		order  []int
		limits []units.Bytes
		want   string
	}{
		{nil, nil, "bucket limits: got []"},
		{nil, []units.Bytes{0}, "bucket limits: got"},
		{[]int{1}, []units.Bytes{1}, "order: got parameter 1"},
	} {
		_, err := Assign(params, tt.order, tt.limits)
		require.ErrorContains(t, err, tt.want)
	}
	_, err := Assign([]Param{{Name: "a", Bytes: -1}}, []int{0}, Limits(0))
	require.ErrorContains(t, err, "a: got -1")
}
