package mcore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
	"distopt/core/units"
)

// contributions of a step are divided over ranks and microbatches: all settings add up the same.
const contributions = 4

// task is what is trained. Gradients are small multiples of 1/16, so that every sum is exact.
type task struct {
	dtype   dtype.DType
	grads16 bool // gradients are reduced in the parameters' dtype
	params  []mcore.Param
	initial [][]float32
	grads   [][][][]float32 // by step, contribution, parameter
	args    []optim.AdamArgs
}

func newTask(r *rand.Rand, d dtype.DType, fp8, grads16 bool) *task {
	t := &task{dtype: d, grads16: grads16, args: []optim.AdamArgs{
		{LR: 0.05, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, BiasCorrection: true},
		{LR: 0.05, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, BiasCorrection: true},
	}}
	for p := range 1 + r.IntN(7) {
		shape := []int64{int64(1 + r.IntN(200))}
		if r.IntN(3) > 0 {
			shape = append(shape, int64(1+r.IntN(4)))
		}
		n, _ := model.Numel(shape)
		q := mcore.Param{Param: model.Param{Name: fmt.Sprint("p", p), Shape: shape, Numel: n, DType: d}, Path: fmt.Sprint("p", p)}
		if fp8 && r.IntN(3) > 0 {
			q.Quant, q.FP8 = mcore.FP8, true
		}
		t.params = append(t.params, q)
		x := make([]float32, n)
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		t.initial = append(t.initial, x)
	}
	for range 3 {
		var step [][][]float32
		for range contributions {
			var row [][]float32
			for _, q := range t.params {
				x := make([]float32, q.Numel)
				for i := range x {
					x[i] = float32(r.IntN(9)-4) / 16
				}
				row = append(row, x)
			}
			step = append(step, row)
		}
		t.grads = append(t.grads, step)
	}
	return t
}

func (t *task) config(distributed, redundant int, buckets func() []bucket.Bucket) arrays.Config {
	c := arrays.Config{
		Distributed: distributed, Redundant: redundant, Groups: t.args, Buckets: buckets,
		ContiguousGrads: true, ContiguousParams: true, FP8: optim.DelayedScaling{History: 16},
	}
	for i := range t.params {
		q := &t.params[i]
		group := 0
		if !q.Decays() {
			group = 1
		}
		c.Params = append(c.Params, arrays.Param{Numel: q.Numel, DType: q.DType, FP8: q.FP8, Group: group})
	}
	return c
}

// train runs all steps as a training loop calls them and returns the parameters.
func (t *task) train(tt *testing.T, ranks *arrays.Ranks, opt optim.Sharded, what string) []arrays.Tensor {
	micros := contributions / ranks.Size()
	forward := func() {
		for p := range t.params {
			if opt.PendingForward(bucket.ParamID(p)) {
				opt.PreForward(bucket.ParamID(p))
			}
		}
	}
	for _, grads := range t.grads {
		opt.ZeroGrad()
		opt.ParamSyncFunc(0)
		for m := range micros {
			ranks.Forward()
			forward()
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
		opt.GradSyncFunc(0)
		opt.AfterBackward()
		opt.ClipGradNorm()
		opt.Step()
	}
	// What is gathered in the next forward pass is gathered there.
	opt.ZeroGrad()
	opt.ParamSyncFunc(0)
	forward()
	require.NoError(tt, opt.Err(), what)
	require.NoError(tt, ranks.Err(), what)
	p, i, rank, differ := ranks.Difference()
	require.False(tt, differ, "%s: parameter %d[%d] of rank %d", what, p, i, rank)
	var values []arrays.Tensor
	for p := range t.params {
		values = append(values, ranks.Param(0, bucket.ParamID(p)))
	}
	return values
}

// megatron trains under Megatron-Core.
func (t *task) megatron(tt *testing.T, o mcore.Options, maxNorm float64) ([]arrays.Tensor, *arrays.Ranks) {
	what := fmt.Sprintf("%+v", o)
	l, err := mcore.Build(o, t.params)
	require.NoError(tt, err, what)
	distributed, redundant := o.GroupSize(false), max(o.Instances, 1)
	if !o.DistributedOptimizer {
		distributed, redundant = 1, o.World
	}
	ranks, err := arrays.New(t.config(distributed, redundant, func() []bucket.Bucket { return l.Buckets }), t.initial)
	require.NoError(tt, err, what)
	opt, err := mcore.NewSharded(l, mcore.Config{Runtime: ranks, MaxNorm: maxNorm})
	require.NoError(tt, err, what)
	return t.train(tt, ranks, opt, what), ranks
}

// apex trains under Apex.
func (t *task) apex(tt *testing.T, ranks int, overlap bool) []arrays.Tensor {
	o := apex.DefaultOptions(ranks)
	o.ParamSync, o.ContiguousGradBuffer, o.ContiguousParamBuffer = t.dtype, true, true
	o.OverlapGradSync, o.OverlapParamSync = overlap, overlap
	o.BucketCapMB, o.NewApex = 0.0003, true
	if t.grads16 {
		o.GradSync = t.dtype
	}
	groups := make([][]bucket.ParamID, 2)
	var params []model.Param
	fp8 := false
	for p := range t.params {
		q := &t.params[p]
		params = append(params, q.Param)
		g := 0
		if !q.Decays() {
			g = 1
		}
		groups[g] = append(groups[g], bucket.ParamID(p))
		fp8 = fp8 || q.FP8
	}
	o.NeMo, o.NewNeMo = fp8, fp8
	l, err := apex.NewLayout(o, params, groups)
	require.NoError(tt, err)
	if fp8 {
		var all []bucket.ParamID
		for p := range params {
			all = append(all, bucket.ParamID(p))
		}
		require.NoError(tt, l.InitParamsBucket(all))
	}
	l.InitParams(nil)
	r, err := arrays.New(t.config(ranks, 1, func() []bucket.Bucket { return l.Buckets }), t.initial)
	require.NoError(tt, err)
	opt, err := apex.NewSharded(l, apex.Config{Runtime: r})
	require.NoError(tt, err)
	return t.train(tt, r, opt, "apex")
}

// randomOptions draws settings that do not change what is added up.
func randomOptions(r *rand.Rand, t *task) mcore.Options {
	coin := func() bool { return r.IntN(2) == 0 }
	o := mcore.Options{
		World: []int{1, 2, 4}[r.IntN(3)], DistributedOptimizer: r.IntN(5) > 0, OverlapGradReduce: coin(),
		GradReduceInFP32: !t.grads16, AverageInCollective: coin(), BucketSize: units.Elems(1 + r.IntN(600)),
		AlignGradReduce: coin(), AlignParamGather: coin(), HighBusBandwidth: r.IntN(8) == 0,
	}
	if o.World > 1 && o.DistributedOptimizer && coin() {
		o.Instances = 2
		o.AlignGradReduce = false // with instances a reduction that the schedule started is started again
	}
	o.OverlapParamGather = o.OverlapGradReduce && o.DistributedOptimizer && coin()
	o.FP32Accumulation = o.Instances < 2 && !o.AverageInCollective && o.DistributedOptimizer && r.IntN(4) == 0
	o.LayerWise = o.DistributedOptimizer && o.Instances < 2 && r.IntN(5) == 0
	return o
}

// The framework, its settings, buckets, groups, instances and overlaps do not change a bit of the
// updated parameters where the arithmetic is the same.
func TestFrameworksUpdateAlike(t *testing.T) {
	for _, f := range []struct {
		name         string
		dtype        dtype.DType
		fp8, grads16 bool
	}{
		{"fp32", dtype.FP32, false, false},
		{"bf16 parameters", dtype.BF16, false, false},
		{"bf16 parameters and gradients", dtype.BF16, false, true},
		{"fp16 parameters", dtype.FP16, false, false},
		{"fp8 weights", dtype.BF16, true, false},
	} {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(f.name)), 4))
			for range 12 {
				k := newTask(r, f.dtype, f.fp8, f.grads16)
				want := k.apex(t, []int{1, 2, 4}[r.IntN(3)], r.IntN(2) == 0)
				for range 5 {
					o := randomOptions(r, k)
					if f.fp8 { // without shards there is no buffer of bytes
						o.DistributedOptimizer = true
					}
					got, _ := k.megatron(t, o, 0)
					for p := range want {
						require.True(t, want[p].Equal(got[p]), "parameter %d: %+v\n%v\n%v", p, o, want[p], got[p])
					}
				}
			}
		})
	}
}

// The norm of the gradients is that of one rank, but for the order of its sums.
func TestNormIsThatOfAllGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 4))
	for range 40 {
		k := newTask(r, dtype.FP32, false, false)
		want, _ := k.megatron(t, mcore.Options{World: 1, GradReduceInFP32: true}, 1e-3)
		o := randomOptions(r, k)
		got, _ := k.megatron(t, o, 1e-3)
		for p := range want {
			for i, x := range want[p].Words {
				require.InDelta(t, x, got[p].Words[i], 1e-6, "%+v", o)
			}
		}
	}
}

// Private fp32 sums make microbatches add up as one backward pass: what is rounded once cannot be
// rounded in between.
func TestPrivateSumsAreRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	k := newTask(r, dtype.BF16, false, true)
	for _, step := range k.grads {
		for c := range step {
			for p := range step[c] {
				for i := range step[c][p] {
					// Summed one by one, bf16 loses the small ones behind the large one.
					step[c][p][i] = []float32{256, 0.75, 0.75, 0.75}[c]
				}
			}
		}
	}
	merged := *k
	merged.grads = nil
	for _, step := range k.grads {
		row := make([][]float32, len(step[0]))
		for p := range row {
			for range step[0][p] {
				row[p] = append(row[p], 256+3*0.75)
			}
		}
		zero := make([][]float32, len(row))
		for p := range zero {
			zero[p] = make([]float32, len(row[p]))
		}
		merged.grads = append(merged.grads, [][][]float32{row, zero, zero, zero})
	}
	train := func(k *task, patterns ...string) []arrays.Tensor {
		l, err := mcore.Build(mcore.Options{World: 1, DistributedOptimizer: true, FP32Patterns: patterns}, k.params)
		require.NoError(t, err)
		c := k.config(1, 1, func() []bucket.Bucket { return l.Buckets })
		for p := range c.Params {
			c.Params[p].Private = len(patterns) > 0
		}
		// fp32 moments of large gradients differ where the sums do.
		ranks, err := arrays.New(c, k.initial)
		require.NoError(t, err)
		opt, err := mcore.NewSharded(l, mcore.Config{Runtime: ranks})
		require.NoError(t, err)
		k.train(t, ranks, opt, "private")
		var moments []arrays.Tensor
		for id := range l.Buckets {
			moments = append(moments, ranks.Shard(0, bucket.ID(id)).ExpAvg)
		}
		return moments
	}
	whole, private, shared := train(&merged), train(k, "all"), train(k)
	for id := range whole {
		require.True(t, whole[id].Equal(private[id]), "bucket %d", id)
		require.False(t, whole[id].Equal(shared[id]), "bucket %d", id)
	}
}

// Gradients that are summed over ranks and divided by a number of tokens end as means.
func TestPerTokenLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	k := newTask(r, dtype.FP32, false, false)
	want, _ := k.megatron(t, mcore.Options{World: 1, DistributedOptimizer: true}, 0)
	l, err := mcore.Build(mcore.Options{World: 4, DistributedOptimizer: true, PerTokenLoss: true}, k.params)
	require.NoError(t, err)
	ranks, err := arrays.New(k.config(4, 1, func() []bucket.Bucket { return l.Buckets }), k.initial)
	require.NoError(t, err)
	ranks.SetTokens(4)
	opt, err := mcore.NewSharded(l, mcore.Config{Runtime: ranks})
	require.NoError(t, err)
	got := k.train(t, ranks, opt, "per token")
	for p := range want {
		require.True(t, want[p].Equal(got[p]))
	}
}
