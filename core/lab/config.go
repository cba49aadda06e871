package lab

import (
	"distopt/core/optim"
	"distopt/core/scenario"
)

// The models.
const (
	Transformer = "transformer" // causal, as Megatron-core builds it, embeddings tied
	MLP         = "mlp"         // the next character from the window before it
)

// Config is one run of the lab. The same Config gives the same bytes on every machine. Default
// returns one that is complete; nothing is filled in later.
type Config struct {
	Model  string `json:"model"`
	Layers int    `json:"layers"`
	Hidden int    `json:"hidden"` // width, and that of an embedding
	Heads  int    `json:"heads"`  // of the transformer
	FFN    int    `json:"ffn"`    // width inside the MLP
	Window int    `json:"window"` // characters that a prediction sees at most

	Ranks int   `json:"ranks"` // over which data and optimizer state are split
	Batch int   `json:"batch"` // sequences of each rank in a step
	Steps int   `json:"steps"`
	Seed  int64 `json:"seed"` // of initial parameters and data, the same for all variants

	LR          float64 `json:"lr"`
	WeightDecay float64 `json:"weight_decay"`
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Eps         float64 `json:"eps"`
	ClipNorm    float64 `json:"clip_norm"` // 0: no clipping

	BucketCapMB float64 `json:"bucket_cap_mb"` // small, so that even this model has several buckets
	AmaxHistory int     `json:"amax_history"`  // forward passes whose amaxes FP8 scales remember
	MostRecent  bool    `json:"most_recent"`   // FP8 scales follow the newest amax alone
	Margin      int     `json:"margin"`        // FP8 scales are divided by 2^Margin
	LossScale   float64 `json:"loss_scale"`    // initial one of variants with fp16 parameters
	ScaleWindow int     `json:"scale_window"`  // steps without overflow until the loss scale doubles

	Variants []Variant `json:"variants"` // 1 to MaxVariants, run side by side
}

// Variant says in which formats a run stores and sends its numbers. What follows (param_sync_dtype,
// main parameters, remainders) is what NeMo makes of it.
type Variant struct {
	ID       string `json:"id"`        // unique within a Config
	Name     string `json:"name"`      // for the reader
	Params   string `json:"params"`    // fp32, bf16, fp16 or fp8
	State    string `json:"state"`     // fp32, bf16 or fp16
	GradSync string `json:"grad_sync"` // fp32, bf16 or fp16
	Scaled   bool   `json:"scaled"`    // states with a scale for each fragment
}

// FP8 is the word for E4M3 parameters beside the formats' own names.
const FP8 = "fp8"

// Variants returns all ready-made variants. The last two show how a choice fails.
func Variants() []Variant {
	return []Variant{
		{ID: "fp32", Name: "FP32", Params: "fp32", State: "fp32", GradSync: "fp32"},
		{ID: "bf16", Name: "BF16, fp32 state and remainders", Params: "bf16", State: "fp32", GradSync: "bf16"},
		{ID: "fp8", Name: "FP8, fp32 state", Params: FP8, State: "fp32", GradSync: "bf16"},
		{ID: "fp8-scaled", Name: "FP8, scaled fp16 state", Params: FP8, State: "fp16", GradSync: "bf16", Scaled: true},
		{ID: "fp16", Name: "FP16, loss scaling", Params: "fp16", State: "fp32", GradSync: "fp16"},
		{ID: "bf16-scaled", Name: "BF16, scaled fp16 state", Params: "bf16", State: "fp16", GradSync: "bf16", Scaled: true},
		{ID: "bf16-state", Name: "BF16, bf16 state", Params: "bf16", State: "bf16", GradSync: "bf16"},
		{ID: "fp8-fp16", Name: "FP8, fp16 state without scales", Params: FP8, State: "fp16", GradSync: "bf16"},
		{ID: "fp8-scaled-bf16", Name: "FP8, scaled bf16 state", Params: FP8, State: "bf16", GradSync: "bf16", Scaled: true},
	}
}

// Default returns the run that the lab opens with, for one of the models.
func Default(model string) Config {
	c := Config{
		Model: Transformer, Layers: 1, Hidden: 32, Heads: 4, FFN: 64, Window: 16,
		Ranks: 4, Batch: 2, Steps: 48, Seed: 1,
		LR: 0.01, WeightDecay: 0.01, Beta1: 0.9, Beta2: 0.98, Eps: 1e-8,
		BucketCapMB: 0.02, AmaxHistory: 16, LossScale: 1 << 16, ScaleWindow: 20,
		Variants: Variants()[:4],
	}
	if model == MLP {
		c.Model, c.Hidden, c.Window, c.FFN = MLP, 16, 8, 96
	}
	return c
}

// FromScenario returns a variant with the precision of a configuration.
func FromScenario(s *scenario.Scenario) Variant {
	o := s.Optimizer()
	v := Variant{
		ID: "config", Name: "this configuration", Params: s.ModelDType().String(),
		State: o.State.String(), GradSync: o.GradSync.String(), Scaled: s.Optim.WithScaledStates,
	}
	if s.FP8Weights() {
		v.Params = FP8
	}
	return v
}

// adam returns the optimizer's arguments: AdamW with bias correction.
func (c *Config) adam() optim.AdamArgs {
	return optim.AdamArgs{
		LR: c.LR, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: c.WeightDecay, BiasCorrection: true,
	}
}
