package eval

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/core/scenario"
)

// onMegatron is the opening preset's model under Megatron-Core's optimizer.
func onMegatron(t testing.TB) *scenario.Scenario {
	s := *preset(t, "gpt3-5b-fp8")
	s.Optim.Name = scenario.MCoreAdam
	s.Precision.FP8Params = false
	return &s
}

// counts are the collectives of a stage by kind.
func counts(r *report.Result, stage int) map[string]int {
	n := map[string]int{}
	for i := range r.Collectives {
		if c := &r.Collectives[i]; c.Stage == stage {
			n[c.Kind]++
		}
	}
	return n
}

// Framework by framework the same model computes as long: only communication and the optimizer's own
// kernels differ.
func TestMegatronBesideApex(t *testing.T) {
	a, err := Evaluate(preset(t, "gpt3-5b-fp8"))
	require.NoError(t, err)
	m, err := Evaluate(onMegatron(t))
	require.NoError(t, err)
	require.Equal(t, a.Figures.Parameters, m.Figures.Parameters)
	require.InEpsilon(t, float64(a.Figures.StepTime), float64(m.Figures.StepTime), 0.25)
	require.Greater(t, m.Figures.Utilisation, 0.99, "buckets are as large as their content")
	require.NotEmpty(t, m.Stages[0].Bucketing)
	n := counts(m, 0)
	require.Equal(t, m.Figures.Buckets, n["Reduce-scatter"], "each bucket is a group of its own: %v", n)
	require.Equal(t, n["Reduce-scatter"], n["All-gather"], "%v", n)
}

// Bucketing exists on the first chunk of the first stage only, and the page can say why.
func TestMegatronBucketsOfLaterStages(t *testing.T) {
	s := onMegatron(t)
	s.Hardware.Nodes, s.Parallel.PP, s.Batch.Global = 4, 4, 64
	r, err := Evaluate(s)
	require.NoError(t, err)
	require.Greater(t, len(r.Stages[0].Buckets), 5)
	require.Contains(t, r.Stages[0].Bucketing[0].Text, "Buckets of 40,000,000 parameters")
	for p := 1; p < 4; p++ {
		require.LessOrEqual(t, len(r.Stages[p].Buckets), 2)
		require.Contains(t, r.Stages[p].Bucketing[0].Text, "only the first pipeline stage has buckets")
	}
}

// Experts without overlapped gathers: the dense and the expert optimizer each gather everything.
func TestMegatronGathersExpertsTwice(t *testing.T) {
	s := onMegatron(t)
	s.Precision.FP8 = false
	s.Model.Bias = false
	s.Model.Experts.Count, s.Model.Experts.TopK, s.Model.Experts.GroupedGEMM = 8, 2, true
	s.Model.Layers, s.Model.Hidden, s.Model.Heads, s.Model.FFN, s.Parallel.EP = 4, 1024, 16, 2048, 4
	for _, overlap := range []bool{true, false} {
		s.Optim.OverlapParamSync = overlap
		r, err := Evaluate(s)
		require.NoError(t, err)
		n := counts(r, 0)
		groups := n["Reduce-scatter"]
		require.Greater(t, groups, 1)
		if overlap {
			require.Equal(t, groups, n["All-gather"], "%v", n)
		} else {
			require.Equal(t, 2*groups, n["All-gather"], "%v", n)
		}
	}
}

// Any settings that validate are simulated, and what is reported adds up.
func TestRandomMegatron(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 12))
	coin := func() bool { return rnd.IntN(2) == 0 }
	pick := func(list ...int) int { return list[rnd.IntN(len(list))] }
	var x Simulator
	evaluated := 0
	for i := range 300 {
		s := *onMegatron(t)
		m := &s.Optim.MCore
		s.Model.Layers, s.Model.Hidden, s.Model.Heads, s.Model.FFN = 8, 512, 8, 1024
		s.Parallel.TP, s.Parallel.PP, s.Hardware.Nodes = pick(1, 2), pick(1, 2, 4), pick(1, 2, 3)
		if s.Parallel.PP > 1 && coin() {
			s.Parallel.VP = 2
		}
		s.Parallel.SequenceParallel = coin()
		s.Batch.Micro, s.Batch.Global = 1, s.DP()*pick(1, 4, 8)
		s.Precision.FP8 = coin()
		s.Precision.FP8Params = s.Precision.FP8 && coin()
		s.Optim.OverlapGradSync, s.Optim.OverlapParamSync = coin(), coin()
		s.Optim.GradSync = []string{"", "bf16", "fp32"}[rnd.IntN(3)]
		m.BucketSize = pick(0, 1, 1000, 3_000_000)
		m.DistributedOptimizer = rnd.IntN(5) > 0
		m.AlignGradReduce, m.AlignParamGather, m.GatherWithStep = coin(), coin(), rnd.IntN(4) == 0
		m.AverageInCollective, m.PerTokenLoss, m.FP32Accumulation = coin(), rnd.IntN(4) == 0, rnd.IntN(4) == 0
		m.Instances, m.CheckNaN, m.PrecisionAware, m.PadBuckets = pick(1, 1, 2), coin(), coin(), rnd.IntN(4) == 0
		m.MicrobatchGroup = pick(0, 0, s.Parallel.PP, 2*s.Parallel.PP)
		if coin() {
			s.Model.Bias = false
			e := &s.Model.Experts
			e.Count, e.TopK, e.SharedFFN, e.GroupedGEMM = pick(4, 8), pick(1, 2), pick(0, 512), true
			s.Parallel.EP = pick(1, 2, 4)
		}
		if errs, _ := s.Validate(); errs.Err() != nil {
			continue
		}
		evaluated++
		what := fmt.Sprintf("%d: %+v", i, s)
		r, err := x.Evaluate(&s)
		require.NoError(t, err, what)
		require.NoError(t, r.Spans.Check(), what)
		require.Positive(t, r.Figures.StepTime, what)
		for p := range r.Stages {
			var filled, numel int64
			for _, b := range r.Stages[p].Buckets {
				filled += b.Filled
			}
			for _, q := range r.Stages[p].Params {
				numel += q.Numel
			}
			require.Equal(t, numel, filled, what)
			var total int64
			for _, share := range r.Stages[p].Shares {
				total += int64(share.Time)
			}
			require.Equal(t, int64(r.Figures.StepTime), total, what)
		}
		for _, n := range r.Notes {
			require.False(t, strings.Contains(n.Text, "not yet steady") && s.Parallel.PP == 1, "%s\n%s", n.Text, what)
		}
	}
	require.Greater(t, evaluated, 40)
}

// PyTorch DDP reduces every gradient once, bucket after bucket, and gathers nothing.
func TestTorchDDP(t *testing.T) {
	s := onMegatron(t)
	s.Optim.Name, s.Precision.FP8 = scenario.TorchDDP, false
	r, err := Evaluate(s)
	require.NoError(t, err)
	n := counts(r, 0)
	require.Equal(t, map[string]int{"All-reduce": r.Figures.Buckets}, n)
	require.Greater(t, r.Figures.Buckets, 50)
	l, err := LayOut(s, 0)
	require.NoError(t, err)
	require.Len(t, l.DDP.Buckets, r.Figures.Buckets)
}
