package mcore

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/units"
)

// managed reports whether a layer-wise optimizer updates the parameter: a matrix that is neither the
// word embedding nor the output layer.
func (p *Param) managed() bool {
	return len(p.Shape) == 2 && p.Role != model.WordEmbedding && p.Role != model.OutputLayer
}

// cost estimates the work of orthogonalizing a matrix.
func (p *Param) cost() int64 {
	m, n := p.Shape[0], p.Shape[1]
	return max(m, n) * min(m, n) * min(m, n)
}

// placeLayerWise is the layout under a layer-wise optimizer: each matrix lies in one shard, so that
// one rank has all of it. size is a soft minimum: a bucket goes on while its padding takes more.
func (l *Layout) placeLayerWise(b *Buffer, list []bucket.ParamID, size units.Elems) {
	g := b.GroupSize
	align := lcm(paramAlign, l.divisor(g)/units.Elems(g))
	costs := make([]int64, g) // of each shard, over all buckets
	loads := make([]units.Elems, g)
	var members []bucket.ParamID
	var numel, largest, start units.Elems
	flush := func() {
		start = l.fillShards(b, members, costs, start, numel, align)
		members, numel, largest = members[:0], 0, 0
		clear(loads)
	}
	for i := len(list) - 1; i >= 0; i-- {
		n := l.Params[list[i]].Numel
		full := max(size, units.Elems(0.9*float64(g)*float64(largest)))
		if size > 0 && len(members) > 0 && numel >= full &&
			roundUp(slices.Min(loads), paramAlign)+n > roundUp(slices.Max(loads), align) {
			flush()
		}
		members = append(members, list[i])
		numel += n
		largest = max(largest, n)
		least := 0
		for s := range loads {
			if loads[s] < loads[least] {
				least = s
			}
		}
		loads[least] = roundUp(loads[least], paramAlign) + n
	}
	if len(members) > 0 {
		flush()
	}
}

// fillShards puts the members of a bucket, in reverse model order, into its shards: the costliest
// first, each on the shard with the least cost so far that has room, and appends the bucket.
func (l *Layout) fillShards(b *Buffer, members []bucket.ParamID, costs []int64, start, numel, align units.Elems) (end units.Elems) {
	g := len(costs)
	room := 1.3 * float64(numel) / float64(g)
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := l.Params[members[i]].cost(), l.Params[members[j]].cost()
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	cursors := make([]units.Elems, g)
	shard := make([]int, len(members))
	inShard := make([]units.Elems, len(members))
	for _, i := range order {
		q := &l.Params[members[i]]
		best, shortest := -1, 0
		for s := range g {
			if cursors[s] < cursors[shortest] {
				shortest = s
			}
			if float64(roundUp(cursors[s], paramAlign)+q.Numel) <= room && (best < 0 || costs[s] < costs[best]) {
				best = s
			}
		}
		if best < 0 {
			best = shortest
		}
		shard[i], inShard[i] = best, roundUp(cursors[best], paramAlign)
		cursors[best] = inShard[i] + q.Numel
		costs[best] += q.cost()
	}
	size := roundUp(slices.Max(cursors), align)
	first := len(b.Params)
	for i, p := range members {
		at := start + units.Elems(shard[i])*size + inShard[i]
		b.Params = append(b.Params, Placed{
			Param: p, Range: bucket.Range{Start: at, End: at + l.Params[p].Numel}, Bucket: len(b.Buckets),
		})
	}
	end = start + units.Elems(g)*size
	b.Buckets = append(b.Buckets, Bucket{
		Range: bucket.Range{Start: start, End: end}, Unpadded: numel, Params: [2]int{first, len(b.Params)},
	})
	b.Unpadded += numel
	return end
}
