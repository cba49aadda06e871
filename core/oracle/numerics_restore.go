package oracle

import (
	"fmt"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/optim/arrays"
)

// compareShape reports whether a record has the tensors that this case's ranks have.
func (n *numerics) compareShape(at string, s *stateRecord) error {
	if len(s.ModelParams) != len(n.c.Shapes) || len(s.Ranks) != n.ranks.Size() {
		return fmt.Errorf("%s: got %d parameters on %d ranks, want %d on %d", at, len(n.c.Shapes), n.ranks.Size(), len(s.ModelParams), len(s.Ranks))
	}
	for rank := range s.Ranks {
		r := &s.Ranks[rank]
		if len(r.Buckets) != len(n.layout.Buckets) {
			return fmt.Errorf("%s.ranks[%d]: got %d buckets, want %d", at, rank, len(n.layout.Buckets), len(r.Buckets))
		}
		for id := range r.Buckets {
			b, l := &r.Buckets[id], &n.layout.Buckets[id]
			for _, f := range []struct {
				name   string
				stored bool
				record *string
			}{{"p", l.StoresParams, b.Param}, {"rem", l.StoresRemainders, b.Remainders}} {
				if f.stored != (f.record != nil) {
					return fmt.Errorf("%s.ranks[%d].buckets[%d].%s: got it stored %t, want %t", at, rank, id, f.name, f.stored, f.record != nil)
				}
			}
		}
	}
	return nil
}

// restore puts all ranks into a recorded state.
func (n *numerics) restore(at string, s *stateRecord) error {
	if err := n.compareShape(at, s); err != nil {
		return err
	}
	for rank := range s.Ranks {
		r := &s.Ranks[rank]
		path := fmt.Sprintf("%s.ranks[%d]", at, rank)
		for p, digits := range s.ModelParams {
			to := n.ranks.Param(rank, bucket.ParamID(p))
			from, err := decodeLike(at, to, digits)
			if err != nil {
				return err
			}
			setBits(to, from)
		}
		for id := range r.Buckets {
			b, shard := &r.Buckets[id], n.ranks.Shard(rank, bucket.ID(id))
			for _, f := range []struct {
				to     arrays.Tensor
				digits *string
			}{{shard.Param, b.Param}, {shard.ExpAvg, &b.ExpAvg}, {shard.ExpAvgSq, &b.ExpAvgSq}, {shard.Remainders, b.Remainders}} {
				if f.digits == nil {
					continue
				}
				if err := n.restoreShard(path, f.to, *f.digits); err != nil {
					return err
				}
			}
		}
		if err := n.restoreScales(path, rank, r); err != nil {
			return err
		}
	}
	return nil
}

// restoreShard sets what is held of a shard.
func (n *numerics) restoreShard(path string, to arrays.Tensor, digits string) error {
	from, err := n.decodeShard(path, to, digits)
	if err == nil {
		setBits(to, from)
	}
	return err
}

func setBits(to, from arrays.Tensor) {
	for i := range to.Len() {
		to.SetBits(i, from.Bits(i))
	}
}

// decodeShard reads a whole shard of the format of t, of which t may hold only the beginning: then
// the rest must be zeros. It returns the part that t holds.
func (n *numerics) decodeShard(path string, t arrays.Tensor, digits string) (arrays.Tensor, error) {
	u, err := decodeTensor(t.DType, digits)
	if err != nil {
		return u, fmt.Errorf("%s: %w", path, err)
	}
	if u.Len() != int(n.layout.ShardSize) {
		return u, fmt.Errorf("%s: got %d elements, want %d", path, n.layout.ShardSize, u.Len())
	}
	for i := t.Len(); i < u.Len(); i++ {
		if u.Bits(i) != 0 {
			return u, fmt.Errorf("%s[%d]: got 0 after the last fragment, want %x", path, i, u.Bits(i))
		}
	}
	return u.Slice(0, t.Len()), nil
}

// decodeLike reads a tensor that is to have the format and length of t.
func decodeLike(path string, t arrays.Tensor, digits string) (arrays.Tensor, error) {
	u, err := decodeTensor(t.DType, digits)
	if err != nil {
		return u, fmt.Errorf("%s: %w", path, err)
	}
	if u.Len() != t.Len() {
		return u, fmt.Errorf("%s: got %d elements, want %d", path, t.Len(), u.Len())
	}
	return u, nil
}

// restoreScales sets the scales of a rank's states and FP8 parameters from their rows.
func (n *numerics) restoreScales(path string, rank int, r *rankRecord) error {
	numbers := func(name string, i int, row [5]any, lengths ...int) ([][]float32, error) {
		var list [][]float32
		for j, want := range lengths {
			x, err := decodeFloats(text(row[5-len(lengths)+j]))
			if err != nil || len(x) != want {
				return nil, fmt.Errorf("%s.%s[%d]: got %s, want digits of %d values", path, name, i, show(row), want)
			}
			list = append(list, x)
		}
		return list, nil
	}
	if got := len(n.scaleRows(rank)); got != len(r.Scales) {
		return fmt.Errorf("%s.scales: got %d rows, want %d", path, got, len(r.Scales))
	}
	row := 0
	for id := range n.layout.Buckets {
		shard := n.ranks.Shard(rank, bucket.ID(id))
		for i := range shard.Scales {
			if !n.owns(rank, bucket.ID(id), i) {
				continue
			}
			x, err := numbers("scales", row, r.Scales[row], 1, 1, 1)
			if err != nil {
				return err
			}
			shard.Scales[i] = arrays.Scales{Param: x[0][0], ExpAvg: x[1][0], ExpAvgSq: x[2][0]}
			row++
		}
	}
	rows := n.fp8Rows(rank)
	if len(rows) != len(r.FP8) {
		return fmt.Errorf("%s.fp8: got %d rows, want %d", path, len(rows), len(r.FP8))
	}
	for i, got := range rows {
		m := n.ranks.FP8Meta(rank, bucket.ParamID(got[0].(int)))
		x, err := numbers("fp8", i, r.FP8[i], 1, 1, 1, len(m.Amax))
		if err != nil {
			return err
		}
		m.ScaleInv, m.Scale = x[0][0], x[1][0]
		copy(m.Amax, x[3])
	}
	return nil
}

// owns reports whether a rank holds a part of a fragment.
func (n *numerics) owns(rank int, id bucket.ID, fragment int) bool {
	b := &n.layout.Buckets[id]
	_, ok := apex.Local(b.Fragments[fragment], b.Shard, n.layout.Options.DistributedRank(rank))
	return ok
}
