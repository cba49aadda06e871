package state

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"distopt/core/lab"
	"distopt/core/scenario"
)

// LabField is a number of a run of the lab that the visitor can set.
type LabField struct {
	Path  string // as lab.Config's errors name it
	Label string
	Help  string
	More  bool // behind More
	whole func(*lab.Config) *int
	large func(*lab.Config) *int64
	real  func(*lab.Config) *float64
}

// LabFieldCount is the number of LabFields.
const LabFieldCount = 20

// LabFields are in the order in which they stand.
var LabFields = [LabFieldCount]LabField{
	{Path: "ranks", Label: "Ranks", Help: "over which data and optimizer state are split, 1 to 64", whole: func(c *lab.Config) *int { return &c.Ranks }},
	{Path: "steps", Label: "Steps", Help: "1 to 2,000", whole: func(c *lab.Config) *int { return &c.Steps }},
	{Path: "seed", Label: "Seed", Help: "of initial parameters and data, the same for all variants", large: func(c *lab.Config) *int64 { return &c.Seed }},
	{Path: "lr", Label: "Learning rate", Help: "of every step", real: func(c *lab.Config) *float64 { return &c.LR }},
	{Path: "batch", Label: "Sequences per rank", Help: "of each rank in a step, 1 to 64", More: true, whole: func(c *lab.Config) *int { return &c.Batch }},
	{Path: "layers", Label: "Layers", Help: "1 to 4", More: true, whole: func(c *lab.Config) *int { return &c.Layers }},
	{Path: "hidden", Label: "Hidden size", Help: "width, and that of an embedding, 1 to 128", More: true, whole: func(c *lab.Config) *int { return &c.Hidden }},
	{Path: "heads", Label: "Attention heads", Help: "of the transformer; divides the hidden size", More: true, whole: func(c *lab.Config) *int { return &c.Heads }},
	{Path: "ffn", Label: "MLP width", Help: "1 to 512", More: true, whole: func(c *lab.Config) *int { return &c.FFN }},
	{Path: "window", Label: "Window", Help: "characters that a prediction sees at most, 1 to 128", More: true, whole: func(c *lab.Config) *int { return &c.Window }},
	{Path: "weight_decay", Label: "Weight decay", More: true, real: func(c *lab.Config) *float64 { return &c.WeightDecay }},
	{Path: "beta1", Label: "β₁", Help: "of exp_avg", More: true, real: func(c *lab.Config) *float64 { return &c.Beta1 }},
	{Path: "beta2", Label: "β₂", Help: "of exp_avg_sq", More: true, real: func(c *lab.Config) *float64 { return &c.Beta2 }},
	{Path: "eps", Label: "eps", More: true, real: func(c *lab.Config) *float64 { return &c.Eps }},
	{Path: "clip_norm", Label: "Gradient norm limit", Help: "0: gradients are not clipped", More: true, real: func(c *lab.Config) *float64 { return &c.ClipNorm }},
	{Path: "bucket_cap_mb", Label: "bucket_cap_mb, MiB", Help: "small, so that even this model has several buckets", More: true, real: func(c *lab.Config) *float64 { return &c.BucketCapMB }},
	{Path: "amax_history", Label: "Amax history", Help: "forward passes whose amaxes FP8 scales remember", More: true, whole: func(c *lab.Config) *int { return &c.AmaxHistory }},
	{Path: "margin", Label: "FP8 margin", Help: "FP8 scales are divided by 2 to this power", More: true, whole: func(c *lab.Config) *int { return &c.Margin }},
	{Path: "loss_scale", Label: "Loss scale", Help: "initial one of variants with fp16 parameters", More: true, real: func(c *lab.Config) *float64 { return &c.LossScale }},
	{Path: "scale_window", Label: "Loss scale window", Help: "steps without overflow until the loss scale doubles", More: true, whole: func(c *lab.Config) *int { return &c.ScaleWindow }},
}

func (f *LabField) get(c *lab.Config) string {
	switch {
	case f.whole != nil:
		return strconv.Itoa(*f.whole(c))
	case f.large != nil:
		return strconv.FormatInt(*f.large(c), 10)
	}
	return strconv.FormatFloat(*f.real(c), 'g', -1, 64)
}

// set reads what was typed. A number beyond what its type holds becomes the nearest one it does,
// so that the bound of the field is the answer.
func (f *LabField) set(c *lab.Config, text string) error {
	var err error
	text = strings.NewReplacer(",", "", "_", "", "−", "-").Replace(strings.TrimSpace(text))
	switch {
	case f.whole != nil:
		*f.whole(c), err = strconv.Atoi(text)
	case f.large != nil:
		*f.large(c), err = strconv.ParseInt(text, 10, 64)
	default:
		*f.real(c), err = strconv.ParseFloat(text, 64)
	}
	return err
}

func (f *LabField) kind() string {
	if f.real != nil {
		return "a number"
	}
	return "a whole number"
}

// labTexts are the fields of a run as text.
func labTexts(c lab.Config) (texts [LabFieldCount]string) {
	for i := range LabFields {
		texts[i] = LabFields[i].get(&c)
	}
	return texts
}

// LabSetup is a run as the visitor sets it up.
type LabSetup struct {
	Model      string
	Texts      [LabFieldCount]string // as typed, in the order of LabFields
	Picked     string                // ids of variants, in the order in which they were picked
	MostRecent bool
}

// DefaultLab is the setup that the tab opens with.
func DefaultLab() LabSetup {
	c := lab.Default(lab.Transformer)
	var picked []string
	for _, v := range c.Variants {
		picked = append(picked, v.ID)
	}
	return LabSetup{Model: c.Model, Texts: labTexts(c), Picked: strings.Join(picked, " ")}
}

// LabVariants are all variants that can be picked: the ready-made ones, and what a configuration
// makes of its own precision.
func LabVariants(read *Reading) []lab.Variant {
	all := lab.Variants()
	if read.OK() {
		all = append(all, lab.FromScenario(&read.Scenario))
	}
	return all
}

// Config reads the setup. Errors name the field that is at fault, and its bound.
func (l *LabSetup) Config(read *Reading) (lab.Config, scenario.Errors) {
	c := lab.Default(l.Model)
	c.Variants, c.MostRecent = nil, l.MostRecent
	var e scenario.Errors
	beyond := map[string]string{}
	for i := range LabFields {
		f, text := &LabFields[i], l.Texts[i]
		err := f.set(&c, text)
		switch {
		case errors.Is(err, strconv.ErrRange):
			beyond[f.Path] = short(strings.TrimSpace(text))
		case err != nil:
			fix := labTexts(lab.Default(l.Model))[i]
			e = append(e, &scenario.FieldError{Path: f.Path, Got: strconv.Quote(short(text)), Want: f.kind(), Fix: "set " + f.Path + " to " + fix})
		}
	}
	all := LabVariants(read)
	for id := range strings.FieldsSeq(l.Picked) {
		if i := slices.IndexFunc(all, func(v lab.Variant) bool { return v.ID == id }); i >= 0 {
			c.Variants = append(c.Variants, all[i])
		}
	}
	if len(e) > 0 {
		return c, e
	}
	var wrong scenario.Errors
	switch err := c.Check(); {
	case err == nil:
	case errors.As(err, &wrong):
		for _, w := range wrong {
			own := *w
			if typed, ok := beyond[w.Path]; ok {
				own.Got = typed
			}
			e = append(e, &own)
		}
	default:
		e = append(e, &scenario.FieldError{Path: "model", Got: l.Model, Want: err.Error()})
	}
	return c, e
}

func short(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}

// setModel takes another model. Fields that were left at the old one's defaults get those of the new.
func (l *LabSetup) setModel(model string) {
	was, is := labTexts(lab.Default(l.Model)), labTexts(lab.Default(model))
	for i, text := range l.Texts {
		if text == was[i] {
			l.Texts[i] = is[i]
		}
	}
	l.Model = model
}
