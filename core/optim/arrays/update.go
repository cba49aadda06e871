package arrays

import (
	"math"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Adam updates the shards of buckets on every rank, fragment by fragment; gaps between fragments
// are not touched. Where values are gathered in a floating-point format the kernel writes those
// too; the model's own parameters stay what they are until they have been gathered.
func (r *Ranks) Adam(u *optim.Update) {
	buckets := r.follow()
	r.buildViews(buckets)
	if r.err != nil {
		return
	}
	kernels := make([]optim.Adam, len(r.c.Groups))
	for g, args := range r.c.Groups {
		kernels[g] = args.Kernel(r.begun+u.Step, r.gradScale)
	}
	for n := range r.ranks {
		k := &r.ranks[n]
		for _, id := range u.Buckets {
			b := &buckets[id]
			s := &k.shards[id]
			if !s.kept {
				r.fail("bucket %d: got no reduced gradients on rank %d, want them before the update", id, n)
				return
			}
			k.grad(b)
			r.prepare(k, s, b)
			locals(b, 0, k.position, func(l local) {
				g := r.c.Params[l.param].Group
				if g < 0 {
					r.fail("parameter %d: got an update, want it in a parameter group", l.param)
					return
				}
				switch {
				case u.Scaled:
					r.updateScaled(k, s, l, &kernels[g])
				case b.StoresRemainders && !b.StoresParams:
					r.updateRemainders(k, s, l, &kernels[g])
				default:
					r.update(k, s, b, l, &kernels[g])
				}
			})
		}
	}
}

// prepare makes sure that a bucket's updated values have a place: a part of the contiguous buffer,
// the main parameters themselves if they have the format that is gathered, or memory of their own.
func (r *Ranks) prepare(k *rank, s *Shard, b *bucket.Bucket) {
	n := heldShard(b, k.position)
	d := b.DTypes
	base := int(b.Shard) * k.position
	switch {
	case s.updated.Len() == n && s.updated.DType == d.ParamSync:
	case k.paramViews != nil:
		whole, _ := k.paramViews.bucket(b)
		s.updated = whole.Slice(min(base, whole.Len()), min(base+n, whole.Len()))
	case d.ParamSync == d.State && !r.c.Scaled && b.StoresParams:
		s.updated = s.Param
	default:
		s.updated = NewTensor(d.ParamSync, n)
	}
	switch {
	case r.c.Scaled:
		for i := range k.scaled {
			if len(k.scaled[i]) < n {
				k.scaled[i] = make([]float32, n)
			}
		}
		s.main = Tensor{DType: dtype.FP32, Words: k.scaled[0]}
	case d.ParamSync.Float():
	case b.StoresParams:
		s.main = s.Param
	default:
		s.main = grown(s.main, d.State, n)
	}
}

// update is the fused kernel on one fragment. Without stored main parameters it reads the model's,
// and only the gathered values are left of the result.
func (r *Ranks) update(k *rank, s *Shard, b *bucket.Bucket, l local, adam *optim.Adam) {
	state := b.DTypes.State
	for start := l.start; start < l.end; start += block {
		end := min(start+block, l.end)
		var p []float32
		if b.StoresParams {
			p = s.Param.Slice(start, end).values(r.work[0])
		} else {
			p = r.work[0][:end-start]
			r.modelValues(k, local{param: l.param, inParam: l.inParam + start - l.start}, p)
			state.RoundAll(p)
		}
		m, v := s.ExpAvg.Slice(start, end), s.ExpAvgSq.Slice(start, end)
		mv, vv := m.values(r.work[1]), v.values(r.work[2])
		adam.Update(p, mv, vv, s.Grad.Slice(start, end).values(r.work[3]), state)
		m.keep(mv)
		v.keep(vv)
		state.RoundAll(p)
		if b.StoresParams {
			s.Param.Slice(start, end).keep(p)
		}
		switch {
		case !b.DTypes.ParamSync.Float():
			if !b.StoresParams {
				s.main.Slice(start, end).Store(p)
			}
		case !b.StoresParams || s.updated.DType != state || r.c.ContiguousParams:
			s.updated.Slice(start, end).Store(p)
		}
	}
}

// updateRemainders is the kernel whose main parameters are the model's bf16 values and remainders.
func (r *Ranks) updateRemainders(k *rank, s *Shard, l local, adam *optim.Adam) {
	for start := l.start; start < l.end; start += block {
		end := min(start+block, l.end)
		at := l.inParam + start - l.start
		p := r.work[0][:end-start]
		k.params[l.param].Slice(at, at+len(p)).join(p, s.Remainders.Slice(start, end))
		adam.Update(p, s.ExpAvg.Words[start:end], s.ExpAvgSq.Words[start:end], s.Grad.Slice(start, end).values(r.work[3]), dtype.FP32)
		s.updated.Slice(start, end).split(p, s.Remainders.Slice(start, end))
	}
}

// updateScaled unpacks the state of one fragment into work space and updates it there. The results
// are stored when the bucket has been cast.
func (r *Ranks) updateScaled(k *rank, s *Shard, l local, adam *optim.Adam) {
	scales := &s.Scales[l.fragment]
	p, m, v := k.scaled[0][l.start:l.end], k.scaled[1][l.start:l.end], k.scaled[2][l.start:l.end]
	for _, t := range []struct {
		work   []float32
		stored Tensor
		scale  float32
	}{{p, s.Param, scales.Param}, {m, s.ExpAvg, scales.ExpAvg}, {v, s.ExpAvgSq, scales.ExpAvgSq}} {
		t.stored.Slice(l.start, l.end).Load(t.work)
		optim.Unscale(t.work, t.scale)
	}
	for start := l.start; start < l.end; start += block {
		end := min(start+block, l.end)
		adam.Update(k.scaled[0][start:end], k.scaled[1][start:end], k.scaled[2][start:end],
			s.Grad.Slice(start, end).values(r.work[3]), dtype.FP32)
	}
}

// join reads fp32 main parameters from bf16 ones and their remainders.
func (t Tensor) join(main []float32, remainders Tensor) {
	for i := range main {
		main[i] = math.Float32frombits(dtype.Join(t.Halfs[i], remainders.Halfs[i]))
	}
}

// split stores fp32 main parameters as bf16 ones and remainders.
func (t Tensor) split(main []float32, remainders Tensor) {
	for i, x := range main {
		t.Halfs[i], remainders.Halfs[i] = dtype.Split(math.Float32bits(x))
	}
}
