// Package arrays carries out the effects of a sharded optimizer on real numbers, for all ranks of
// its data-parallel group at once.
//
// One control flow (core/apex) drives it, as if it were that of each rank: what is launched, and
// when, is the same on all of them. Ranks finds each one's own part from the layout. Collectives
// complete when they are launched, so streams have nothing to wait for: a control flow that reads
// too early is found by the recorder, not here.
//
// Numbers are those of the real code compiled for IEEE arithmetic: docs/numerics.md has the rules.
// Sums over ranks run in the order of the reference data, where NCCL's depends on algorithm and
// topology. Not modelled: ranks of other groups. Gradients that the tensor-parallel or embedding
// group would add up are taken as they are, and the world of a gradient norm is this group.
package arrays

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// Param is a parameter as every rank holds it.
type Param struct {
	Numel units.Elems
	DType dtype.DType // nominal: of its gradient, also for an FP8 weight
	FP8   bool        // its values are E4M3 codes
	Group int         // parameter group; -1: in none
	Fused bool        // a GEMM adds its gradient to the bucket: it is never rounded to DType
	// Private: its gradient adds up in fp32, and is rounded into the bucket when that is reduced.
	Private bool
}

// Config is what the arrays need to know beside the effects.
type Config struct {
	Distributed int // ranks that shard the state
	Redundant   int // copies of that group; 0 is 1

	Params []Param
	Groups []optim.AdamArgs // by parameter group
	// Buckets gives the layout as it stands: lazy initialisation appends to it.
	Buckets func() []bucket.Bucket

	ContiguousGrads  bool // gradients lie in one buffer for each triple of dtypes
	ContiguousParams bool // parameters do: gathered in place
	Scaled           bool // state is stored with a scale for each fragment
	FP8              optim.DelayedScaling

	// RankOrder adds up every shard in the order of ranks, whoever owns it, as algorithms do that are
	// no ring: then sums do not depend on where in which bucket a parameter lies.
	RankOrder bool

	// FusedCopy says that the optimizer was built with its multi-tensor copy kernel, which does
	// nothing once a gradient norm of this step was infinite or NaN on that rank: parameters that
	// are gathered within the step then keep their old values there.
	FusedCopy bool
}

// maxElements bounds the elements of parameters over all ranks: about 2.5 GiB of arrays in fp32.
const maxElements = 1 << 27

// Ranks is the state of all ranks. It implements optim.Runtime. Rank r of the distributed group in
// copy c of it is number c*Distributed + r.
type Ranks struct {
	c     Config
	ranks []rank
	known []int   // fragments of each bucket that have state
	refs  [][]ref // of each parameter: its fragments that hold elements

	// gathered holds whole buckets, one set for each copy of the distributed group: all of its
	// ranks would hold the same.
	gathered [][]Tensor

	gradScale float32
	gradNorm  float32 // without the gradient scale
	norm      float32 // with it, when it was last asked for
	lossScale float32
	tokens    int // by which ScaleGrads divides
	begun     int // steps before those of this control flow

	transposes int
	work       [4][]float32 // one block each
	err        error
}

var _ optim.Runtime = (*Ranks)(nil)

// ref points at a fragment.
type ref struct {
	bucket   bucket.ID
	fragment int
}

// rank is what one rank holds.
type rank struct {
	position int // in the distributed group
	params   []Tensor
	meta     []optim.FP8Meta // of FP8 parameters
	grads    []pending
	shards   []Shard

	gradViews, paramViews *buffers // nil: none yet

	norm      optim.L2Norm
	normSq    float32
	nonFinite bool // the shared flag: a norm kernel met an infinite or NaN sum in this step
	scaled    [3][]float32
}

// pending is a gradient that autograd has computed and no bucket has taken: param.grad.
type pending struct {
	values  []float32 // in the parameter's format
	present bool
	private []float32 // the sum of a step, of a Private parameter
}

// Shard is one rank's part of a bucket, up to the bucket's last fragment. Tensors that the bucket does
// not have are empty.
type Shard struct {
	Grad       Tensor // reduced
	Param      Tensor // main parameters, in the state's format
	ExpAvg     Tensor
	ExpAvgSq   Tensor
	Remainders Tensor
	Scales     []Scales // of each fragment, if the state is scaled

	kept   bool   // Grad is this step's or an earlier one's
	bucket Tensor // the whole bucket's gradients on this rank
	sync   Tensor // a reduced shard that was not kept yet
	// scattered: sync came from a reduce-scatter, also of a group of one rank.
	scattered bool
	updated   Tensor // what is gathered, in the param-sync format
	main      Tensor // updated main parameters that are stored nowhere, until they are cast
}

// Scales are those of one fragment's state.
type Scales struct{ Param, ExpAvg, ExpAvgSq float32 }

// block is how many elements are widened, updated and rounded at a time.
const block = 1024

// New returns ranks whose parameters all have the initial values, in fp32 and as they would be
// rounded to their formats: FP8 with scale 1.
func New(c Config, initial [][]float32) (*Ranks, error) {
	c.Redundant = max(c.Redundant, 1)
	if err := c.check(initial); err != nil {
		return nil, err
	}
	r := &Ranks{c: c, gradScale: 1, lossScale: 1, refs: make([][]ref, len(c.Params))}
	for i := range r.work {
		r.work[i] = make([]float32, block)
	}
	r.ranks = make([]rank, c.Distributed*c.Redundant)
	r.gathered = make([][]Tensor, c.Redundant)
	for n := range r.ranks {
		k := &r.ranks[n]
		k.position = n % c.Distributed
		k.params = make([]Tensor, len(c.Params))
		k.meta = make([]optim.FP8Meta, len(c.Params))
		k.grads = make([]pending, len(c.Params))
		for p, q := range c.Params {
			if q.FP8 {
				k.params[p] = NewTensor(dtype.U8, int(q.Numel))
				k.meta[p] = optim.NewFP8Meta(c.FP8)
				k.meta[p].Cast(k.params[p].Bytes, initial[p])
				continue
			}
			k.params[p] = NewTensor(q.DType, int(q.Numel))
			k.params[p].Store(initial[p])
		}
	}
	r.follow()
	return r, r.err
}

func (c *Config) check(initial [][]float32) error {
	switch {
	case c.Distributed < 1:
		return fmt.Errorf("distributed_size: got %d, want at least 1; set it to 1 or more", c.Distributed)
	case c.Buckets == nil:
		return fmt.Errorf("buckets: got none, want a layout; set Config.Buckets")
	case len(initial) != len(c.Params):
		return fmt.Errorf("initial values: got %d parameters, want %d", len(initial), len(c.Params))
	case c.FP8.Margin < -100 || c.FP8.Margin > 100:
		return fmt.Errorf("fp8 margin: got %d, want -100 to 100; set it to 0", c.FP8.Margin)
	case c.FP8.History < 0 || c.FP8.History > 1<<16:
		return fmt.Errorf("fp8_amax_history_len: got %d, want 1 to 65536; set it to 1024", c.FP8.History)
	}
	total := units.Elems(0)
	for p, q := range c.Params {
		switch {
		case !q.DType.Float():
			return fmt.Errorf("parameter %d: got dtype %s, want fp32, fp16 or bf16", p, q.DType)
		case q.Group < -1 || q.Group >= len(c.Groups):
			return fmt.Errorf("parameter %d: got parameter group %d, want 0 to %d", p, q.Group, len(c.Groups)-1)
		case q.Numel < 0 || units.Elems(len(initial[p])) != q.Numel:
			return fmt.Errorf("parameter %d: got %d initial values, want %d", p, len(initial[p]), q.Numel)
		}
		total += q.Numel
	}
	for g, a := range c.Groups {
		if !(a.Beta1 >= 0 && a.Beta1 < 1) || !(a.Beta2 >= 0 && a.Beta2 < 1) {
			return fmt.Errorf("betas of parameter group %d: got %v and %v, want at least 0 and below 1", g, a.Beta1, a.Beta2)
		}
	}
	const maxRanks = 1 << 12
	ranks := units.Elems(min(c.Distributed, maxRanks+1)) * units.Elems(min(c.Redundant, maxRanks+1))
	if ranks > maxRanks || total > maxElements/ranks {
		return fmt.Errorf("arrays: got %d parameter elements on each of %d*%d ranks, want at most %d ranks and %d elements on all of them; take fewer ranks or a smaller model", total, c.Distributed, c.Redundant, maxRanks, maxElements)
	}
	return nil
}

// Err is the first thing that went wrong: a gradient that is missing, a layout that changed.
func (r *Ranks) Err() error { return r.err }

func (r *Ranks) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// Size returns the number of ranks.
func (r *Ranks) Size() int { return len(r.ranks) }

// Param returns the values of a parameter on a rank, E4M3 codes for FP8, in the rank's own memory.
func (r *Ranks) Param(rank int, p bucket.ParamID) Tensor { return r.ranks[rank].params[p] }

// ParamValues widens or decodes a parameter of a rank into dst: what a forward pass computes with.
func (r *Ranks) ParamValues(rank int, p bucket.ParamID, dst []float32) {
	k := &r.ranks[rank]
	if r.c.Params[p].FP8 {
		dtype.E4M3.DecodeScaled(dst, k.params[p].Bytes, k.meta[p].ScaleInv)
		return
	}
	k.params[p].Load(dst)
}

// FP8Meta returns the scales of an FP8 parameter on a rank.
func (r *Ranks) FP8Meta(rank int, p bucket.ParamID) *optim.FP8Meta { return &r.ranks[rank].meta[p] }

// Shard returns a rank's part of a bucket.
func (r *Ranks) Shard(rank int, id bucket.ID) *Shard {
	r.follow()
	return &r.ranks[rank].shards[id]
}

// GradNorm returns the norm of the reduced gradients times the gradient scale before it was clipped:
// what the real code returns from clipping. Without clipping or a finite check it is 0.
func (r *Ranks) GradNorm() float32 { return r.norm }

// GradScale returns the factor of gradients that the next update applies.
func (r *Ranks) GradScale() float32 { return r.gradScale }

// SetGradScale sets it; ZeroGrad makes it 1.
func (r *Ranks) SetGradScale(scale float32) { r.gradScale = scale }

// SetLossScale sets what losses were multiplied by; CheckFinite divides gradients by it.
func (r *Ranks) SetLossScale(scale float32) { r.lossScale = scale }

// Transposes returns how many FP8 transposes each rank has computed.
func (r *Ranks) Transposes() int { return r.transposes }

// Forward is what every forward pass of a microbatch begins with: the delayed scales of FP8 weights
// are renewed.
func (r *Ranks) Forward() {
	for n := range r.ranks {
		for p := range r.c.Params {
			if r.c.Params[p].FP8 {
				r.ranks[n].meta[p].Forward(r.c.FP8)
			}
		}
	}
}

// Difference returns the first parameter, element and rank whose value is not that of rank 0.
func (r *Ranks) Difference() (p bucket.ParamID, element, rank int, ok bool) {
	for n := 1; n < len(r.ranks); n++ {
		for p := range r.c.Params {
			a, b := r.ranks[0].params[p], r.ranks[n].params[p]
			if a.Equal(b) {
				continue
			}
			for i := range a.Len() {
				if a.Bits(i) != b.Bits(i) {
					return bucket.ParamID(p), i, n, true
				}
			}
		}
	}
	return 0, 0, 0, false
}
