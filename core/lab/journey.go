package lab

import (
	"fmt"
	"math"

	"distopt/core/bucket"
	"distopt/core/dtype"
)

// journey follows one element through the last step that was taken.
func (r *run) journey(p bucket.ParamID, i int) Journey {
	id, owner, index, _ := r.after.ranks.Home(p, i)
	j := Journey{Variant: r.variant.ID, Tensor: p, Element: i, Step: r.step, Bucket: int(id), Owner: owner}
	if r.stopped > 0 {
		j.Step = r.stopped
	}
	if r.step == 0 {
		j.Text = "no step was taken yet"
		return j
	}
	q := &r.stage.Params[p]
	triple := r.after.layout.Buckets[id].DTypes
	local := make([]float32, q.Numel)
	for rank := range r.grads {
		g := r.grads[rank][p][i]
		note := "from the backward pass"
		if r.formats.scaler() {
			note = "from the backward pass, times the loss scale " + show(float32(r.last.LossScale))
		}
		j.add(fmt.Sprintf("gradient on rank %d", rank), dtype.FP32.String(), g, note)
		r.after.ranks.LocalGrad(rank, p, local)
		if q.DType != dtype.FP32 || triple.GradSync != dtype.FP32 {
			j.add(fmt.Sprintf("in the bucket of rank %d", rank), triple.GradSync.String(), local[i], lost(g, local[i]))
		}
	}
	shard := r.after.ranks.Shard(owner, id)
	var reduced [1]float32
	shard.Grad.Slice(index, index+1).Load(reduced[:])
	n := len(r.grads)
	j.add("reduced gradient", triple.GradSync.String(), reduced[0], fmt.Sprintf("sum over %d ranks of the gradient times 1/%d, on rank %d", n, n, owner))
	if r.last.Skipped {
		j.Text = "the step was skipped: the gradient ends here"
		return j
	}

	read := func(s *[1]float32, load func([]float32)) float32 { load(s[:]); return s[0] }
	var x [1]float32
	was, is := &r.was.Params[p], &r.is.Params[p]
	p0 := read(&x, was.Param.Slice(i, i+1).Load)
	m0 := read(&x, was.ExpAvg.Slice(i, i+1).Load)
	v0 := read(&x, was.ExpAvgSq.Slice(i, i+1).Load)
	args := r.c.adam()
	if r.after.layout.Group[p].Group == 1 {
		args.WeightDecay = 0
	}
	scale := r.after.ranks.GradScale()
	k := args.Kernel(r.taken, scale)
	pp, m, v := [1]float32{p0}, [1]float32{m0}, [1]float32{v0}
	stored := r.formats.state
	if r.variant.Scaled {
		stored = dtype.FP32 // the kernel works on unscaled values
	}
	k.Update(pp[:], m[:], v[:], reduced[:], stored)

	fp32, state := dtype.FP32.String(), was.ExpAvg.DType.String()
	g := float32(reduced[0] * scale)
	j.add("gradient for the update", fp32, g, "times the gradient scale "+show(scale))
	j.add("exp_avg before", state, m0, "")
	j.add("exp_avg", fp32, m[0], fmt.Sprintf("m = %s m + (1 − %s) g", show(k.Beta1), show(k.Beta1)))
	j.add("exp_avg_sq before", state, v0, "")
	j.add("exp_avg_sq", fp32, v[0], fmt.Sprintf("v = %s v + (1 − %s) g²", show(k.Beta2), show(k.Beta2)))
	if r.formats.state != dtype.FP32 {
		r.addStored(&j, id, owner, index, p, i)
	}
	m1, v1 := m[0]/k.Correction1, v[0]/k.Correction2
	denominator := sqrt(v1) + k.Eps
	update := m1 / denominator
	decay := float32(k.WeightDecay * p0)
	j.add("m̂/(√v̂ + eps)", fp32, update, fmt.Sprintf("m̂ = m / %s, v̂ = v / %s", show(k.Correction1), show(k.Correction2)))
	j.add("step", fp32, float32(k.LR*(update+decay)), fmt.Sprintf("learning rate × (that + %s × p)", show(k.WeightDecay)))
	j.add("main parameter before", was.Param.DType.String(), p0, "")
	after := read(&x, is.Param.Slice(i, i+1).Load)
	j.add("main parameter", is.Param.DType.String(), after, "p less the step")

	r.addModel(&j, p, i, pp[0])
	return j
}

// addStored adds the moments as 16 bits hold them.
func (r *run) addStored(j *Journey, id bucket.ID, owner, index int, p bucket.ParamID, i int) {
	shard := r.after.ranks.Shard(owner, id)
	var m, v [1]float32
	shard.ExpAvg.Slice(index, index+1).Load(m[:])
	shard.ExpAvgSq.Slice(index, index+1).Load(v[:])
	noteM, noteV := "rounded to be stored", "rounded to be stored"
	if shard.Scales != nil {
		r.after.parts(p, func(o owned) {
			if o.owner == owner && o.bucket == id && o.inParam <= i && i < o.inParam+o.end-o.start {
				s := shard.Scales[o.fragment]
				noteM = "stored: times " + show(s.ExpAvg) + " it is exp_avg"
				noteV = "stored: times " + show(s.ExpAvgSq) + " it is exp_avg_sq"
			}
		})
	}
	j.add("exp_avg stored", r.formats.state.String(), m[0], noteM)
	j.add("exp_avg_sq stored", r.formats.state.String(), v[0], noteV)
}

// addModel adds what is gathered, and what the model computes with on every rank.
func (r *run) addModel(j *Journey, p bucket.ParamID, i int, updated float32) {
	q := &r.stage.Params[p]
	t := r.after.ranks.Param(0, p)
	values := make([]float32, q.Numel)
	r.after.ranks.ParamValues(0, p, values)
	name := formatName(q.FP8, q.DType)
	if q.FP8 {
		scale := float32(r.storedScale(p))
		scaled := float32(updated * scale)
		note := "E4M3 of p × " + show(scale)
		if scaled > beyondE4M3 || scaled < -beyondE4M3 {
			note += fmt.Sprintf(" = %s: saturated, since the scale is the one of the amax before this step", show(scaled))
		}
		j.addBits("cast", name, uint32(t.Bytes[i]), dtype.E4M3.Decode(t.Bytes[i]), note)
		j.add("gathered", dtype.FP32.String(), values[i], "on every rank: the code times 1/scale; "+lost(updated, values[i]))
		return
	}
	j.addBits("gathered", name, t.Bits(i), values[i], "on every rank; "+lost(updated, values[i]))
}

// lost tells what a conversion changed.
func lost(from, to float32) string {
	switch {
	case from == to:
		return "exact"
	case to == 0:
		return "flushed to zero from " + show(from)
	case !finite(to):
		return "overflow of " + show(from)
	}
	return "rounded by " + show(to-from)
}

func (j *Journey) add(name, format string, x float32, note string) {
	x = dtype.Canonical(x)
	j.addBits(name, format, formatOf(format).Encode(x), x, note)
}

func (j *Journey) addBits(name, format string, bits uint32, x float32, note string) {
	digits := formatOf(format).Bits() / 4
	j.Stops = append(j.Stops, Stop{Name: name, Format: format, Bits: fmt.Sprintf("0x%0*x", digits, bits), Value: value(x), Note: note})
}

// value widens an fp32 number.
func value(x float32) Value {
	if x != x {
		return Value(math.NaN())
	}
	return Value(x)
}
