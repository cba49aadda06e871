package mcore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
)

// log is a runtime that writes down effects, in the order in which they are launched.
type log struct {
	lines  []string
	finite bool
}

func (g *log) add(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

func (g *log) Wait(a, b optim.Stream)               { g.add("wait %d on %d", a, b) }
func (g *log) WaitCall(a, b optim.Stream, call int) { g.add("wait %d on call %d", a, call) }
func (g *log) ZeroGrad(z *optim.Zero)               { g.add("zero") }
func (g *log) AccumulateGrad(a *optim.Accumulation) { g.add("accumulate %v", a.Params) }
func (g *log) ReduceScatter(c *optim.Collective)    { g.add("reduce-scatter %v", ids(c)) }
func (g *log) AllReduceShards(c *optim.Collective)  { g.add("all-reduce %v", ids(c)) }
func (g *log) KeepShards(k *optim.Kept)             { g.add("keep %v", k.Stored) }
func (g *log) AllReduceGrads(r *optim.GradReduction) {
	g.add("all-reduce gradients of %v over %s", r.Params, r.Group)
}
func (g *log) ScaleGrads(*optim.GradScaling)    { g.add("scale by tokens") }
func (g *log) LocalNorm(n *optim.Norm)          { g.add("norm of %d", len(n.Params)) }
func (g *log) AllReduceNorm(r *optim.Reduction) { g.add("all-reduce norm %s over %d", r.Op, r.Size) }
func (g *log) Clip(x float64)                   { g.add("clip %v", x) }
func (g *log) CheckFinite() bool                { g.add("check"); return g.finite }
func (g *log) Adam(u *optim.Update)             { g.add("adam %v", u.Buckets) }
func (g *log) Cast(c *optim.Cast)               { g.add("cast %v", c.Buckets) }
func (g *log) UpdateScaleInv(*optim.Reduction)  { g.add("scale inverses") }
func (g *log) AllReduceAmax(*optim.Reduction)   { g.add("amax") }
func (g *log) AllGather(c *optim.Collective)    { g.add("all-gather %v", ids(c)) }
func (g *log) UseParams(*optim.ParamUse)        { g.add("use") }

func ids(c *optim.Collective) (list []bucket.ID) {
	for _, m := range c.Members {
		list = append(list, m.Bucket)
	}
	return list
}

func (g *log) take() []string {
	lines := g.lines
	g.lines = nil
	return lines
}

// two is a model of two matrices, with overlap each in a bucket of its own.
func two(t *testing.T, o Options, c Config) (*Sharded, *log) {
	a, b := bf16(1<<12), bf16(1<<12)
	a.SequenceParallel = true
	o.World, o.BucketSize = 2, 100
	l, err := Build(o, []Param{a, b})
	require.NoError(t, err)
	g := &log{finite: true}
	c.Runtime = g
	s, err := NewSharded(l, c)
	require.NoError(t, err)
	return s, g
}

func backward(s *Sharded, params ...bucket.ParamID) {
	for _, p := range params {
		s.PostBackward(p)
	}
}

// The first step launches everything after backward, the next ones as gradients come; the first gather
// starts with the first module, the next one when it has been waited for.
func TestFirstStepDoesNotOverlap(t *testing.T) {
	s, g := two(t, Options{DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true}, Config{})
	s.ZeroGrad()
	require.False(t, s.PendingForward(0), "no hooks in the first step")
	s.PreForward(0)
	backward(s, 1, 0)
	require.Equal(t, []string{"zero", "accumulate [1]", "accumulate [0]"}, g.take())
	s.AfterBackward()
	require.Equal(t, []string{
		"wait 1 on 0", "reduce-scatter [0]", "wait 0 on call 1", "keep [0]",
		"wait 1 on 0", "reduce-scatter [1]", "wait 0 on call 2", "keep [1]",
	}, g.take())
	s.Step()
	require.Equal(t, []string{"adam [0 1]", "cast [0 1]"}, g.take())

	s.ZeroGrad()
	require.True(t, s.PendingForward(0))
	s.PreForward(0)
	require.Equal(t, []string{"zero", "wait 1 on 0", "all-gather [1]", "wait 0 on call 3", "wait 1 on 0", "all-gather [0]"}, g.take())
	require.False(t, s.PendingForward(0))
	s.PreForward(1)
	require.Equal(t, []string{"wait 0 on call 4"}, g.take())
	s.NoSync(true)
	backward(s, 1, 0)
	s.NoSync(false)
	require.Len(t, g.take(), 2)
	backward(s, 1)
	require.Equal(t, []string{"accumulate [1]", "wait 1 on 0", "reduce-scatter [0]"}, g.take())
	backward(s, 0)
	s.AfterBackward()
	require.Equal(t, []string{"accumulate [0]", "wait 1 on 0", "reduce-scatter [1]", "wait 0 on call 5", "keep [0]", "wait 0 on call 6", "keep [1]"}, g.take())
	require.NoError(t, s.Err())
}

// A parameter that was used in the first step must be used in all, and all of a group together.
func TestUnusedParameters(t *testing.T) {
	o := Options{DistributedOptimizer: true, OverlapGradReduce: true}
	s, _ := two(t, o, Config{})
	s.ZeroGrad()
	backward(s, 1, 0)
	s.AfterBackward()
	s.Step()
	s.ZeroGrad()
	backward(s, 1)
	s.AfterBackward()
	require.ErrorContains(t, s.Err(), "bucket group 1 of model chunk 0: got no reduction to wait for")
	s.ZeroGrad()
	s.Step()
	require.ErrorContains(t, s.Err(), "bucket group 1", "the first error stays")

	l, err := Build(Options{World: 2, DistributedOptimizer: true, OverlapGradReduce: true}, []Param{bf16(1 << 12), bf16(1 << 12)})
	require.NoError(t, err)
	s, err = NewSharded(l, Config{Runtime: &log{}})
	require.NoError(t, err)
	s.ZeroGrad()
	backward(s, 0)
	s.AfterBackward()
	s.Step()
	s.ZeroGrad()
	require.ErrorContains(t, s.Err(), "got gradients of 1 parameters in the first step, want all 2")
}

// With loss scaling an infinite gradient ends the step before the update; the norm follows the check.
func TestStepIsSkipped(t *testing.T) {
	s, g := two(t, Options{DistributedOptimizer: true}, Config{GradScaler: true, MaxNorm: 1})
	s.ZeroGrad()
	backward(s, 1, 0)
	s.AfterBackward()
	g.take()
	s.Step()
	require.Equal(t, []string{
		"norm of 2", "all-reduce norm MAX over 2", "check", "all-reduce norm SUM over 2", "clip 1",
		"adam [0]", "cast [0]", "wait 1 on 0", "all-gather [0]", "wait 0 on call 2",
	}, g.take())
	g.finite = false
	s.Step()
	require.Equal(t, []string{"norm of 2", "all-reduce norm MAX over 2", "check"}, g.take())
}

// After the reductions come the gradients that other groups hold a part of, then the tokens.
func TestFinalize(t *testing.T) {
	s, g := two(t, Options{DistributedOptimizer: true, PerTokenLoss: true}, Config{Tensor: 2, EmbeddingSize: 2})
	s.tied = 1
	s.ZeroGrad()
	backward(s, 1, 0)
	g.take()
	s.AfterBackward()
	require.Equal(t, []string{
		"wait 1 on 0", "reduce-scatter [0]", "wait 0 on call 1", "keep [0]",
		"all-reduce gradients of [0] over tensor", "all-reduce gradients of [1] over embedding", "scale by tokens",
	}, g.take())
}

func TestConfigIsChecked(t *testing.T) {
	l, err := Build(Options{World: 2}, []Param{bf16(1 << 12)})
	require.NoError(t, err)
	_, err = NewSharded(l, Config{})
	require.ErrorContains(t, err, "runtime: got none")
	_, err = NewSharded(l, Config{Runtime: &log{}, Rank: 2})
	require.ErrorContains(t, err, "rank: got 2, want 0 to 1")
	_, err = NewSharded(l, Config{Runtime: &log{}, States: States{PrecisionAware: true}})
	require.ErrorContains(t, err, "use_precision_aware_optimizer")
}

// A step allocates nothing once it has run.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	stage, err := model.BuildStage(model.Config{
		Layers: 4, Hidden: 64, FFN: 256, Heads: 4, Groups: 4, KVChannels: 16, Vocab: 512, Seq: 32, Bias: true, FP8Params: true,
	}, model.Split{TP: 1, PP: 1, VP: 1})
	require.NoError(t, err)
	params := Params(stage, FP8)
	l, err := Build(Options{World: 4, BucketSize: 30000, DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true}, params)
	require.NoError(t, err)
	s, err := NewSharded(l, Config{Runtime: optim.Discard{}, MaxNorm: 1})
	require.NoError(t, err)
	step := func() {
		s.ZeroGrad()
		for p := range l.Params {
			s.PreForward(bucket.ParamID(p))
		}
		for p := len(l.Params) - 1; p >= 0; p-- {
			s.PostBackward(bucket.ParamID(p))
		}
		s.AfterBackward()
		s.Step()
	}
	step()
	step()
	require.Zero(t, testing.AllocsPerRun(10, step))
	require.NoError(t, s.Err())
}
