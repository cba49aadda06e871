package scenario

import (
	"math/rand/v2"
	"testing"

	"distopt/core/apex"
	"distopt/core/model"

	"github.com/stretchr/testify/require"
)

// layouts builds the real layout of every stage.
func layouts(t *testing.T, s *Scenario) (buckets, fragments int64) {
	t.Helper()
	a := s.Optimizer()
	for stage := range s.Parallel.PP {
		st, err := model.BuildStage(model.Config{
			Layers: int64(s.Model.Layers), Hidden: int64(s.Model.Hidden), FFN: int64(s.FFN()), Heads: int64(s.Model.Heads),
			Groups: int64(s.QueryGroups()), KVChannels: int64(s.KVChannels()), Vocab: int64(s.PaddedVocab()), Seq: int64(s.Model.SeqLength),
			LearnedPositions: s.Model.Position == LearnedAbsolute, RMSNorm: s.RMSNorm(), Bias: s.Model.Bias, Gated: s.Gated(),
			Tied: s.Model.Tied, FP8: s.Precision.FP8, FP8Params: s.FP8Weights(), DType: s.ModelDType(),
		}, model.Split{TP: s.Parallel.TP, SP: s.SequenceParallel(), PP: s.Parallel.PP, Index: stage, VP: s.Chunks()})
		require.NoError(t, err)
		l, err := apex.Build(apex.Options{
			Distributed: s.Distributed(), Redundant: s.Redundant(), State: a.State, GradSync: a.GradSync, ParamSync: a.ParamSync,
			BucketCapMB: s.Optim.BucketCapMB, ContiguousGradBuffer: true, StoreParams: a.StoreParams, StoreParamRemainders: a.StoreParamRemainders,
			NeMo: !s.Plain(), NewNeMo: s.NewNeMo(), NewApex: s.NewApex(), O2: true,
		}, st)
		require.NoError(t, err)
		if s.Plain() {
			l.InitParams(nil)
		}
		buckets += int64(len(l.Buckets))
		held := int64(0)
		for i := range l.Buckets {
			held += int64(len(l.Buckets[i].Fragments))
		}
		fragments = max(fragments, held)
	}
	return buckets, fragments
}

// The bounds that are known before a layout is built hold for it, and are not far off.
func TestEstimateBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		s := good()
		s.Model.Layers = 12 * (1 + rng.IntN(3))
		s.Model.Hidden = 64 * (1 + rng.IntN(4))
		s.Model.FFN = 0
		s.Model.Heads, s.Model.QueryGroups = 4, 2*rng.IntN(2)
		s.Model.TokenizerVocab = 500 + rng.IntN(5000)
		s.Model.Tied, s.Model.Bias = rng.IntN(2) == 0, rng.IntN(2) == 0
		s.Parallel.VP = []int{0, 3}[rng.IntN(2)]
		s.Precision.FP8Params = rng.IntN(2) == 0
		s.Optim.BucketCapMB = 0.01 * float64(1+rng.IntN(100))
		s.Framework.Version = []string{Before, After}[rng.IntN(2)]
		s.Batch.Global = 64
		switch rng.IntN(4) {
		case 0:
			s.Parallel.PP, s.Parallel.VP = 1, 0
		case 1:
			s.Optim.Name = PlainApex
			s.Parallel.PP, s.Parallel.VP, s.Parallel.SequenceParallel = 1, 0, false
			s.Precision.FP8Params = false
			s.Optim.Plain.Init, s.Optim.Plain.StoreParams = InitExplicit, true
		}
		errs, _ := s.Validate()
		require.NoError(t, errs.Err())
		size, _ := s.BucketSize()
		buckets, fragments := s.estimateBuckets(size)
		b, f := layouts(t, &s)
		require.GreaterOrEqual(t, buckets, b, "%+v", s)
		require.GreaterOrEqual(t, fragments, f)
		require.LessOrEqual(t, buckets, 3*b+8)
		if s.Plain() {
			require.LessOrEqual(t, fragments, 2*f+100)
		}
	}
}

// The largest preset stays far from every limit.
func TestEstimateTasks(t *testing.T) {
	s := good()
	require.Equal(t, 2*8*(2*(24+8)+2*4*3), s.EstimateTasks())
	s.Parallel.PP, s.Parallel.VP, s.Hardware.Nodes, s.Batch.Global = 1, 0, 2, 64
	require.Equal(t, 2*s.Microbatches()*2*(24+2), s.EstimateTasks())
}
