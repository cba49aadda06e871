package arrays_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Ranks, buckets, buffers, overlaps, versions, microbatches and the order of initialisation do not
// change a bit of the parameters where sums are exact, and all ranks agree after every step. One
// setup of each task is compared with a plain loop over whole tensors.
func TestSetupsDoNotMatter(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(f.name)), 1771))
			for range 6 {
				k := exactTask(r, options(f.change), f.dtype, f.fp8)
				first := randomSetup(r, &k)
				first.train(t, &k)
				if !f.fp8 && f.dtype == dtype.FP32 && k.options.State == dtype.FP32 {
					requirePlainAdam(t, &k, first)
				}
				for range 4 {
					other := randomSetup(r, &k)
					other.train(t, &k)
					for p := range k.sizes {
						a, b := first.ranks.Param(0, bucket.ParamID(p)), other.ranks.Param(0, bucket.ParamID(p))
						require.True(t, a.Equal(b), "parameter %d: %s\n%s\n%v\n%v", p, first, other, a, b)
					}
				}
			}
		})
	}
}

// requirePlainAdam compares parameters with Adam on whole tensors and average gradients.
func requirePlainAdam(t *testing.T, k *task, s *setup) {
	for g, list := range k.groups {
		for _, p := range list {
			n := k.sizes[p]
			x, m, v := append([]float32(nil), k.initial[p]...), make([]float32, n), make([]float32, n)
			for step, grads := range k.grads {
				mean := make([]float32, n)
				for _, c := range grads {
					for i := range c[p] {
						mean[i] += c[p][i] / contributions
					}
				}
				kernel := k.args[g].Kernel(step+1, 1)
				kernel.Update(x, m, v, mean, dtype.FP32)
			}
			require.Equal(t, x, s.ranks.Param(0, p).Words, "parameter %d: %s", p, s)
		}
	}
}

// With scaled states, whose scales belong to fragments, overlaps and buffers do not matter either.
func TestScaledSetupsDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1771))
	for _, state := range []dtype.DType{dtype.FP16, dtype.BF16} {
		o := options(formats[1].change)
		o.State, o.WithScaledStates = state, true
		for range 10 {
			k := exactTask(r, o, dtype.BF16, false)
			first := randomSetup(r, &k)
			first.init = 1 + r.IntN(3) // the same layout for all
			first.train(t, &k)
			for range 3 {
				other := randomSetup(r, &k)
				other.init, other.lists, other.micros = first.init, first.lists, first.micros
				other.options.Distributed, other.options.Redundant = first.options.Distributed, first.options.Redundant
				other.options.BucketCapMB, other.options.Later = first.options.BucketCapMB, first.options.Later
				other.options.ContiguousGradBuffer = other.options.ContiguousGradBuffer || first.options.Later.NCCLUserBuffers
				other.train(t, &k)
				for p := range k.sizes {
					require.True(t, first.ranks.Param(0, bucket.ParamID(p)).Equal(other.ranks.Param(0, bucket.ParamID(p))), "%s\n%s", first, other)
				}
			}
		}
	}
}

// A run that is saved and taken up by other ranks and buckets, maybe with main parameters stored
// otherwise, goes on to the bit as if nothing had happened.
func TestCheckpointSurvivesEverything(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(f.name)), 3375))
			for range 6 {
				k := exactTask(r, options(f.change), f.dtype, f.fp8)
				whole := randomSetup(r, &k)
				whole.train(t, &k)

				before := randomSetup(r, &k)
				before.begin(t, &k)
				before.step(t, &k, k.grads[0])
				saved, err := before.ranks.Save(1)
				require.NoError(t, err)
				require.Equal(t, 2, saved.Format)
				require.Equal(t, 1, saved.Step)
				model := before.ranks.Model()
				for range 2 { // the run that was saved is not disturbed
					before.step(t, &k, k.grads[before.finished])
				}

				other := k
				other.args = make([]optim.AdamArgs, len(k.args)) // come from the checkpoint
				for p := range other.initial {
					other.initial = append([][]float32(nil), other.initial...)
					other.initial[p] = make([]float32, k.sizes[p])
				}
				after := randomSetup(r, &other)
				after.init = 1 + r.IntN(3)
				after.begin(t, &other)
				require.NoError(t, after.ranks.SetModel(model))
				require.NoError(t, after.ranks.Load(saved))
				for _, grads := range k.grads[1:] {
					after.step(t, &k, grads)
				}
				again, err := after.ranks.Save(2)
				require.NoError(t, err)
				last, err := whole.ranks.Save(3)
				require.NoError(t, err)
				require.Equal(t, last.Step, again.Step)
				for p := range k.sizes {
					require.True(t, whole.ranks.Param(0, bucket.ParamID(p)).Equal(after.ranks.Param(0, bucket.ParamID(p))), "%s\n%s", whole, after)
					require.True(t, whole.ranks.Param(0, bucket.ParamID(p)).Equal(before.ranks.Param(0, bucket.ParamID(p))))
					for i, a := range []bool{
						last.Params[p].Param.Equal(again.Params[p].Param), last.Params[p].ExpAvg.Equal(again.Params[p].ExpAvg),
						last.Params[p].ExpAvgSq.Equal(again.Params[p].ExpAvgSq),
					} {
						require.True(t, a, "tensor %d of parameter %d: %s\n%s", i, p, whole, after)
					}
				}
			}
		})
	}
}

// Random setups of random tasks with values of every size, NaN and infinity among them, neither
// panic nor end in different parameters on different ranks.
func FuzzRanks(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(11), uint64(29))
	f.Fuzz(func(t *testing.T, a, b uint64) { wild(t, rand.New(rand.NewPCG(a, b))) })
}

func TestWildValues(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 5))
	for range 40 {
		wild(t, r)
	}
}
