package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/units"
)

// errors collects relative errors and reports mean and worst of their size.
type errorList []float64

func (e *errorList) add(predicted, measured float64) float64 {
	x := predicted/measured - 1
	*e = append(*e, x)
	return 100 * x
}

func (e errorList) mean() (mean, bias, worst float64) {
	for _, x := range e {
		mean += math.Abs(x) / float64(len(e))
		bias += x / float64(len(e))
		worst = max(worst, math.Abs(x))
	}
	return 100 * mean, 100 * bias, 100 * worst
}

// Products repeated until the clock has settled. The draws of products and FP8 products are
// fitted to these rows. FP8 at h 1024 is bound by the CPU (all shapes take 0.06 to 0.07 ms).
func TestSustainedProducts(t *testing.T) {
	c := hw.Reference.Curves()
	var errs [2]errorList
	for _, r := range measuredH200().Sustained {
		k := model.Kernel{Kind: model.GEMM, M: r.Tokens, N: r.N, K: r.K, DType: dtype.BF16}
		switch r.Pass {
		case "dgrad":
			k.N, k.K, k.Grad = r.K, r.N, true
		case "wgrad":
			k.M, k.N, k.K, k.Grad = r.N, r.K, r.Tokens, true
		}
		for i, ms := range []float64{r.BF16Ms, r.FP8Ms} {
			k.FP8 = i == 1
			if k.FP8 && r.H == 1024 {
				continue
			}
			burst := kernelTime(c, &k)
			part, _ := draw(&c.Power, &k)
			slow := hw.Slowdown(burst, units.Seconds(float64(burst)*part), 0, 0)
			errs[i].add(float64(burst)*slow*1e3, ms)
		}
	}
	for i, name := range []string{"bf16", "FP8"} {
		mean, bias, worst := errs[i].mean()
		t.Logf("%s: %d rows, mean error %.1f %%, bias %+.1f %%, worst %.1f %%", name, len(errs[i]), mean, bias, worst)
		require.Less(t, mean, 2.5)
		require.Less(t, math.Abs(bias), 1.0)
	}
}

// Whole layers: forward and backward alone with pauses, at full clock; and repeated until the
// clock has settled. The draws of attention and memory-bound kernels are fitted to the latter.
func TestLayers(t *testing.T) {
	c := hw.Reference.Curves()
	var burst, sustained errorList
	for _, r := range measuredH200().Burst {
		f, b := torchLayer(r.H, r.Heads, r.Batch, r.Seq, hw.FlashAttention2)
		ft, bt := sumTimes(c, f), sumTimes(c, b)
		ef, eb := burst.add(float64(ft)*1e3, r.FwdMs), burst.add(float64(bt)*1e3, r.BwdMs)
		t.Logf("alone     h %5d batch %d seq %d: forward %7.3f ms (%+5.1f %%), backward %7.3f ms (%+5.1f %%)",
			r.H, r.Batch, r.Seq, r.FwdMs, ef, r.BwdMs, eb)
	}
	for _, r := range measuredH200().Layers {
		backend := hw.FlashAttention2
		if r.Attention == "cudnn" {
			backend = hw.CuDNN
		}
		f, b := torchLayer(r.H, r.Heads, r.Batch, r.Seq, backend)
		total, slow := settled(c, f, b)
		e := sustained.add(float64(total)*1e3, r.Ms)
		t.Logf("sustained h %5d batch %d seq %d %-5s: %7.3f ms (%+5.1f %%), clocked kernels slowed by %.3f at %.0f MHz",
			r.H, r.Batch, r.Seq, r.Attention, r.Ms, e, slow, r.MHz)
	}
	mean, bias, worst := burst.mean()
	t.Logf("alone: mean error %.1f %%, bias %+.1f %%, worst %.1f %% (large layers already meet the power limit)", mean, bias, worst)
	require.Less(t, mean, 4.0)
	mean, bias, worst = sustained.mean()
	t.Logf("sustained: mean error %.1f %%, bias %+.1f %%, worst %.1f %%", mean, bias, worst)
	require.Less(t, mean, 2.5)
	require.Less(t, worst, 6.0)
}

func sumTimes(c *hw.Curves, list []model.Kernel) units.Seconds {
	sum := units.Seconds(0)
	for i := range list {
		sum += kernelTime(c, &list[i])
	}
	return sum
}

// settled returns the time of kernels at the clock that they lead to.
func settled(c *hw.Curves, lists ...[]model.Kernel) (total units.Seconds, slow float64) {
	var l load
	for _, list := range lists {
		l.add(untimed(c, list), 1)
	}
	slow = hw.Slowdown(l.clocked, l.clockedDraw, l.steady, l.steadyDraw)
	return units.Seconds(float64(l.clocked)*slow) + l.steady, slow
}

// untimed prices kernels without a machine around them.
func untimed(c *hw.Curves, list []model.Kernel) []timed {
	out := make([]timed, len(list))
	for i := range list {
		part, clocked := draw(&c.Power, &list[i])
		t := kernelTime(c, &list[i])
		if list[i].Repeat > 1 {
			t *= units.Seconds(list[i].Repeat)
		}
		out[i] = timed{&list[i], t, part, clocked}
	}
	return out
}

// Whole steps of GPTs on one GPU with the real optimizer: sums of kernel times by phase, from the
// same kernels as the layers. Nothing was fitted to these rows.
func TestWholeSteps(t *testing.T) {
	c := hw.Reference.Curves()
	errs := map[string]*errorList{"fwd": {}, "bwd": {}, "clip": {}, "step": {}, "all": {}}
	for _, r := range measuredH200().Steps {
		phases := torchStep(r.H, r.Layers, r.Heads, r.Batch, r.Seq, r.Vocab, r.Params, r.Tensors, r.Mode == "remainders_contig")
		var all [][]model.Kernel
		for _, list := range phases {
			all = append(all, list)
		}
		_, slow := settled(c, all...)
		sum, line := 0.0, ""
		for _, phase := range []string{"fwd", "bwd", "clip", "step"} {
			us := 0.0
			for _, k := range untimed(c, phases[phase]) {
				x := float64(k.time) * 1e6
				if k.clocked {
					x *= slow
				}
				us += x
			}
			sum += us
			e := errs[phase].add(us/1e3, r.Sums[phase].GpuMs)
			line += fmt.Sprintf("%s %7.2f ms (%+6.1f %%)  ", phase, r.Sums[phase].GpuMs, e)
		}
		measured := 0.0
		for _, phase := range []string{"fwd", "bwd", "clip", "step"} {
			measured += r.Sums[phase].GpuMs
		}
		e := errs["all"].add(sum/1e3, measured)
		t.Logf("%-12s %-24s %s all %7.2f ms (%+5.1f %%)", r.Name, r.Mode, line, measured, e)
	}
	for _, phase := range slices.Sorted(maps.Keys(errs)) {
		mean, bias, worst := errs[phase].mean()
		t.Logf("%-4s: mean error %.1f %%, bias %+.1f %%, worst %.1f %%", phase, mean, bias, worst)
	}
	mean, _, worst := errs["all"].mean()
	require.Less(t, mean, 5.0)
	require.Less(t, worst, 10.0)
}

// middle is the median: the mean of the two in the middle of an even number.
func middle(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
