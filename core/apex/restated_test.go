package apex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
)

// recorded collects the events of the optimizer itself.
type recorded struct{ events []string }

func (r *recorded) Event(e *optim.Event) { r.events = append(r.events, line(e)) }

// pair drives both tellings side by side.
type pair struct {
	t    *testing.T
	s    *Sharded
	x    *restated
	seen *recorded
	what string
	past int
}

func (d *pair) do(s, x func()) {
	d.t.Helper()
	s()
	require.NoError(d.t, d.s.Err(), d.what)
	x()
	from := min(d.past, len(d.seen.events), len(d.x.events))
	require.Equal(d.t, d.x.events[from:], d.seen.events[from:], d.what)
	d.past = len(d.seen.events)
}

// step is one training step; idle parameters get no gradients.
func (d *pair) step(r *rand.Rand, modules []model.Module, chunks, microbatches int, pipelined bool, idle ...bucket.ParamID) {
	s, x := d.s, d.x
	d.do(s.ZeroGrad, x.zeroGrad)
	noSync := func(on bool) { s.NoSync(on); x.noSync(on) }
	noSync(true)
	if pipelined {
		for c := range chunks {
			d.do(func() { s.ParamSyncFunc(c) }, func() { x.paramSyncFunc(c) })
		}
	}
	for m := range microbatches {
		if !pipelined && m == microbatches-1 {
			noSync(false)
		}
		for i := range modules {
			for _, p := range modules[i].Params {
				d.do(func() { s.PreForward(p) }, func() { x.paramAccess(p) })
			}
		}
		for i := len(modules) - 1; i >= 0; i-- {
			list := slices.Clone(modules[i].Params)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for _, p := range list {
				if !slices.Contains(idle, p) {
					d.do(func() { s.PostBackward(p) }, func() { x.gradReady(p) })
				}
			}
		}
	}
	if pipelined {
		for c := chunks - 1; c >= 0; c-- {
			noSync(false)
			d.do(func() { s.GradSyncFunc(c) }, func() { x.gradSyncFunc(c) })
			noSync(c > 0)
		}
	}
	d.do(s.AfterBackward, x.afterBackward)
	d.do(s.ClipGradNorm, x.clip)
	d.do(s.Step, x.step)
}

func newPair(t *testing.T, l *Layout, x *restated, c Config, what string) *pair {
	d := &pair{t: t, x: x, seen: &recorded{}, what: what}
	c.Runtime, c.Observer = nothing{}, d.seen
	var err error
	d.s, err = NewSharded(l, c)
	require.NoError(t, err, what)
	c.World = d.s.c.World
	c.Tensor = d.s.c.Tensor
	d.do(func() {}, func() { x.start(c) })
	return d
}

// NeMo's answers in every version are those of the second telling, event by event.
func TestRestatedNeMoEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 8221))
	for i := range 150 {
		s := randomStage(t, r)
		o := randomOptions(r, s)
		o.O2 = r.IntN(4) > 0
		o.ContiguousGradBuffer = true
		o.OverlapGradSync, o.OverlapParamSync, o.AverageGradSync = r.IntN(3) > 0, r.IntN(3) > 0, r.IntN(2) == 0
		o.Redundant = 1 + r.IntN(2)
		o.BucketCapMB = max(o.BucketCapMB, 0.001)
		o.State = []dtype.DType{dtype.FP32, dtype.FP32, dtype.BF16, dtype.FP16}[r.IntN(4)]
		o.SetNeMo(dtype.BF16, s.Config.FP8Params)
		o.WithScaledStates = o.NewApex && o.StoreParams && o.State != dtype.FP32 && r.IntN(2) == 0
		c := Config{Rank: r.IntN(o.Distributed), World: 16, Tensor: s.TP, TensorRank: r.IntN(s.TP), MaxNorm: float64(r.IntN(2)), GradScaler: r.IntN(4) == 0}
		if s.PP > 1 && s.Config.Tied && (s.Index == 0 || s.Index == s.PP-1) {
			c.EmbeddingSize = 2
		}
		what := fmt.Sprintf("%d: %+v %+v %+v %+v", i, s.Config, s.Split, o, c)
		l, err := BuildNeMo(o, s)
		require.NoError(t, err, what)
		x := newRestated(o, s.Params, s.OptimizerGroups(o.NormDecay))
		x.nemo(s)
		d := newPair(t, l, x, c, what)
		for range 3 {
			d.step(r, s.Modules, len(s.Chunks), 1+r.IntN(2), s.PP > 1)
		}
		x.requireSame(t, l, what)
	}
}

// So are those of plain Apex, with buckets placed by its hooks or before.
func TestRestatedPlainEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 1771))
	for i := range 300 {
		params, groups := randomParams(r)
		for p := range params {
			params[p].Numel = max(params[p].Numel, 1)
		}
		o := randomPlainOptions(r)
		o.NewApex = r.IntN(2) == 0
		o.OverlapGradSync, o.OverlapParamSync, o.AverageGradSync = r.IntN(3) > 0, r.IntN(3) > 0, r.IntN(2) == 0
		o.ContiguousGradBuffer, o.ContiguousParamBuffer = r.IntN(2) == 0, r.IntN(3) == 0
		o.Redundant = 1 + r.IntN(2)
		if !o.StoreParamRemainders && r.IntN(3) == 0 {
			o.ParamSync = []dtype.DType{dtype.BF16, dtype.U8}[r.IntN(2)]
			if o.NewApex && r.IntN(2) == 0 {
				o.State, o.WithScaledStates = dtype.FP16, true
			}
		}
		for p := range params {
			if params[p].DType = dtype.FP32; o.ContiguousParamBuffer || o.StoreParamRemainders {
				params[p].DType = o.ParamSync
			}
		}
		if o.ParamSync == dtype.U8 && o.ContiguousParamBuffer {
			continue // no floating-point parameter is a view of bytes
		}
		c := Config{Rank: r.IntN(o.Distributed), MaxNorm: float64(r.IntN(2)), GradScaler: r.IntN(4) == 0}
		what := fmt.Sprintf("%d: %+v %+v", i, o, c)
		l, err := NewLayout(o, params, groups)
		require.NoError(t, err, what)
		x := newRestated(o, params, groups)
		if r.IntN(3) == 0 {
			list := groups[0][:r.IntN(len(groups[0])+1)]
			require.NoError(t, l.InitParamsBucket(list))
			x.initBucket(list)
		}
		d := newPair(t, l, x, c, what)
		modules := make([]model.Module, 1+len(params)/3)
		for p := range params {
			m := &modules[p/3]
			m.Params = append(m.Params, bucket.ParamID(p))
		}
		var idle []bucket.ParamID
		if r.IntN(3) == 0 && !o.ContiguousParamBuffer {
			idle, _ = split(x.order(), func(bucket.ParamID) bool { return r.IntN(4) == 0 })
		}
		for range 3 {
			d.step(r, modules, 1, 1+r.IntN(3), false, idle...)
		}
		x.requireSame(t, l, what)
	}
}
