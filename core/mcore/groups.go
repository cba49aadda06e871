package mcore

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
)

// buildGroups forms the bucket groups of a chunk, of dense and of expert buffers apart.
func (l *Layout) buildGroups(index int) {
	c := &l.Chunks[index]
	c.Groups[0] = len(l.Groups)
	for _, expert := range []bool{false, true} {
		first := len(l.Groups)
		for _, ids := range l.grouped(c, expert) {
			l.addGroup(index, expert, first, ids)
		}
		if !expert {
			c.Dense = len(l.Groups)
		}
	}
	c.Groups[1] = len(l.Groups)
}

// grouped lists the buckets of each group. With bucketing disabled one group has everything. Else a
// bucket is a group, but where quantized weights exist all others join the last of their groups, so
// that the small collectives go with the last large one.
func (l *Layout) grouped(c *Chunk, expert bool) [][]bucket.ID {
	var quantized, plain []bucket.ID
	var all []bucket.ID
	for i := range c.Buffers {
		b := &c.Buffers[i]
		if b.Expert != expert {
			continue
		}
		for k := range b.Buckets {
			id := b.First + bucket.ID(k)
			all = append(all, id)
			if b.Param == dtype.U8 {
				quantized = append(quantized, id)
			} else {
				plain = append(plain, id)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if c.Bucketing.Disabled {
		return [][]bucket.ID{all}
	}
	var groups [][]bucket.ID
	for _, id := range quantized {
		groups = append(groups, []bucket.ID{id})
	}
	if n := len(groups); n > 0 && !l.Options.FP32Accumulation {
		groups[n-1] = append(groups[n-1], plain...)
		return groups
	}
	for _, id := range plain {
		groups = append(groups, []bucket.ID{id})
	}
	return groups
}

// addGroup appends a group to the list that begins at first.
func (l *Layout) addGroup(chunk int, expert bool, first int, ids []bucket.ID) {
	n := len(l.Groups)
	g := Group{Chunk: chunk, Expert: expert, Buckets: slices.Clone(ids), Next: -1, Previous: -1}
	if n > first {
		if l.Options.OverlapParamGather {
			g.Next = n - 1
		}
		if l.Options.FP32Accumulation {
			g.Previous = n - 1
		}
	}
	for _, id := range ids {
		l.Places[id].Group = n
		for _, f := range l.Buckets[id].Fragments {
			l.owner[f.Param] = int32(n)
			g.Params++
		}
	}
	l.Groups = append(l.Groups, g)
}
