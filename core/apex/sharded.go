package apex

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/optim"
)

// Config is what the control flow needs to know beside the layout.
type Config struct {
	Rank  int // position in the distributed group
	World int // ranks of the whole job: NeMo's gradient norm; 0: Distributed * Redundant

	Tensor        int // tensor-parallel size; 0 is 1
	TensorRank    int
	EmbeddingSize int // ranks of the embedding group that this rank is in, 0: in none

	MaxNorm    float64 // clipping norm; 0 or less: no clipping
	GradScaler bool    // loss scaling: the host looks at the norm before it steps
	FusedWgrad bool    // gradient_accumulation_fusion: GEMMs add weight gradients into the buckets

	// ListedOnce repeats an accident of the recorded runs of Apex before PR #1771: it passed the
	// buckets of its second local step as a generator, and writing their list down for the record
	// used that up, so no kernel followed. Training itself updates them: leave it false.
	ListedOnce bool

	Runtime  optim.Runtime
	Observer optim.Observer // nil: nobody looks
}

// Sharded is the control flow of DistributedFusedAdam and of NeMo's subclass. It implements
// optim.Sharded. The layout is its own from now on: lazy initialisation places parameters in it.
type Sharded struct {
	l   *Layout
	c   Config
	rt  optim.Runtime
	obs optim.Observer
	err error

	overlapGrad bool // at present: no_sync turns it off
	greedyCopy  bool // at present: hooks move gradients into buckets
	steps       int
	coalesced   int // groups so far
	comm        int // communication stream of the next launch
	normCached  bool
	fp8Order    []bucket.ParamID // FP8 parameters in optimizer order
	fp8Cast     int              // AFTER: buckets of this step that have been cast
	viewsBuilt  bool             // parameters are views of the contiguous buffers

	params   []paramState
	refStart []int32  // of each parameter in gen and used
	gen      []uint32 // per fragment: the generated set of its bucket (by epoch) that it is in
	used     []uint32 // per fragment: the step whose gathered values were copied out
	chunks   [][2]int // parameters of each model chunk
	order    []bucket.ParamID

	grads   []gradBucket
	table   []bucket.ID // gradient buckets in order of their first use in this step
	syncing []bucket.ID
	filled  []bucket.ID // became GradFilled, maybe left it since
	partial int         // buckets with status GradPartial
	pending int         // parameters whose pre-forward flag is set
	ungiven int         // parameters with a gradient that no bucket holds yet

	gathers   []gatherBucket
	left      int         // parameter buckets not yet consumed
	gathering []bucket.ID // in flight
	next      bucket.ID   // no bucket above it is still sharded

	local     [][2]int32 // per bucket: its part of locals
	locals    []localFragment
	localSeen int // fragments of the layout when locals was built

	w scratch
}

var _ optim.Sharded = (*Sharded)(nil)

// NewSharded returns the optimizer of one rank over a layout. It observes what constructor and
// setup do (plain Apex broadcasts parameters, NeMo adds up tied weights and builds its buffers).
func NewSharded(l *Layout, c Config) (*Sharded, error) {
	o := &l.Options
	c.Tensor = max(c.Tensor, 1)
	if c.World == 0 {
		c.World = o.Distributed * max(o.Redundant, 1)
	}
	if c.Runtime == nil {
		return nil, fmt.Errorf("runtime: got none, want one; set Config.Runtime")
	}
	if c.Rank < 0 || c.Rank >= o.Distributed {
		return nil, fmt.Errorf("rank: got %d, want 0 to %d (its position in the distributed group)", c.Rank, o.Distributed-1)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	switch {
	case o.WithScaledStates && !o.NewApex:
		return nil, fmt.Errorf("with_scaled_states: got true with Apex before PR #1771, want false; use a newer Apex")
	case o.Later.NCCLUserBuffers && !o.ContiguousGradBuffer:
		return nil, fmt.Errorf("nccl_ub: got true without contiguous_grad_buffer, want both; set contiguous_grad_buffer to true")
	case o.NeMo && o.O2 && !o.ContiguousGradBuffer:
		return nil, fmt.Errorf("contiguous_grad_buffer: got false with megatron_amp_O2, want true; set it to true")
	}
	s := &Sharded{
		l: l, c: c, rt: c.Runtime, obs: c.Observer,
		overlapGrad: o.OverlapGradSync,
		greedyCopy:  true,
		params:      make([]paramState, len(l.Params)),
		refStart:    make([]int32, len(l.Params)),
		order:       l.OptimizerOrder(),
	}
	for _, p := range s.order {
		if l.Params[p].FP8 {
			s.fp8Order = append(s.fp8Order, p)
		}
	}
	for p := range l.Params {
		q, st := &l.Params[p], &s.params[p]
		st.noOverlap = q.NoOverlap
		st.noGreedy = o.NeMo && !o.O2 && noGreedyCopy(q)
		st.fused = c.FusedWgrad && fusedGrad(q)
		s.refStart[p] = -1
		for len(s.chunks) <= q.Chunk {
			s.chunks = append(s.chunks, [2]int{p, p})
		}
		s.chunks[q.Chunk][1] = p + 1
		if l.Placed(bucket.ParamID(p)) {
			s.link(bucket.ParamID(p))
		}
	}
	s.observeSetup()
	if o.NeMo && o.ContiguousParamBuffer {
		s.buildViews()
	}
	return s, s.err
}

// Layout returns the layout, which grows while parameters are placed lazily.
func (s *Sharded) Layout() *Layout { return s.l }

// Err is the first state met in which the real code raises.
func (s *Sharded) Err() error { return s.err }

// fail stops the optimizer.
func (s *Sharded) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// GradStatus returns where the gradients of a bucket stand.
func (s *Sharded) GradStatus(id bucket.ID) optim.GradStatus { return s.grads[id].status }

// ParamStatus returns where the updated parameters of a bucket stand.
func (s *Sharded) ParamStatus(id bucket.ID) optim.ParamStatus {
	if int(id) >= len(s.gathers) {
		return optim.ParamConsumed
	}
	return s.gathers[id].status
}

// ZeroGrad begins a step: every gradient bucket is dropped. With a contiguous buffer all
// parameters get their fragments now, the buffers are cleared, and param.grad becomes a view of
// its bucket where the dtypes agree.
func (s *Sharded) ZeroGrad() {
	if s.err != nil {
		return
	}
	s.observe(optim.OpZeroGrad)
	o := &s.l.Options
	if o.ContiguousGradBuffer {
		s.placeAll()
	}
	for id := range s.grads {
		b := &s.grads[id]
		*b = gradBucket{epoch: b.epoch + 1, memory: o.ContiguousGradBuffer, inTable: o.ContiguousGradBuffer}
	}
	s.table, s.syncing, s.filled = s.table[:0], s.syncing[:0], s.filled[:0]
	s.partial, s.ungiven = 0, 0
	s.normCached = false
	if o.ContiguousGradBuffer {
		for id := range s.grads {
			s.table = append(s.table, bucket.ID(id))
		}
		if s.w.zero.Buffers == 0 {
			for _, b := range s.l.Buffers() {
				s.w.zero.Buffers++
				s.w.zero.Bytes += bytesOf(b.Length, b.DTypes.GradSync)
			}
		}
	}
	for p := range s.params {
		st, refs := &s.params[p], s.l.Fragments[p]
		st.view = o.ContiguousGradBuffer && len(refs) > 0 &&
			s.l.Params[p].DType == s.l.Buckets[refs[0].Bucket].DTypes.GradSync
		st.arrived, st.hasGrad = false, st.view
		if st.view {
			s.ungiven++
		}
	}
	s.rt.ZeroGrad(&s.w.zero)
}

// NoSync enters or leaves the context of microbatches that do not synchronize.
func (s *Sharded) NoSync(on bool) {
	o := &s.l.Options
	s.overlapGrad = o.OverlapGradSync && !on
	s.greedyCopy = !on || (o.NeMo && o.O2)
}
