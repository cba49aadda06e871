package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim/arrays"
)

// stateRecord is the state of all ranks after a step. Tensors are the digits of their codes, one
// element after the other.
type stateRecord struct {
	ModelParams []string     `json:"model_params"`
	Ranks       []rankRecord `json:"ranks"`
}

type rankRecord struct {
	Buckets   []bucketRecord `json:"buckets"`
	Scales    [][5]any       `json:"scales"` // parameter, bucket, scales of param, exp_avg, exp_avg_sq
	GradNorm  *string        `json:"grad_norm"`
	GradScale *string        `json:"grad_scale"`
	FP8       [][5]any       `json:"fp8"`                    // parameter, _scale_inv, scale, scale_inv, amax history
	FP8Before [][3]any       `json:"fp8_after_scale_update"` // parameter, scale, amax history; before the step
}

type bucketRecord struct {
	Param      *string `json:"p"`
	ExpAvg     string  `json:"m"`
	ExpAvgSq   string  `json:"v"`
	Remainders *string `json:"rem"`
}

// readStates reads the states after each step of a build.
func (c *NumericsCase) readStates(build string, records []json.RawMessage) ([]stateRecord, error) {
	if len(records) != c.Steps {
		return nil, fmt.Errorf("%s: got %d steps, want case.steps, %d", build, len(records), c.Steps)
	}
	states := make([]stateRecord, len(records))
	for step, raw := range records {
		s, err := c.readState(fmt.Sprintf("%s[%d]", build, step), raw, step)
		if err != nil {
			return nil, err
		}
		states[step] = *s
	}
	return states, nil
}

// readState reads the state after a step; -1: before the first. It has no other fields than it should.
func (c *NumericsCase) readState(at string, raw json.RawMessage, step int) (*stateRecord, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	s := &stateRecord{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	for rank := range s.Ranks {
		r := &s.Ranks[rank]
		for _, f := range []struct {
			key       string
			has, want bool
		}{
			{"grad_norm", r.GradNorm != nil, c.Clip != nil && step >= 0},
			{"grad_scale", r.GradScale != nil, c.Clip != nil && step >= 0},
			{"fp8_after_scale_update", r.FP8Before != nil, len(c.FP8) > 0 && step > 0},
		} {
			if f.want && !f.has {
				return nil, fmt.Errorf("%s.ranks[%d].%s: got nothing in the case, want it", at, rank, f.key)
			}
		}
	}
	return s, nil
}

// decodeFloats reads fp32 values from the digits of their bits.
func decodeFloats(digits string) ([]float32, error) {
	t, err := decodeTensor(dtype.FP32, digits)
	return t.Words, err
}

// decodeTensor reads a tensor from the digits of its codes.
func decodeTensor(d dtype.DType, digits string) (arrays.Tensor, error) {
	width := 2 * int(d.Size())
	t := arrays.NewTensor(d, len(digits)/width)
	if len(digits)%width != 0 {
		return t, fmt.Errorf("got %d digits, want a multiple of %d", len(digits), width)
	}
	for i := range t.Len() {
		bits, err := strconv.ParseUint(digits[i*width:(i+1)*width], 16, 32)
		if err != nil {
			return t, fmt.Errorf("element %d: got %q, want %d hexadecimal digits", i, digits[i*width:(i+1)*width], width)
		}
		t.SetBits(i, uint32(bits))
	}
	return t, nil
}

// compareTensors reports the first element that differs.
func compareTensors(path string, got, want arrays.Tensor) error {
	width := 2 * int(got.DType.Size())
	for i := range got.Len() {
		if g, w := got.Bits(i), want.Bits(i); g != w {
			return fmt.Errorf("%s[%d]: got %0*x, want %0*x", path, i, width, g, width, w)
		}
	}
	return nil
}

// bucketKeys are what a numerics case tells of a bucket.
var bucketKeys = words("bucket_size shard_size filled_size dtype grad_sync_dtype param_sync_dtype fragments")

// compareLayout compares what a numerics case tells of its buckets.
func (n *numerics) compareLayout(reference []json.RawMessage) error {
	if len(reference) != len(n.layout.Buckets) {
		return fmt.Errorf("layout: got %d buckets, want %d", len(n.layout.Buckets), len(reference))
	}
	for id, raw := range reference {
		whole := describeBucket(&n.layout.Buckets[id])
		data, err := json.Marshal(whole)
		if err != nil {
			return err
		}
		got, err := decodeAny(data)
		if err != nil {
			return err
		}
		want, err := decodeAny(raw)
		if err != nil {
			return err
		}
		for key := range got.(map[string]any) {
			if !slices.Contains(bucketKeys, key) {
				delete(got.(map[string]any), key)
			}
		}
		if err := difference(fmt.Sprintf("layout[%d]", id), got, want); err != nil {
			return err
		}
	}
	return nil
}

// compareShard compares a shard of a rank with the digits of a whole one.
func (n *numerics) compareShard(path string, got arrays.Tensor, digits string) error {
	want, err := n.decodeShard(path, got, digits)
	if err != nil {
		return err
	}
	return compareTensors(path, got, want)
}

// compareReduced compares the gradient shards of all ranks.
func (n *numerics) compareReduced(at string, ranks [][]string) error {
	if len(ranks) != n.ranks.Size() {
		return fmt.Errorf("%s: got %d ranks, want %d", at, n.ranks.Size(), len(ranks))
	}
	for rank, shards := range ranks {
		if len(shards) != len(n.layout.Buckets) {
			return fmt.Errorf("%s[%d]: got %d buckets, want %d", at, rank, len(n.layout.Buckets), len(shards))
		}
		for id, digits := range shards {
			path := fmt.Sprintf("%s[%d][%d]", at, rank, id)
			if err := n.compareShard(path, n.ranks.Shard(rank, bucket.ID(id)).Grad, digits); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareState compares the state of every rank to the bit.
func (n *numerics) compareState(at string, want *stateRecord) error {
	if err := n.compareShape(at, want); err != nil {
		return err
	}
	for rank := range want.Ranks {
		path := fmt.Sprintf("%s.ranks[%d]", at, rank)
		w := &want.Ranks[rank]
		if err := n.compareShards(path, rank, w); err != nil {
			return err
		}
		if err := n.compareRank(path, rank, w); err != nil {
			return err
		}
		for p, digits := range want.ModelParams {
			path := fmt.Sprintf("%s.model_params[%d]", at, p)
			got := n.ranks.Param(rank, bucket.ParamID(p))
			wanted, err := decodeLike(path, got, digits)
			if err != nil {
				return err
			}
			if err := compareTensors(path, got, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareShards compares main parameters and moments.
func (n *numerics) compareShards(path string, rank int, want *rankRecord) error {
	for id := range want.Buckets {
		w, s := &want.Buckets[id], n.ranks.Shard(rank, bucket.ID(id))
		for _, f := range []struct {
			name string
			got  arrays.Tensor
			want *string
		}{{"p", s.Param, w.Param}, {"m", s.ExpAvg, &w.ExpAvg}, {"v", s.ExpAvgSq, &w.ExpAvgSq}, {"rem", s.Remainders, w.Remainders}} {
			if f.want == nil {
				continue
			}
			if err := n.compareShard(fmt.Sprintf("%s.buckets[%d].%s", path, id, f.name), f.got, *f.want); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareRank compares norm, gradient scale and the scales of states and FP8 parameters.
func (n *numerics) compareRank(path string, rank int, want *rankRecord) error {
	scales := n.scaleRows(rank)
	if len(scales) != len(want.Scales) {
		return fmt.Errorf("%s.scales: got %d rows, want %d", path, len(scales), len(want.Scales))
	}
	for i, row := range scales {
		if err := sameRow(fmt.Sprintf("%s.scales[%d]", path, i), row[:], want.Scales[i][:]); err != nil {
			return err
		}
	}
	rows := n.fp8Rows(rank)
	if len(want.FP8) != len(rows) {
		return fmt.Errorf("%s.fp8: got %d rows, want %d", path, len(rows), len(want.FP8))
	}
	for i, row := range rows {
		if err := sameRow(fmt.Sprintf("%s.fp8[%d]", path, i), row[:], want.FP8[i][:]); err != nil {
			return err
		}
	}
	return nil
}

// sameRow compares rows of numbers and digits.
func sameRow(path string, got, want []any) error {
	for i := range got {
		if show(got[i]) != show(want[i]) {
			return fmt.Errorf("%s[%d]: got %s, want %s", path, i, show(got[i]), show(want[i]))
		}
	}
	return nil
}

func digits(x float32) string { return fmt.Sprintf("%08x", math.Float32bits(x)) }

// scaleRows lists the scales of a rank's fragments, as cases write them.
func (n *numerics) scaleRows(rank int) (rows [][5]any) {
	for id := range n.layout.Buckets {
		s := n.ranks.Shard(rank, bucket.ID(id))
		for i, f := range n.layout.Buckets[id].Fragments {
			if s.Scales == nil || !n.owns(rank, bucket.ID(id), i) {
				continue
			}
			c := s.Scales[i]
			rows = append(rows, [5]any{f.Param, id, digits(c.Param), digits(c.ExpAvg), digits(c.ExpAvgSq)})
		}
	}
	return rows
}

// fp8Rows lists the scales of a rank's FP8 parameters after a step.
func (n *numerics) fp8Rows(rank int) (rows [][5]any) {
	for p, fp8 := range n.c.FP8 {
		if fp8 == 0 {
			continue
		}
		m := n.ranks.FP8Meta(rank, bucket.ParamID(p))
		rows = append(rows, [5]any{p, digits(m.ScaleInv), digits(m.Scale), digits(1 / m.Scale), history(m.Amax)})
	}
	return rows
}

func history(amax []float32) (s string) {
	for _, a := range amax {
		s += digits(a)
	}
	return s
}

// compareScales compares the scales with which a step will cast.
func (n *numerics) compareScales(at string, want *stateRecord) error {
	for rank := range want.Ranks {
		if rank >= n.ranks.Size() {
			return fmt.Errorf("%s: got %d ranks, want %d", at, n.ranks.Size(), len(want.Ranks))
		}
		if got, want := n.fp8Rows(rank), want.Ranks[rank].FP8Before; len(got) != len(want) {
			return fmt.Errorf("%s.ranks[%d].fp8_after_scale_update: got %d rows, want %d", at, rank, len(got), len(want))
		}
		for i, row := range want.Ranks[rank].FP8Before {
			path := fmt.Sprintf("%s.ranks[%d].fp8_after_scale_update[%d]", at, rank, i)
			p, ok := row[0].(float64)
			if !ok || p < 0 || int(p) >= len(n.c.FP8) || n.c.FP8[int(p)] == 0 {
				return fmt.Errorf("%s: got %s, want a row of an FP8 parameter", path, show(row))
			}
			m := n.ranks.FP8Meta(rank, bucket.ParamID(p))
			if err := sameRow(path, []any{p, digits(m.Scale), history(m.Amax)}, row[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// useRecordedScale compares the gradient norm and the gradient scale, and goes on with the scale that
// the real code had. Its norm takes an approximate root of each shard's sum, which moves the norm by
// a last place or two in every build.
func (n *numerics) useRecordedScale(at string, want *stateRecord) error {
	const places = 4
	for rank := range want.Ranks {
		w := &want.Ranks[rank]
		for _, f := range []struct {
			name string
			got  float32
			want *string
		}{{"grad_norm", n.ranks.GradNorm(), w.GradNorm}, {"grad_scale", n.ranks.GradScale(), w.GradScale}} {
			if f.want == nil || f.name == "grad_norm" && n.c.Clip == nil { // nothing needed a norm here
				continue
			}
			path := fmt.Sprintf("%s.ranks[%d].%s", at, rank, f.name)
			x, err := decodeFloats(*f.want)
			if err != nil || len(x) != 1 {
				return fmt.Errorf("%s: got %s, want 8 hexadecimal digits", path, show(*f.want))
			}
			if apart(f.got, x[0]) > places {
				return fmt.Errorf("%s: got %s, want %s within %d last places", path, digits(f.got), *f.want, places)
			}
			if rank == 0 && f.want == w.GradScale {
				n.ranks.SetGradScale(x[0])
			}
		}
	}
	return nil
}

// apart counts the fp32 values between two, as steps from one to the other. NaNs are equal.
func apart(x, y float32) int64 {
	order := func(v float32) int64 {
		b := int64(math.Float32bits(dtype.Canonical(v)))
		if b>>31 == 1 {
			return -(b &^ (1 << 31))
		}
		return b
	}
	d := order(x) - order(y)
	return max(d, -d)
}
