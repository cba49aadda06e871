package arrays_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"distopt/core/apex"
	"distopt/core/dtype"
)

// wild trains with whatever bits come.
func wild(t *testing.T, r *rand.Rand) {
	f := formats[r.IntN(len(formats))]
	o := options(f.change)
	if r.IntN(4) == 0 {
		o = options(func(o *apex.Options) {
			o.State, o.ParamSync, o.WithScaledStates = []dtype.DType{dtype.FP16, dtype.BF16}[r.IntN(2)], dtype.BF16, true
		})
		f = formats[1]
	}
	k := exactTask(r, o, f.dtype, f.fp8)
	for _, step := range k.grads {
		for _, c := range step {
			for _, g := range c {
				for i := range g {
					switch r.IntN(12) {
					case 0:
						g[i] = math.Float32frombits(r.Uint32())
					case 1:
						g[i] *= 1e30
					case 2:
						g[i] *= 1e-40
					}
				}
			}
		}
	}
	for g := range k.args {
		a := &k.args[g]
		a.LR = []float64{0, 1e-3, 1e30, 1e300, math.Inf(1), math.NaN()}[r.IntN(6)]
		a.Eps = []float64{0, 1e-8, 1e300}[r.IntN(3)]
		a.WeightDecay = []float64{0, 0.1, 1e38}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		k.maxNorm = []float64{1e-30, 1, 1e300}[r.IntN(3)]
	}
	k.scaler = r.IntN(3) == 0
	randomSetup(r, &k).train(t, &k)
}
