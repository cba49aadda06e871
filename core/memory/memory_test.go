package memory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/cost"
	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// job is a small GPT with Apex's optimizer, simulated.
type job struct {
	pp, vp, dp, micros      int
	layers, recomputeLayers int
	contiguous, params      bool // buffers of gradients, of parameters
	overlap, megatron       bool
	fp8, dropout            bool
	recompute               model.Recompute
}

func (j job) config() model.Config {
	return model.Config{
		Layers: int64(j.layers), Hidden: 256, FFN: 1024, Heads: 4, Groups: 4, KVChannels: 64, Vocab: 1024, Seq: 128,
		LearnedPositions: true, Bias: true, Tied: true, DType: dtype.BF16, FP8: j.fp8, FP8Params: j.fp8,
	}
}

func (j job) input(t testing.TB) (*Input, []*apex.Layout) {
	t.Helper()
	c := j.config()
	in := &Input{
		GPU: hw.Lookup("h100"), Model: c, Microbatches: j.micros, Megatron: j.megatron, Communicators: 2,
		Message: units.Bytes(128 * 2 * 256 * 2),
		Execution: model.Execution{
			Micro: 2, Microbatches: int64(j.micros), TP: 1, CP: 1, GradDType: dtype.BF16, GradFusion: true, Dropout: j.dropout,
			Recompute: j.recompute, RecomputeLayers: j.recomputeLayers,
		},
	}
	var layouts []*apex.Layout
	for s := range j.pp {
		st, err := model.BuildStage(c, model.Split{TP: 1, PP: j.pp, Index: s, VP: j.vp})
		require.NoError(t, err)
		l, err := apex.Build(apex.Options{
			Distributed: j.dp, Redundant: 1, State: dtype.FP32, GradSync: dtype.BF16, ParamSync: dtype.BF16, BucketCapMB: 1,
			AverageGradSync: true, OverlapGradSync: j.overlap, OverlapParamSync: j.overlap,
			ContiguousGradBuffer: j.contiguous, ContiguousParamBuffer: j.params,
			StoreParamRemainders: !j.fp8, StoreParams: j.fp8, NeMo: true, NewNeMo: true, NewApex: true, O2: j.contiguous,
		}, st)
		require.NoError(t, err)
		layouts = append(layouts, l)
		in.Stages = append(in.Stages, StageInput{Model: st, Optimizer: FromApex(l)})
	}
	return in, layouts
}

// simulate records, prices and places two steps and the begin of a third.
func (j job) simulate(t testing.TB, in *Input, layouts []*apex.Layout) (*step.Recording, []sched.Span) {
	t.Helper()
	g, err := parallel.NewGrid(j.pp*j.dp, 1, 1, j.pp, j.vp, 8)
	require.NoError(t, err)
	var stages []step.StageInput
	for s, l := range layouts {
		stages = append(stages, step.StageInput{
			Model: in.Stages[s].Model,
			New: func(rt optim.Runtime, ob optim.Observer) (optim.Sharded, error) {
				return apex.NewSharded(l, apex.Config{Runtime: rt, Observer: ob, World: j.pp * j.dp, Tensor: 1, MaxNorm: 1, FusedWgrad: true,
					EmbeddingSize: g.Group(parallel.Embedding, g.Representative(s)).Size})
			},
		})
	}
	rec, err := step.Record(stages, step.Config{
		Microbatches: j.micros, Activation: 128 * 2 * 256, DType: dtype.BF16, BatchP2P: true, GradSync: dtype.BF16, WorldNorm: true,
		Megatron: j.megatron, RecomputeLayers: j.recomputeLayers,
	})
	require.NoError(t, err)
	cost.Price(rec, cost.NewMachine(in.GPU, hw.LookupNetwork("ndr"), in.Model, in.Execution, g))
	spans := make([]sched.Span, len(rec.Program.Tasks))
	var engine sched.Engine
	require.NoError(t, engine.Run(&rec.Program, spans, make([]sched.Time, len(rec.Program.Messages))))
	return rec, spans
}

var jobs = []job{
	{pp: 1, vp: 1, dp: 4, micros: 1, layers: 4, contiguous: true, overlap: true},
	{pp: 1, vp: 1, dp: 4, micros: 3, layers: 4, overlap: true},
	{pp: 1, vp: 1, dp: 4, micros: 3, layers: 4, overlap: true, params: true, contiguous: true, dropout: true},
	{pp: 1, vp: 1, dp: 4, micros: 3, layers: 4},
	{pp: 1, vp: 1, dp: 1, micros: 2, layers: 4, overlap: true},
	{pp: 2, vp: 1, dp: 2, micros: 5, layers: 4, overlap: true, fp8: true},
	{pp: 4, vp: 1, dp: 2, micros: 8, layers: 8, contiguous: true, overlap: true, recompute: model.FullLayers},
	{pp: 4, vp: 1, dp: 2, micros: 2, layers: 8, contiguous: true, recompute: model.CoreAttention},
	{pp: 3, vp: 2, dp: 2, micros: 6, layers: 12, overlap: true, contiguous: true},
	{pp: 3, vp: 2, dp: 2, micros: 3, layers: 12, overlap: true, contiguous: true},
	{pp: 3, vp: 2, dp: 2, micros: 3, layers: 12, overlap: true, megatron: true},
	{pp: 3, vp: 2, dp: 2, micros: 9, layers: 12, recompute: model.FullLayers, recomputeLayers: 1},
}

func (j job) String() string {
	return fmt.Sprintf("pp %d vp %d dp %d micros %d contiguous %v %v overlap %v recompute %d", j.pp, j.vp, j.dp, j.micros, j.contiguous, j.params, j.overlap, j.recompute)
}

// Nothing is ever negative, what comes goes, nothing is below what is held throughout, and the peak is the
// highest point.
func TestSeriesProperties(t *testing.T) {
	for _, j := range jobs {
		in, layouts := j.input(t)
		rec, spans := j.simulate(t, in, layouts)
		r, err := Of(in, rec, spans)
		require.NoError(t, err, j)
		drawn := rec.StepStart[0][len(rec.StepStart[0])-2:]
		length := spans[drawn[1]].Start - spans[drawn[0]].Start
		for s := range r.Stages {
			st := &r.Stages[s]
			require.NotEmpty(t, st.Series, j)
			require.Zero(t, st.Series[0].At)
			highest := units.Bytes(0)
			for i := range st.Series {
				p := &st.Series[i]
				require.True(t, i == 0 || p.At > st.Series[i-1].At, j)
				require.Less(t, p.At, length, j)
				for k := range p.Bytes {
					require.GreaterOrEqual(t, p.Bytes[k], st.Held[k], "%v stage %d %v", j, s, Kind(k))
				}
				highest = max(highest, p.Bytes.Total())
			}
			require.Equal(t, highest, st.Peak.Bytes.Total(), j)
			require.GreaterOrEqual(t, st.Peak.Bytes.Total(), st.Held.Total())
		}
		// The drawn step of stage 0 ends as it began.
		tl := timeline{in: in, rec: rec, spans: spans, from: spans[drawn[0]].Start, to: spans[drawn[1]].Start}
		tl.begin(0)
		for i := range rec.Labels {
			if rec.Labels[i].Stage == 0 {
				tl.task(sched.TaskID(i))
			}
		}
		var within [NumKinds]units.Bytes
		for _, c := range append(tl.changes, tl.beside...) {
			if c.task == sched.None && c.at > tl.from && c.at <= tl.to {
				within[c.kind] += c.bytes
			}
		}
		require.Equal(t, [NumKinds]units.Bytes{}, within, j)
	}
}

// Without a simulation the same activations are found, and never less memory.
func TestStaticBoundsTheSeries(t *testing.T) {
	for _, j := range jobs {
		in, layouts := j.input(t)
		rec, spans := j.simulate(t, in, layouts)
		r, err := Of(in, rec, spans)
		require.NoError(t, err)
		static, err := Static(in)
		require.NoError(t, err)
		for s := range r.Stages {
			a, b := &r.Stages[s], &static.Stages[s]
			require.Equal(t, a.InFlight, b.InFlight, "%v stage %d", j, s)
			got, bound := a.Peak.Bytes.Allocated(), b.Peak.Bytes.Allocated()
			require.GreaterOrEqual(t, bound, got, "%v stage %d: %v, of %v", j, s, b.Peak, a.Peak)
			if j.contiguous {
				require.InEpsilon(t, float64(bound), float64(got), 0.07, "%v stage %d", j, s)
			}
			if j.contiguous && a.Peak.Bytes[Gathered]+b.Peak.Bytes[Gathered] == 0 {
				for _, k := range []Kind{Activations, Temporaries, Logits, Workspace, Messages} {
					require.Equal(t, a.Peak.Bytes[k], b.Peak.Bytes[k], "%v stage %d %v", j, s, k)
				}
			}
		}
	}
}

// In flight: 1F1B holds as many microbatches as stages follow, itself included; interleaving on the first
// stage all chunks of pp microbatches and pp-1 more, on the last (vp-1)*pp+1.
func TestInFlight(t *testing.T) {
	for _, tt := range []struct {
		j    job
		want []int
	}{
		{job{pp: 4, vp: 1, micros: 8}, []int{4, 3, 2, 1}},
		{job{pp: 4, vp: 1, micros: 2}, []int{2, 2, 2, 1}},
		{job{pp: 1, vp: 1, micros: 8}, []int{1}},
		{job{pp: 2, vp: 3, micros: 8}, []int{7, 5}},
		{job{pp: 4, vp: 2, micros: 8}, []int{11, 9, 7, 5}},
		{job{pp: 4, vp: 2, micros: 4}, []int{8, 8, 8, 8}}, // NeMo's schedule runs all forwards first
		{job{pp: 4, vp: 2, micros: 4, megatron: true}, []int{8, 8, 7, 5}},
	} {
		tt.j.layers, tt.j.dp = 8*3, 1
		in, _ := tt.j.input(t)
		r, err := Static(in)
		require.NoError(t, err)
		for s, want := range tt.want {
			require.Equal(t, want, r.Stages[s].InFlight, "%v stage %d", tt.j, s)
		}
	}
}

// One layer without anything that overlaps, by hand. Tokens 256, hidden 256, FFN 1024, 4 heads.
func TestPeakByHand(t *testing.T) {
	j := job{pp: 1, vp: 1, dp: 1, micros: 1, layers: 1, contiguous: true, params: true}
	in, _ := j.input(t)
	in.Storage.KeptDummies = true
	const (
		tokens, h = 256, 256
		norm      = 2*tokens*h*2 + 8*tokens                                  // input, output, mean and deviation
		layer     = norm + 4*2*tokens*h + 4*4*tokens + norm + 2*2*4*tokens*h // q, k, v, output, logsumexp, both sides of GELU
		head      = 2*tokens*h + 8*tokens + 2*tokens*h                       // final norm's input, logits' input
		kept      = 8*tokens + layer + head
		logits    = tokens * 1024
	)
	r, err := Static(in)
	require.NoError(t, err)
	peak := &r.Stages[0].Peak
	require.EqualValues(t, kept, peak.Bytes[Activations])
	require.EqualValues(t, 6*logits, peak.Bytes[Logits])
	require.Zero(t, peak.Bytes[Temporaries])
	// cuBLAS twice, Transformer Engine, and one placeholder for each shape: qkv, projection, two of the MLP, of
	// which the first is the table's, too.
	require.EqualValues(t, 3*32*units.MiB+2*(768*h+h*h+2*1024*h), peak.Bytes[Workspace])
	require.EqualValues(t, context+firstComm+moreComm, peak.Bytes[Context])
	require.Equal(t, peak.Bytes.Allocated()*reserved/1000, peak.Bytes[Reserved])
	ok, left := r.Fits()
	require.True(t, ok)
	require.Equal(t, hw.Lookup("h100").Usable-peak.Bytes.Total(), left)

	in.GPU = &hw.GPU{Usable: peak.Bytes.Total() - 1}
	r, err = Static(in)
	require.NoError(t, err)
	ok, _ = r.Fits()
	require.True(t, ok) // another GPU, smaller workspaces
	in.GPU.Usable = r.Stages[0].Peak.Bytes.Total() - 1
	ok, left = (&Result{Stages: r.Stages, Capacity: in.GPU.Usable}).Fits()
	require.False(t, ok)
	require.EqualValues(t, -1, left)
}

// Contiguous buffers hold all buckets with their padding throughout; without them gradients exist only
// between backward pass and reduction, and shards until they are cleared.
func TestContiguity(t *testing.T) {
	j := job{pp: 1, vp: 1, dp: 4, micros: 1, layers: 4, overlap: true}
	in, layouts := j.input(t)
	l := layouts[0]
	buckets, shards := units.Bytes(0), units.Bytes(0)
	for _, b := range l.Buckets {
		buckets += 2 * units.Bytes(b.Size)
		shards += 2 * units.Bytes(b.Shard)
	}
	elems := buckets / 2
	held := in.Stages[0].Optimizer.Held
	require.Zero(t, held[Grads])
	require.Equal(t, elems/4*8, held[Moments])
	require.Equal(t, elems/4*2, held[Remainders])
	require.Zero(t, held[Main])
	rec, spans := j.simulate(t, in, layouts)
	loose, err := Of(in, rec, spans)
	require.NoError(t, err)
	most, least := units.Bytes(0), buckets
	for _, p := range loose.Stages[0].Series {
		most, least = max(most, p.Bytes[Grads]), min(least, p.Bytes[Grads])
	}
	require.Zero(t, least)
	require.Less(t, most, buckets)
	require.GreaterOrEqual(t, most, shards)

	j.contiguous = true
	in, layouts = j.input(t)
	buffers := units.Bytes(0)
	shards = 0
	for _, b := range layouts[0].Buffers() {
		buffers += units.Bytes(b.Length) * b.DTypes.GradSync.Size()
	}
	for _, b := range layouts[0].Buckets {
		shards += units.Bytes(b.Shard) * b.DTypes.GradSync.Size()
	}
	require.Equal(t, buffers, in.Stages[0].Optimizer.Held[Grads])
	rec, spans = j.simulate(t, in, layouts)
	tight, err := Of(in, rec, spans)
	require.NoError(t, err)
	most, least = 0, 2*buffers
	for _, p := range tight.Stages[0].Series {
		most, least = max(most, p.Bytes[Grads]), min(least, p.Bytes[Grads])
	}
	require.Equal(t, buffers, least)
	require.Equal(t, buffers+shards, most)

	// Gathered buckets come and go unless they are gathered in place.
	j.params = true
	in, layouts = j.input(t)
	rec, spans = j.simulate(t, in, layouts)
	inPlace, err := Of(in, rec, spans)
	require.NoError(t, err)
	gathered := units.Bytes(0)
	for _, p := range tight.Stages[0].Series {
		gathered = max(gathered, p.Bytes[Gathered])
	}
	require.Positive(t, gathered)
	for _, p := range inPlace.Stages[0].Series {
		require.Zero(t, p.Bytes[Gathered])
	}
}

// A series of few points has the same peak and is never below the full one.
func TestFewPoints(t *testing.T) {
	j := jobs[8]
	in, layouts := j.input(t)
	rec, spans := j.simulate(t, in, layouts)
	full, err := Of(in, rec, spans)
	require.NoError(t, err)
	for _, points := range []int{1, 2, 7, 100} {
		in.Points = points
		few, err := Of(in, rec, spans)
		require.NoError(t, err)
		for s := range few.Stages {
			a, b := full.Stages[s].Series, few.Stages[s].Series
			require.LessOrEqual(t, len(b), points)
			require.Equal(t, full.Stages[s].Peak, few.Stages[s].Peak)
			at := 0
			for i := range a {
				for at+1 < len(b) && b[at+1].At <= a[i].At {
					at++
				}
				require.GreaterOrEqual(t, b[at].Bytes.Total(), a[i].Bytes.Total(), "stage %d of %d points at %d", s, points, a[i].At)
			}
		}
	}
}

// Recomputation trades activations for temporaries, and never adds memory here.
func TestRecompute(t *testing.T) {
	total := func(r model.Recompute, group int) units.Bytes {
		in, _ := job{pp: 1, vp: 1, dp: 1, micros: 2, layers: 8, contiguous: true, params: true, recompute: r}.input(t)
		in.Storage.PlainAttention = true
		in.Storage.RecomputeGroup = group
		out, err := Static(in)
		require.NoError(t, err)
		return out.Stages[0].Peak.Bytes.Allocated()
	}
	require.Less(t, total(model.CoreAttention, 0), total(model.NoRecompute, 0))
	require.Less(t, total(model.FullLayers, 0), total(model.CoreAttention, 0))
	require.Greater(t, total(model.FullLayers, 8), total(model.FullLayers, 2)) // all layers at once
}

// Buffers of Megatron-Core are there throughout; copies of gradients only from the update on.
func TestFromMCore(t *testing.T) {
	c := job{layers: 2}.config()
	st, err := model.BuildStage(c, model.Split{TP: 1, PP: 1, VP: 1})
	require.NoError(t, err)
	l, err := mcore.Build(mcore.Options{World: 4, DistributedOptimizer: true, FP32Accumulation: true}, mcore.Params(st, mcore.Plain))
	require.NoError(t, err)
	o := FromMCore(l, mcore.States{}, 1)
	b := &l.Chunks[0].Buffers[0]
	require.Equal(t, 2*units.Bytes(b.Numel), o.Held[Params])
	require.Equal(t, 2*units.Bytes(b.Numel), o.Held[Grads])
	require.Equal(t, o.Held[Main]*2, o.Held[Moments])
	require.Equal(t, o.Held[Main], o.StepGrads)
	require.Positive(t, o.Exchange)
	require.Zero(t, o.Held[Remainders])

	aware := FromMCore(l, mcore.States{PrecisionAware: true}, 1)
	require.Equal(t, o.Held[Main]/2, aware.Held[Remainders]+aware.Held[Main])
	require.Zero(t, aware.StepGrads)
}

// Gradients lie in buckets, and beside them unless they are views of these.
func TestFromDDP(t *testing.T) {
	params := []model.Param{{Name: "a.weight", Shape: []int64{10}, Numel: 10, DType: dtype.FP32}, {Name: "b.weight", Shape: []int64{6}, Numel: 6, DType: dtype.BF16}}
	build := func(o ddp.Options) Optimizer {
		o.World, o.State = 2, dtype.FP32
		l, err := ddp.Build(o, params, []bucket.ParamID{1, 0})
		require.NoError(t, err)
		return FromDDP(l)
	}
	o := build(ddp.Options{MainParams: true})
	require.EqualValues(t, 52, o.Held[Params])
	require.EqualValues(t, 104, o.Held[Grads])
	require.EqualValues(t, 24, o.Held[Main])
	require.EqualValues(t, 24, o.StepGrads)
	require.EqualValues(t, 128, o.Held[Moments])
	require.Zero(t, o.Scratch)
	views := build(ddp.Options{BucketView: true, Foreach: true})
	require.EqualValues(t, 52, views.Held[Grads])
	require.EqualValues(t, 64, views.Scratch)

	j := jobs[3]
	in, layouts := j.input(t)
	rec, spans := j.simulate(t, in, layouts)
	before, err := Of(in, rec, spans)
	require.NoError(t, err)
	in.Stages[0].Optimizer.Scratch = units.GiB
	after, err := Of(in, rec, spans)
	require.NoError(t, err)
	static, err := Static(in)
	require.NoError(t, err)
	require.Less(t, before.Stages[0].Peak.Bytes[Temporaries], units.GiB)
	for _, p := range []Peak{after.Stages[0].Peak, static.Stages[0].Peak} {
		require.Equal(t, units.GiB, p.Bytes[Temporaries])
		require.Equal(t, InUpdate, p.Phase)
	}
}

func TestErrors(t *testing.T) {
	in, layouts := jobs[0].input(t)
	rec, spans := jobs[0].simulate(t, in, layouts)
	_, err := Of(in, rec, spans[1:])
	require.ErrorContains(t, err, "want equal numbers")
	in.Microbatches = 0
	_, err = Static(in)
	require.ErrorContains(t, err, "microbatches: got 0")
	in.Stages = append(in.Stages, in.Stages[0])
	_, err = Static(in)
	require.ErrorContains(t, err, "not stage")
	_, err = Static(&Input{})
	require.ErrorContains(t, err, "want at least one stage")
}
