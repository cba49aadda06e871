package mcore

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/optim"
	"distopt/core/units"
)

// Config is what the control flow needs to know beside the layout.
type Config struct {
	Rank          int // position in the dp_cp group of its stage
	Tensor        int // tensor-parallel size; 0 is 1
	TensorRank    int
	EmbeddingSize int // ranks of the embedding group that this rank is in, 0: in none

	MaxNorm    float64 // clip_grad; 0 or less: no norm, no clipping
	GradScaler bool    // loss scaling: infinite gradients are looked for before the step
	FusedWgrad bool    // gradient_accumulation_fusion: GEMMs add weight gradients to main_grad

	States States

	Runtime  optim.Runtime
	Observer optim.Observer // nil: nobody looks
}

// Sharded is the control flow of DistributedDataParallel and of the chain of optimizers behind it, as
// Megatron-LM's training loop calls them. It implements optim.Sharded.
//
// Streams: one for the collectives of dense buffers, the next one for those of expert buffers, as each
// communicator has its own.
type Sharded struct {
	l   *Layout
	c   Config
	rt  optim.Runtime
	obs optim.Observer
	err error

	noSync bool
	steps  int
	calls  int // coalesced groups so far

	groups  []groupState // of Layout.Groups
	ready   []int32      // of each parameter: gradients in this step's last microbatch
	golden  []int32      // in the first one that had any
	fused   []bool
	private []bool // has an fp32 gradient of its own

	chain []member
	tied  bucket.ParamID // this stage's copy of the tied embedding; -1: none
	zero  optim.Zero

	w scratch
}

// groupState is where a bucket group stands.
type groupState struct {
	firstBatch bool // no golden counts yet
	registered int  // parameters whose gradient arrived in this step
	unequal    int  // parameters whose count is not the golden one

	reduction int // number of the call in flight; 0: none
	gather    int
	finished  bool // reduced and waited for in this step

	dispatched bool // its gather was started since its gradients were reduced
}

var _ optim.Sharded = (*Sharded)(nil)

// NewSharded returns the optimizer of one rank over a layout.
func NewSharded(l *Layout, c Config) (*Sharded, error) {
	c.Tensor = max(c.Tensor, 1)
	switch {
	case c.Runtime == nil:
		return nil, fmt.Errorf("runtime: got none, want one; set Config.Runtime")
	case c.Rank < 0 || c.Rank >= l.Options.World:
		return nil, fmt.Errorf("rank: got %d, want 0 to %d (its position in the data-parallel group)", c.Rank, l.Options.World-1)
	}
	if err := c.States.Check(&l.Options); err != nil {
		return nil, err
	}
	s := &Sharded{
		l: l, c: c, rt: c.Runtime, obs: c.Observer,
		groups:  make([]groupState, len(l.Groups)),
		ready:   make([]int32, len(l.Params)),
		golden:  make([]int32, len(l.Params)),
		fused:   make([]bool, len(l.Params)),
		private: make([]bool, len(l.Params)),
		tied:    -1,
	}
	for g := range s.groups {
		s.groups[g].firstBatch = true
	}
	for p := range l.Params {
		q := &l.Params[p]
		s.fused[p] = c.FusedWgrad && q.fusedGrad()
		if q.SharedEmbedding && c.EmbeddingSize > 1 {
			s.tied = bucket.ParamID(p)
		}
	}
	for i := range l.Chunks {
		for k := range l.Chunks[i].Buffers {
			b := &l.Chunks[i].Buffers[k]
			s.zero.Buffers++
			s.zero.Bytes += units.Bytes(b.Numel) * b.Grad.Size()
			for _, p := range b.FP32Grads {
				s.zero.Bytes += 4 * units.Bytes(l.Params[p].Numel)
				s.private[p] = true
			}
		}
	}
	l.store(c.States)
	s.buildChain()
	return s, nil
}

// Layout returns the layout.
func (s *Sharded) Layout() *Layout { return s.l }

// Err is the first state met in which the real code raises.
func (s *Sharded) Err() error { return s.err }

func (s *Sharded) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// NoSync enters or leaves the context of microbatches that do not synchronize.
func (s *Sharded) NoSync(on bool) { s.noSync = on }

// hooks reports whether modules gather their parameters. Training leaves the hooks off in the first
// step: all ranks hold the same values then.
func (s *Sharded) hooks() bool { return s.steps > 0 && s.l.Options.OverlapParamGather }

// ZeroGrad begins a step: gradient buffers are cleared, counts begin anew. Where gathered values go
// through the gradient buffers, the updated shards are put there now.
func (s *Sharded) ZeroGrad() {
	if s.err != nil {
		return
	}
	s.observe(optim.OpZeroGrad)
	s.rt.ZeroGrad(&s.zero)
	for g := range s.groups {
		s.reset(g)
	}
	if s.l.Options.ReuseGradBuffer && s.hooks() {
		for i := range s.chain {
			s.copyMain(&s.chain[i])
		}
		for g := range s.groups {
			s.groups[g].dispatched = false
		}
	}
}

// reset takes the counts of the step that has ended as golden ones, if they are the first.
func (s *Sharded) reset(g int) {
	st := &s.groups[g]
	first := st.firstBatch && st.registered > 0
	if first {
		if st.registered != s.l.Groups[g].Params {
			s.fail("bucket group %d of model chunk %d: got gradients of %d parameters in the first step, want all %d; leave unused parameters out",
				g-s.l.Chunks[s.l.Groups[g].Chunk].Groups[0], s.l.Groups[g].Chunk, st.registered, s.l.Groups[g].Params)
			return
		}
		st.firstBatch = false
	}
	st.registered, st.finished = 0, false
	if !st.firstBatch {
		st.unequal = s.l.Groups[g].Params
	}
	for _, id := range s.l.Groups[g].Buckets {
		for _, f := range s.l.Buckets[id].Fragments {
			if first {
				s.golden[f.Param] = s.ready[f.Param]
			}
			s.ready[f.Param] = 0
		}
	}
}
