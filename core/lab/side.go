package lab

import (
	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
)

// side is one optimizer over all ranks, after or before the seed change.
type side struct {
	layout *apex.Layout
	ranks  *arrays.Ranks
	opt    *apex.Sharded
}

// options are what NeMo passes on for a variant. Everything overlaps, as in the change's own runs.
func (c *Config) options(v *Variant, before bool) apex.Options {
	f := v.formats()
	o := apex.DefaultOptions(c.Ranks)
	o.State, o.GradSync, o.BucketCapMB = f.state, f.gradSync, c.BucketCapMB
	o.SetNeMo(f.params, f.fp8)
	o.NewNeMo, o.NewApex = !before, !before
	o.WithScaledStates = v.Scaled
	o.O2, o.ContiguousGradBuffer, o.OverlapGradSync, o.OverlapParamSync = true, true, true, true
	return o
}

// newSide builds an optimizer whose parameters have initial values.
func (c *Config) newSide(v *Variant, s *model.Stage, initial [][]float32, before bool) (*side, error) {
	o := c.options(v, before)
	layout, err := apex.BuildNeMo(o, s)
	if err != nil {
		return nil, err
	}
	decay, none := c.adam(), c.adam()
	none.WeightDecay = 0
	a := arrays.Config{
		Distributed: o.Distributed, Redundant: o.Redundant, Groups: []optim.AdamArgs{decay, none},
		Buckets:         func() []bucket.Bucket { return layout.Buckets },
		ContiguousGrads: o.ContiguousGradBuffer, Scaled: o.WithScaledStates, RankOrder: true,
		FP8: optim.DelayedScaling{History: c.AmaxHistory, MostRecent: c.MostRecent, Margin: c.Margin},
	}
	for p := range s.Params {
		q := &s.Params[p]
		a.Params = append(a.Params, arrays.Param{Numel: q.Numel, DType: q.DType, FP8: q.FP8, Group: int(layout.Group[p].Group)})
	}
	ranks, err := arrays.New(a, initial)
	if err != nil {
		return nil, err
	}
	opt, err := apex.NewSharded(layout, apex.Config{Runtime: ranks, MaxNorm: c.ClipNorm, GradScaler: v.formats().scaler()})
	if err != nil {
		return nil, err
	}
	return &side{layout, ranks, opt}, nil
}

// begin starts a step: parameters are in place when it returns.
func (s *side) begin(lossScale float32) {
	s.opt.ZeroGrad()
	s.ranks.SetLossScale(lossScale)
	s.ranks.Forward()
	s.gather()
}

// gather makes every parameter be there, as a forward pass does.
func (s *side) gather() {
	for p := range s.layout.Params {
		s.opt.PreForward(bucket.ParamID(p))
	}
}

// finish takes the gradients of all ranks and ends the step, with all parameters gathered.
func (s *side) finish(grads [][][]float32) error {
	for p := len(s.layout.Params) - 1; p >= 0; p-- {
		for rank := range grads {
			s.ranks.AddGrad(rank, bucket.ParamID(p), grads[rank][p])
		}
		s.opt.PostBackward(bucket.ParamID(p))
	}
	s.opt.AfterBackward()
	s.opt.ClipGradNorm()
	s.opt.Step()
	s.gather()
	if err := s.opt.Err(); err != nil {
		return err
	}
	return s.ranks.Err()
}

// owned says where the elements of a parameter's part lie.
type owned struct {
	bucket     bucket.ID
	fragment   int
	owner      int // rank
	start, end int // in the owner's shard
	inParam    int
}

// parts visits the parts of a parameter, each of which has one owner.
func (s *side) parts(p bucket.ParamID, visit func(owned)) {
	for _, ref := range s.layout.Fragments[p] {
		b := &s.layout.Buckets[ref.Bucket]
		f := &b.Fragments[ref.Index]
		for at := f.InBucket.Start; at < f.InBucket.End && !f.Dependency(); {
			owner := at / b.Shard
			end := min((owner+1)*b.Shard, f.InBucket.End)
			visit(owned{
				bucket: b.ID, fragment: int(ref.Index), owner: int(owner),
				start: int(at - owner*b.Shard), end: int(end - owner*b.Shard),
				inParam: int(f.InParam.Start + at - f.InBucket.Start),
			})
			at = end
		}
	}
}

// reduced reads the reduced gradient of a parameter, without the gradient scale.
func (s *side) reduced(p bucket.ParamID, dst []float32) {
	s.parts(p, func(o owned) {
		t := s.ranks.Shard(o.owner, o.bucket).Grad
		if t.Len() >= o.end {
			t.Slice(o.start, o.end).Load(dst[o.inParam:][:o.end-o.start])
		}
	})
}

// emptyShards counts ranks that own no element.
func (s *side) emptyShards() int {
	owns := make([]bool, s.ranks.Size())
	for p := range s.layout.Params {
		s.parts(bucket.ParamID(p), func(o owned) { owns[o.owner] = true })
	}
	n := 0
	for _, some := range owns {
		if !some {
			n++
		}
	}
	return n
}

// stateBytes returns the optimizer state of a rank: what its shards hold beside gradients.
func (s *side) stateBytes(rank int) (n int64) {
	for id := range s.layout.Buckets {
		h := s.ranks.Shard(rank, bucket.ID(id))
		for _, t := range []arrays.Tensor{h.Param, h.ExpAvg, h.ExpAvgSq, h.Remainders} {
			n += int64(t.Len()) * int64(t.DType.Size())
		}
		n += int64(len(h.Scales)) * 3 * int64(dtype.FP32.Size())
	}
	return n
}
