package arrays

import (
	"math"
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// AllReduceGrads would add up gradients over ranks that are not here: they stay what they are.
func (r *Ranks) AllReduceGrads(*optim.GradReduction) {}

// LocalNorm measures each rank's shards: whole ones, or its part of some parameters, with one
// kernel for each format.
func (r *Ranks) LocalNorm(n *optim.Norm) {
	buckets := r.follow()
	var formats []dtype.DType // in order of first appearance, which may differ between ranks
	for at := range r.ranks {
		k := &r.ranks[at]
		var tensors []Tensor
		if n.Params == nil {
			for _, id := range n.Buckets {
				tensors = append(tensors, k.shards[id].Grad)
			}
		} else {
			tensors = gradsOf(k, buckets, n.Params)
		}
		formats = formats[:0]
		for _, t := range tensors {
			if !slices.Contains(formats, t.DType) {
				formats = append(formats, t.DType)
			}
		}
		k.normSq = 0
		for i, d := range formats {
			k.norm.Reset()
			for _, t := range tensors {
				if t.DType == d {
					r.addNorm(&k.norm, t)
				}
			}
			norm := k.norm.Norm()
			k.nonFinite = k.nonFinite || k.norm.NonFinite
			if i == 0 {
				k.normSq = norm * norm
			} else {
				k.normSq += float32(norm * norm)
			}
		}
	}
}

// addNorm adds a tensor chunk by chunk.
func (r *Ranks) addNorm(s *optim.L2Norm, t Tensor) {
	var work []float32
	if t.DType != dtype.FP32 {
		work = make([]float32, min(t.Len(), optim.NormChunk))
	}
	for start := 0; start < t.Len(); start += optim.NormChunk {
		end := min(start+optim.NormChunk, t.Len())
		s.Chunk(t.Slice(start, end).values(work), t.Len()-start)
	}
}

// gradsOf returns a rank's part of the reduced gradients of parameters, fragment by fragment.
func gradsOf(k *rank, buckets []bucket.Bucket, params []bucket.ParamID) []Tensor {
	parts := make([][]Tensor, len(k.params))
	for id := range buckets {
		locals(&buckets[id], 0, k.position, func(l local) {
			parts[l.param] = append(parts[l.param], k.shards[id].Grad.Slice(l.start, l.end))
		})
	}
	var list []Tensor
	for _, p := range params {
		list = append(list, parts[p]...)
	}
	return list
}

// AllReduceNorm adds up the squares in rank order, rounded to the reduction's format, and takes the
// root.
func (r *Ranks) AllReduceNorm(red *optim.Reduction) {
	group := r.ranks[:r.c.Distributed]
	if red.Group == optim.World {
		group = r.ranks
	}
	sum := float32(0)
	for i := range group {
		x := red.DType.Round(group[i].normSq)
		if red.Divide > 1 {
			x = red.DType.Round(x / float32(red.Divide))
		}
		sum = red.DType.Round(sum + x)
	}
	r.gradNorm = red.DType.Round(dtype.Canonical(float32(math.Sqrt(float64(sum)))))
}

// Clip multiplies the gradient scale by the bound over the norm, if the norm is larger.
func (r *Ranks) Clip(maxNorm float64) {
	r.norm = dtype.Canonical(float32(r.gradNorm * r.gradScale))
	// PyTorch divides a number by a tensor as the tensor's reciprocal times the number.
	factor := float32(1/float32(r.norm+1e-6)) * float32(maxNorm)
	if factor > 1 {
		factor = 1
	}
	r.gradScale = dtype.Canonical(float32(r.gradScale * factor))
}

// CheckFinite divides the loss scale out of the gradient scale and reports whether the norm is
// finite.
func (r *Ranks) CheckFinite() bool {
	r.gradScale = dtype.Canonical(r.gradScale / r.lossScale)
	r.norm = dtype.Canonical(float32(r.gradNorm * r.gradScale))
	return r.norm-r.norm == 0
}
