package oracle

import (
	"fmt"
	"math"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim/arrays"
)

// fastTolerance is how far one step of a build with fast math or contraction may lie from IEEE
// arithmetic: this part of the update of an fp32 main parameter, as measured on the real kernel, or
// one last place of the parameter where that is more. Moments are equal, but in L2 mode, where the
// scaled gradient itself is contracted.
const fastTolerance = 3.3e-5

// deviation sums up how a build differs from IEEE arithmetic.
type deviation struct {
	params, differ int     // elements of main parameters; of those unequal
	update         float64 // largest difference as a part of the update, where it is more than a last place
	moments        int     // unequal elements of moments and of 16-bit states, and scales
	model          int     // unequal elements of model parameters
}

// String says it in words.
func (d deviation) String() string {
	if d.differ+d.moments+d.model == 0 {
		return "equal step by step"
	}
	return fmt.Sprintf("step by step %d of %d main parameters differ, by one last place or at most %.2g of the update (tolerance %.2g), and %d states and %d model parameters",
		d.differ, d.params, d.update, fastTolerance, d.moments, d.model)
}

// compareSteps repeats each recorded step from the recorded state before it.
func (n *numerics) compareSteps(build string, before *stateRecord, steps []stateRecord) (deviation, error) {
	var d deviation
	for step := range steps {
		at, want := fmt.Sprintf("%s[%d]", build, step), &steps[step]
		if err := n.compareShape(at, want); err != nil {
			return d, err
		}
		if err := n.restore(at, before); err != nil {
			return d, err
		}
		if err := n.step(step, at, want); err != nil {
			return d, err
		}
		for rank := range want.Ranks {
			path := fmt.Sprintf("%s.ranks[%d]", at, rank)
			for id := range want.Ranks[rank].Buckets {
				if err := n.deviate(&d, fmt.Sprintf("%s.buckets[%d]", path, id), rank, bucket.ID(id), before, want); err != nil {
					return d, err
				}
			}
			if err := n.scalesNear(&d, path, rank, &want.Ranks[rank]); err != nil {
				return d, err
			}
			for p, digits := range want.ModelParams {
				path := fmt.Sprintf("%s.model_params[%d]", at, p)
				t := n.ranks.Param(rank, bucket.ParamID(p))
				previous, err := decodeLike(path, t, before.ModelParams[p])
				if err != nil {
					return d, err
				}
				count := &d.model
				if rank > 0 {
					count = new(int) // the same on every rank
				}
				wanted, err := decodeLike(path, t, digits)
				if err != nil {
					return d, err
				}
				if err := near(path, t, wanted, n.synced(t.DType), func(i int, got, want float32) bool {
					return withinUpdate(got, want, value(previous, i))
				}, count); err != nil {
					return d, err
				}
			}
		}
		before = want
	}
	return d, nil
}

// deviate compares one shard.
func (n *numerics) deviate(d *deviation, path string, rank int, id bucket.ID, before, want *stateRecord) error {
	s := n.ranks.Shard(rank, id)
	w, b := &want.Ranks[rank].Buckets[id], &before.Ranks[rank].Buckets[id]
	for _, f := range []struct {
		name   string
		got    arrays.Tensor
		digits string
	}{{"m", s.ExpAvg, w.ExpAvg}, {"v", s.ExpAvgSq, w.ExpAvgSq}} {
		wanted, err := n.decodeShard(path+"."+f.name, f.got, f.digits)
		if err != nil {
			return err
		}
		largest := 0.0
		for i := range wanted.Len() {
			largest = max(largest, math.Abs(float64(value(wanted, i))))
		}
		if err := near(path+"."+f.name, f.got, wanted, 1, func(_ int, got, want float32) bool {
			// The sum of gradient and decay may cancel: its error is that of its parts.
			return n.l2() && math.Abs(float64(got)-float64(want)) <= 4e-6*math.Abs(float64(want))+1e-6*largest
		}, &d.moments); err != nil {
			return err
		}
	}
	switch {
	case w.Remainders != nil:
		return n.deviateRemainders(d, path+".rem", rank, id, before, want)
	case w.Param == nil:
		return nil
	}
	previous, err := n.decodeShard(path+".p", s.Param, *b.Param)
	if err != nil {
		return err
	}
	wanted, err := n.decodeShard(path+".p", s.Param, *w.Param)
	if err != nil {
		return err
	}
	count := &d.moments
	if s.Param.DType == dtype.FP32 {
		count = &d.differ
		d.params += s.Param.Len()
	}
	return near(path+".p", s.Param, wanted, 1, func(i int, got, want float32) bool {
		return d.within(got, want, value(previous, i))
	}, count)
}

// within applies the tolerance to an fp32 main parameter and notes how far it lies off.
func (d *deviation) within(got, want, before float32) bool {
	if apart(got, want) > 1 {
		d.update = max(d.update, math.Abs(float64(got)-float64(want))/math.Abs(float64(want)-float64(before)))
	}
	return withinUpdate(got, want, before)
}

// deviateRemainders compares main parameters that bf16 parameters and remainders encode together.
func (n *numerics) deviateRemainders(d *deviation, path string, rank int, id bucket.ID, before, want *stateRecord) error {
	b := &n.layout.Buckets[id]
	got := n.ranks.Shard(rank, id).Remainders
	wanted, err := n.decodeShard(path, got, *want.Ranks[rank].Buckets[id].Remainders)
	if err != nil {
		return err
	}
	previous, err := n.decodeShard(path, got, *before.Ranks[rank].Buckets[id].Remainders)
	if err != nil {
		return err
	}
	for _, f := range b.Fragments {
		r, ok := apex.Local(f, b.Shard, n.layout.Options.DistributedRank(rank))
		if !ok {
			continue
		}
		param := n.ranks.Param(rank, f.Param)
		wantParam, err := decodeLike(path, param, want.ModelParams[f.Param])
		if err != nil {
			return err
		}
		previousParam, err := decodeLike(path, param, before.ModelParams[f.Param])
		if err != nil {
			return err
		}
		for i := range int(r.Shard.Len()) {
			at, inParam := int(r.Shard.Start)+i, int(r.ShardParam.Start)+i
			main := func(param, remainders arrays.Tensor) float32 {
				return math.Float32frombits(dtype.Join(param.Halfs[inParam], remainders.Halfs[at]))
			}
			g, w := main(param, got), main(wantParam, wanted)
			d.params++
			if math.Float32bits(g) == math.Float32bits(w) {
				continue
			}
			d.differ++
			if !d.within(g, w, main(previousParam, previous)) {
				return fmt.Errorf("%s[%d]: got main parameter %s, want %s or near it", path, at, digits(g), digits(w))
			}
		}
	}
	return nil
}

// l2 reports whether decay is added to gradients.
func (n *numerics) l2() bool {
	mode, ok := n.c.Optim["adam_w_mode"]
	return ok && string(mode) == "false"
}

// withinUpdate applies fastTolerance to a parameter.
func withinUpdate(got, want, before float32) bool {
	return apart(got, want) <= 1 ||
		math.Abs(float64(got)-float64(want)) <= fastTolerance*math.Abs(float64(want)-float64(before))
}

// synced returns by how much neighbouring codes of a parameter differ: by 1, or more where only the
// most significant bytes are gathered.
func (n *numerics) synced(d dtype.DType) uint32 {
	sync := n.layout.Options.ParamSync
	if sync.Float() || sync.Size() >= d.Size() {
		return 1
	}
	return 1 << (8 * (d.Size() - sync.Size()))
}

// near compares a tensor: unequal elements are counted, and must lie within tolerance or, in 16 and
// 8 bits, beside each other, one step apart.
func near(path string, got, want arrays.Tensor, step uint32, tolerable func(i int, got, want float32) bool, count *int) error {
	for i := range got.Len() {
		g, w := got.Bits(i), want.Bits(i)
		if g == w {
			continue
		}
		*count++
		if (got.DType != dtype.FP32 || step > 1) && (g == w+step || w == g+step) || tolerable(i, value(got, i), value(want, i)) {
			continue
		}
		width := 2 * int(got.DType.Size())
		return fmt.Errorf("%s[%d]: got %0*x, want %0*x or near it", path, i, width, g, width, w)
	}
	return nil
}

// value returns an element as a number; codes of FP8 and remainders have no tolerance of their own.
func value(t arrays.Tensor, i int) float32 {
	switch t.DType {
	case dtype.FP32:
		return t.Words[i]
	case dtype.BF16:
		return dtype.DecodeBF16(t.Halfs[i])
	case dtype.FP16:
		return dtype.DecodeFP16(t.Halfs[i])
	}
	return float32(t.Bits(i))
}

// scalesNear compares the scales of states and FP8 parameters, which follow largest magnitudes.
func (n *numerics) scalesNear(d *deviation, path string, rank int, want *rankRecord) error {
	if err := d.rowsNear(path+".scales", n.scaleRows(rank), want.Scales); err != nil {
		return err
	}
	return d.rowsNear(path+".fp8", n.fp8Rows(rank), want.FP8)
}

// rowsNear compares rows of numbers, which must be equal, and digits of values.
func (d *deviation) rowsNear(path string, got, want [][5]any) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: got %d rows, want %d", path, len(got), len(want))
	}
	for i := range got {
		for j, cell := range got[i] {
			ok := show(cell) == show(want[i][j])
			if digits, isText := cell.(string); isText && !ok {
				d.moments++
				ok = digitsNear(digits, text(want[i][j]))
			}
			if !ok {
				return fmt.Errorf("%s[%d][%d]: got %s, want %s or near it", path, i, j, show(cell), show(want[i][j]))
			}
		}
	}
	return nil
}

// digitsNear reports whether values are equal, beside each other, or apart by little.
func digitsNear(got, want string) bool {
	g, err := decodeFloats(got)
	if err != nil {
		return false
	}
	w, err := decodeFloats(want)
	if err != nil || len(g) != len(w) {
		return false
	}
	for i := range g {
		if apart(g[i], w[i]) > 1 && !(math.Abs(float64(g[i])-float64(w[i])) <= 1e-5*math.Abs(float64(w[i]))) {
			return false
		}
	}
	return true
}
