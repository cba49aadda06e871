package arrays

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Arrays hold a bucket up to its last fragment. Real buckets are allocated and sent in full, but what
// follows is zero everywhere and takes part in nothing.

// held returns how many elements of a bucket are held, and of its shard at a position.
func held(b *bucket.Bucket) int { return int(b.Filled) }

func heldShard(b *bucket.Bucket, position int) int {
	return min(max(held(b)-position*int(b.Shard), 0), int(b.Shard))
}

// grown returns t, or a copy of format d with zeros at its end if it holds fewer than n elements.
func grown(t Tensor, d dtype.DType, n int) Tensor {
	if t.DType == d && t.Len() >= n {
		return t
	}
	larger := NewTensor(d, n)
	if t.DType == d {
		larger.copyBits(t)
	}
	return larger
}

// buffers are contiguous buffers, one for each triple. They are built when no parameter will be
// placed any more.
type buffers struct {
	memory []Tensor
	places []place // of each bucket
}

type place struct{ memory, start, end int }

// newBuffers lays the buckets of each triple out one after the other, in the format that pick
// chooses.
func newBuffers(buckets []bucket.Bucket, pick func(bucket.DTypes) dtype.DType) *buffers {
	b := &buffers{places: make([]place, len(buckets))}
	var triples []bucket.DTypes
	var ends []int
	for id := range buckets {
		d := buckets[id].DTypes
		at := slices.Index(triples, d)
		if at < 0 {
			at = len(triples)
			triples, ends = append(triples, d), append(ends, 0)
		}
		b.places[id] = place{at, ends[at], ends[at] + held(&buckets[id])}
		ends[at] = b.places[id].end
	}
	for i, d := range triples {
		b.memory = append(b.memory, NewTensor(pick(d), ends[i]))
	}
	return b
}

// bucket returns a bucket's part of its buffer. ok is false if the buffers do not have all of it.
func (b *buffers) bucket(k *bucket.Bucket) (t Tensor, ok bool) {
	if int(k.ID) >= len(b.places) {
		return Tensor{}, false
	}
	p := b.places[k.ID]
	return b.memory[p.memory].Slice(p.start, p.end), p.end-p.start == held(k)
}

// local is the part of a fragment that a position of the distributed group owns.
type local struct {
	param      bucket.ParamID
	fragment   int
	start, end int // within the shard
	inParam    int // of the first element
}

// locals calls visit for each part of a bucket that position owns, in bucket order, from the given
// fragment on.
func locals(b *bucket.Bucket, from, position int, visit func(local)) {
	base := int(b.Shard) * position
	for i := from; i < len(b.Fragments); i++ {
		f := &b.Fragments[i]
		start, end := max(int(f.InBucket.Start), base), min(int(f.InBucket.End), base+int(b.Shard))
		if start < end && !f.Dependency() {
			visit(local{
				param: f.Param, fragment: i, start: start - base, end: end - base,
				inParam: int(f.InParam.Start) + start - int(f.InBucket.Start),
			})
		}
	}
}

// follow gives state to buckets and fragments that the layout has got since it was last looked at:
// zero moments, and main parameters with the model's present values.
func (r *Ranks) follow() []bucket.Bucket {
	buckets := r.c.Buckets()
	for id := range buckets {
		b := &buckets[id]
		if id == len(r.known) {
			r.known = append(r.known, 0)
			for n := range r.ranks {
				r.ranks[n].shards = append(r.ranks[n].shards, Shard{})
			}
			for i := range r.gathered {
				r.gathered[i] = append(r.gathered[i], Tensor{})
			}
		}
		from := r.known[id]
		if from == len(b.Fragments) {
			continue
		}
		r.known[id] = len(b.Fragments)
		for i := from; i < len(b.Fragments); i++ {
			f := &b.Fragments[i]
			if f.Param < 0 || int(f.Param) >= len(r.c.Params) {
				r.fail("bucket %d: got a fragment of parameter %d, want 0 to %d", id, f.Param, len(r.c.Params)-1)
				r.known[id] = 0
				return nil
			}
			if !f.Dependency() {
				r.refs[f.Param] = append(r.refs[f.Param], ref{b.ID, i})
			}
		}
		for n := range r.ranks {
			k := &r.ranks[n]
			s := &k.shards[id]
			r.growShard(k, s, b)
			if b.StoresParams {
				locals(b, from, k.position, func(l local) { r.initMain(k, s, l) })
			}
		}
	}
	return buckets
}

// growShard makes room for the state of a bucket's fragments on one rank.
func (r *Ranks) growShard(k *rank, s *Shard, b *bucket.Bucket) {
	n := heldShard(b, k.position)
	s.ExpAvg, s.ExpAvgSq = grown(s.ExpAvg, b.DTypes.State, n), grown(s.ExpAvgSq, b.DTypes.State, n)
	if b.StoresParams {
		s.Param = grown(s.Param, b.DTypes.State, n)
	}
	if b.StoresRemainders {
		s.Remainders = grown(s.Remainders, dtype.I16, n)
	}
	if r.c.Scaled {
		s.Scales = append(s.Scales, make([]Scales, len(b.Fragments)-len(s.Scales))...)
	}
}

// initMain copies a part of a parameter into its main parameters, FP8 decoded.
func (r *Ranks) initMain(k *rank, s *Shard, l local) {
	x := make([]float32, l.end-l.start)
	r.modelValues(k, l, x)
	if r.c.Scaled {
		s.Scales[l.fragment].Param = optim.Rescale(x, s.Param.DType)
	}
	s.Param.Slice(l.start, l.end).Store(x)
}

// modelValues reads a part of the model's parameter.
func (r *Ranks) modelValues(k *rank, l local, dst []float32) {
	t := k.params[l.param].Slice(l.inParam, l.inParam+len(dst))
	if r.c.Params[l.param].FP8 {
		dtype.E4M3.DecodeScaled(dst, t.Bytes, k.meta[l.param].ScaleInv)
		return
	}
	t.Load(dst)
}

// buildViews moves all parameters into contiguous buffers. It happens once, when every parameter
// that will be updated has its fragments.
func (r *Ranks) buildViews(buckets []bucket.Bucket) {
	if !r.c.ContiguousParams || r.ranks[0].paramViews != nil {
		return
	}
	for n := range r.ranks {
		k := &r.ranks[n]
		k.paramViews = newBuffers(buckets, func(d bucket.DTypes) dtype.DType { return d.ParamSync })
		for p, refs := range r.refs {
			if len(refs) == 0 {
				continue
			}
			// Fragments of a parameter follow each other in its buffer.
			at := k.paramViews.places[refs[0].bucket]
			memory, t := k.paramViews.memory[at.memory], &k.params[p]
			start := at.start + int(buckets[refs[0].bucket].Fragments[refs[0].fragment].InBucket.Start)
			if memory.DType.Size() != t.DType.Size() || start+t.Len() > memory.Len() {
				r.fail("contiguous_param_buffer: got parameter %d with %d %s values at %d of %d %s ones, want elements of one size that fit", p, t.Len(), t.DType, start, memory.Len(), memory.DType)
				return
			}
			view := memory.Slice(start, start+t.Len()).as(t.DType)
			view.copyBits(*t)
			*t = view
		}
	}
}
