package report

// Lane is the row of a stage on which a span is drawn.
type Lane uint8

// The lanes of a stage, top to bottom.
const (
	LaneExposed   Lane = iota // made up: what is exposed, and bubbles; State says which
	LanePhase                 // made up: one span per microbatch pass of a model chunk
	LaneCompute               // layers, and copies of gradients and parameters between them
	LaneHidden                // made up: communication beside compute
	LaneOptimizer             // zeroing, norm, Adam, casts
	LaneGradSync              // reduce-scatters and the norm, embedding all-reduces
	LaneParamSync             // all-gathers and the amax all-reduce
	LaneTensor                // sequence-parallel gradient all-reduce; see Part for the others
	LanePipeline
	LaneHost // waits of the host for the device
	NumLanes
)

// State says more of a span on LaneExposed; elsewhere it is 0.
type State uint8

// The states.
const (
	Delays   State = iota // exposed and delays the step
	InBubble              // exposed, but another stage is waited for anyway
	Waits                 // a bubble without communication: Kind and Group say nothing
)

// Spans is the drawn step: struct of arrays, sorted by (stage, lane, start). Times are ns since
// the drawn step's first forward; a span that began before has a negative start. Spans of one
// lane do not overlap unless they ran on different streams. A made-up span has no Work (-1); on
// LaneExposed and LaneHidden it is a part of the communication whose span is By, and its Kind and
// Group are that one's. Made-up spans end with the step; others may go on beyond it.
type Spans struct {
	Start, End []int64
	By         []int32 // span that released it, -1: none, or from before the drawn step
	Work       []int32 // index into Result.Works
	Micro      []int32 // -1: none
	Group      []int32 // index into Result.Collectives, -1: none
	// First[stage*NumLanes+lane] is where that lane begins; one more entry than lanes.
	First []int32
	Stage []uint16
	Layer []int16 // global layer, -1: none
	Lane  []Lane
	Kind  []uint8 // step.Kind
	Cause []uint8 // sched.Cause
	State []State
	Chunk []int8
}

// Len returns the number of spans.
func (s *Spans) Len() int { return len(s.Start) }

// resize makes room for n spans and firsts entries of First, which hold anything.
func (s *Spans) resize(n, firsts int) {
	s.Start, s.End = resize(s.Start, n), resize(s.End, n)
	s.By, s.Work = resize(s.By, n), resize(s.Work, n)
	s.Micro, s.Group = resize(s.Micro, n), resize(s.Group, n)
	s.First = resize(s.First, firsts)
	s.Stage, s.Layer = resize(s.Stage, n), resize(s.Layer, n)
	s.Lane, s.Kind, s.Cause = resize(s.Lane, n), resize(s.Kind, n), resize(s.Cause, n)
	s.State, s.Chunk = resize(s.State, n), resize(s.Chunk, n)
}
