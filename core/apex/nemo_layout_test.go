package apex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// randomStage draws a small model and a stage of it.
func randomStage(t *testing.T, r *rand.Rand) *model.Stage {
	split := model.Split{TP: 1 << r.IntN(3), SP: r.IntN(2) == 0, PP: 1 + r.IntN(4), VP: 1}
	if split.PP > 1 && r.IntN(2) == 0 {
		split.VP = 2 + r.IntN(2)
	}
	split.Index = r.IntN(split.PP)
	tp := int64(split.TP)
	groups := tp * (1 + r.Int64N(2))
	c := model.Config{
		Layers: int64(split.PP*split.VP) * (1 + r.Int64N(3)), Hidden: 8 * (1 + r.Int64N(12)), FFN: tp * (1 + r.Int64N(200)),
		Heads: groups * (1 + r.Int64N(3)), Groups: groups, KVChannels: 1 + r.Int64N(20), Vocab: tp * (1 + r.Int64N(300)), Seq: 1 + r.Int64N(80),
		LearnedPositions: r.IntN(2) == 0, RMSNorm: r.IntN(2) == 0, Bias: r.IntN(2) == 0, Gated: r.IntN(2) == 0, Tied: r.IntN(2) == 0,
		FP8Params: r.IntN(2) == 0, DType: dtype.BF16,
	}
	s, err := model.BuildStage(c, split)
	require.NoError(t, err)
	return s
}

func randomOptions(r *rand.Rand, s *model.Stage) Options {
	o := DefaultOptions(1 + r.IntN(9))
	o.BucketCapMB = []float64{0.0001, 0.001, 0.003, 0.01, 0.1, 1}[r.IntN(6)]
	o.GradSync = []dtype.DType{dtype.FP32, dtype.BF16}[r.IntN(2)]
	o.ContiguousParamBuffer = r.IntN(2) == 0
	o.SetNeMo(dtype.BF16, s.Config.FP8Params)
	o.NewNeMo, o.NewApex = r.IntN(2) == 0, r.IntN(2) == 0
	o.Later = Later{StageBuckets: r.IntN(3) == 0, FP32EmbeddingGrads: r.IntN(3) == 0}
	return o
}

// What must hold of every layout holds of random ones of every version.
func TestLayoutInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 8221))
	for i := range 150 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		l, err := BuildNeMo(o, s)
		require.NoError(t, err)
		what := fmt.Sprintf("%d: %+v %+v %+v", i, s.Config, s.Split, o)
		checkLayout(t, l, what)
		require.True(t, l.AllPlaced(), what)
		for p := range l.Params {
			q := &l.Params[p]
			d := l.Buckets[l.Fragments[p][0].Bucket].DTypes
			require.Equal(t, q.FP8, d.ParamSync == dtype.U8, what)
			if q.FP32Grads {
				require.Equal(t, dtype.FP32, d.GradSync, what)
			}
		}
	}
}

func checkLayout(t *testing.T, l *Layout, what string) {
	t.Helper()
	numel := make([]units.Elems, len(l.Params))
	for p := range l.Params {
		numel[p] = l.Params[p].Numel
	}
	require.NoError(t, bucket.Check(l.Buckets, numel, l.Alignment), what)

	count := 0
	for p, refs := range l.Fragments {
		pos := units.Elems(0)
		for _, ref := range refs {
			f := l.Buckets[ref.Bucket].Fragments[ref.Index]
			require.Equal(t, bucket.ParamID(p), f.Param, what)
			require.Equal(t, pos, f.InParam.Start, what)
			pos = f.InParam.End
			if v, ok := l.View(bucket.ParamID(p)); ok && !f.Dependency() {
				b := &l.Buckets[ref.Bucket]
				require.Equal(t, v.Offset+f.InParam.Start, b.Offset+f.InBucket.Start, "pieces are adjacent: %s", what)
			}
		}
		count += len(refs)
	}
	for i := range l.Buckets {
		count -= len(l.Buckets[i].Fragments)
	}
	require.Zero(t, count, what)

	// The ranks' parts of a fragment follow each other and make it whole.
	for i := range l.Buckets {
		b := &l.Buckets[i]
		for j, f := range b.Fragments {
			next := f.InBucket.Start
			for rank := range l.Options.Distributed {
				part, ok := l.Local(FragmentRef{bucket.ID(i), int32(j)}, rank)
				if !ok {
					continue
				}
				require.Equal(t, next, part.ShardBucket.Start, what)
				require.Equal(t, next-b.Shard*units.Elems(rank), part.Shard.Start, what)
				require.Equal(t, next-f.InBucket.Start+f.InParam.Start, part.ShardParam.Start, what)
				require.True(t, part.Shard.Start >= 0 && part.Shard.End <= b.Shard, what)
				require.Equal(t, part.Shard.Len(), part.ShardBucket.Len(), what)
				require.Equal(t, part.Shard.Len(), part.ShardParam.Len(), what)
				next = part.ShardBucket.End
			}
			if !f.Dependency() {
				require.Equal(t, f.InBucket.End, next, what)
			}
		}
	}
}

// Plain Apex, placed in random order with explicit lists in between.
func TestPlainLayoutInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1771))
	for i := range 100 {
		sizes := make([]units.Elems, 1+r.IntN(20))
		for p := range sizes {
			sizes[p] = units.Elems(r.IntN(400))
		}
		params, groups := sized(sizes...)
		o := smallOptions()
		o.Distributed = 1 + r.IntN(4)
		l, err := NewLayout(o, params, groups)
		require.NoError(t, err)
		for _, k := range r.Perm(len(params)) {
			p := bucket.ParamID(k)
			if r.IntN(4) == 0 {
				require.NoError(t, l.InitParamsBucket([]bucket.ParamID{p, bucket.ParamID(r.IntN(len(params)))}))
			}
			l.Place(p)
		}
		checkLayout(t, l, fmt.Sprint(i, sizes))
	}
}

// After PR #8221 the buckets of each list hold or wait for all of it.
func TestLinkedBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8221))
	for range 60 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		o.NewNeMo = true
		l, err := BuildNeMo(o, s)
		require.NoError(t, err)
		lists := l.bucketLists(s)
		for _, list := range lists {
			var all []bucket.ID
			for _, p := range list {
				for _, ref := range l.Fragments[p] {
					all = append(all, ref.Bucket)
				}
			}
			slices.Sort(all)
			all = slices.Compact(all)
			for _, p := range list {
				own := make([]bucket.ID, 0, len(all))
				for _, ref := range l.Fragments[p] {
					own = append(own, ref.Bucket)
				}
				slices.Sort(own)
				require.Equal(t, all, own)
			}
		}
		require.Equal(t, countSets(l), nonEmpty(lists))
	}
}

func countSets(l *Layout) int {
	n := 0
	for _, set := range l.Sets() {
		n = max(n, set+1)
	}
	return n
}

func nonEmpty(lists [][]bucket.ParamID) int {
	n := 0
	for _, list := range lists {
		if len(list) > 0 {
			n++
		}
	}
	return n
}

// NeMo PR #9408: with virtual stages one set of linked buckets for each chunk, else no change.
func TestStageBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9408))
	for range 80 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		o.NewNeMo = true
		o.Later.StageBuckets = false
		perLayer, err := BuildNeMo(o, s)
		require.NoError(t, err)
		o.Later.StageBuckets = true
		l, err := BuildNeMo(o, s)
		require.NoError(t, err)
		if s.VP == 1 {
			require.Equal(t, perLayer.Buckets, l.Buckets)
			continue
		}
		require.Equal(t, s.VP, countSets(l))
		// Nothing of another chunk waits with a chunk's FP8 tensors, but for the leftovers, which
		// stand with chunk 0.
		for i := range l.Buckets {
			chunks := map[int]bool{}
			for _, f := range l.Buckets[i].Fragments {
				chunks[l.Params[f.Param].Chunk] = true
			}
			require.True(t, len(chunks) == 1 || chunks[0])
		}
	}
}

// NeMo PR #8792: embeddings have fp32 gradients with virtual stages as without; an output layer of
// its own no longer has.
func TestFP32EmbeddingGrads(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8792))
	for range 80 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		o.Later.FP32EmbeddingGrads = false
		plain, err := BuildNeMo(o, s)
		require.NoError(t, err)
		o.Later.FP32EmbeddingGrads = true
		l, err := BuildNeMo(o, s)
		require.NoError(t, err)
		for p := range l.Params {
			q := &l.Params[p]
			switch q.Role {
			case model.WordEmbedding, model.PositionEmbedding:
				require.True(t, q.FP32Grads)
			case model.OutputLayer:
				require.Equal(t, s.Config.Tied, q.FP32Grads)
			default:
				require.False(t, q.FP32Grads)
			}
		}
		if s.VP == 1 && s.Config.Tied {
			require.Equal(t, plain.Buckets, l.Buckets)
		}
		if s.VP > 1 {
			for p := range plain.Params {
				require.False(t, plain.Params[p].FP32Grads)
			}
		}
	}
}

// A layout that would be too large is refused with the limit named, before it is built.
func TestLimits(t *testing.T) {
	s, err := model.BuildStage(model.Config{
		Layers: 128, Hidden: 25600, FFN: 102400, Heads: 160, Groups: 160, KVChannels: 160, Vocab: 51200, Seq: 2048,
		LearnedPositions: true, Bias: true, Tied: true, DType: dtype.BF16,
	}, model.Split{TP: 8, SP: true, PP: 1, VP: 1}) // 10^12 parameters
	require.NoError(t, err)
	o := DefaultOptions(16)
	o.GradSync = dtype.BF16
	o.SetNeMo(dtype.BF16, false)
	o.NewNeMo = true
	o.BucketCapMB = 0.0001
	_, err = BuildNeMo(o, s)
	require.ErrorContains(t, err, "at most 100000")
	o.BucketCapMB = suggestedCap(t, err)
	_, err = BuildNeMo(o, s)
	require.NoError(t, err, "the fix that the error names")
	o.BucketCapMB = 0.0001
	n, err := CountBuckets(o, s.Params)
	require.NoError(t, err)
	require.Greater(t, n, int64(100_000_000))

	o.BucketCapMB = 8 // 30,000 buckets, and those of the last list wait for a thousand norms
	_, err = BuildNeMo(o, s)
	require.NoError(t, err)
	o.BucketCapMB = 1e6
	l, err := BuildNeMo(o, s)
	require.NoError(t, err)
	require.LessOrEqual(t, len(l.Buckets), 2*128+2)

	// One list over thousands of buckets: links grow as their product.
	o.NewNeMo = false
	o.BucketCapMB = 3
	s, err = model.BuildStage(s.Config, model.Split{TP: 8, PP: 1, VP: 2})
	require.NoError(t, err)
	_, err = BuildNeMo(o, s)
	require.ErrorContains(t, err, "links")
	o.BucketCapMB = suggestedCap(t, err)
	_, err = BuildNeMo(o, s)
	require.NoError(t, err, "the fix that the error names")

	huge, groups := sized(1<<49, 1<<49, 1<<49)
	_, err = NewLayout(o, huge, groups)
	require.ErrorContains(t, err, "use a smaller model")
}

// suggestedCap reads the fix out of an error.
func suggestedCap(t *testing.T, err error) float64 {
	t.Helper()
	words := strings.Fields(err.Error())
	require.Equal(t, []string{"or", "more"}, words[len(words)-2:])
	mb, err := strconv.ParseFloat(words[len(words)-3], 64)
	require.NoError(t, err)
	return mb
}

// Apex warns of padding, unless NeMo places an FP8 tensor last.
func TestWarnsOfPadding(t *testing.T) {
	params, groups := sized(100, 70, 300)
	l, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	l.Place(0)
	require.False(t, l.WarnsOfPadding(), "not before all are placed")
	l.InitParams(nil)
	filled, size := l.Use()
	require.Equal(t, [2]units.Elems{100 + 128 + 128 + 128 + 12, 640}, [2]units.Elems{filled, size})
	require.False(t, l.WarnsOfPadding())
	o := smallOptions()
	o.BucketCapMB = 1
	l, err = NewLayout(o, params, groups)
	require.NoError(t, err)
	l.InitParams(nil)
	require.True(t, l.WarnsOfPadding())

	l, err = BuildNeMo(exampleOptions(true), exampleStage(t))
	require.NoError(t, err)
	require.True(t, l.WarnsOfPadding())
	stage := exampleStage(t)
	stage.Params = stage.Params[2:3] // one FP8 weight alone
	o = exampleOptions(true)
	o.NeMo = true
	l, err = NewLayout(o, stage.Params, [][]bucket.ParamID{{0}})
	require.NoError(t, err)
	l.Place(0)
	require.False(t, l.WarnsOfPadding())
}

func BenchmarkBuildNeMo(b *testing.B) {
	s, err := model.BuildStage(model.Config{
		Layers: 128, Hidden: 25600, FFN: 102400, Heads: 160, Groups: 160, KVChannels: 160, Vocab: 51200, Seq: 2048,
		LearnedPositions: true, Bias: true, Tied: true, FP8Params: true, DType: dtype.BF16,
	}, model.Split{TP: 8, SP: true, PP: 64, VP: 2})
	require.NoError(b, err)
	o := DefaultOptions(6)
	o.GradSync = dtype.BF16
	o.BucketCapMB = 400
	o.SetNeMo(dtype.BF16, true)
	o.NewNeMo = true
	b.ReportAllocs()
	for b.Loop() {
		if _, err := BuildNeMo(o, s); err != nil {
			b.Fatal(err)
		}
	}
}
