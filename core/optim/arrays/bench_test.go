package arrays_test

import (
	"testing"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim/arrays"
)

// BenchmarkAdamStep10M4Ranks is one whole step of 10 million parameters on 4 ranks: gradients reduced
// and scattered, every shard updated, parameters gathered and copied.
func BenchmarkAdamStep10M4Ranks(b *testing.B) {
	for _, d := range []dtype.DType{dtype.FP32, dtype.BF16} {
		b.Run(d.String(), func(b *testing.B) { benchmarkStep(b, d, 10, 1_000_000) })
	}
}

func benchmarkStep(b *testing.B, d dtype.DType, params int, numel int) {
	o := apex.DefaultOptions(4)
	o.GradSync, o.ParamSync, o.BucketCapMB, o.ContiguousGradBuffer = d, d, 10, true
	o.OverlapGradSync = false
	var list []model.Param
	c := arrays.Config{Distributed: 4, Groups: plainArgs, ContiguousGrads: true}
	groups := [][]bucket.ParamID{nil}
	initial, grad := filled(numel, 0.5), filled(numel, 0.001)
	for i := range grad {
		grad[i] *= float32(i%1000) - 500
	}
	var all [][]float32
	for p := range params {
		list = append(list, model.Param{Name: "p", Shape: []int64{int64(numel)}, Numel: 1_000_000, DType: d})
		c.Params = append(c.Params, arrays.Param{Numel: 1_000_000, DType: d})
		groups[0] = append(groups[0], bucket.ParamID(p))
		all = append(all, initial)
	}
	layout, err := apex.NewLayout(o, list, groups)
	if err != nil {
		b.Fatal(err)
	}
	layout.InitParams(nil)
	c.Buckets = func() []bucket.Bucket { return layout.Buckets }
	ranks, err := arrays.New(c, all)
	if err != nil {
		b.Fatal(err)
	}
	opt, err := apex.NewSharded(layout, apex.Config{Runtime: ranks})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		opt.ZeroGrad()
		for p := range params {
			for rank := range ranks.Size() {
				ranks.AddGrad(rank, bucket.ParamID(p), grad)
			}
			opt.PostBackward(bucket.ParamID(p))
		}
		b.StartTimer()
		opt.Step()
	}
	b.StopTimer()
	if err := ranks.Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/step")
}
