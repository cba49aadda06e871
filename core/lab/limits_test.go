package lab

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/scenario"
)

func TestRefuses(t *testing.T) {
	for _, k := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Steps = 0 }, "steps: got 0, want 1 to 2,000; set steps to 1"},
		{func(c *Config) { c.Steps = 1 << 62 }, "steps: got 4611686018427387904, want 1 to 2,000; set steps to 2000"},
		{func(c *Config) { c.Ranks = -1 }, "ranks: got -1, want 1 to 64; set ranks to 1"},
		{func(c *Config) { c.Ranks = 65 }, "ranks: got 65, want 1 to 64; set ranks to 64"},
		{func(c *Config) { c.Hidden = 0 }, "hidden: got 0, want 1 to 128"},
		{func(c *Config) { c.Layers = 5 }, "layers: got 5, want 1 to 4"},
		{func(c *Config) { c.Heads = 5 }, "heads: got 5, want a divisor of the hidden size (32); set heads to 1"},
		{func(c *Config) { c.Heads = 0 }, "heads: got 0, want a divisor"},
		{func(c *Config) { c.Model = "rnn" }, `model: got "rnn", want transformer or mlp`},
		{func(c *Config) { c.Seed = -1 }, "seed: got -1, want 0 to 9007199254740991"},
		{func(c *Config) { c.LR = math.Inf(1) }, "lr: got +Inf, want 0 to 3.4e38: the kernel takes it in fp32; set lr to 0.01"},
		{func(c *Config) { c.LR = math.NaN() }, "lr: got NaN, want"},
		{func(c *Config) { c.LR = -0.1 }, "lr: got -0.1, want"},
		{func(c *Config) { c.LR = 1e39 }, "lr: got 1e+39, want"},
		{func(c *Config) { c.Beta2 = 1 }, "beta2: got 1, want 0 to 0.9999999"},
		{func(c *Config) { c.BucketCapMB = 0 }, "bucket_cap_mb: got 0, want 0.000001 to 1024"},
		{func(c *Config) { c.LossScale = 0 }, "loss_scale: got 0, want 1 to 2^100"},
		{func(c *Config) { c.Variants = nil }, "variants: got 0, want 1 to 4"},
		{func(c *Config) { c.Variants = Variants()[:5] }, "variants: got 5, want 1 to 4"},
		{func(c *Config) { c.Variants[1].ID = "fp32" }, `variants[1].id: got "fp32", want an id that no other variant has`},
		{func(c *Config) { c.Variants[1].State = "fp8" }, `variants[1].state: got "fp8", want fp32, bf16 or fp16`},
		{func(c *Config) { c.Variants[1].Params = "uint8" }, `variants[1].params: got "uint8", want fp32, bf16, fp16 or fp8`},
		{func(c *Config) { c.Variants[0].Scaled = true }, "variants[0].state: got fp32, want fp16 or bf16: only 16-bit states are scaled"},
		{func(c *Config) { c.Variants[1].State, c.Variants[1].Scaled = "bf16", true }, "variants[1].scaled: got true, want false"},
		{func(c *Config) { c.Hidden, c.FFN, c.Layers = 128, 512, 4 }, "parameters), want at most 250,000 parameters; set hidden to 16"},
		{func(c *Config) { c.Hidden, c.FFN, c.Ranks, c.Steps = 128, 512, 64, 1 }, "in all), want at most " + MaxMemory.String()},
		{func(c *Config) { c.Batch, c.Steps = 32, 2000 }, "multiplications), want at most"},
	} {
		c := Default(Transformer)
		c.Variants = append([]Variant(nil), c.Variants...)
		k.change(&c)
		_, err := New(c)
		require.ErrorContains(t, err, k.want)
		require.IsType(t, scenario.Errors{}, err)
	}
	c := Default(MLP)
	c.Steps, c.Batch, c.LR = 0, 0, -1
	require.Equal(t, 3, strings.Count(c.Check().Error(), "\n")+1, "all at once")
}

// Whatever the numbers do, it is explained.
func TestExtremes(t *testing.T) {
	for _, k := range []struct {
		name     string
		variants string
		change   func(*Config)
		health   Health
		note     string
	}{
		{"lr overflows", "fp32", func(c *Config) { c.LR = 3e38 }, Useless, "overflow fp32 in the forward pass"},
		{"lr overflows bf16 parameters", "bf16", func(c *Config) { c.LR = 3.4e38 }, Useless, ""},
		{"lr overflows fp16 parameters", "fp16", func(c *Config) { c.LR = 1e6 }, Useless, "does not fit into fp16"},
		{"lr overflows a bf16 state", "bf16-state", func(c *Config) { c.LR = 3.4e38 }, Useless, ""},
		{"lr overflows fp8", "fp8", func(c *Config) { c.LR = 1e38 }, Useless, ""},
		{"lr overflows scaled states", "fp8-scaled", func(c *Config) { c.LR = 1e38 }, Useless, ""},
		{"lr 0", "fp32", func(c *Config) { c.LR = 0 }, Suspect, "the learning rate is 0"},
		{"lr large", "fp8", func(c *Config) { c.LR = 10 }, Suspect, "the learning rate 10 is large"},
		{"loss scale overflows", "fp16", func(c *Config) { c.LossScale = 0x1p100 }, Suspect, "every step was skipped: the gradient of"},
		{"decay overflows", "fp32", func(c *Config) { c.WeightDecay = 3e38 }, Useless, ""},
		{"eps 0", "fp32", func(c *Config) { c.Eps = 0; c.Steps = 20; c.Window, c.Batch, c.Ranks = 1, 1, 1 }, Useless, "is 0 and so is eps: the update is a division of 0 by 0"},
		{"no memory of gradients", "fp32", func(c *Config) { c.Beta1, c.Beta2 = 0, 0 }, "", ""},
		{"clipped to nothing", "bf16", func(c *Config) { c.ClipNorm = 1e-38 }, "", ""},
		{"clipped", "fp8", func(c *Config) { c.ClipNorm = 0.1 }, Healthy, ""},
		{"fp8 margin flushes", "fp8", func(c *Config) { c.Margin = 100 }, Suspect, "became 0 in fp8"},
		{"fp8 margin clips", "fp8", func(c *Config) { c.Margin = -100 }, Suspect, "of parameters are clipped"},
		{"the documented defect", "fp8-scaled-bf16", func(c *Config) {}, Useless, "the real code has that flaw"},
		{"state without scales", "fp8-fp16", func(c *Config) {}, Suspect, "of exp_avg_sq became 0 in fp16"},
		{"world larger than elements", "fp8", func(c *Config) { c.Ranks, c.Hidden, c.Heads, c.FFN, c.Window, c.Steps = 64, 2, 1, 1, 2, 3 }, Early, "before step 20 nothing is said"},
		{"lr 0, few steps", "fp32", func(c *Config) { c.LR, c.Steps = 0, 3 }, Suspect, "nothing is learned: the learning rate is 0"},
		{"lr small", "fp32", func(c *Config) { c.LR = 1e-5 }, Suspect, "the loss has fallen by less than 5 %"},
		{"one of everything, long", "fp32", func(c *Config) {
			c.Ranks, c.Hidden, c.Heads, c.FFN, c.Window, c.Batch = 1, 1, 1, 1, 1, 1
		}, Suspect, "the loss "},
		{"one of everything", "fp8-scaled", func(c *Config) {
			c.Ranks, c.Hidden, c.Heads, c.FFN, c.Window, c.Batch, c.Steps = 1, 1, 1, 1, 1, 1, 3
		}, "", ""},
		{"one of everything, mlp", "bf16", func(c *Config) {
			c.Model, c.Ranks, c.Hidden, c.FFN, c.Window, c.Batch, c.Steps = MLP, 7, 1, 1, 1, 1, 3
		}, "", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := withVariants(Default(Transformer), k.variants)
			c.Steps = 25
			k.change(&c)
			_, f := finish(t, c)
			v := f.Variants[0]
			t.Log(v.Health, v.First, v.Last, v.Note)
			if k.health != "" {
				require.Equal(t, k.health, v.Health, v.Note)
			}
			require.Contains(t, v.Note, k.note)
			if v.Health != Healthy {
				require.NotEmpty(t, v.Note)
			}
			require.Zero(t, v.Agree.Different)
			if c.ClipNorm == 0 {
				require.Zero(t, v.Before.Different, v.Before.First)
			}
			for _, s := range f.Steps {
				r := s.Variants[0]
				if !r.Loss.Finite() {
					require.NotEmpty(t, r.Event+v.Note)
				}
			}
			if c.Ranks == 64 {
				require.Greater(t, v.EmptyShards, 32)
			}
		})
	}
}

// A tensor of zeros keeps its scale, and the page is told.
func TestAmaxOfZero(t *testing.T) {
	c := withVariants(Default(Transformer), "fp8")
	s, err := New(c)
	require.NoError(t, err)
	require.NoError(t, s.Step())
	r := s.runs[0]
	for p := range r.stage.Params {
		if r.stage.Params[p].FP8 {
			r.last.Tensors[p].Amax = 0
			require.Contains(t, r.remark(), "the amax of "+r.stage.Params[p].Name+" is 0: its scale stays")
			break
		}
	}
}

func TestFromScenario(t *testing.T) {
	s := scenario.Scenario{}
	s.Optim.Name, s.Precision.Trainer, s.Precision.O2 = scenario.NeMoAdam, scenario.BF16, true
	s.Precision.FP8, s.Precision.FP8Params, s.Optim.State, s.Optim.GradSync = true, true, "fp32", "bf16"
	v := FromScenario(&s)
	require.Equal(t, Variant{ID: "config", Name: "this configuration", Params: FP8, State: "fp32", GradSync: "bf16"}, v)
	c := Default(Transformer)
	c.Variants = []Variant{v}
	require.NoError(t, c.Check())
}

// What a format loses is told from bits as rounding would tell it.
func TestRounds(t *testing.T) {
	for _, d := range []dtype.DType{dtype.FP32, dtype.BF16, dtype.FP16} {
		least, most := rounds(d)
		at := func(b uint32) float32 { return d.Round(math.Float32frombits(b)) }
		require.Zero(t, at(least), d)
		require.NotZero(t, at(least+1), d)
		require.True(t, finite(at(most)), d)
		require.False(t, finite(at(most+1)), d)
	}
}

func TestScaler(t *testing.T) {
	s := newScaler(1024, 2)
	for _, k := range []struct {
		overflow bool
		scale    float32
	}{{true, 1024}, {true, 512}, {true, 256}, {false, 256}, {true, 256}, {false, 256}, {false, 512}, {false, 512}, {false, 1024}} {
		s.update(k.overflow)
		require.Equal(t, k.scale, s.scale)
	}
	one := scaler{scale: 1}
	one.update(true)
	require.Equal(t, float32(1), one.scale)
}
