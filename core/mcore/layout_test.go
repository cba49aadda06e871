package mcore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// randomStage draws a small GPT, dense or with experts, and the settings of one of its stages.
func randomStage(r *rand.Rand) (Options, []Param, error) {
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	coin := func() bool { return r.IntN(2) == 0 }
	o := Options{
		Expert: pick(1, 1, 2, 4), Instances: pick(1, 1, 2), Pipeline: pick(1, 2, 3),
		DistributedOptimizer: r.IntN(5) > 0, OverlapGradReduce: r.IntN(5) > 0, GradReduceInFP32: coin(),
		HighBusBandwidth: r.IntN(8) == 0, PerTokenLoss: r.IntN(4) == 0, FP32Accumulation: r.IntN(5) == 0,
		LayerWise: r.IntN(6) == 0, BucketSize: units.Elems(pick(0, 1, 500, 3000, 20000)),
	}
	o.World = pick(1, 2, 3, 4, 6, 7, 8, 12, 48, 96) * o.Expert * o.Instances
	o.Stage = r.IntN(o.Pipeline)
	o.OverlapParamGather = o.OverlapGradReduce && o.DistributedOptimizer && coin()
	if o.BucketSize == 0 {
		o.NumBuckets = pick(0, 1, 5, 1000)
	}
	if !o.DistributedOptimizer || o.FP32Accumulation || o.LayerWise {
		o.Instances = 1
	}
	vp := pick(1, 1, 2)
	if o.Pipeline == 1 {
		vp = 1
	}
	o.GatherWithStep = vp > 1 && o.OverlapParamGather && !o.LayerWise && coin()
	c := model.Config{FP32RouterWeight: r.IntN(3) == 0, FP8Params: true}
	if o.Expert > 1 || coin() {
		c.Experts, c.ExpertFFN, c.SharedFFN = int64(o.Expert*pick(1, 2)), int64(pick(5, 32)), int64(pick(0, 24))
	}
	heads := int64(pick(1, 2))
	c.Layers, c.Hidden, c.FFN = int64(vp*o.Pipeline*pick(1, 2)), heads*int64(pick(8, 37)), int64(pick(16, 91))
	c.Heads, c.Groups, c.KVChannels, c.Vocab, c.Seq = heads, heads, int64(pick(8, 37)), int64(pick(64, 205)), int64(pick(8, 19))
	c.LearnedPositions, c.RMSNorm, c.Bias, c.Gated, c.Tied, c.DType = coin(), coin(), coin(), coin(), coin(), dtype.BF16
	s, err := model.BuildStage(c, model.Split{TP: 1, PP: o.Pipeline, Index: o.Stage, VP: vp, EP: o.Expert})
	if err != nil {
		return o, nil, err
	}
	return o, Params(s, Quant(r.IntN(int(numQuants)))), nil
}

// What must hold of any layout: each element of each parameter lies in its buffer once, parameters
// begin aligned, buckets divide into whole shards, shards cover what they must once, groups hold
// every bucket once.
func TestLayoutProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2026))
	for i := range 600 {
		o, params, err := randomStage(r)
		require.NoError(t, err)
		l, err := Build(o, params)
		require.NoError(t, err, "%d: %+v", i, o)
		requireSound(t, l)
	}
}

func requireSound(t *testing.T, l *Layout) {
	t.Helper()
	o := l.Options
	where := fmt.Sprintf("%+v", o)
	numel := make([]units.Elems, len(l.Params))
	for p := range l.Params {
		numel[p] = l.Params[p].Numel
	}
	placed := make([]int, len(l.Params))
	seen := make([]int, len(l.Buckets))
	for c := range l.Chunks {
		for i := range l.Chunks[c].Buffers {
			b := &l.Chunks[c].Buffers[i]
			end, sum := units.Elems(0), units.Elems(0)
			for k := range b.Buckets {
				id := l.BucketID(c, i, k)
				lb := &l.Buckets[id]
				require.Equal(t, id, lb.ID)
				require.Equal(t, end, b.Buckets[k].Range.Start, "buckets follow each other: %s", where)
				end = b.Buckets[k].Range.End
				sum += b.Buckets[k].Unpadded
				require.NoError(t, bucket.Check([]bucket.Bucket{{
					Size: lb.Size, Shard: lb.Shard, Filled: lb.Filled, Fragments: lb.Fragments, DTypes: lb.DTypes,
				}}, numel, 1), where)
				if o.DistributedOptimizer {
					require.Zero(t, lb.Size%l.divisor(b.GroupSize), where)
					require.Equal(t, lb.Size, lb.Shard*units.Elems(b.GroupSize))
				} else {
					require.Equal(t, lb.Filled, lb.Size, "no padding: %s", where)
				}
				if size := l.Chunks[c].Bucketing.Size; size == 0 && len(b.Buckets) > 1 {
					shared := 0
					for _, p := range b.Params {
						if l.Params[p.Param].SharedEmbedding {
							shared++
						}
					}
					require.Positive(t, shared, "one bucket, but for shared embeddings: %s", where)
				}
			}
			require.Equal(t, b.Numel, end)
			require.Equal(t, b.Unpadded, sum)
			owned := make(map[bucket.ParamID]units.Elems)
			for position := range b.GroupSize {
				for _, own := range l.Local(c, i, position) {
					require.Equal(t, owned[own.Param], own.InParam.Start, "shards follow each other: %s", where)
					owned[own.Param] = own.InParam.End
					require.Equal(t, own.InShard.Len(), own.InParam.Len())
				}
			}
			for _, p := range b.Params {
				placed[p.Param]++
				require.Equal(t, numel[p.Param], p.Range.Len())
				if o.DistributedOptimizer {
					require.Zero(t, p.Range.Start%paramAlign, where)
					require.Equal(t, numel[p.Param], owned[p.Param], "each element has an owner: %s", where)
				}
				require.Equal(t, b.Key, l.key(p.Param))
				if b.LayerWise && o.DistributedOptimizer {
					k := b.Buckets[p.Bucket].Range
					n := k.Len() / units.Elems(b.GroupSize)
					require.Equal(t, (p.Range.Start-k.Start)/n, (p.Range.End-1-k.Start)/n, "a matrix lies in one shard: %s", where)
				}
			}
		}
		for g := l.Chunks[c].Groups[0]; g < l.Chunks[c].Groups[1]; g++ {
			params := 0
			for _, id := range l.Groups[g].Buckets {
				seen[id]++
				require.Equal(t, g, l.Places[id].Group)
				for _, f := range l.Buckets[id].Fragments {
					require.Equal(t, g, l.Owner(f.Param))
					params++
				}
			}
			require.Equal(t, params, l.Groups[g].Params)
			if o.FP32Accumulation && !l.Chunks[c].Bucketing.Disabled {
				require.Len(t, l.Groups[g].Buckets, 1, where)
			}
		}
	}
	for p, n := range placed {
		require.Equal(t, 1, n, "parameter %d: %s", p, where)
	}
	for id, n := range seen {
		require.Equal(t, 1, n, "bucket %d: %s", id, where)
	}
}

// Who decides the bucket size, and why there is none.
func TestBucketing(t *testing.T) {
	base := Options{World: 8, OverlapGradReduce: true, DistributedOptimizer: true, Pipeline: 2}
	for _, tt := range []struct {
		name   string
		chunk  int
		change func(*Options)
		want   Bucketing
	}{
		{"default", 0, func(*Options) {}, Bucketing{40_000_000, SizeOfMinimum, 40_000_000, Bucketed, false}},
		{"many ranks", 0, func(o *Options) { o.World = 64 }, Bucketing{64_000_000, SizeOfRanks, 64_000_000, Bucketed, false}},
		{"library", 0, func(o *Options) { o.World, o.Data, o.Library = 64, 32, true }, Bucketing{40_000_000, SizeOfMinimum, 40_000_000, Bucketed, false}},
		{"given", 0, func(o *Options) { o.BucketSize = 5 }, Bucketing{5, SizeGiven, 5, Bucketed, false}},
		{"count", 0, func(o *Options) { o.NumBuckets = 7 }, Bucketing{142, SizeOfCount, 142, Bucketed, false}},
		{"no overlap", 1, func(o *Options) { o.OverlapGradReduce = false }, Bucketing{0, SizeOfMinimum, 0, OffNoOverlap, true}},
		{"later chunk", 1, func(*Options) {}, Bucketing{40_000_000, SizeOfMinimum, 0, OffLaterChunk, true}},
		{"later stage", 0, func(o *Options) { o.Stage = 1 }, Bucketing{40_000_000, SizeOfMinimum, 0, OffLaterStage, false}},
		{"with the step", 0, func(o *Options) { o.GatherWithStep = true }, Bucketing{40_000_000, SizeOfMinimum, 0, OffWithStep, true}},
	} {
		o := base
		tt.change(&o)
		require.Equal(t, tt.want, o.withDefaults().bucketing(tt.chunk, 1000), tt.name)
		require.NotEmpty(t, tt.want.Off.String()+tt.want.Rule.String())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{World: 8, DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true}
	require.NoError(t, good.Check(1))
	for want, change := range map[string]func(*Options){
		"data_parallel_size: got 0":                               func(o *Options) { o.World = 0 },
		"overlap_param_gather: got true, want use_distributed":    func(o *Options) { o.DistributedOptimizer = false },
		"overlap_param_gather: got true, want overlap_grad":       func(o *Options) { o.OverlapGradReduce = false },
		"overlap_param_gather_with_optimizer_step: got true":      func(o *Options) { o.GatherWithStep = true },
		"num_distributed_optimizer_instances: got 3":              func(o *Options) { o.Instances = 3 },
		"average_in_collective: got true":                         func(o *Options) { o.AverageInCollective, o.PerTokenLoss = true, true },
		"reduce_scatter_with_fp32_accumulation: got true":         func(o *Options) { o.FP32Accumulation, o.Instances = true, 2 },
		"expert_model_parallel_size: got 3":                       func(o *Options) { o.Expert = 3 },
		"param_name_patterns_for_fp32_local_accumulation: got tr": func(o *Options) { o.FP32Patterns, o.GradReduceInFP32 = []string{"*"}, true },
		"ddp_bucket_size with ddp_num_buckets":                    func(o *Options) { o.BucketSize, o.NumBuckets = 1, 1 },
		"pipeline stage: got 1":                                   func(o *Options) { o.Stage = 1 },
	} {
		o := good
		change(&o)
		require.ErrorContains(t, o.Check(1), want)
	}
}

// Cases of Python's fnmatch.
func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.bias", "decoder.layers.0.mlp.linear_fc1.bias", true},
		{"*.bias", "decoder.bias_weight", false},
		{"*layer_norm*", "x.layer_norm_weight", true},
		{"*", "", true},
		{"?", "", false},
		{"decoder.layers.[02].*", "decoder.layers.2.x", true},
		{"decoder.layers.[!02].*", "decoder.layers.2.x", false},
		{"decoder.layers.[0-3].*", "decoder.layers.4.x", false},
		{"a[b", "a[b", true},
		{"*a*b", "xaab", true},
		{"*a*b", "xaaba", false},
		{"[]]", "]", true},
	} {
		require.Equal(t, tt.want, matches(tt.pattern, tt.name), "%s %s", tt.pattern, tt.name)
	}
}

// num_buckets is a target: GPT-2 makes four of five, since parameters are never split and the last
// bucket holds what is left with the large word embedding.
func TestNumBucketsIsATarget(t *testing.T) {
	s, err := model.BuildStage(model.Config{
		Layers: 12, Hidden: 768, FFN: 3072, Heads: 12, Groups: 12, KVChannels: 64, Vocab: 50304, Seq: 1024,
		LearnedPositions: true, Bias: true, Tied: true, DType: dtype.BF16,
	}, model.Split{TP: 1, PP: 1, VP: 1})
	require.NoError(t, err)
	params := Params(s, Plain)
	l, err := Build(Options{World: 8, NumBuckets: 5, DistributedOptimizer: true, OverlapGradReduce: true}, params)
	require.NoError(t, err)
	require.Len(t, l.Buckets, 4)
	require.Equal(t, SizeOfCount, l.Size().Rule)
}

// 2^16 padding is dear where the group has odd factors: 484 ranks pad to 7,929,856 elements.
func TestDivisor(t *testing.T) {
	l := &Layout{}
	require.Equal(t, units.Elems(384), l.divisor(3))
	require.Equal(t, units.Elems(15488), l.divisor(484))
	l.Options.HighBusBandwidth = true
	require.Equal(t, units.Elems(7_929_856), l.divisor(484))
}
