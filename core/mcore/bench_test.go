package mcore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
)

// gpt3 is a stage with all 96 layers of GPT-3.
func gpt3(b *testing.B) []Param {
	s, err := model.BuildStage(model.Config{
		Layers: 96, Hidden: 12288, FFN: 4 * 12288, Heads: 96, Groups: 96, KVChannels: 128, Vocab: 51200, Seq: 2048,
		LearnedPositions: true, Bias: true, Tied: true,
	}, model.Split{TP: 8, PP: 1, VP: 1})
	require.NoError(b, err)
	return Params(s, Plain)
}

func BenchmarkBuild(b *testing.B) {
	params := gpt3(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(Options{World: 64, DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true}, params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	l, err := Build(Options{World: 64, DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true}, gpt3(b))
	require.NoError(b, err)
	s, err := NewSharded(l, Config{Runtime: optim.Discard{}, MaxNorm: 1})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
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
}
