package arrays

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// buffer is a contiguous buffer of one triple.
type buffer struct {
	dtypes bucket.DTypes
	memory Tensor
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
			r.addBucket(b)
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
			if r.c.Scaled {
				s.Scales = append(s.Scales, make([]Scales, len(b.Fragments)-from)...)
			}
			if b.StoresParams {
				locals(b, from, k.position, func(l local) { r.initMain(k, s, l) })
			}
		}
	}
	return buckets
}

// addBucket gives every rank its shard of a new bucket.
func (r *Ranks) addBucket(b *bucket.Bucket) {
	n := int(b.Shard)
	for i := range r.ranks {
		k := &r.ranks[i]
		s := Shard{ExpAvg: NewTensor(b.DTypes.State, n), ExpAvgSq: NewTensor(b.DTypes.State, n)}
		if b.StoresParams {
			s.Param = NewTensor(b.DTypes.State, n)
		}
		if b.StoresRemainders {
			s.Remainders = NewTensor(dtype.I16, n)
		}
		k.shards = append(k.shards, s)
	}
	for i := range r.gathered {
		r.gathered[i] = append(r.gathered[i], Tensor{})
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

// buffersOf returns contiguous buffers for all buckets: of each triple one that holds its highest
// bucket, in the format that pick chooses from the triple.
func buffersOf(buckets []bucket.Bucket, pick func(bucket.DTypes) dtype.DType) []buffer {
	var list []buffer
	var ends []int
	for id := range buckets {
		b := &buckets[id]
		at := 0
		for at < len(list) && list[at].dtypes != b.DTypes {
			at++
		}
		if at == len(list) {
			list, ends = append(list, buffer{dtypes: b.DTypes}), append(ends, 0)
		}
		ends[at] = max(ends[at], int(b.Offset+b.Size))
	}
	for i := range list {
		list[i].memory = NewTensor(pick(list[i].dtypes), ends[i])
	}
	return list
}

// bufferOf returns the buffer of a triple, empty if there is none.
func bufferOf(list []buffer, d bucket.DTypes) Tensor {
	for i := range list {
		if list[i].dtypes == d {
			return list[i].memory
		}
	}
	return Tensor{}
}

// inBuffer returns a bucket's part of the buffer of its triple, empty if it does not lie there.
func inBuffer(list []buffer, b *bucket.Bucket) Tensor {
	memory := bufferOf(list, b.DTypes)
	if memory.Len() < int(b.Offset+b.Size) {
		return Tensor{}
	}
	return memory.Slice(int(b.Offset), int(b.Offset+b.Size))
}

// buildViews moves all parameters into contiguous buffers. It happens once, when every parameter
// that will be updated has its fragments.
func (r *Ranks) buildViews(buckets []bucket.Bucket) {
	if !r.c.ContiguousParams || r.ranks[0].paramBuffers != nil {
		return
	}
	for n := range r.ranks {
		k := &r.ranks[n]
		k.paramBuffers = buffersOf(buckets, func(d bucket.DTypes) dtype.DType { return d.ParamSync })
		for p, refs := range r.refs {
			if len(refs) == 0 {
				continue
			}
			// Fragments of a parameter follow each other in its buffer.
			b := &buckets[refs[0].bucket]
			memory := bufferOf(k.paramBuffers, b.DTypes)
			t := &k.params[p]
			start := int(b.Offset + b.Fragments[refs[0].fragment].InBucket.Start)
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
