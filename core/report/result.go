// Package report turns spans into what a reader asks for: step time, exposed time and its
// cause, bucket use, comparison of two results. Everything a page shows comes from a Result.
//
// Of the recorded steps the last whole one is drawn and counted, from stage 0's first forward to
// its next. Exposed is what is covered by a rank's communication and by none of its compute. An
// instant that several collectives cover belongs to the one that released the next compute, else
// to the last to end, so that shares add up. What would only be spent waiting for another stage
// delays nothing: it lies in a bubble and is counted apart (see maker.delays). An exchange
// communicates from the moment both sides are there; before that it waits.
//
// A layer's pass is compute as a whole, and hides what runs beside it. Exposed tensor-parallel
// communication inside it is taken out by the share that the price gives it, always as a delay.
package report

import "distopt/core/sched"

// Result is everything known of one scenario. The JSON head of the page's response is this
// struct; Spans travel beside it as one flat binary block.
type Result struct {
	ModelVersion string       `json:"model_version"`
	Name         string       `json:"name"` // preset or file name, for the header
	Figures      Figures      `json:"figures"`
	Grid         Grid         `json:"grid"`
	Stages       []Stage      `json:"stages"`
	Works        []Work       `json:"works"`
	Collectives  []Collective `json:"collectives"`
	Notes        []Note       `json:"notes"` // warnings and stated assumptions; never errors
	Findings     []Finding    `json:"findings"`
	Spans        Spans        `json:"-"`
}

// Figures are the key figures. Times in ns, fractions in 0..1.
type Figures struct {
	StepTime        sched.Time `json:"step_time_ns"` // first forward to next first forward, steady state
	TokensPerGPU    float64    `json:"tokens_per_second_per_gpu"`
	TokensPerSecond float64    `json:"tokens_per_second"`
	MFU             float64    `json:"mfu"`
	ModelFLOPs      float64    `json:"model_flops_per_step_per_gpu"`
	PeakFLOPs       float64    `json:"peak_flops"`
	PeakName        string     `json:"peak_name"` // "FP8 dense, H100 SXM"
	// Exposed to SyncTotal are those of the worst stage: the one with the most exposed time that
	// delays the step. All are totals over the drawn step.
	WorstStage      int         `json:"worst_stage"`
	Exposed         sched.Time  `json:"exposed_ns"`
	ExposedInBubble sched.Time  `json:"exposed_in_bubble_ns"` // delays nothing, not in Exposed
	ExposedBy       []ExposedBy `json:"exposed_by"`           // by kind, adds up to Exposed
	Bubble          sched.Time  `json:"bubble_ns"`            // holds ExposedInBubble
	Overlap         float64     `json:"overlap_efficiency"`   // Hidden / SyncTotal, 1 without any sync
	Hidden          sched.Time  `json:"hidden_ns"`            // grad and param sync beside compute
	SyncTotal       sched.Time  `json:"sync_total_ns"`        // all grad and param sync
	Utilisation     float64     `json:"bucket_utilisation"`   // filled / size over all buckets of all stages
	Buckets         int         `json:"buckets"`
	BucketSize      int64       `json:"bucket_size"` // of the largest; Apex's are all alike
	SmallestBucket  int64       `json:"smallest_bucket_size"`
	WastedBytes     int64       `json:"wasted_bytes"` // padding moved per step and rank, both syncs
	AmaxReductions  int         `json:"amax_reductions"`
	Parameters      int64       `json:"parameters"` // whole model
	Tasks           int         `json:"tasks"`
	Spans           int         `json:"spans"` // drawn
}

// ExposedBy is the exposed time of one kind of communication.
type ExposedBy struct {
	// Kind is "grad sync", "param sync", "amax", "norm", "embedding", "tensor parallel" or
	// "pipeline".
	Kind string     `json:"kind"`
	Time sched.Time `json:"ns"`
}

// Share is one row of "where the step goes".
type Share struct {
	// Name is "Forward", "Backward", "Optimizer", "Exposed", "Bubble" or "Idle" (the host or
	// nothing: no compute, no communication, no other stage waited for).
	Name string     `json:"name"`
	Time sched.Time `json:"ns"`
}

// Grid is the parallel layout.
type Grid struct {
	World       int `json:"world"`
	TP          int `json:"tp"`
	CP          int `json:"cp"`
	PP          int `json:"pp"`
	VP          int `json:"vp"`
	DP          int `json:"dp"`
	Distributed int `json:"distributed"`
	Redundant   int `json:"redundant"`
	Micro       int `json:"microbatches"`
}

// Stage is one pipeline stage's buckets and totals.
type Stage struct {
	Params       []Param  `json:"params"`
	Buckets      []Bucket `json:"buckets"`
	GradBuffers  []Buffer `json:"grad_buffers"`
	ParamBuffers []Buffer `json:"param_buffers"`
	// Bucketing tells of each model chunk which rule made its buckets; Apex has none.
	Bucketing []Rule `json:"bucketing"`
	// Shares add up to the step time; rows without time are left out.
	Shares          []Share     `json:"shares"`
	Exposed         sched.Time  `json:"exposed_ns"`
	ExposedBy       []ExposedBy `json:"exposed_by"`
	ExposedInBubble sched.Time  `json:"exposed_in_bubble_ns"`
	Bubble          sched.Time  `json:"bubble_ns"`
	Hidden          sched.Time  `json:"hidden_ns"`
	SyncTotal       sched.Time  `json:"sync_total_ns"`
	WastedBytes     int64       `json:"wasted_bytes"`
	AmaxReductions  int         `json:"amax_reductions"`
}

// Param is a parameter row.
type Param struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Numel int64   `json:"numel"`
	DType string  `json:"dtype"` // "fp8" for FP8 weights
	Chunk int     `json:"chunk"`
	Layer int     `json:"layer"` // local, -1 outside the layers
	Group string  `json:"group"` // "attention", "mlp", "embedding", "other": colour
}

// Bucket is a bucket row.
type Bucket struct {
	ID        int32      `json:"id"`
	Size      int64      `json:"size"`
	Shard     int64      `json:"shard"`
	Filled    int64      `json:"filled"`
	State     string     `json:"state_dtype"`
	Grad      string     `json:"grad_sync_dtype"`
	Sync      string     `json:"param_sync_dtype"`
	Offset    int64      `json:"offset"`
	Set       int        `json:"set"` // buckets that complete together share a number
	Fragments []Fragment `json:"fragments"`
}

// Fragment is [param, in-parameter range, in-bucket range]; equal ends: a dependency.
type Fragment struct {
	Param    int32    `json:"p"`
	InParam  [2]int64 `json:"in_param"`
	InBucket [2]int64 `json:"in_bucket"`
}

// Buffer is a contiguous buffer.
type Buffer struct {
	Key    string `json:"key"` // state/grad/param dtype triple
	Length int64  `json:"length"`
}

// Work names what a span does, and its parts when it is on screen; one per priced work.
type Work struct {
	Name  string `json:"name"` // "Forward, layer 3", "Reduce-scatter"
	Parts []Part `json:"parts,omitempty"`
}

// Part is a kernel inside a layer's pass, as fractions of the span in 1/65536: LaneTensor for
// the tensor-parallel group's collectives, else LaneCompute.
type Part struct {
	Name  string `json:"n"`
	Lane  Lane   `json:"l"`
	Start uint32 `json:"s"`
	End   uint32 `json:"e"`
}

// Collective is one row of the table of collectives: one coalesced group of the drawn step.
// A collective that crosses the step's border is drawn at both ends and has one row; Exposed
// and the others count what lies inside the step, so rows of a kind add up to ExposedBy.
type Collective struct {
	Span     int32      `json:"span"` // index into Spans
	Stage    int        `json:"stage"`
	Kind     string     `json:"kind"`
	Buckets  []int32    `json:"buckets,omitempty"`
	Bytes    int64      `json:"bytes"`
	Group    string     `json:"group"`
	Ranks    int        `json:"ranks"`
	Start    sched.Time `json:"start_ns"`
	Length   sched.Time `json:"length_ns"`
	Exposed  sched.Time `json:"exposed_ns"`
	InBubble sched.Time `json:"in_bubble_ns"`
	Hidden   sched.Time `json:"hidden_ns"`
	AlgBW    float64    `json:"algbw"` // bytes per second
	BusBW    float64    `json:"busbw"`
	// Cause says in a sentence why it is exposed, Reason in a clause without the subject ("nothing
	// is left to compute behind it"); empty: it is not.
	Cause  string `json:"cause,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Finding is what a rule found: a cost of this step and its evidence.
type Finding struct {
	Rule    string     `json:"rule"`
	Stage   int        `json:"stage"` // -1: all
	Text    string     `json:"text"`
	Cost    sched.Time `json:"cost_ns"` // exposed time, 0: none
	Bytes   int64      `json:"bytes"`   // moved or held for nothing, 0: none
	Path    string     `json:"path"`    // the key that decides
	Changes []Change   `json:"changes"` // that mend it, none: there is no such key
}

// Change sets one key of the configuration.
type Change struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Rule is how something was decided.
type Rule struct {
	Text string `json:"text"`
}

// Note is a remark on the result.
type Note struct {
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}
