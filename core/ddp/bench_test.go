package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
)

// gpt3 is a stage with all 96 layers of GPT-3.
func gpt3(tb testing.TB) *model.Stage {
	s, err := model.BuildStage(model.Config{
		Layers: 96, Hidden: 12288, FFN: 4 * 12288, Heads: 96, Groups: 96, KVChannels: 128, Vocab: 51200, Seq: 2048,
		LearnedPositions: true, Bias: true, Tied: true,
	}, model.Split{TP: 8, PP: 1, VP: 1})
	require.NoError(tb, err)
	return s
}

func BenchmarkBuild(b *testing.B) {
	s := gpt3(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(Options{World: 64}, s.Params, StageArrival(s)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	stage := gpt3(b)
	l, err := Build(Options{World: 64}, stage.Params, StageArrival(stage))
	require.NoError(b, err)
	s, err := NewSharded(l, Config{Runtime: optim.Discard{}, MaxNorm: 1, Warm: true})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		s.ZeroGrad()
		for p := len(l.Params) - 1; p >= 0; p-- {
			s.PostBackward(bucket.ParamID(p))
		}
		s.AfterBackward()
		s.ClipGradNorm()
		s.Step()
	}
}

// A hundred thousand tensors, each a bucket of its own, are laid out in no time.
func TestManyBuckets(t *testing.T) {
	params := make([]model.Param, 100_000)
	for p := range params {
		params[p] = model.Param{Name: "w", Shape: []int64{8}, Numel: 8}
	}
	order := make([]bucket.ParamID, len(params))
	for i := range order {
		order[i] = bucket.ParamID(len(order) - 1 - i)
	}
	l, err := Build(Options{World: 8, CapMB: 1e-6}, params, order)
	require.NoError(t, err)
	require.Len(t, l.Buckets, len(params))
	require.EqualValues(t, 8*(len(params)-1), l.Buckets[len(params)-1].Offset)
}
