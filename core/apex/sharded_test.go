package apex

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// randomTraining draws a stage, a layout and an optimizer of any version.
func randomTraining(t *testing.T, r *rand.Rand, what string) *trainer {
	stage := randomStage(t, r)
	o := randomOptions(r, stage)
	o.OverlapGradSync, o.OverlapParamSync = r.IntN(3) > 0, r.IntN(3) > 0
	o.Redundant = 1 + r.IntN(2)
	o.Later.SkipEmptyGroups = r.IntN(2) == 0
	o.Later.CommStreams = r.IntN(4)
	config := Config{World: 16, Tensor: stage.TP, TensorRank: r.IntN(stage.TP), MaxNorm: float64(r.IntN(2)), GradScaler: r.IntN(4) == 0}
	plain := stage.PP == 1 && r.IntN(3) == 0
	if plain {
		o.NeMo, o.NewApex = false, true
		o.StoreParams, o.StoreParamRemainders = true, false
		o.ContiguousGradBuffer = r.IntN(2) == 0
		if r.IntN(3) == 0 {
			o.WithScaledStates, o.State = true, dtype.FP16
		}
		for p := range stage.Params {
			stage.Params[p].FP8 = false
		}
	} else {
		o.O2 = r.IntN(3) > 0
		o.ContiguousGradBuffer = o.O2 || r.IntN(2) == 0
		config.FusedWgrad = o.O2 && r.IntN(2) == 0
		if stage.PP > 1 && stage.Config.Tied && (stage.Index == 0 || stage.Index == stage.PP-1) {
			config.EmbeddingSize = 2
		}
	}
	what = fmt.Sprintf("%s: %+v %+v %+v %+v", what, stage.Config, stage.Split, o, config)
	l, err := Build(o, stage)
	require.NoError(t, err, what)
	g := newLedger(t, l, what)
	config.Rank = r.IntN(o.Distributed)
	config.Runtime = g
	s, err := NewSharded(l, config)
	require.NoError(t, err, what)
	return &trainer{s: s, g: g, stage: stage, r: r}
}

// Random models and options of every version go through several steps: each bucket is reduced,
// updated and gathered once per step, in an order that no stream can upset.
func TestRandomTraining(t *testing.T) {
	r := rand.New(rand.NewPCG(1771, 8221))
	for i := range 120 {
		tr := randomTraining(t, r, fmt.Sprint(i))
		for range 3 {
			tr.step(1 + r.IntN(3))
		}
	}
}

func FuzzTraining(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		tr := randomTraining(t, r, fmt.Sprint(a, b))
		for range 2 {
			tr.step(1 + r.IntN(3))
		}
	})
}

// Hooks of a module at once do what they do one by one.
func TestBatchedHooks(t *testing.T) {
	for i := range uint64(40) {
		var logs [2][]string
		for batch := range logs {
			r := rand.New(rand.NewPCG(i, 3))
			tr := randomTraining(t, r, fmt.Sprint(i))
			tr.batch = batch == 1
			for range 2 {
				tr.step(3)
			}
			logs[batch] = tr.g.log
		}
		require.Equal(t, logs[0], logs[1])
	}
}

// A step allocates nothing once it has run.
func TestStepAllocatesNothing(t *testing.T) {
	for _, overlap := range []bool{true, false} {
		o := exampleOptions(true)
		o.O2, o.NewApex = true, true
		o.OverlapGradSync, o.OverlapParamSync = overlap, overlap
		l, err := BuildNeMo(o, exampleStage(t))
		require.NoError(t, err)
		s, err := NewSharded(l, Config{Runtime: nothing{}, MaxNorm: 1})
		require.NoError(t, err)
		stage := exampleStage(t)
		step := func() {
			s.ZeroGrad()
			for m := range 2 {
				s.NoSync(m == 0)
				for i := range stage.Modules {
					for _, p := range stage.Modules[i].Params {
						s.PreForward(p)
					}
				}
				for i := len(stage.Modules) - 1; i >= 0; i-- {
					s.PostBackwardAll(stage.Modules[i].Params)
				}
			}
			s.AfterBackward()
			s.ClipGradNorm()
			s.Step()
		}
		step()
		step()
		require.Zero(t, testing.AllocsPerRun(5, step))
		require.NoError(t, s.Err())
	}
}

// nothing is a Runtime without effects.
type nothing struct{ optim.Runtime }

func (nothing) Wait(_, _ optim.Stream)              {}
func (nothing) ZeroGrad(*optim.Zero)                {}
func (nothing) AccumulateGrad(*optim.Accumulation)  {}
func (nothing) ReduceScatter(*optim.Collective)     {}
func (nothing) AllReduceShards(*optim.Collective)   {}
func (nothing) KeepShards(*optim.Kept)              {}
func (nothing) AllReduceGrads(*optim.GradReduction) {}
func (nothing) LocalNorm(*optim.Norm)               {}
func (nothing) AllReduceNorm(*optim.Reduction)      {}
func (nothing) Clip(float64)                        {}
func (nothing) CheckFinite() bool                   { return true }
func (nothing) Adam(*optim.Update)                  {}
func (nothing) Cast(*optim.Cast)                    {}
func (nothing) UpdateScaleInv(*optim.Reduction)     {}
func (nothing) WaitCall(_, _ optim.Stream, _ int)   {}
func (nothing) ScaleGrads(*optim.GradScaling)       {}
func (nothing) AllReduceAmax(*optim.Reduction)      {}
func (nothing) AllGather(*optim.Collective)         {}
func (nothing) UseParams(*optim.ParamUse)           {}

// twoBuckets is plain Apex over buckets of 128 elements: p0 and half of p1 in bucket 0, the rest
// of p1 and p2 in bucket 1.
func twoBuckets(t *testing.T, change func(*Options)) (*Sharded, *ledger) {
	params, groups := sized(64, 128, 64)
	o := smallOptions()
	o.OverlapParamSync = true
	if change != nil {
		change(&o)
	}
	l, err := NewLayout(o, params, groups)
	require.NoError(t, err)
	l.InitParams(nil)
	g := newLedger(t, l, "two buckets")
	s, err := NewSharded(l, Config{Runtime: g})
	require.NoError(t, err)
	return s, g
}

// The statuses of both buckets after each call.
func TestStatuses(t *testing.T) {
	s, g := twoBuckets(t, nil)
	ready, partial, syncing := optim.GradReady, optim.GradPartial, optim.GradSyncing
	consumed, sharded, gathering, gathered := optim.ParamConsumed, optim.ParamSharded, optim.ParamSyncing, optim.ParamReady
	for i, step := range []struct {
		call  string
		do    func()
		grads [2]optim.GradStatus
		after [2]optim.ParamStatus
	}{
		{"zero_grad", s.ZeroGrad, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{consumed, consumed}},
		{"no_sync", func() { s.NoSync(true) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{}},
		{"hook p2, not copied", func() { s.PostBackward(2) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{}},
		{"sync again", func() { s.NoSync(false) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{}},
		{"hook p2", func() { s.PostBackward(2) }, [2]optim.GradStatus{ready, partial}, [2]optim.ParamStatus{}},
		{"hook p1 completes 1", func() { s.PostBackward(1) }, [2]optim.GradStatus{partial, syncing}, [2]optim.ParamStatus{}},
		{"hook p0 completes 0, finishes 1", func() { s.PostBackward(0) }, [2]optim.GradStatus{syncing, ready}, [2]optim.ParamStatus{}},
		{"hook p1 again finishes 0", func() { s.PostBackward(1) }, [2]optim.GradStatus{partial, partial}, [2]optim.ParamStatus{}},
		{"hook p2 again completes 1", func() { s.PostBackward(2) }, [2]optim.GradStatus{partial, syncing}, [2]optim.ParamStatus{}},
		{"step: first group is 1", s.Step, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{sharded, gathering}},
		{"read p2", func() { s.PreForward(2) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{gathering, gathered}},
		{"read p2 again", func() { s.PreForward(2) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{gathering, gathered}},
		{"read p0", func() { s.PreForward(0) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{gathered, gathered}},
		{"read p1", func() { s.PreForward(1) }, [2]optim.GradStatus{ready, ready}, [2]optim.ParamStatus{consumed, consumed}},
	} {
		step.do()
		require.NoError(t, s.Err())
		for id := range bucket.ID(2) {
			require.Equal(t, step.grads[id].String(), s.GradStatus(id).String(), "%d %s: gradients of bucket %d", i, step.call, id)
			require.Equal(t, step.after[id].String(), s.ParamStatus(id).String(), "%d %s: parameters of bucket %d", i, step.call, id)
		}
	}
	require.Equal(t, 2, g.buckets[0].reduce, "the second hook of p1 reduces its buckets again")
	require.Equal(t, 2, g.buckets[1].reduce)
}

// With a contiguous buffer several groups may be in flight; released memory is cleared when it is
// used again in the same step.
func TestContiguousGradBuffer(t *testing.T) {
	s, g := twoBuckets(t, func(o *Options) { o.ContiguousGradBuffer = true })
	s.ZeroGrad()
	for p := bucket.ParamID(2); p >= 0; p-- {
		s.PostBackward(p)
	}
	require.Equal(t, optim.GradSyncing, s.GradStatus(0))
	require.Equal(t, optim.GradSyncing, s.GradStatus(1))
	for _, p := range []bucket.ParamID{2, 1, 0} {
		require.Contains(t, g.log, fmt.Sprintf("add p%d by %d", p, optim.InPlace), "gradients are views of the buffer")
	}
	s.PostBackward(0)
	require.Equal(t, fmt.Sprintf("add p0 by %d", optim.Added), g.log[len(g.log)-1])
}

// What the real code raises.
func TestRuntimeErrors(t *testing.T) {
	s, _ := twoBuckets(t, nil)
	s.ZeroGrad()
	s.Step()
	require.True(t, s.PendingForward(1))
	s.PostBackward(1)
	require.ErrorContains(t, s.Err(), "p1: its gradient arrived before its pre-forward hook ran")
	first := s.Err()
	s.ZeroGrad()
	s.Step()
	require.Equal(t, first, s.Err(), "the first reason stays")

	params, groups := sized(64, 64)
	groups[0] = groups[0][:1]
	l, err := NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	s, err = NewSharded(l, Config{Runtime: nothing{}})
	require.NoError(t, err)
	s.PostBackward(1)
	require.ErrorContains(t, s.Err(), "p1: got a gradient of a parameter that is in no parameter group")

	params, groups = sized(64)
	o := smallOptions()
	o.ContiguousParamBuffer, o.ParamSync = true, dtype.BF16
	l, err = NewLayout(o, params, groups)
	require.NoError(t, err)
	s, err = NewSharded(l, Config{Runtime: nothing{}})
	require.NoError(t, err)
	s.ZeroGrad()
	s.Step()
	require.ErrorContains(t, s.Err(), "contiguous_param_buffer: got p0 with fp32 values in a bf16 buffer")

	params, groups = sized(64)
	params[0].FP8 = true
	l, err = NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	s, err = NewSharded(l, Config{Runtime: nothing{}})
	require.NoError(t, err)
	s.ZeroGrad()
	s.Step()
	require.ErrorContains(t, s.Err(), "p0: got an FP8 parameter gathered in fp32 with bucket 0, want uint8")

	params, groups = sized(0)
	l, err = NewLayout(smallOptions(), params, groups)
	require.NoError(t, err)
	s, err = NewSharded(l, Config{Runtime: nothing{}})
	require.NoError(t, err)
	s.ZeroGrad()
	s.Step()
	require.ErrorContains(t, s.Err(), "bucket 0: got no parameter with elements")

	for _, tt := range []struct {
		change func(*Options, *Config)
		want   string
	}{
		{func(_ *Options, c *Config) { c.Runtime = nil }, "runtime: got none"},
		{func(_ *Options, c *Config) { c.Rank = 2 }, "rank: got 2, want 0 to 1"},
		{func(o *Options, _ *Config) { o.StoreParamRemainders = true }, "store_param_remainders: got true"},
		{func(o *Options, _ *Config) {
			o.WithScaledStates, o.State, o.ParamSync, o.NewApex = true, dtype.FP16, dtype.BF16, false
		}, "with_scaled_states: got true with Apex before PR #1771"},
		{func(o *Options, _ *Config) { o.Later.NCCLUserBuffers = true }, "nccl_ub: got true without contiguous_grad_buffer"},
		{func(o *Options, _ *Config) { o.NeMo, o.O2 = true, true }, "contiguous_grad_buffer: got false with megatron_amp_O2"},
	} {
		params, groups := sized(64)
		o, c := smallOptions(), Config{Runtime: nothing{}}
		l, err := NewLayout(o, params, groups)
		require.NoError(t, err)
		tt.change(&l.Options, &c)
		_, err = NewSharded(l, c)
		require.ErrorContains(t, err, tt.want)
	}
}

// A norm that is not finite ends the step before anything is changed.
func TestSkippedStep(t *testing.T) {
	o := exampleOptions(true)
	o.O2, o.OverlapParamSync = true, true
	l, err := BuildNeMo(o, exampleStage(t))
	require.NoError(t, err)
	g := newLedger(t, l, "skipped")
	s, err := NewSharded(l, Config{Runtime: g, MaxNorm: 1, GradScaler: true})
	require.NoError(t, err)
	tr := &trainer{s: s, g: g, stage: exampleStage(t), r: rand.New(rand.NewPCG(1, 1))}
	g.finite = false
	tr.step(2)
	require.Equal(t, 1, g.norms, "the norm that clipping computed is used")
	require.Zero(t, g.updated)
	require.False(t, s.PendingForward(0))
	g.finite = true
	tr.step(1)
	require.Equal(t, 2, g.norms)
	require.True(t, s.PendingForward(0))
	require.Equal(t, 1, s.steps)
}

// How often amaxes are reduced per step, specification §3.6 (columns plain and scaled state).
func TestAmaxReductions(t *testing.T) {
	for _, tt := range []struct {
		name             string
		newNeMo, newApex bool
		overlap, scaled  bool
		want             int
	}{
		{"before", false, false, true, false, 1},
		{"before, new apex", false, true, true, false, 2},
		{"before, new apex, no overlap", false, true, false, false, 1},
		{"before, new apex, scaled", false, true, true, true, 7},
		{"after, old apex", true, false, true, false, 1},
		{"after", true, true, true, false, 1},
		{"after, no overlap", true, true, false, false, 1},
		{"after, scaled", true, true, true, true, 1},
	} {
		o := exampleOptions(tt.newNeMo)
		o.NewApex, o.O2, o.OverlapParamSync = tt.newApex, true, tt.overlap
		if tt.scaled {
			o.WithScaledStates, o.State = true, dtype.FP16
		}
		l, err := BuildNeMo(o, exampleStage(t))
		require.NoError(t, err)
		g := newLedger(t, l, tt.name)
		s, err := NewSharded(l, Config{Runtime: g})
		require.NoError(t, err)
		tr := &trainer{s: s, g: g, stage: exampleStage(t), r: rand.New(rand.NewPCG(1, 1))}
		tr.step(1)
		want := tt.want
		if tt.scaled && !tt.newNeMo {
			want = len(l.Buckets)
		}
		require.Equal(t, want, g.amaxs, tt.name)
	}
}

// The lists of specification §3.9 for the worked example.
func TestWorkedSchedules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*Options)
		newNeMo bool
		want    string
	}{
		{"after", nil, true, "rs[0 1] rs[2 3 4 5] adam[2 3 4 5] ag[2 3 4 5] adam[0 1] amax ag[0 1]"},
		{"before", func(o *Options) { o.NewApex = false }, false,
			"rs[5] rs[1 2] rs[3 4] rs[0] rs[6] adam[0 1 2 3 4 5 6] amax ag[6] ag[0] ag[5] ag[3 4] ag[1 2]"},
		{"before, new apex", nil, false,
			"rs[5] rs[1 2] rs[3 4] rs[0] rs[6] adam[6] amax ag[6] adam[0 1 2 3 4 5] amax ag[0] ag[5] ag[3 4] ag[1 2]"},
		{"after, old apex", func(o *Options) { o.NewApex = false }, true,
			"rs[0 1] rs[2 3 4 5] adam[0 1 2 3 4 5] amax ag[2 3 4 5] ag[0 1]"},
		{"after, no overlap", func(o *Options) { o.OverlapGradSync, o.OverlapParamSync = false, false }, true,
			"rs[0 1 2 3 4 5] adam[0 1 2 3 4 5] amax ag[4 3 2 5] ag[0 1]"},
		{"after, no overlap, contiguous", func(o *Options) {
			o.OverlapGradSync, o.OverlapParamSync, o.ContiguousParamBuffer = false, false, true
		}, true, "rs[0 1 2 3 4 5] adam[0 1 2 3 4 5] amax ag[2 3 4 5 0 1]"},
	} {
		o := exampleOptions(tt.newNeMo)
		o.O2, o.OverlapParamSync = true, true
		if tt.change != nil {
			tt.change(&o)
		}
		l, err := BuildNeMo(o, exampleStage(t))
		require.NoError(t, err)
		g := newLedger(t, l, tt.name)
		s, err := NewSharded(l, Config{Runtime: g, MaxNorm: 1})
		require.NoError(t, err)
		stage := exampleStage(t)
		tr := &trainer{s: s, g: g, stage: stage, r: rand.New(rand.NewPCG(1, 1))}
		tr.step(2)
		for i := range stage.Modules {
			for _, p := range stage.Modules[i].Params {
				s.PreForward(p)
			}
		}
		require.Equal(t, tt.want, collectives(g.log), tt.name)
	}
}

var brief = strings.NewReplacer("reduce-scatter ", "rs", "all-gather ", "ag", "adam ", "adam", "all-reduce amax", "amax")

// collectives shortens a log to its collectives and updates; groups of nothing are left out.
func collectives(log []string) string {
	var words []string
	for _, line := range log {
		if short := brief.Replace(line); short != line && short != "ag[]" {
			words = append(words, short)
		}
	}
	return strings.Join(words, " ")
}

// Later changes: no group for nothing (Apex #1847), streams in turn (#1895), divided gradients (#1797).
func TestLaterSwitches(t *testing.T) {
	run := func(change func(*Options)) *ledger {
		o := exampleOptions(true)
		o.O2, o.OverlapParamSync = true, true
		if change != nil {
			change(&o)
		}
		l, err := BuildNeMo(o, exampleStage(t))
		require.NoError(t, err)
		g := newLedger(t, l, "later")
		s, err := NewSharded(l, Config{Runtime: g})
		require.NoError(t, err)
		tr := &trainer{s: s, g: g, stage: exampleStage(t), r: rand.New(rand.NewPCG(1, 1))}
		tr.step(1)
		tr.step(1)
		return g
	}
	plain := run(nil)
	require.Contains(t, plain.log, "all-gather []")
	require.Zero(t, plain.issued[optim.Comm+1])

	skipping := run(func(o *Options) { o.Later.SkipEmptyGroups = true })
	require.NotContains(t, skipping.log, "all-gather []")
	require.Equal(t, collectives(plain.log), collectives(skipping.log))

	inTurn := run(func(o *Options) { o.Later.CommStreams = 2 })
	require.Equal(t, collectives(plain.log), collectives(inTurn.log))
	require.NotZero(t, inTurn.issued[optim.Comm+1])
	require.Equal(t, plain.issued[optim.Comm], inTurn.issued[optim.Comm]+inTurn.issued[optim.Comm+1])

	// Only the quotient by the distributed size is taken, so copies are summed.
	launched := 0
	o := exampleOptions(true)
	o.Later.NCCLUserBuffers, o.Redundant = true, 2
	l, err := BuildNeMo(o, exampleStage(t))
	require.NoError(t, err)
	s, err := NewSharded(l, Config{Runtime: sums{visit: func(c *optim.Collective) {
		require.Equal(t, optim.Sum, c.Op)
		require.Equal(t, c.Group == optim.Distributed, c.Divide)
		launched++
	}}})
	require.NoError(t, err)
	s.ZeroGrad()
	for p := range l.Params {
		s.PostBackward(bucket.ParamID(p))
	}
	require.Positive(t, launched)
}

type sums struct {
	nothing
	visit func(*optim.Collective)
}

func (s sums) ReduceScatter(c *optim.Collective)   { s.visit(c) }
func (s sums) AllReduceShards(c *optim.Collective) { s.visit(c) }

// The ranks of a distributed group update every element once between them.
func TestRanksShareTheUpdate(t *testing.T) {
	for _, newNeMo := range []bool{false, true} {
		var total units.Elems
		for rank := range 2 {
			l, err := BuildNeMo(exampleOptions(newNeMo), exampleStage(t))
			require.NoError(t, err)
			var mine units.Elems
			s, err := NewSharded(l, Config{Rank: rank, Runtime: adds{sum: &mine}})
			require.NoError(t, err)
			s.ZeroGrad()
			s.Step()
			require.NoError(t, s.Err())
			total += mine
		}
		var want units.Elems
		for _, q := range exampleStage(t).Params {
			want += q.Numel
		}
		require.Equal(t, want, total)
	}
}

type adds struct {
	nothing
	sum *units.Elems
}

func (a adds) Adam(u *optim.Update) {
	for _, l := range u.Launches {
		*a.sum += l.Elems
	}
}

// Old Apex with remainders: in the second local step, buckets without remainders are left out.
func TestSpentGenerator(t *testing.T) {
	for _, tt := range []struct {
		newApex, listed bool
		want            string
	}{
		{true, false, "adam[2] ag[2] adam[0] adam[1]"},
		{false, false, "adam[2] ag[2] adam[0]"},
		{false, true, "adam[2] ag[2]"},
	} {
		params, groups := sized(128, 128, 128)
		for p := range params {
			params[p].DType = dtype.BF16
		}
		o := smallOptions()
		o.ParamSync, o.StoreParams, o.StoreParamRemainders, o.NewApex, o.OverlapParamSync = dtype.BF16, false, true, tt.newApex, true
		l, err := NewLayout(o, params, groups)
		require.NoError(t, err)
		wide := l.DTypes(1)
		wide.ParamSync = dtype.FP32
		require.NoError(t, l.InitParamsBucket([]bucket.ParamID{0}))
		l.PlaceAs(1, wide)
		l.Place(2)
		g := newLedger(t, l, "spent")
		s, err := NewSharded(l, Config{Runtime: g, ListedOnce: tt.listed})
		require.NoError(t, err)
		s.ZeroGrad()
		s.Step()
		require.Equal(t, tt.want, collectives(g.log))
	}
}
