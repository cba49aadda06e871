package lab

import (
	"distopt/core/bucket"
	"distopt/core/units"
)

// Request asks for the next steps of a run. A run is a function of its Config, so whoever answers may
// have seen the steps before or not.
type Request struct {
	Config Config `json:"config"`
	From   int    `json:"from"`  // steps that are known
	Steps  int    `json:"steps"` // how many more, 0 to MaxSlice; 0 looks at the present state alone
	Watch  Watch  `json:"watch"`
	// Element asks for the journey of one element of the watched tensor through the last step.
	Element *int `json:"element,omitempty"`
}

// Watch picks the numbers of which a Frame holds a histogram.
type Watch struct {
	Tensor bucket.ParamID `json:"tensor"`
	Part   Part           `json:"part"`
}

// Part is what a tensor is to the optimizer.
type Part string

// The parts. Zero is Param.
const (
	Param    Part = "param"      // as the model computes with it
	Main     Part = "main"       // what the optimizer updates
	Grad     Part = "grad"       // of all ranks, as they leave the backward pass
	ExpAvg   Part = "exp_avg"    // m, as stored
	ExpAvgSq Part = "exp_avg_sq" // v, as stored
)

// Parts lists all of them.
var Parts = []Part{Param, Main, Grad, ExpAvg, ExpAvgSq}

// Frame answers a Request.
type Frame struct {
	Parameters int             `json:"parameters"` // of one variant
	Memory     units.Bytes     `json:"memory"`     // upper bound of the run's arrays
	Tensors    []Tensor        `json:"tensors"`    // by bucket.ParamID
	Variants   []VariantStatus `json:"variants"`   // in the order of Config.Variants
	Step       int             `json:"step"`       // steps taken
	Done       bool            `json:"done"`       // no more to take
	Steps      []StepRecord    `json:"steps"`      // those after Request.From
	Histograms []Histogram     `json:"histograms"` // of the watched numbers, for each variant
	Journeys   []Journey       `json:"journeys,omitempty"`
}

// Tensor describes a parameter of the model.
type Tensor struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Numel int     `json:"numel"`
	// GEMM: the weight of a linear layer inside the model, FP8 where parameters are.
	GEMM bool `json:"gemm"`
}

// VariantStatus is where a variant stands.
type VariantStatus struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Formats in words: "fp8 params, fp32 state, bf16 grad sync, uint8 param sync, main parameters".
	Formats     string      `json:"formats"`
	Buckets     int         `json:"buckets"`
	EmptyShards int         `json:"empty_shards"` // ranks that own no element
	State       units.Bytes `json:"state"`        // of optimizer state on the fullest rank

	First   Value  `json:"first"` // loss of the first step; 0 before it
	Last    Value  `json:"last"`  // mean loss of the last FinalSteps steps
	Skipped int    `json:"skipped"`
	Stopped int    `json:"stopped"` // the step in which the run became useless, 0: none
	Health  Health `json:"health"`
	Note    string `json:"note,omitempty"` // why it is not Healthy, or what is worth knowing
	// Before says whether every step gave the parameters of the optimizer before the seed change.
	Before Check `json:"before"`
	Agree  Check `json:"agree"` // whether all ranks held the same parameters after every step
}

// Health is the short form of how a run goes.
type Health string

// The states of health.
const (
	Healthy  Health = "healthy"
	Suspect  Health = "suspect"  // it does not learn, or a format loses most of what it is given
	Useless  Health = "useless"  // NaN or infinity in its parameters: it was stopped
	Starting Health = "starting" // no step yet
	Early    Health = "early"    // the loss has not fallen, in too few steps to judge by
)

// Check is the outcome of a comparison after every step so far.
type Check struct {
	Checked   bool   `json:"checked"`
	Different int    `json:"different"`       // elements, summed over steps
	First     string `json:"first,omitempty"` // where and when the first difference was
	Reason    string `json:"reason,omitempty"`
}

// StepRecord is one step of all variants, in the order of Config.Variants.
type StepRecord struct {
	Step     int          `json:"step"` // from 1
	Variants []VariantRun `json:"variants"`
}

// VariantRun is one step of one variant. A variant that was stopped has a loss of NaN and no tensors.
type VariantRun struct {
	Loss      Value  `json:"loss"` // mean over all ranks, before the update
	GradNorm  Value  `json:"grad_norm"`
	LossScale Value  `json:"loss_scale"` // 1 without loss scaling
	Skipped   bool   `json:"skipped"`    // the gradient was not finite: nothing was updated
	Differs   int    `json:"differs"`    // elements that differ between ranks
	Before    int    `json:"before"`     // elements that differ from BEFORE
	Event     string `json:"event,omitempty"`
	// Tensors by bucket.ParamID.
	Tensors []TensorRun `json:"tensors,omitempty"`
}

// TensorRun is what a step did to one tensor. Shares are of the tensor's elements, of all ranks' for
// gradients.
type TensorRun struct {
	Amax    Value `json:"amax"`     // of main parameters after the update
	AmaxMax Value `json:"amax_max"` // largest of the FP8 history, 0 for others
	Scale   Value `json:"scale"`    // of the cast to FP8, 1 for others
	// Saturated: values beyond the largest of the format: clipped in FP8, infinite else.
	// Flushed: values that became zero without being it.
	Saturated    float64 `json:"saturated"`
	Flushed      float64 `json:"flushed"`
	GradOverflow float64 `json:"grad_overflow"` // infinite or NaN as they leave the backward pass
	GradFlushed  float64 `json:"grad_flushed"`
	MFlushed     float64 `json:"m_flushed"` // exp_avg 0 though this step's gradient was not
	VFlushed     float64 `json:"v_flushed"` // exp_avg_sq likewise
}

// Histogram counts a tensor's values on the grid of its format: a bin for each code of FP8, for each
// power of two of wider formats. Bins ascend; empty ones at the ends are left out.
type Histogram struct {
	Format    string `json:"format"` // fp32, bf16, fp16, e4m3
	Scale     Value  `json:"scale"`  // stored value = value × Scale: bins are of stored values
	Bins      []Bin  `json:"bins"`
	Zero      int    `json:"zero"`
	Infinite  int    `json:"infinite"`
	NaN       int    `json:"nan"`
	Total     int    `json:"total"`
	Saturated int    `json:"saturated"` // of the model's parameters: clipped, as TensorRun counts them
}

// Bin counts values v with Low <= v <= High by magnitude: one value where they are equal.
type Bin struct {
	Low   Value `json:"low"`
	High  Value `json:"high"`
	Count int   `json:"count"`
}

// Journey is one element's way through the last step that was taken, in one variant.
type Journey struct {
	Variant string         `json:"variant"`
	Tensor  bucket.ParamID `json:"tensor"`
	Element int            `json:"element"`
	Step    int            `json:"step"`
	Bucket  int            `json:"bucket"`
	Owner   int            `json:"owner"`          // rank that reduces and updates it
	Text    string         `json:"text,omitempty"` // why stops are missing
	Stops   []Stop         `json:"stops"`          // in order
}

// Stop is a number at one place of its way.
type Stop struct {
	Name   string `json:"name"` // "gradient on rank 2", "exp_avg", "update", "cast", ...
	Format string `json:"format"`
	Bits   string `json:"bits"` // hexadecimal
	Value  Value  `json:"value"`
	Note   string `json:"note,omitempty"` // the formula, or what was lost
}
