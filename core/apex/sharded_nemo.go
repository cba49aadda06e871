package apex

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
)

// GradSyncFunc is NeMo's reduce_overlap_gradients for a model chunk: its gradients are moved into
// buckets and what is complete is launched, in one group.
func (s *Sharded) GradSyncFunc(chunk int) {
	if s.err != nil {
		return
	}
	s.observeChunk(optim.OpGradSyncFunc, chunk)
	if s.overlapGrad {
		first, end := s.chunkParams(chunk)
		for p := first; p < end; p++ {
			if st := &s.params[p]; !st.noGreedy && !st.noOverlap {
				s.copyGrad(p)
			}
		}
		for p := first; p < end; p++ {
			if st := &s.params[p]; !st.noGreedy && !st.noOverlap {
				s.generated(p)
			}
		}
		s.launchFilled(false)
	}
	s.observeChunk(optim.OpGradSyncFuncEnd, chunk)
}

// ParamSyncFunc is NeMo's sync_overlap_parameters for a model chunk: what of its parameters is
// still in shards is gathered, in one group.
func (s *Sharded) ParamSyncFunc(chunk int) {
	if s.err != nil {
		return
	}
	s.observeChunk(optim.OpParamSyncFunc, chunk)
	first, end := s.chunkParams(chunk)
	list := s.w.list[:0]
	for p := first; p < end; p++ {
		list = append(list, p)
	}
	s.w.list = list
	s.tryParamSync(list)
	s.observeChunk(optim.OpParamSyncFuncEnd, chunk)
}

func (s *Sharded) chunkParams(chunk int) (first, end bucket.ParamID) {
	if chunk < 0 || chunk >= len(s.chunks) {
		return 0, 0
	}
	return bucket.ParamID(s.chunks[chunk][0]), bucket.ParamID(s.chunks[chunk][1])
}

// AfterBackward is NeMo's training_step after the schedule. Gradients of sequence-parallel
// parameters and of tied embeddings are added up before they are reduced over the data-parallel
// group: that is why those parameters are not synchronized during backward.
func (s *Sharded) AfterBackward() {
	if s.err != nil || !s.l.Options.NeMo {
		return
	}
	s.reduceSequenceParallel()
	s.finishGradSync()
	if p := s.tied(); p >= 0 {
		s.w.oneParam[0] = p
		q := &s.l.Params[p]
		d := s.gradDType(p)
		r := &s.w.grads
		*r = optim.GradReduction{
			Group: optim.Embedding, Size: s.c.EmbeddingSize, Params: s.w.oneParam[:], DType: d,
			Elems: q.Numel, Bytes: bytesOf(q.Numel, d),
		}
		s.observeGradReduction(r, p)
		s.rt.AllReduceGrads(r)
	}
}

// reduceSequenceParallel adds up the gradients of sequence-parallel parameters over the
// tensor-parallel group, flattened into one tensor in registration order.
func (s *Sharded) reduceSequenceParallel() {
	if s.c.Tensor == 1 {
		return
	}
	r := &s.w.grads
	*r = optim.GradReduction{Group: optim.Tensor, Size: s.c.Tensor, Params: s.w.list[:0], Flatten: true}
	for p := range s.l.Params {
		q := &s.l.Params[p]
		if !q.SequenceParallel {
			continue
		}
		if len(r.Params) == 0 {
			r.DType = s.gradDType(bucket.ParamID(p))
		}
		r.Params = append(r.Params, bucket.ParamID(p))
		r.Elems += q.Numel
		r.Bytes += bytesOf(q.Numel, s.gradDType(bucket.ParamID(p)))
	}
	s.w.list = r.Params
	if len(r.Params) == 0 {
		return
	}
	s.observeGradReduction(r, -1)
	s.rt.AllReduceGrads(r)
}

// tied returns this stage's copy of the word embedding that first and last stage share, -1: none.
func (s *Sharded) tied() bucket.ParamID {
	if s.c.EmbeddingSize < 2 {
		return -1
	}
	for p := range s.l.Params {
		if q := &s.l.Params[p]; q.Role == model.WordEmbedding || q.Shared {
			return bucket.ParamID(p)
		}
	}
	return -1
}

// gradDType returns the dtype of main_grad, a view of p's bucket.
func (s *Sharded) gradDType(p bucket.ParamID) dtype.DType {
	refs := s.l.Fragments[p]
	if len(refs) == 0 {
		return s.l.Options.GradSync
	}
	return s.l.Buckets[refs[0].Bucket].DTypes.GradSync
}
