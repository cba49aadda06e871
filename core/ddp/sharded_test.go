package ddp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

// log is a runtime that writes down effects in the order in which they are launched, and holds an
// optimizer to what any correct one does: a bucket is reduced once in a step, after all of its gradients
// were copied into it, behind a wait for them, and is used only once its all-reduce was waited for.
type log struct {
	t      *testing.T
	s      *Sharded
	finite bool
	lines  []string

	issued  int   // effects on Main
	seen    int   // of them, what the communication stream waits for
	filled  []int // of each parameter: effect that wrote it into its bucket, 0: none in this step
	reduced []int // of each bucket: its call
	calls   []int // by number: waited for
	kept    int
	copied  []int
	passes  []int // of each parameter: gradients accumulated in this step
}

func (g *log) add(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

func (g *log) take() []string {
	lines := g.lines
	g.lines = nil
	return lines
}

func (g *log) Wait(a, b optim.Stream) {
	if g.seen = g.issued; b != optim.Main || a == optim.Main {
		g.t.Fatal("only communication waits for a stream, and for Main")
	}
}

func (g *log) WaitCall(a, b optim.Stream, call int) {
	g.calls[call]++
	g.add("wait %d", call)
}

func (g *log) ZeroGrad(z *optim.Zero) {
	require.Zero(g.t, *z, "gradients are dropped, not cleared")
	g.add("zero")
	g.filled, g.copied, g.passes = make([]int, len(g.s.l.Params)), make([]int, len(g.s.l.Params)), make([]int, len(g.s.l.Params))
	g.reduced, g.kept = make([]int, len(g.s.l.Params)), 0
}

func (g *log) AccumulateGrad(a *optim.Accumulation) {
	require.Len(g.t, a.Paths, len(a.Params))
	for i, p := range a.Params {
		g.issued++
		path := a.Paths[i]
		require.Zero(g.t, g.filled[p], "after it was copied into its bucket nothing is added")
		require.Equal(g.t, g.passes[p] > 0, path == optim.InPlace || path == optim.InPlaceScaled)
		if g.passes[p]++; path == optim.StolenScaled || path == optim.InPlaceScaled {
			g.filled[p] = g.issued
		}
	}
	if a.Searched > 0 {
		g.add("search for %d", a.Searched)
	}
}

func (g *log) AllReduceShards(c *optim.Collective) {
	if g.calls = append(g.calls, 0); len(g.calls) == 1 {
		g.calls = append(g.calls, 0)
	}
	require.Equal(g.t, len(g.calls)-1, c.Call)
	require.Equal(g.t, g.issued, g.seen, "it waits for all that was launched")
	require.Equal(g.t, optim.Sum, c.Op)
	if len(c.Members) == 0 {
		require.NotZero(g.t, c.Elems)
		g.add("all-reduce %d flags", c.Elems)
		return
	}
	require.Len(g.t, c.Members, 1, "every bucket has a call of its own")
	require.True(g.t, c.Prescaled)
	require.Equal(g.t, 1/float64(c.Size), c.Scale)
	m := c.Members[0]
	b := &g.s.buckets()[m.Bucket]
	require.Equal(g.t, b.Size, m.Elems)
	require.Zero(g.t, g.reduced[m.Bucket], "once in a step")
	g.reduced[m.Bucket] = c.Call
	g.add("all-reduce [%d]", m.Bucket)
	for _, f := range b.Fragments {
		require.True(g.t, g.filled[f.Param] > 0 || g.s.l.Options.FindUnused || g.s.l.Options.StaticGraph, "p%d is there", f.Param)
	}
}

func (g *log) KeepShards(k *optim.Kept) {
	require.Len(g.t, k.Stored, 1)
	id := k.Stored[0]
	require.Equal(g.t, 1, g.calls[g.reduced[id]], "it was waited for")
	g.kept++
	for _, p := range k.Copied {
		g.copied[p]++
		require.EqualValues(g.t, id, g.s.bucketOf[p])
	}
}

func (g *log) Adam(u *optim.Update) {
	require.Equal(g.t, len(g.s.buckets()), g.kept, "every bucket was synchronized")
	require.Len(g.t, u.Buckets, g.kept)
	n := units.Elems(0)
	for _, l := range u.Launches {
		n += l.Elems
	}
	all, _ := g.s.l.Use()
	require.Equal(g.t, all, n, "every rank updates everything")
	for p := range g.copied {
		require.Equal(g.t, 1-bit(g.s.l.Options.BucketView), g.copied[p], "copied back unless it is a view")
	}
	g.add("adam")
}

func (g *log) AllReduceGrads(r *optim.GradReduction) {
	g.add("all-reduce %v over %s", r.Params, r.Group)
}
func (g *log) LocalNorm(n *optim.Norm)          { g.add("norm of %d", len(n.Params)) }
func (g *log) AllReduceNorm(r *optim.Reduction) { g.add("norm over %d", r.Size) }
func (g *log) Clip(float64)                     { g.add("clip") }
func (g *log) CheckFinite() bool                { g.add("check"); return g.finite }
func (g *log) Cast(c *optim.Cast)               { g.add("cast %d", c.Copies.Tensors) }
func (g *log) ScaleGrads(*optim.GradScaling)    { g.t.Fatal("scaled") }
func (g *log) UpdateScaleInv(*optim.Reduction)  { g.t.Fatal("no FP8") }
func (g *log) AllReduceAmax(*optim.Reduction)   { g.t.Fatal("no FP8") }
func (g *log) AllGather(*optim.Collective)      { g.t.Fatal("gathered") }
func (g *log) UseParams(*optim.ParamUse)        { g.t.Fatal("gathered") }
func (g *log) ReduceScatter(*optim.Collective)  { g.t.Fatal("scattered") }

// vectors are parameters of so many fp32 elements, each in a module of its own.
func vectors(sizes ...int) []model.Param {
	var params []model.Param
	for i, n := range sizes {
		params = append(params, model.Param{Name: fmt.Sprint("m", i, ".weight"), Shape: []int64{int64(n)}, Numel: units.Elems(n)})
	}
	return params
}

// begin builds an optimizer over the log.
func begin(t *testing.T, o Options, c Config, params []model.Param) (*Sharded, *log) {
	o.World = max(o.World, 4)
	l, err := Build(o, params, nil)
	require.NoError(t, err)
	g := &log{t: t, finite: true}
	c.Runtime = g
	s, err := NewSharded(l, c)
	require.NoError(t, err)
	g.s = s
	return s, g
}

func backward(s *Sharded, params ...bucket.ParamID) {
	for _, p := range params {
		s.PostBackward(p)
	}
}

// quarter is a cap of 1024 bytes: 256 fp32 elements.
const quarter = 1.0 / 1024

// The first step has one bucket, so its all-reduce is exposed; the second has those of the order in
// which gradients came, reduced in that order even if a later one is full first.
func TestBucketsAreRebuilt(t *testing.T) {
	s, g := begin(t, Options{CapMB: quarter}, Config{MaxNorm: 1}, vectors(100, 300, 300))
	step := func(order ...bucket.ParamID) []string {
		s.ZeroGrad()
		s.NoSync(true)
		require.True(t, s.QuietBackward())
		s.PostBackwardAll(order)
		s.NoSync(false)
		require.False(t, s.PendingForward(0))
		s.PreForward(0)
		s.ParamSyncFunc(0)
		s.GradSyncFunc(0)
		s.PostBackwardAll(order)
		s.AfterBackward()
		s.ClipGradNorm()
		s.Step()
		require.NoError(t, s.Err())
		return g.take()
	}
	after := []string{"norm of 3", "norm over 1", "clip", "adam"}
	require.Equal(t, append([]string{"zero", "all-reduce [0]", "wait 1"}, after...), step(1, 2, 0))
	require.Equal(t, append([]string{
		"zero", "all-reduce [0]", "all-reduce [1]", "all-reduce [2]", "wait 2", "wait 3", "wait 4",
	}, after...), step(1, 2, 0))
	var params []bucket.ParamID
	for _, b := range s.Layout().Buckets {
		for _, f := range b.Fragments {
			params = append(params, f.Param)
		}
	}
	require.Equal(t, []bucket.ParamID{1, 2, 0}, params, "as they came, not as the names suggest")
	// Bucket 0 waits for p1; bucket 1 is full before.
	s.ZeroGrad()
	backward(s, 2)
	require.Equal(t, []string{"zero"}, g.take())
	backward(s, 1)
	require.Equal(t, []string{"all-reduce [0]", "all-reduce [1]"}, g.take())
	backward(s, 0)
	require.Equal(t, []string{"all-reduce [2]", "wait 5", "wait 6", "wait 7"}, g.take())
}

// With find_unused_parameters buckets stay those of the registration order, the graph is searched in
// every pass that synchronizes, the map of used parameters follows the last bucket, and what is not
// used is zero.
func TestFindUnused(t *testing.T) {
	s, g := begin(t, Options{CapMB: quarter, FindUnused: true}, Config{}, vectors(300, 300, 10))
	for range 2 {
		s.ZeroGrad()
		backward(s, 2, 0)
		require.Equal(t, []string{"zero", "search for 3", "all-reduce [0]"}, g.take())
		s.AfterBackward()
		require.Equal(t, []string{"all-reduce [1]", "all-reduce [2]", "all-reduce 3 flags"}, g.take()[:3])
		s.Step()
		require.NoError(t, s.Err())
		g.take()
	}
}

// A static graph's first pass only counts; the second gives the order of the buckets of the third.
func TestStaticGraph(t *testing.T) {
	s, g := begin(t, Options{CapMB: quarter, FindUnused: true, StaticGraph: true}, Config{}, vectors(300, 300, 10))
	for step, want := range [][]string{
		{"zero", "all-reduce 3 flags", "all-reduce [0]", "wait 2", "wait 1", "adam"},
		{"zero", "all-reduce [0]", "wait 3", "adam"},
		{"zero", "all-reduce [0]", "all-reduce [1]", "all-reduce [2]", "wait 4", "wait 5", "wait 6", "adam"},
	} {
		s.ZeroGrad()
		backward(s, 1, 0, 2)
		s.AfterBackward()
		s.Step()
		require.NoError(t, s.Err())
		require.Equal(t, want, g.take(), "step %d", step)
	}
	// What the first pass does not use stays unused.
	s, _ = begin(t, Options{CapMB: quarter, StaticGraph: true}, Config{}, vectors(300, 10))
	for range 3 {
		s.ZeroGrad()
		backward(s, 1)
		s.AfterBackward()
		s.Step()
		require.NoError(t, s.Err())
	}
	require.True(t, s.warm)
}

func TestRaises(t *testing.T) {
	s, g := begin(t, Options{}, Config{}, vectors(1, 2))
	s.ZeroGrad()
	backward(s, 1)
	s.AfterBackward()
	require.ErrorContains(t, s.Err(), "model chunk 0: got gradients of 1 parameters in the last pass, want all 2")
	g.take()
	s.ZeroGrad()
	s.Step()
	s.ClipGradNorm()
	s.PostBackwardAll([]bucket.ParamID{0})
	require.Empty(t, g.take(), "nothing happens any more")

	s, _ = begin(t, Options{}, Config{}, vectors(1, 2))
	s.ZeroGrad()
	backward(s, 1, 1)
	require.ErrorContains(t, s.Err(), "m1.weight: got a second gradient in one pass")

	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "data_parallel_size: got 0"},
		{Options{World: 2, ExpertWorld: 3}, "expert_data_parallel_size: got 3"},
		{Options{World: 2, CapMB: -1}, "bucket_cap_mb: got -1"},
		{Options{World: 2, State: dtype.U8}, "state dtype: got uint8"},
	} {
		_, err := Build(tt.o, vectors(1), nil)
		require.ErrorContains(t, err, tt.want)
	}
	_, err := Build(Options{World: 1}, []model.Param{{Name: "w", FP8: true}}, nil)
	require.ErrorContains(t, err, "w: got an FP8 weight")
	_, err = Build(Options{World: 1}, vectors(1, 1), []bucket.ParamID{1, 1})
	require.ErrorContains(t, err, "arrival: got parameter 1, want each of 0 to 1 once")
	_, err = Build(Options{World: 1}, vectors(1, 1), []bucket.ParamID{1})
	require.ErrorContains(t, err, "arrival: got 1 parameters, want all 2")
	l, err := Build(Options{World: 1}, vectors(1), nil)
	require.NoError(t, err)
	_, err = NewSharded(l, Config{})
	require.ErrorContains(t, err, "runtime: got none")
}

// Other groups add up what they hold a part of; the norm is added up over them too. A step with an
// infinite gradient is left out.
func TestModelParallel(t *testing.T) {
	params := vectors(10, 20, 30)
	params[0].SharedEmbedding, params[0].Shared = true, true
	params[1].SequenceParallel = true
	params[2].TensorParallel, params[2].DType = true, dtype.BF16
	s, g := begin(t, Options{MainParams: true}, Config{
		Tensor: 2, TensorRank: 1, Pipeline: 3, EmbeddingSize: 2, MaxNorm: 1, GradScaler: true,
	}, params)
	step := func() []string {
		s.ZeroGrad()
		backward(s, 2, 1, 0)
		g.take()
		s.AfterBackward()
		s.ClipGradNorm()
		s.Step()
		require.NoError(t, s.Err())
		return g.take()
	}
	want := []string{"all-reduce [1] over tensor", "all-reduce [0] over embedding", "norm of 1", "norm over 6", "check", "clip", "adam", "cast 1"}
	require.Equal(t, want, step())
	g.finite = false
	require.Equal(t, want[:6], step())
	require.Equal(t, 1, s.steps)
}

// Experts are averaged over the ranks that hold them, on a stream of their own.
func TestExperts(t *testing.T) {
	params := vectors(10, 20, 30)
	params[1].Expert = true
	params[2].Chunk = 1
	o := Options{World: 8, ExpertWorld: 2}
	s, g := begin(t, o, Config{}, params)
	require.Len(t, s.l.Reducers, 3)
	seen := map[bucket.ParamID]string{}
	s.obs = observer(func(e *optim.Event) {
		if e.Op == optim.OpAllReduce {
			seen[s.buckets()[e.Buckets[0]].Fragments[0].Param] = fmt.Sprint(e.Group, " ", e.GroupSize)
		}
	})
	for range 2 {
		s.ZeroGrad()
		backward(s, 2, 1, 0)
		s.AfterBackward()
		s.Step()
		require.NoError(t, s.Err())
	}
	require.Equal(t, map[bucket.ParamID]string{0: "redundant 8", 1: "expert redundant 2", 2: "redundant 8"}, seen)
	g.take()
}

type observer func(*optim.Event)

func (o observer) Event(e *optim.Event) { o(e) }

// Over random models, settings, orders and numbers of microbatches everything that log demands holds,
// the layout is one, and each gradient and each bucket has its event once.
func TestRandomSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 3))
	coin := func() bool { return r.IntN(2) == 0 }
	for range 300 {
		var params []model.Param
		for i := range 1 + r.IntN(30) {
			p := model.Param{
				Name: fmt.Sprint("m", i/2, ".p", i), Shape: make([]int64, 1+r.IntN(2)), Numel: units.Elems(1 + r.IntN(400)),
				DType: []dtype.DType{dtype.FP32, dtype.BF16}[r.IntN(2)], Expert: r.IntN(4) == 0, Chunk: i / 12,
			}
			params = append(params, p)
		}
		o := Options{
			World: 1 + r.IntN(9), CapMB: []float64{0, quarter, quarter * r.Float64(), 1e-9}[r.IntN(4)],
			FindUnused: coin(), StaticGraph: r.IntN(3) == 0, BucketView: coin(), MainParams: coin(), Foreach: coin(),
		}
		s, g := begin(t, o, Config{MaxNorm: float64(r.IntN(2)), Warm: r.IntN(3) == 0}, params)
		ready, reduced := map[bucket.ParamID]int{}, map[bucket.ID]int{}
		var rebuilt, last int
		s.obs = observer(func(e *optim.Event) {
			switch {
			case e.Op == optim.OpGradReady:
				ready[e.Param]++
			case e.Op == optim.OpRebuildBuckets:
				rebuilt++
			case e.Op == optim.OpAllReduce && len(e.Buckets) == 1:
				reduced[e.Buckets[0]]++
				require.Equal(t, last+1, e.Coalesced)
				last++
			case e.Op == optim.OpAllReduce:
				last++
			}
		})
		for step := range 4 {
			clear(ready)
			clear(reduced)
			order := StageArrival(&model.Stage{Params: params, Modules: shuffled(r, params)})
			s.ZeroGrad()
			for m := range 1 + r.IntN(3) {
				if m == 0 {
					continue
				}
				s.NoSync(true)
				s.PostBackwardAll(order)
				s.NoSync(false)
			}
			s.PostBackwardAll(order)
			s.AfterBackward()
			s.ClipGradNorm()
			s.Step()
			require.NoError(t, s.Err())
			require.Len(t, ready, len(params))
			require.Len(t, reduced, len(s.buckets()), "step %d", step)
			checkLayout(t, s.l, params)
		}
		if s.c.Warm || !s.l.Options.Rebuilds() {
			require.Zero(t, rebuilt)
		} else {
			require.Equal(t, 1, rebuilt)
		}
		require.Equal(t, last, strings.Count(strings.Join(g.lines, "\n"), "all-reduce "))
	}
}

// shuffled puts parameters into modules of a random order.
func shuffled(r *rand.Rand, params []model.Param) []model.Module {
	var modules []model.Module
	for p := range params {
		modules = append(modules, model.Module{Params: []bucket.ParamID{bucket.ParamID(p)}})
	}
	r.Shuffle(len(modules), func(i, j int) { modules[i], modules[j] = modules[j], modules[i] })
	return modules
}

func checkLayout(t *testing.T, l *Layout, params []model.Param) {
	numel := make([]units.Elems, len(params))
	for p := range params {
		numel[p] = params[p].Numel
	}
	require.NoError(t, bucket.Check(l.Buckets, numel, 1))
	require.NoError(t, bucket.Check(l.Initial, numel, 1))
	n, size := l.Use()
	require.Equal(t, n, size, "no padding")
	require.Len(t, l.Sets(), len(l.Buckets))
	m := l.Memory()
	require.Equal(t, m.Params, m.Buckets)
	require.Greater(t, m.Total(), 2*m.Params)
}

// A step allocates nothing once buckets are rebuilt.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	l, err := Build(Options{World: 4, CapMB: quarter}, vectors(slices.Repeat([]int{100}, 40)...), nil)
	require.NoError(t, err)
	s, err := NewSharded(l, Config{Runtime: optim.Discard{}, MaxNorm: 1})
	require.NoError(t, err)
	step := func() {
		s.ZeroGrad()
		for p := len(l.Params) - 1; p >= 0; p-- {
			s.PostBackward(bucket.ParamID(p))
		}
		s.AfterBackward()
		s.ClipGradNorm()
		s.Step()
	}
	step()
	step()
	require.Zero(t, testing.AllocsPerRun(10, step))
	require.NoError(t, s.Err())
}
