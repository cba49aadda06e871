package lab

import (
	"math"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
)

// scratch holds one tensor's values.
type scratch struct{ main, model, reduced, state []float32 }

func (s *scratch) grow(stage *model.Stage) {
	n := 0
	for p := range stage.Params {
		n = max(n, int(stage.Params[p].Numel))
	}
	s.main, s.model = make([]float32, n), make([]float32, n)
	s.reduced, s.state = make([]float32, n), make([]float32, n)
}

// beyondE4M3 is the largest magnitude that rounds to 448 without being clipped.
const beyondE4M3 = 464

// measure fills in what the step did to a tensor and returns the sum of the squares of its gradient,
// without the loss scale.
func (r *run) measure(p bucket.ParamID, t *TensorRun, skipped bool) (squares float64) {
	q := &r.stage.Params[p]
	n := int(q.Numel)
	main, values := r.work.main[:n], r.work.model[:n]
	r.is.Params[p].Param.Load(main)
	r.after.ranks.ParamValues(0, p, values)
	amax, scale := float32(0), float32(1)
	if q.FP8 {
		meta := r.after.ranks.FP8Meta(0, p)
		scale = meta.Scale
		for _, a := range meta.Amax {
			t.AmaxMax = max(t.AmaxMax, Value(a))
		}
	}
	saturated, flushed := 0, 0
	for i, x := range main {
		if !finite(x) || !finite(values[i]) {
			r.bad = true
		}
		a := max(x, -x)
		if a > amax {
			amax = a
		}
		switch {
		case clipped(q.FP8, x, scale, values[i]):
			saturated++
		case x != 0 && values[i] == 0:
			flushed++
		}
	}
	t.Amax, t.Scale = Value(amax), Value(scale)
	t.Saturated, t.Flushed = share(saturated, n), share(flushed, n)

	overflow, lost := 0, 0
	least, most := rounds(q.DType)
	for rank := range r.grads {
		for _, g := range r.grads[rank][p] {
			switch b := math.Float32bits(g) &^ (1 << 31); {
			case b > most:
				overflow++
			case b <= least && b > 0:
				lost++
			}
		}
	}
	t.GradOverflow, t.GradFlushed = share(overflow, n*len(r.grads)), share(lost, n*len(r.grads))

	r.bad = r.bad || overflow > 0
	reduced, state := r.work.reduced[:n], r.work.state[:n]
	r.after.reduced(p, reduced)
	inverse := 1 / float64(r.scaler.scale)
	for _, g := range reduced {
		x := float64(float64(g) * inverse)
		squares += float64(x * x)
	}
	if skipped {
		return squares
	}
	t.MFlushed = r.zeros(r.is.Params[p].ExpAvg.Load, state, reduced)
	t.VFlushed = r.zeros(r.is.Params[p].ExpAvgSq.Load, state, reduced)
	return squares
}

// clipped reports whether a main parameter lies beyond the largest number of the model's format, not only
// rounds to it: in FP8 with its scale. Elsewhere it has become infinite.
func clipped(fp8 bool, main, scale, value float32) bool {
	if fp8 {
		x := float32(main * scale)
		return max(x, -x) > beyondE4M3
	}
	return finite(main) && !finite(value)
}

// clippedIn counts the clipped elements of a parameter.
func (r *run) clippedIn(p bucket.ParamID) (n int) {
	q := &r.stage.Params[p]
	main, values := r.work.main[:q.Numel], r.work.model[:q.Numel]
	r.is.Params[p].Param.Load(main)
	r.after.ranks.ParamValues(0, p, values)
	scale := float32(1)
	if q.FP8 {
		scale = r.after.ranks.FP8Meta(0, p).Scale
	}
	for i, x := range main {
		if clipped(q.FP8, x, scale, values[i]) {
			n++
		}
	}
	return n
}

// rounds returns the largest fp32 bits that a format rounds to zero, and the largest that it does not
// round to infinity.
func rounds(d dtype.DType) (least, most uint32) {
	switch d {
	case dtype.BF16:
		return 0x00008000, 0x7f7f7fff // 2^-134, and just below 2^128 - 2^119
	case dtype.FP16:
		return 0x33000000, 0x477fefff // 2^-25, and just below 65520
	}
	return 0, 0x7f7fffff
}

// zeros returns the share of a state's elements that are 0 where the gradient was not.
func (r *run) zeros(load func([]float32), state, grads []float32) float64 {
	load(state)
	n := 0
	for i, x := range state {
		if x == 0 && grads[i] != 0 {
			n++
		}
	}
	return share(n, len(state))
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// firstBad finds the first element that is not finite.
func firstBad(x []float32) (int, bool) {
	for i, v := range x {
		if !finite(v) {
			return i, true
		}
	}
	return 0, false
}

// formatName names the format of a parameter's values.
func formatName(fp8 bool, d dtype.DType) string {
	if fp8 {
		return dtype.E4M3.String()
	}
	return d.String()
}
