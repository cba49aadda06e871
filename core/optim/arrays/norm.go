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
		tensors := gradsOf(k, buckets, n)
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
					addNorm(&k.norm, t)
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

// normTensor is one operand of a norm kernel: it may be longer than what is held of it, by zeros.
type normTensor struct {
	Tensor
	length int
}

// addNorm adds a tensor chunk by chunk.
func addNorm(s *optim.L2Norm, t normTensor) {
	var work []float32
	if t.DType != dtype.FP32 {
		work = make([]float32, min(t.Len(), optim.NormChunk))
	}
	for start := 0; start < t.length; start += optim.NormChunk {
		part := t.Slice(min(start, t.Len()), min(start+optim.NormChunk, t.Len()))
		s.Chunk(part.values(work), t.length-start)
	}
}

// gradsOf returns the operands on one rank: whole shards, or its part of some parameters, fragment by
// fragment.
func gradsOf(k *rank, buckets []bucket.Bucket, n *optim.Norm) (list []normTensor) {
	if n.Params == nil {
		for _, id := range n.Buckets {
			list = append(list, normTensor{k.grad(&buckets[id]), int(buckets[id].Shard)})
		}
		return list
	}
	parts := make([][]normTensor, len(k.params))
	for id := range buckets {
		locals(&buckets[id], 0, k.position, func(l local) {
			parts[l.param] = append(parts[l.param], normTensor{k.grad(&buckets[id]).Slice(l.start, l.end), l.end - l.start})
		})
	}
	for _, p := range n.Params {
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
