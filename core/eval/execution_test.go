package eval

import (
	"strings"
	"testing"

	"distopt/core/hw"
	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/sched"
	"distopt/core/step"

	"github.com/stretchr/testify/require"
)

// ran is what the passes of layers take in the second step, and the result.
type ran struct {
	forward, backward sched.Time
	again             float64         // kernels of backward that are recomputed, beside each other or not
	kinds             map[string]bool // their names
	out               *report.Result
}

func run(t *testing.T, s *scenario.Scenario) ran {
	t.Helper()
	var x Simulator
	out, err := x.Evaluate(s)
	require.NoError(t, err)
	r := ran{kinds: map[string]bool{}, out: out}
	for i := range x.rec.Labels {
		l, work := &x.rec.Labels[i], x.rec.Program.Tasks[i].Work
		switch {
		case l.Step != 1 || l.Layer < 0:
		case l.Kind == step.Forward:
			r.forward += work
		case l.Kind == step.Backward:
			r.backward += work
			for _, p := range out.Works[l.Work].Parts {
				if strings.HasPrefix(p.Name, "recomputed ") {
					r.kinds[p.Name] = true
					r.again += float64(p.End-p.Start) / (1 << 16) * float64(work)
				}
			}
		}
	}
	return r
}

// Full recompute costs about one more forward pass, selective one of attention's core; what is
// recomputed of each model chunk counts, not how it is grouped.
func TestRecomputation(t *testing.T) {
	for _, id := range []string{"gpt3-5b-fp8", "llama3-70b-fp8"} {
		s := *preset(t, id)
		with := func(r scenario.Recompute) ran {
			s.Recompute = r
			return run(t, &s)
		}
		none := with(scenario.Recompute{})
		full := with(scenario.Recompute{Granularity: scenario.Full, Method: scenario.Uniform, Layers: 1})
		all := float64(full.backward - none.backward)
		// The clock under the power limit follows the mix of kernels, so nothing is exact.
		require.InEpsilon(t, float64(none.forward), all, 0.02, id)
		require.Greater(t, full.out.Figures.StepTime, none.out.Figures.StepTime, id)
		require.Equal(t, none.out.Figures.ModelFLOPs, full.out.Figures.ModelFLOPs, "%s: model FLOPs leave out what is recomputed", id)

		layers := s.ChunkLayers()
		grouped := with(scenario.Recompute{Granularity: scenario.Full, Method: scenario.Uniform, Layers: layers})
		require.Equal(t, full.backward, grouped.backward, id)
		block := with(scenario.Recompute{Granularity: scenario.Full, Method: scenario.Block, Layers: layers})
		require.Equal(t, full.backward, block.backward, id)
		block = with(scenario.Recompute{Granularity: scenario.Full, Method: scenario.Block, Layers: layers / 4})
		require.InEpsilon(t, all/4, float64(block.backward-none.backward), 0.05, id)

		selective := with(scenario.Recompute{Granularity: scenario.Selective})
		require.Equal(t, map[string]bool{"recomputed attention": true}, selective.kinds, id)
		require.Less(t, selective.again, full.again/4, id)
		require.InDelta(t, selective.again, float64(selective.backward-none.backward), 0.02*float64(none.backward), id)
	}
}

// The overlap of tensor-parallel communication hides some of it, and needs sequence parallelism.
func TestTensorParallelOverlap(t *testing.T) {
	exposed := func(r ran) sched.Time {
		for _, e := range r.out.Figures.ExposedBy {
			if e.Kind == "tensor parallel" {
				return e.Time
			}
		}
		return 0
	}
	s := *preset(t, "gpt3-20b-fp8")
	off := run(t, &s)
	s.Parallel.TPOverlap = true
	on := run(t, &s)
	require.Less(t, exposed(on), exposed(off)/2)
	require.Less(t, on.out.Figures.StepTime, off.out.Figures.StepTime)

	s.Parallel.SequenceParallel = false
	ignored := run(t, &s)
	s.Parallel.TPOverlap = false
	require.Equal(t, run(t, &s).out.Figures, ignored.out.Figures)
}

// Without dropout its kernels are missing, and a fused rotation is shorter.
func TestFewerKernels(t *testing.T) {
	kernels := func(r ran) (n int) {
		for _, w := range r.out.Works {
			n += len(w.Parts)
		}
		return n
	}
	s := *preset(t, "tiny-fp8")
	with := run(t, &s)
	s.Model.HiddenDropout = 0
	without := run(t, &s)
	require.Less(t, kernels(without), kernels(with))
	require.Less(t, without.backward, with.backward)

	s = *preset(t, "llama3-8b-bf16")
	fused := run(t, &s)
	s.Model.RopeFusion = false
	chain := run(t, &s)
	require.Less(t, fused.forward, chain.forward)
	require.Equal(t, kernels(fused), kernels(chain))
}

func TestAttentionBackend(t *testing.T) {
	s := *preset(t, "gpt3-5b-bf16")
	for gpu, want := range map[string]hw.Backend{
		"a100-80gb": hw.FlashAttention2, "l40s": hw.FlashAttention2, "h100": hw.CuDNN, "h200": hw.CuDNN, "b200": hw.CuDNN,
	} {
		s.Hardware.GPU = gpu
		require.Equal(t, want, execution(&s).Attention, gpu)
	}
}

// Without O2 parameters are fp32, but products and activations are those of trainer.precision:
// autocast adds casts of the weights and nothing else.
func TestAutocast(t *testing.T) {
	s := *preset(t, "gpt3-5b-bf16")
	o2 := run(t, &s)
	s.Precision.O2, s.Precision.GradFusion = false, false
	autocast := run(t, &s)
	s.Precision.Trainer = scenario.FP16
	half := run(t, &s)
	s.Precision.Trainer = scenario.FP32
	single := run(t, &s)

	require.Greater(t, autocast.forward, o2.forward)
	require.Less(t, float64(autocast.forward), 1.1*float64(o2.forward))
	require.Equal(t, autocast.forward, half.forward)
	require.Greater(t, float64(single.forward), 1.6*float64(autocast.forward), "TF32 has half the rate")
	require.Less(t, autocast.out.Figures.StepTime, single.out.Figures.StepTime)
}
