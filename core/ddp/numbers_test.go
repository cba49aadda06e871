package ddp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
)

// contributions of a step are divided over ranks and microbatches: all settings add up the same.
const contributions = 4

// task is what is trained. Gradients are small multiples of 1/16, so that every sum is exact.
type task struct {
	params  []model.Param
	initial [][]float32
	grads   [][][][]float32 // by step, contribution, parameter
}

var args = []optim.AdamArgs{
	{LR: 0.05, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, BiasCorrection: true},
	{LR: 0.05, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, BiasCorrection: true},
}

func newTask(r *rand.Rand, d dtype.DType) *task {
	t := &task{}
	for p := range 1 + r.IntN(7) {
		shape := []int64{int64(1 + r.IntN(200))}
		if r.IntN(3) > 0 {
			shape = append(shape, int64(1+r.IntN(4)))
		}
		n, _ := model.Numel(shape)
		t.params = append(t.params, model.Param{Name: fmt.Sprint("p", p), Shape: shape, Numel: n, DType: d})
		x := make([]float32, n)
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		t.initial = append(t.initial, x)
	}
	for range 3 {
		step := make([][][]float32, contributions)
		for c := range step {
			for _, q := range t.params {
				x := make([]float32, q.Numel)
				for i := range x {
					x[i] = float32(r.IntN(9)-4) / 16
				}
				step[c] = append(step[c], x)
			}
		}
		t.grads = append(t.grads, step)
	}
	return t
}

func decays(q *model.Param) bool { return len(q.Shape) > 1 }

// train runs all steps on arrays, as a training loop calls an optimizer, and returns the parameters.
func (t *task) train(tt *testing.T, distributed, copies int, buckets func() []bucket.Bucket, begin func(optim.Runtime) (optim.Sharded, error)) []arrays.Tensor {
	c := arrays.Config{
		Distributed: distributed, Redundant: copies, Groups: args, Buckets: buckets, ContiguousGrads: true, ContiguousParams: true,
	}
	for p := range t.params {
		group := 0
		if !decays(&t.params[p]) {
			group = 1
		}
		c.Params = append(c.Params, arrays.Param{Numel: t.params[p].Numel, DType: t.params[p].DType, Group: group})
	}
	ranks, err := arrays.New(c, t.initial)
	require.NoError(tt, err)
	opt, err := begin(ranks)
	require.NoError(tt, err)
	micros := contributions / ranks.Size()
	for _, grads := range t.grads {
		opt.ZeroGrad()
		for m := range micros {
			for p := range t.params {
				if opt.PendingForward(bucket.ParamID(p)) {
					opt.PreForward(bucket.ParamID(p))
				}
			}
			opt.NoSync(m < micros-1)
			for p := len(t.params) - 1; p >= 0; p-- {
				for rank := range ranks.Size() {
					g := append([]float32(nil), grads[rank*micros+m][p]...)
					for i := range g {
						g[i] /= float32(micros)
					}
					ranks.AddGrad(rank, bucket.ParamID(p), g)
				}
				opt.PostBackward(bucket.ParamID(p))
			}
		}
		opt.NoSync(false)
		opt.AfterBackward()
		opt.ClipGradNorm()
		opt.Step()
	}
	opt.ZeroGrad()
	for p := range t.params {
		if opt.PendingForward(bucket.ParamID(p)) {
			opt.PreForward(bucket.ParamID(p))
		}
	}
	require.NoError(tt, opt.Err())
	require.NoError(tt, ranks.Err())
	p, i, rank, differ := ranks.Difference()
	require.False(tt, differ, "parameter %d[%d] of rank %d", p, i, rank)
	var values []arrays.Tensor
	for p := range t.params {
		values = append(values, ranks.Param(0, bucket.ParamID(p)))
	}
	return values
}

func (t *task) ddp(tt *testing.T, o ddp.Options, maxNorm float64) []arrays.Tensor {
	l, err := ddp.Build(o, t.params, nil)
	require.NoError(tt, err)
	return t.train(tt, 1, o.World, func() []bucket.Bucket { return l.Buckets }, func(rt optim.Runtime) (optim.Sharded, error) {
		return ddp.NewSharded(l, ddp.Config{Runtime: rt, MaxNorm: maxNorm, Warm: true})
	})
}

func (t *task) apex(tt *testing.T, ranks int) []arrays.Tensor {
	o := apex.DefaultOptions(ranks)
	o.ParamSync, o.GradSync = t.params[0].DType, t.params[0].DType
	o.ContiguousGradBuffer, o.ContiguousParamBuffer, o.NewApex, o.BucketCapMB = true, true, true, 0.0003
	groups := make([][]bucket.ParamID, 2)
	for p := range t.params {
		g := 0
		if !decays(&t.params[p]) {
			g = 1
		}
		groups[g] = append(groups[g], bucket.ParamID(p))
	}
	l, err := apex.NewLayout(o, t.params, groups)
	require.NoError(tt, err)
	l.InitParams(nil)
	return t.train(tt, ranks, 1, func() []bucket.Bucket { return l.Buckets }, func(rt optim.Runtime) (optim.Sharded, error) {
		return apex.NewSharded(l, apex.Config{Runtime: rt})
	})
}

func (t *task) mcore(tt *testing.T, ranks int) []arrays.Tensor {
	var params []mcore.Param
	for _, q := range t.params {
		params = append(params, mcore.Param{Param: q, Path: q.Name})
	}
	l, err := mcore.Build(mcore.Options{World: ranks, DistributedOptimizer: true, OverlapGradReduce: true, BucketSize: 300}, params)
	require.NoError(tt, err)
	return t.train(tt, ranks, 1, func() []bucket.Bucket { return l.Buckets }, func(rt optim.Runtime) (optim.Sharded, error) {
		return mcore.NewSharded(l, mcore.Config{Runtime: rt})
	})
}

// Where sums are exact, the framework does not change a bit of the updated parameters: neither buckets
// nor who updates what.
func TestFrameworksUpdateAlike(t *testing.T) {
	for _, d := range []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16} {
		r := rand.New(rand.NewPCG(uint64(d), 7))
		for range 12 {
			k := newTask(r, d)
			want := k.apex(t, []int{1, 2, 4}[r.IntN(3)])
			lists := map[string][]arrays.Tensor{"megatron-core": k.mcore(t, []int{1, 2, 4}[r.IntN(3)])}
			for i := range 4 {
				o := ddp.Options{
					World: []int{1, 2, 4}[r.IntN(3)], CapMB: float64(1+r.IntN(2000)) / (1 << 20), MainParams: true,
					FindUnused: r.IntN(2) == 0, BucketView: r.IntN(2) == 0, Foreach: r.IntN(2) == 0,
				}
				lists[fmt.Sprintf("%d: %+v", i, o)] = k.ddp(t, o, 0)
			}
			for what, got := range lists {
				for p := range want {
					require.True(t, want[p].Equal(got[p]), "%s: parameter %d\n%v\n%v", what, p, want[p], got[p])
				}
			}
		}
	}
}

// The norm by which gradients are clipped is that of one rank, without a collective.
func TestNormIsThatOfAllGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 7))
	for range 20 {
		k := newTask(r, dtype.FP32)
		want := k.ddp(t, ddp.Options{World: 1}, 1e-3)
		got := k.ddp(t, ddp.Options{World: 4, CapMB: float64(1+r.IntN(2000)) / (1 << 20)}, 1e-3)
		for p := range want {
			require.True(t, want[p].Equal(got[p]))
		}
	}
}

// 16-bit parameters that PyTorch's own optimizers update as they are lose small updates; main
// parameters keep them.
func TestMainParametersKeepSmallUpdates(t *testing.T) {
	k := newTask(rand.New(rand.NewPCG(1, 7)), dtype.BF16)
	for p := range k.initial {
		for i := range k.initial[p] {
			k.initial[p][i] = 32
		}
	}
	for _, main := range []bool{false, true} {
		moved := 0
		for p, t := range k.ddp(t, ddp.Options{World: 2, MainParams: main, State: dtype.BF16}, 0) {
			for i := range t.Len() {
				if !decays(&k.params[p]) && dtype.DecodeBF16(t.Halfs[i]) != k.initial[p][i] {
					moved++
				}
			}
		}
		require.Equal(t, main, moved > 0)
	}
}
