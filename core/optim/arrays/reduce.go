package arrays

import (
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Wait has nothing to wait for: effects are complete when they return.
func (r *Ranks) Wait(_, _ optim.Stream) {}

// WaitCall has nothing to wait for either.
func (r *Ranks) WaitCall(_, _ optim.Stream, _ int) {}

// ReduceScatter gives each rank of every distributed group its shard of the group's sum. The shard of
// rank i is added up in the order i+1, i+2, ..., i, each partial sum rounded to the bucket's format;
// an average multiplies contributions by 1/size first, both the factor and the products rounded.
// With RankOrder every shard is added up from the first rank to the last. A scale multiplies
// contributions, rounded, before anything else. With FP32Sum partial sums are not rounded, and rank
// order holds.
func (r *Ranks) ReduceScatter(c *optim.Collective) {
	buckets := r.follow()
	for _, m := range c.Members {
		b := &buckets[m.Bucket]
		r.settle(b)
		for first := 0; first < len(r.ranks); first += r.c.Distributed {
			group := r.ranks[first : first+r.c.Distributed]
			for i := range group {
				to := group[i].syncShard(b)
				group[i].shards[b.ID].scattered = true
				base := i * int(b.Shard)
				r.reduce(c, to, len(group), func(j, start, end int) Tensor {
					from := &group[(i+1+j)%len(group)]
					if r.c.RankOrder || c.FP32Sum {
						from = &group[j]
					}
					return r.gradBucket(from, b).Slice(base+start, base+end)
				})
			}
		}
	}
}

// AllReduceShards reduces shards over the copies of the distributed group, in rank order.
func (r *Ranks) AllReduceShards(c *optim.Collective) {
	buckets := r.follow()
	d := r.c.Distributed
	for _, m := range c.Members {
		b := &buckets[m.Bucket]
		r.settle(b)
		for at := range r.ranks {
			if d == 1 && !r.ranks[at].shards[b.ID].scattered { // the shard is the bucket
				r.ranks[at].syncShard(b).copyBits(r.gradBucket(&r.ranks[at], b))
			}
		}
		for i := range d {
			sum := NewTensor(b.DTypes.GradSync, heldShard(b, i))
			r.reduce(c, sum, r.c.Redundant, func(j, start, end int) Tensor {
				return r.ranks[j*d+i].shards[b.ID].sync.Slice(start, end)
			})
			for at := i; at < len(r.ranks); at += d {
				r.ranks[at].shards[b.ID].sync.copyBits(sum)
			}
		}
	}
}

// reduce fills to with the sum of n contributions; contribution gives a part of the one that is
// added at position j.
func (r *Ranks) reduce(c *optim.Collective, to Tensor, n int, contribution func(j, start, end int) Tensor) {
	if c.FP32Sum {
		r.reduceWide(c, to, n, contribution)
		return
	}
	d := to.DType
	factor := float32(1)
	switch {
	case c.Op == optim.Average:
		factor = d.Round(1 / float32(n))
	case c.Scale != 0:
		factor = float32(c.Scale) // it is a number there, not a tensor: not rounded
	}
	for start := 0; start < to.Len(); start += block {
		end := min(start+block, to.Len())
		sum := r.work[0][:end-start]
		for j := range n {
			t := contribution(j, start, end)
			if d == dtype.BF16 && !c.Divide {
				addBF16(sum, t.Halfs, factor, j == 0)
				continue
			}
			x := t.values(r.work[1])
			if c.Divide {
				x = divide(r.work[2][:len(x)], x, float32(n), d)
			}
			switch {
			case j == 0:
				multiply(sum, x, factor)
				d.RoundAll(sum)
			case d == dtype.FP32:
				addProduct(sum, x, factor)
			default:
				product := r.work[3][:len(x)]
				multiply(product, x, factor)
				d.RoundAll(product)
				addProduct(sum, product, 1)
				d.RoundAll(sum)
			}
		}
		if d == dtype.FP32 { // others have one NaN anyway
			dtype.CanonicalAll(sum)
		}
		to.Slice(start, end).Store(sum)
	}
}

// reduceWide is reduce with sums in fp32, rounded at the end.
func (r *Ranks) reduceWide(c *optim.Collective, to Tensor, n int, contribution func(j, start, end int) Tensor) {
	factor := float32(1)
	if c.Scale != 0 {
		factor = float32(c.Scale)
	}
	for start := 0; start < to.Len(); start += block {
		end := min(start+block, to.Len())
		sum := r.work[0][:end-start]
		clear(sum)
		for j := range n {
			product := r.work[2][:len(sum)]
			multiply(product, contribution(j, start, end).values(r.work[1]), factor)
			to.DType.RoundAll(product)
			addProduct(sum, product, 1)
		}
		dtype.CanonicalAll(sum)
		to.Slice(start, end).Store(sum)
	}
}

// SetTokens sets by how many tokens ScaleGrads divides.
func (r *Ranks) SetTokens(n int) { r.tokens = n }

// ScaleGrads multiplies every reduced gradient by the reciprocal of the number of tokens, rounding.
func (r *Ranks) ScaleGrads(*optim.GradScaling) {
	factor := float32(1 / float64(max(r.tokens, 1)))
	for n := range r.ranks {
		for id := range r.ranks[n].shards {
			grad := r.ranks[n].shards[id].Grad
			for start := 0; start < grad.Len(); start += block {
				part := grad.Slice(start, min(start+block, grad.Len()))
				x := part.values(r.work[0])
				multiply(x, x, factor)
				part.keep(x)
			}
		}
	}
}

// multiply sets dst to x times factor.
func multiply(dst, x []float32, factor float32) {
	for len(x) >= 4 && len(dst) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]float32)(x)
		d[0], d[1], d[2], d[3] = s[0]*factor, s[1]*factor, s[2]*factor, s[3]*factor
		dst, x = dst[4:], x[4:]
	}
	for i, v := range x {
		dst[i] = v * factor
	}
}

// addProduct adds x times factor to sum, in two roundings.
func addProduct(sum, x []float32, factor float32) {
	for len(x) >= 4 && len(sum) >= 4 {
		d, s := (*[4]float32)(sum), (*[4]float32)(x)
		d[0] += float32(s[0] * factor)
		d[1] += float32(s[1] * factor)
		d[2] += float32(s[2] * factor)
		d[3] += float32(s[3] * factor)
		sum, x = sum[4:], x[4:]
	}
	for i, v := range x {
		sum[i] += float32(v * factor)
	}
}

// addBF16 does in one pass what bf16 takes several for: products and sums are rounded to it. The first
// contribution begins the sum.
func addBF16(sum []float32, x []uint16, factor float32, first bool) {
	if first {
		for i, code := range x {
			sum[i] = dtype.RoundBF16(dtype.DecodeBF16(code) * factor)
		}
		return
	}
	for len(x) >= 4 && len(sum) >= 4 {
		d, s := (*[4]float32)(sum), (*[4]uint16)(x)
		d[0] = dtype.RoundBF16(d[0] + dtype.RoundBF16(dtype.DecodeBF16(s[0])*factor))
		d[1] = dtype.RoundBF16(d[1] + dtype.RoundBF16(dtype.DecodeBF16(s[1])*factor))
		d[2] = dtype.RoundBF16(d[2] + dtype.RoundBF16(dtype.DecodeBF16(s[2])*factor))
		d[3] = dtype.RoundBF16(d[3] + dtype.RoundBF16(dtype.DecodeBF16(s[3])*factor))
		sum, x = sum[4:], x[4:]
	}
	for i, code := range x {
		sum[i] = dtype.RoundBF16(sum[i] + dtype.RoundBF16(dtype.DecodeBF16(code)*factor))
	}
}

// divide sets dst to x divided by n, rounded to d.
func divide(dst, x []float32, n float32, d dtype.DType) []float32 {
	for i, v := range x {
		dst[i] = v / n
	}
	d.RoundAll(dst)
	return dst
}
