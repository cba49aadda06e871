package ddp

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/optim"
)

// Config is what the control flow needs to know beside the layout.
type Config struct {
	Tensor        int // tensor-parallel size; 0 is 1
	TensorRank    int
	Pipeline      int // stages; 0 is 1
	EmbeddingSize int // ranks of the embedding group that this rank is in, 0: in none

	MaxNorm    float64 // clip_grad_norm_; 0 or less: no norm, no clipping
	GradScaler bool    // loss scaling: the host looks for infinite gradients before it steps

	// Warm begins after the first passes: with the layout's final buckets.
	Warm bool

	Runtime  optim.Runtime
	Observer optim.Observer // nil: nobody looks
}

// Sharded is the control flow of DistributedDataParallel's reducer, of clip_grad_norm_ and of an Adam
// that every rank runs on all parameters. It implements optim.Sharded, though nothing is sharded. The
// layout is its own from now on: after the first passes it holds the buckets of the order in which
// gradients really came.
//
// Gradients are set to None at the beginning of a step (zero_grad's default), so even with
// gradient_as_bucket_view they are copied into their buckets; that saves the copy back and the memory.
//
// Streams: one for the collectives of dense parameters, the next one for those of experts.
type Sharded struct {
	l   *Layout
	c   Config
	rt  optim.Runtime
	obs optim.Observer
	err error

	noSync bool
	steps  int // updates
	synced int // steps whose gradients were synchronized, before this one
	calls  int // collectives so far
	warm   bool

	reducers []reducer
	bucketOf []int32 // of each parameter, in the present list
	has      []bool  // of each parameter: param.grad is there
	ready    []bool  // of each parameter: it came in this synchronizing pass
	pending  []int32 // of each present bucket: gradients that it waits for
	call     []int   // of each present bucket: its all-reduce

	finite bool
	tied   bucket.ParamID // this stage's copy of the tied embedding; -1: none
	step   stepLists
	w      scratch
}

// reducer is where one DistributedDataParallel object stands in its synchronizing pass.
type reducer struct {
	next    int   // bucket that is to be reduced next: they go strictly in order
	arrived []int // positions of its parameters
	done    bool  // all-reduces were waited for in this step
	used    int   // call of the map of used parameters
}

var _ optim.Sharded = (*Sharded)(nil)

// NewSharded returns the optimizer of one rank over a layout.
func NewSharded(l *Layout, c Config) (*Sharded, error) {
	c.Tensor, c.Pipeline = max(c.Tensor, 1), max(c.Pipeline, 1)
	if c.Runtime == nil {
		return nil, fmt.Errorf("runtime: got none, want one; set Config.Runtime")
	}
	s := &Sharded{
		l: l, c: c, rt: c.Runtime, obs: c.Observer, warm: c.Warm, finite: true, tied: -1,
		reducers: make([]reducer, len(l.Reducers)),
		bucketOf: make([]int32, len(l.Params)), has: make([]bool, len(l.Params)), ready: make([]bool, len(l.Params)),
	}
	for p := range l.Params {
		if l.Params[p].SharedEmbedding && c.EmbeddingSize > 1 {
			s.tied = bucket.ParamID(p)
		}
	}
	s.follow()
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

// buckets returns the present list, and a reducer's part of it.
func (s *Sharded) buckets() []bucket.Bucket {
	if s.warm {
		return s.l.Buckets
	}
	return s.l.Initial
}

func (s *Sharded) span(r int) [2]int {
	if s.warm {
		return s.l.Reducers[r].Buckets
	}
	return s.l.Reducers[r].Initial
}

// follow takes in the present list of buckets.
func (s *Sharded) follow() {
	list := s.buckets()
	s.pending, s.call = make([]int32, len(list)), make([]int, len(list))
	for id := range list {
		for _, f := range list[id].Fragments {
			s.bucketOf[f.Param] = int32(id)
		}
	}
	s.listUpdates()
}

// NoSync enters or leaves the context of microbatches that do not synchronize.
func (s *Sharded) NoSync(on bool) { s.noSync = on }

// ZeroGrad begins a step: param.grad is dropped. The forward pass that follows rebuilds buckets, once:
// after the first synchronizing pass, or after the second with a static graph, whose first pass only
// counts.
func (s *Sharded) ZeroGrad() {
	if s.err != nil {
		return
	}
	s.observe(optim.OpZeroGrad)
	s.rt.ZeroGrad(&s.w.zero)
	clear(s.has)
	if len(s.reducers) > 0 && s.reducers[0].done {
		s.synced++
	}
	if !s.warm && s.synced > bit(s.l.Options.StaticGraph) && s.l.Options.Rebuilds() {
		for r := range s.reducers {
			copy(s.l.arrival[r], s.reducers[r].arrived)
		}
		if err := s.l.rebuild(); err != nil {
			s.fail("%w", err)
			return
		}
		s.warm = true
		s.follow()
		s.observeBuckets(optim.OpRebuildBuckets, s.l.Buckets)
	}
	list := s.buckets()
	for id := range list {
		s.pending[id] = int32(len(list[id].Fragments))
	}
	clear(s.ready)
	for r := range s.reducers {
		k := &s.reducers[r]
		k.next, k.arrived, k.done, k.used = s.span(r)[0], k.arrived[:0], false, 0
	}
}

// PreForward does nothing: parameters are never gathered.
func (s *Sharded) PreForward(bucket.ParamID) {}

// PendingForward is never so.
func (s *Sharded) PendingForward(bucket.ParamID) bool { return false }

// GradSyncFunc does nothing: the reducer starts all-reduces by itself.
func (s *Sharded) GradSyncFunc(int) {}

// ParamSyncFunc does nothing.
func (s *Sharded) ParamSyncFunc(int) {}

// QuietBackward reports that hooks do nothing at present.
func (s *Sharded) QuietBackward() bool { return s.noSync }
