package apex

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Bucket sizes of specification §2.1.
func TestBucketSize(t *testing.T) {
	for _, tt := range []struct {
		capMB       float64
		w           int
		grads       dtype.DType
		shard, size units.Elems
	}{
		{100, 8, dtype.BF16, 6553600, 52428800},
		{125, 16, dtype.BF16, 4096000, 65536000},
		{220, 6, dtype.BF16, 19223872, 115343232},
		{100, 3, dtype.FP32, 8738112, 26214336},
		{100, 7, dtype.BF16, 7489792, 52428544},
		{0.0001, 4, dtype.BF16, 64, 256},
		{0.0001, 484, dtype.FP32, 32, 15488},
		{1e6, 3, dtype.FP16, 174762666624, 524287999872},
	} {
		o := DefaultOptions(tt.w)
		o.BucketCapMB, o.GradSync = tt.capMB, tt.grads
		size, shard, err := o.BucketSize()
		require.NoError(t, err)
		require.Equal(t, tt.shard, shard, "%v MB over %d", tt.capMB, tt.w)
		require.Equal(t, tt.size, size, "%v MB over %d", tt.capMB, tt.w)
	}
	for _, bad := range []float64{0, -1, 1e300} {
		o := DefaultOptions(2)
		o.BucketCapMB = bad
		_, _, err := o.BucketSize()
		require.ErrorContains(t, err, "bucket_cap_mb")
	}
}

// sized returns fp32 parameters of the given sizes in one group.
func sized(sizes ...units.Elems) ([]model.Param, [][]bucket.ParamID) {
	params := make([]model.Param, len(sizes))
	group := make([]bucket.ParamID, len(sizes))
	for i, n := range sizes {
		params[i] = model.Param{Name: fmt.Sprintf("p%d", i), Shape: []int64{int64(n)}, Numel: n, Layer: -1}
		group[i] = bucket.ParamID(i)
	}
	return params, [][]bucket.ParamID{group}
}

// smallOptions makes buckets of 128 elements over two ranks.
func smallOptions() Options {
	o := DefaultOptions(2)
	o.BucketCapMB = 0.0005
	return o
}

// Lazy and explicit placement of the parameters of specification §2.9.
func TestPlacementOrder(t *testing.T) {
	params, groups := sized(100, 70, 300)
	lazy, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	for _, p := range []bucket.ParamID{2, 1, 0} {
		require.False(t, lazy.Placed(p))
		lazy.Place(p)
		require.True(t, lazy.Placed(p))
	}
	require.True(t, lazy.AllPlaced())
	require.Equal(t, []string{
		"p2[0,128)@0", "p2[128,256)@0", "p2[256,300)@0 p1[0,64)@64", "p1[64,70)@0 p0[0,96)@32", "p0[96,100)@0",
	}, fragmentLines(lazy))

	explicit, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	explicit.InitParams(nil)
	require.Equal(t, []string{
		"p0[0,100)@0", "p1[0,70)@0 p2[0,32)@96", "p2[32,160)@0", "p2[160,288)@0", "p2[288,300)@0",
	}, fragmentLines(explicit))
	for _, tt := range []struct {
		ref  FragmentRef
		want LocalRange
		ok   bool
	}{
		{FragmentRef{0, 0}, LocalRange{bucket.Range{Start: 0, End: 36}, bucket.Range{Start: 64, End: 100}, bucket.Range{Start: 64, End: 100}}, true},
		{FragmentRef{1, 0}, LocalRange{bucket.Range{Start: 0, End: 6}, bucket.Range{Start: 64, End: 70}, bucket.Range{Start: 64, End: 70}}, true},
		{FragmentRef{1, 1}, LocalRange{bucket.Range{Start: 32, End: 64}, bucket.Range{Start: 96, End: 128}, bucket.Range{Start: 0, End: 32}}, true},
		{FragmentRef{2, 0}, LocalRange{bucket.Range{Start: 0, End: 64}, bucket.Range{Start: 64, End: 128}, bucket.Range{Start: 96, End: 160}}, true},
		{FragmentRef{3, 0}, LocalRange{bucket.Range{Start: 0, End: 64}, bucket.Range{Start: 64, End: 128}, bucket.Range{Start: 224, End: 288}}, true},
		{FragmentRef{4, 0}, LocalRange{}, false},
	} {
		got, ok := explicit.Local(tt.ref, 1)
		require.Equal(t, tt.ok, ok, "%v", tt.ref)
		require.Equal(t, tt.want, got, "%v", tt.ref)
	}
}

// The search for a triple's last bucket ends at bucket 0 without comparing it (specification §2.3c).
func TestMixedTriplesShareBucketZero(t *testing.T) {
	params, groups := sized(40, 70, 300)
	l, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	grads := l.DTypes(1)
	grads.GradSync = dtype.BF16
	l.Place(0)
	l.PlaceAs(1, grads)
	l.Place(2)
	require.Equal(t, "p0[0,40)@0 p1[0,64)@64", fragmentLines(l)[0])
	require.Equal(t, "p1[64,70)@0", fragmentLines(l)[1])
	require.Equal(t, dtype.FP32, l.Buckets[0].DTypes.GradSync)
	require.Equal(t, dtype.BF16, l.Buckets[1].DTypes.GradSync)
	require.Equal(t, units.Elems(128), l.Buckets[1].Offset, "a new triple begins behind bucket 0")
}

func TestInitParamsBucket(t *testing.T) {
	params, groups := sized(10, 200, 0, 40, 5)
	groups[0] = groups[0][:4]
	l, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	require.NoError(t, l.InitParamsBucket([]bucket.ParamID{0, 1, 2}))
	require.Equal(t, []string{
		"p0[0,10)@0 p1[0,96)@32 +p2", "p1[96,200)@0 +p0 +p2",
	}, fragmentLines(l))
	require.NoError(t, l.InitParamsBucket([]bucket.ParamID{0, 1}))
	require.False(t, l.Buckets[1].Open)
	require.ErrorContains(t, l.InitParamsBucket([]bucket.ParamID{3, 4}), "p4 is in no parameter group")
	l.Place(3)
	require.Equal(t, bucket.ID(2), l.Fragments[3][0].Bucket, "closed buckets take nothing more")
	require.Equal(t, []int{0, 0, 1}, l.Sets())
}

// fragmentLines prints the fragments of each bucket; "+" marks dependencies.
func fragmentLines(l *Layout) []string {
	lines := make([]string, len(l.Buckets))
	for i := range l.Buckets {
		var words []string
		for _, f := range l.Buckets[i].Fragments {
			name := shortName(l.Params[f.Param].Name)
			if f.Dependency() {
				words = append(words, "+"+name)
			} else {
				words = append(words, fmt.Sprintf("%s[%d,%d)@%d", name, f.InParam.Start, f.InParam.End, f.InBucket.Start))
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}

var shorten = strings.NewReplacer(
	"decoder.layers.", "L", "self_attention.linear_", "", "mlp.linear_", "", "decoder.", "",
	"embedding.word_embeddings.weight", "word", "embedding.position_embeddings.weight", "pos",
	"layer_norm_", "ln_", "weight", "w", "bias", "b",
)

func shortName(name string) string { return shorten.Replace(name) }

// exampleStage is the model of the worked example, specification §2.11.
func exampleStage(t *testing.T) *model.Stage {
	s, err := model.BuildStage(model.Config{
		Layers: 2, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 256, Seq: 32,
		LearnedPositions: true, Bias: true, Tied: true, FP8: true, FP8Params: true, DType: dtype.BF16,
	}, model.Split{TP: 1, PP: 1, VP: 1})
	require.NoError(t, err)
	return s
}

func exampleOptions(newNeMo bool) Options {
	o := DefaultOptions(2)
	o.GradSync = dtype.BF16
	o.BucketCapMB = 0.0625
	o.SetNeMo(dtype.BF16, true)
	o.NewNeMo = newNeMo
	o.ContiguousGradBuffer = true
	return o
}

// The golden files agree with the tables of specification §2.11, line by line.
func TestWorkedExample(t *testing.T) {
	for version, newNeMo := range map[string]bool{"before": false, "after": true} {
		l, err := BuildNeMo(exampleOptions(newNeMo), exampleStage(t))
		require.NoError(t, err)
		require.Equal(t, units.Elems(32768), l.BucketSize)
		golden(t, "testdata/worked_example_"+version+".txt", layoutText(l))
	}
}

// layoutText prints a layout: buckets, each parameter's buckets, buffers, the locals of two ranks.
func layoutText(l *Layout) string {
	var out strings.Builder
	for i, line := range fragmentLines(l) {
		b := &l.Buckets[i]
		fmt.Fprintf(&out, "bucket %d %v offset %d filled %d set %d\n  %s\n",
			i, b.DTypes, b.Offset, b.Filled, l.Sets()[i],
			strings.ReplaceAll(line, " ", "\n  "))
	}
	for _, b := range l.Buffers() {
		fmt.Fprintf(&out, "buffer %v length %d\n", b.DTypes, b.Length)
	}
	for p := range l.Params {
		q := &l.Params[p]
		fmt.Fprintf(&out, "%s: group %d index %d, buckets", shortName(q.Name), l.Group[p].Group, l.Group[p].Index)
		for _, ref := range l.Fragments[p] {
			fmt.Fprintf(&out, " %d", ref.Bucket)
		}
		if q.NoOverlap {
			out.WriteString(", no overlap")
		}
		out.WriteString("\n")
	}
	for rank := range 2 {
		for i := range l.Buckets {
			for j, f := range l.Buckets[i].Fragments {
				if r, ok := l.Local(FragmentRef{bucket.ID(i), int32(j)}, rank); ok {
					fmt.Fprintf(&out, "rank %d bucket %d %s shard %v bucket %v parameter %v\n", rank, i,
						shortName(l.Params[f.Param].Name), r.Shard, r.ShardBucket, r.ShardParam)
				}
			}
		}
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
