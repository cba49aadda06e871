package step

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
)

// The largest preset: a trillion parameters, 128 layers on 64 stages with two chunks each, 512
// microbatches.
func BenchmarkRecordLargest(b *testing.B) {
	const stages = 64
	in := make([]StageInput, stages)
	for p := range in {
		m, err := model.BuildStage(model.Config{
			Layers: 128, Hidden: 25600, FFN: 4 * 25600, Heads: 160, Groups: 160, KVChannels: 160, Vocab: 51200, Seq: 2048,
			LearnedPositions: true, Bias: true, Tied: true, FP8: true, FP8Params: true, DType: dtype.BF16,
		}, model.Split{TP: 8, SP: true, PP: stages, Index: p, VP: 2})
		require.NoError(b, err)
		o := apex.DefaultOptions(6)
		o.NewApex, o.NewNeMo, o.O2 = true, true, true
		o.GradSync, o.BucketCapMB = dtype.BF16, 400
		o.OverlapGradSync, o.OverlapParamSync, o.ContiguousGradBuffer = true, true, true
		o.SetNeMo(dtype.BF16, true)
		in[p] = StageInput{Model: m, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
			l, err := apex.Build(o, m)
			if err != nil {
				return nil, err
			}
			c := apex.Config{World: 3072, Tensor: 8, MaxNorm: 1, Runtime: rt, Observer: obs}
			if p == 0 || p == stages-1 {
				c.EmbeddingSize = 2
			}
			return apex.NewSharded(l, c)
		}}
	}
	cfg := Config{Microbatches: 512, Activation: 2048 / 8 * 25600, DType: dtype.BF16, GradSync: dtype.BF16, BatchP2P: true, WorldNorm: true}
	tasks, rec := 0, &Recording{}
	for b.Loop() {
		require.NoError(b, RecordInto(rec, in, cfg))
		tasks = len(rec.Program.Tasks)
		if b.N == 1 {
			b.Logf("%d tasks, %d works, %d messages, %d deps", tasks, len(rec.Works), len(rec.Program.Messages), len(rec.Program.Deps))
		}
	}
	b.ReportMetric(float64(tasks), "tasks")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
}
