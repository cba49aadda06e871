package apex

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

// paramState are the flags of one parameter.
type paramState struct {
	pendingForward bool // the one-shot pre-forward hook has not run since the step
	arrived        bool // backward has run since the gradient was last moved into buckets
	hasGrad        bool // param.grad exists
	view           bool // and is a view of the bucket
	fused          bool // a GEMM adds its gradient to the bucket
	noOverlap      bool
	noGreedy       bool
}

// gradBucket is the gradient side of a bucket within one step.
type gradBucket struct {
	status    optim.GradStatus
	memory    bool // its full buffer exists
	released  bool // and was given up before in this step: reused contiguous memory is zeroed
	shard     bool // a reduced shard exists
	inTable   bool
	epoch     uint32 // of the generated set
	generated int32  // parameters in it
}

// gatherBucket is the parameter side of a bucket, from a step until it is consumed.
type gatherBucket struct {
	status optim.ParamStatus
	copied int32 // parameters copied out
	mark   uint32
}

// localFragment is the part of a fragment in this rank's shard.
type localFragment struct {
	param bucket.ParamID
	elems units.Elems
}

// scratch holds descriptions that are used again, so that effects allocate nothing in steady
// state. Each list serves one purpose, named by it or by the effect.
type scratch struct {
	one        [1]bucket.ID
	oneParam   [1]bucket.ParamID
	ids        []bucket.ID
	launch     []bucket.ID
	finish     []bucket.ID
	need       []bucket.ID
	zeroed     []bucket.ID
	first      []bucket.ID // group updated first
	step       []bucket.ID // the others
	with       []bucket.ID // remainders
	without    []bucket.ID
	list       []bucket.ParamID
	normParams []bucket.ParamID
	fp8        []bucket.ParamID
	paths      []optim.GradPath
	launches   []optim.AdamLaunch
	keys       []launchKey
	operands   []dtype.DType
	casts      []optim.FP8Cast
	copies     []optim.ParamCopy
	norms      []optim.NormKernel
	pack       optim.Copy
	mark       uint32 // of gather buckets already taken

	zero         optim.Zero
	collective   optim.Collective
	accumulation optim.Accumulation
	kept         optim.Kept
	grads        optim.GradReduction
	norm         optim.Norm
	reduction    optim.Reduction
	update       optim.Update
	cast         optim.Cast
	use          optim.ParamUse
	event        optim.Event
}

// place gives p its fragments where it has none.
func (s *Sharded) place(p bucket.ParamID) {
	if s.l.Placed(p) {
		return
	}
	s.l.Place(p)
	s.link(p)
}

// placeAll gives every parameter of the optimizer its fragments.
func (s *Sharded) placeAll() {
	if s.l.AllPlaced() {
		return
	}
	s.l.InitParams(nil)
	for p := range s.params {
		if s.refStart[p] < 0 && s.l.Placed(bucket.ParamID(p)) {
			s.link(bucket.ParamID(p))
		}
	}
}

// link takes the new fragments of p into the bookkeeping.
func (s *Sharded) link(p bucket.ParamID) {
	n := len(s.l.Fragments[p])
	s.refStart[p] = int32(len(s.gen))
	s.gen = append(s.gen, make([]uint32, n)...)
	s.used = append(s.used, make([]uint32, n)...)
	for len(s.grads) < len(s.l.Buckets) {
		s.grads = append(s.grads, gradBucket{epoch: 1})
	}
}

// fusedGrad reports whether the weight gradient GEMM writes the gradient of q into its bucket. A
// word embedding is looked up too, so autograd delivers (the rest of) its gradient.
func fusedGrad(q *model.Param) bool {
	switch q.Role {
	case model.ProjWeight, model.QKVWeight, model.FC1Weight, model.FC2Weight, model.OutputLayer:
		return true
	}
	return false
}

// noGreedyCopy reports whether NeMo without O2 leaves the gradient of q to autograd until the
// optimizer asks for it: where others still add to it after backward.
func noGreedyCopy(q *model.Param) bool {
	return q.NoOverlap && (q.SequenceParallel || q.Role == model.WordEmbedding || q.Role == model.OutputLayer)
}

func bytesOf(n units.Elems, d dtype.DType) units.Bytes { return units.Bytes(n) * d.Size() }
