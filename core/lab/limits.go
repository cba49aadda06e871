package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"distopt/core/dtype"
	"distopt/core/scenario"
	"distopt/core/units"
)

// Bounds of a run. They keep it within MaxMemory and within minutes in a browser.
const (
	MaxVariants   = 4
	MaxSteps      = 2000
	MaxSlice      = 50 // steps of one request
	MaxParameters = 250_000
	MaxMemory     = 256 * units.MiB
	MaxRecords    = 2_000_000 // steps × variants × tensors

	// maxWork bounds the multiplications of forward and backward passes, some 70 default runs.
	maxWork = 2e11
)

// formats are a Variant's words as formats.
type formats struct {
	params, state, gradSync dtype.DType // of an FP8 parameter: the nominal one
	fp8                     bool
}

func (v *Variant) formats() formats {
	f := formats{fp8: v.Params == FP8, params: dtype.BF16}
	if !f.fp8 {
		f.params, _ = dtype.Parse(v.Params)
	}
	f.state, _ = dtype.Parse(v.State)
	f.gradSync, _ = dtype.Parse(v.GradSync)
	return f
}

// scaler reports whether losses are scaled: with fp16 parameters.
func (f formats) scaler() bool { return f.params == dtype.FP16 }

// Check returns what is wrong with a run, nil if it can be done.
func (c *Config) Check() error {
	var e scenario.Errors
	whole := func(path string, got, low, high int) {
		if got < low || got > high {
			e = append(e, wrong(path, strconv.Itoa(got), units.Count(int64(low))+" to "+units.Count(int64(high)), strconv.Itoa(min(max(got, low), high))))
		}
	}
	// A comparison with NaN is false: nothing but a number in the range passes.
	number := func(path string, got, low, high float64, want, fix string) {
		if !(got >= low && got <= high) {
			e = append(e, wrong(path, strconv.FormatFloat(got, 'g', -1, 64), want, fix))
		}
	}
	if c.Model != Transformer && c.Model != MLP {
		e = append(e, wrong("model", strconv.Quote(c.Model), "transformer or mlp", Transformer))
	}
	whole("layers", c.Layers, 1, 4)
	whole("hidden", c.Hidden, 1, 128)
	whole("ffn", c.FFN, 1, 512)
	whole("window", c.Window, 1, 128)
	whole("ranks", c.Ranks, 1, 64)
	whole("batch", c.Batch, 1, 64)
	whole("steps", c.Steps, 1, MaxSteps)
	whole("amax_history", c.AmaxHistory, 1, 1024)
	whole("margin", c.Margin, -100, 100)
	whole("scale_window", c.ScaleWindow, 1, MaxSteps)
	if c.Model == Transformer && (c.Heads < 1 || c.Hidden%c.Heads != 0) {
		e = append(e, wrong("heads", strconv.Itoa(c.Heads), fmt.Sprintf("a divisor of the hidden size (%d)", c.Hidden), "1"))
	}
	if c.Seed < 0 || c.Seed > 1<<53-1 {
		e = append(e, wrong("seed", strconv.FormatInt(c.Seed, 10), "0 to 9007199254740991", "1"))
	}
	const fp32 = "0 to 3.4e38: the kernel takes it in fp32"
	number("lr", c.LR, 0, math.MaxFloat32, fp32, "0.01")
	number("weight_decay", c.WeightDecay, 0, math.MaxFloat32, fp32, "0.01")
	number("eps", c.Eps, 0, math.MaxFloat32, fp32, "1e-8")
	number("clip_norm", c.ClipNorm, 0, math.MaxFloat32, fp32, "1")
	// Rounded to fp32 a beta just below 1 would be 1, and its bias correction a division by zero.
	number("beta1", c.Beta1, 0, 0.9999999, "0 to 0.9999999", "0.9")
	number("beta2", c.Beta2, 0, 0.9999999, "0 to 0.9999999", "0.98")
	number("loss_scale", c.LossScale, 1, 0x1p100, "1 to 2^100", "65536")
	number("bucket_cap_mb", c.BucketCapMB, 1e-6, 1024, "0.000001 to 1024", "0.02")
	whole("variants", len(c.Variants), 1, MaxVariants)
	for i := range c.Variants {
		e = append(e, c.checkVariant(i)...)
	}
	if len(e) == 0 {
		e = c.checkSize()
	}
	slices.SortStableFunc(e, func(a, b *scenario.FieldError) int { return cmp.Compare(a.Path, b.Path) })
	return e.Err()
}

// wrong is a field error whose mend is another value.
func wrong(path, got, want, fix string) *scenario.FieldError {
	return &scenario.FieldError{
		Path: path, Got: got, Want: want, Fix: "set " + path + " to " + fix, Edits: []scenario.Edit{{Path: path, Value: fix}},
	}
}

func (c *Config) checkVariant(i int) (e scenario.Errors) {
	v := &c.Variants[i]
	path := fmt.Sprintf("variants[%d].", i)
	word := func(name, got string, fp8 bool) {
		d, ok := dtype.Parse(got)
		if ok && d.Float() && d.String() == got || fp8 && got == FP8 {
			return
		}
		want := "fp32, bf16 or fp16"
		if fp8 {
			want = "fp32, bf16, fp16 or fp8"
		}
		e = append(e, wrong(path+name, strconv.Quote(got), want, "bf16"))
	}
	word("params", v.Params, true)
	word("state", v.State, false)
	word("grad_sync", v.GradSync, false)
	for j := range i {
		if c.Variants[j].ID == v.ID {
			e = append(e, wrong(path+"id", strconv.Quote(v.ID), "an id that no other variant has", v.ID+"-"+strconv.Itoa(i+1)))
			break
		}
	}
	if len(v.ID) > 64 || len(v.Name) > 256 {
		e = append(e, wrong(path+"name", "a long name", "an id of at most 64 bytes and a name of at most 256", v.State))
	}
	if len(e) > 0 || !v.Scaled {
		return e
	}
	switch f := v.formats(); {
	case f.state == dtype.FP32:
		e = append(e, wrong(path+"state", v.State, "fp16 or bf16: only 16-bit states are scaled", "fp16"))
	case !f.fp8 && (f.params == f.state || f.params == dtype.FP32):
		e = append(e, wrong(path+"scaled", "true", "false where parameters are fp32, or as wide as the state: main parameters are not stored then", "false"))
	}
	return e
}

// checkSize looks at what follows from several fields together.
func (c *Config) checkSize() (e scenario.Errors) {
	s, err := c.architecture(dtype.FP32, false)
	if err != nil {
		return scenario.Errors{{Path: "model", Got: err.Error(), Want: "a model that can be built", Fix: "set hidden to 32"}}
	}
	n := int64(elements(s))
	if n > MaxParameters {
		e = append(e, wrong("hidden", fmt.Sprintf("%d (%s parameters)", c.Hidden, units.Count(int64(n))), "at most "+units.Count(MaxParameters)+" parameters", strconv.Itoa(max(c.Heads, 16))))
		return e
	}
	if m := c.memory(s); m > MaxMemory {
		e = append(e, wrong("ranks", fmt.Sprintf("%d (up to %s in all)", c.Ranks, m), fmt.Sprintf("at most %s; fewer ranks, variants or sequences, or a smaller model", MaxMemory), "4"))
	}
	if records := c.Steps * len(c.Variants) * len(s.Params); records > MaxRecords {
		e = append(e, wrong("steps", fmt.Sprintf("%d (%d records of tensors)", c.Steps, records), fmt.Sprintf("at most %d records", MaxRecords), strconv.Itoa(MaxRecords/len(c.Variants)/len(s.Params))))
	}
	perStep := 3 * float64(n) * float64(len(c.Variants)*c.Ranks*c.Batch*c.Window)
	if work := perStep * float64(c.Steps); work > maxWork {
		if most := int(maxWork / perStep); most > 0 {
			e = append(e, wrong("steps", strconv.Itoa(c.Steps)+" ("+show(float32(work))+" multiplications)", "at most "+show(maxWork)+" multiplications", strconv.Itoa(most)))
		} else {
			e = append(e, wrong("batch", strconv.Itoa(c.Batch)+" ("+show(float32(work))+" multiplications)", "at most "+show(maxWork)+" multiplications; fewer ranks or a smaller window too", "1"))
		}
	}
	return e
}
