package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim/arrays"
)

// explain says what went wrong in the step that was taken, if anything did, and stops a run whose
// parameters nothing can mend. It follows the step from the loss to the gathered parameters: the
// first number that is not finite is the cause of all others.
func (r *run) explain(loss, lossScale float32, skipped bool) {
	if !r.bad {
		r.last.Event = r.remark()
		return
	}
	cause := r.cause(loss, lossScale)
	if skipped {
		r.last.Event = "skipped: " + cause
		return
	}
	if p, i, x, ok := r.broken(); ok {
		r.stopped = r.step
		r.note = fmt.Sprintf("stopped: the loss is NaN or without meaning from step %d on, since %s is %s: %s",
			r.step+1, r.element(p, i), show(x), cause)
		if !finite(loss) {
			r.note = fmt.Sprintf("stopped: the loss is %s from step %d on: %s", show(loss), r.step, cause)
		}
		r.last.Event = r.note
		return
	}
	r.last.Event = r.remark()
}

// broken finds a main or model parameter that is not finite.
func (r *run) broken() (p bucket.ParamID, i int, x float32, ok bool) {
	for p := range r.params {
		n := len(r.params[p])
		main, values := r.work.main[:n], r.work.model[:n]
		r.is.Params[p].Param.Load(main)
		r.after.ranks.ParamValues(0, bucket.ParamID(p), values)
		for _, list := range [][]float32{main, values} {
			if i, bad := firstBad(list); bad {
				return bucket.ParamID(p), i, list[i], true
			}
		}
	}
	return 0, 0, 0, false
}

// cause walks through the step; "" if all of it is finite.
func (r *run) cause(loss, lossScale float32) string {
	if p, i, x, bad := r.badIn(r.was, func(s *arrays.ParamState) arrays.Tensor { return s.Param }); bad {
		return r.element(p, i) + " was " + show(x) + " from the start" + r.scaleDefect()
	}
	if !finite(loss) {
		return fmt.Sprintf("parameters as large as %s overflow fp32 in the forward pass%s", show(r.largest()), r.force())
	}
	for rank := range r.grads {
		for p := range r.params {
			d := r.stage.Params[p].DType
			for i, g := range r.grads[rank][p] {
				if finite(d.Round(g)) {
					continue
				}
				where := fmt.Sprintf("the gradient of %s on rank %d", r.element(bucket.ParamID(p), i), rank)
				if !finite(g) {
					return where + " is " + show(g) + ": the backward pass overflows fp32"
				}
				return fmt.Sprintf("%s is %s, beyond %s of %s (loss scale %s)", where, show(g), show(d.Max()), d, show(lossScale))
			}
		}
	}
	for p := range r.params {
		reduced := r.work.reduced[:len(r.params[p])]
		r.after.reduced(bucket.ParamID(p), reduced)
		if i, bad := firstBad(reduced); bad {
			return fmt.Sprintf("the sum over ranks of the gradient of %s is beyond %s of %s", r.element(bucket.ParamID(p), i), show(r.formats.gradSync.Max()), r.formats.gradSync)
		}
	}
	if r.formats.scaler() && !finite(r.after.ranks.GradNorm()) || r.c.ClipNorm > 0 && !finite(r.after.ranks.GradNorm()) {
		return "the squares of the gradient overflow fp32 in its norm"
	}
	if p, i, x, bad := r.badIn(r.is, func(s *arrays.ParamState) arrays.Tensor { return s.ExpAvg }); bad {
		return fmt.Sprintf("exp_avg of %s is %s%s%s", r.element(p, i), show(x), r.limit(), r.scaleDefect())
	}
	if p, i, x, bad := r.badIn(r.is, func(s *arrays.ParamState) arrays.Tensor { return s.ExpAvgSq }); bad {
		return fmt.Sprintf("exp_avg_sq of %s is %s: the square of its gradient%s%s", r.element(p, i), show(x), r.limit(), r.scaleDefect())
	}
	if p, i, x, bad := r.badIn(r.is, func(s *arrays.ParamState) arrays.Tensor { return s.Param }); bad {
		return r.badUpdate(p, i, x)
	}
	for p := range r.params {
		values := r.work.model[:len(r.params[p])]
		r.after.ranks.ParamValues(0, bucket.ParamID(p), values)
		if i, bad := firstBad(values); bad {
			var x [1]float32
			r.is.Params[p].Param.Slice(i, i+1).Load(x[:])
			return fmt.Sprintf("%s does not fit into %s%s", show(x[0]), r.variant.Params, r.force())
		}
	}
	return ""
}

// badUpdate explains a main parameter that was finite and whose moments are.
func (r *run) badUpdate(p bucket.ParamID, i int, x float32) string {
	var before, m, v [1]float32
	r.was.Params[p].Param.Slice(i, i+1).Load(before[:])
	r.is.Params[p].ExpAvg.Slice(i, i+1).Load(m[:])
	r.is.Params[p].ExpAvgSq.Slice(i, i+1).Load(v[:])
	if r.c.Eps == 0 && v[0] == 0 {
		return fmt.Sprintf("exp_avg_sq of %s is 0 and so is eps: the update is a division of %s by 0", r.element(p, i), show(m[0]))
	}
	return fmt.Sprintf("%s went from %s to %s: learning rate %s times m̂/(√v̂ + eps), with m = %s and v = %s, is beyond the largest number of %s%s",
		r.element(p, i), show(before[0]), show(x), show(float32(r.c.LR)), show(m[0]), show(v[0]), r.is.Params[p].Param.DType, r.scaleDefect())
}

// badIn finds the first element of a kind of state that is not finite.
func (r *run) badIn(c *arrays.Checkpoint, pick func(*arrays.ParamState) arrays.Tensor) (bucket.ParamID, int, float32, bool) {
	for p := range c.Params {
		x := r.work.state[:len(r.params[p])]
		pick(&c.Params[p]).Load(x)
		if i, bad := firstBad(x); bad {
			return bucket.ParamID(p), i, x[i], true
		}
	}
	return 0, 0, 0, false
}

func (r *run) limit() string {
	if r.formats.state == dtype.FP32 || r.variant.Scaled {
		return ", beyond fp32"
	}
	return fmt.Sprintf(", beyond %s of %s", show(r.formats.state.Max()), r.formats.state)
}

// scaleDefect describes the flaw of scaled bf16 states, where it may have been at work.
func (r *run) scaleDefect() string {
	if !r.variant.Scaled || r.formats.state != dtype.BF16 {
		return ""
	}
	return ": a scale is the tensor's largest magnitude over half of bf16's largest number (1.7e38), so that of a tensor below 0.5 is" +
		" subnormal and its reciprocal infinite; the real code has that flaw, and fp16 states do not"
}

// force names what may have made parameters large.
func (r *run) force() string {
	switch {
	case r.c.LR*r.c.WeightDecay > 2:
		return fmt.Sprintf(", after updates with learning rate %s times weight decay %s", show(float32(r.c.LR)), show(float32(r.c.WeightDecay)))
	case r.c.LR > 0.1:
		return ", after updates with learning rate " + show(float32(r.c.LR))
	}
	return ""
}

// largest returns the largest magnitude of the model's parameters.
func (r *run) largest() float32 {
	largest := float32(0)
	for p := range r.params {
		for _, x := range r.params[p] { // as the last rank's pass left them
			largest = max(largest, x, -x)
		}
	}
	return largest
}

func (r *run) element(p bucket.ParamID, i int) string {
	return r.stage.Params[p].Name + "[" + strconv.Itoa(i) + "]"
}

// remark mentions FP8 scales that do not follow their tensor.
func (r *run) remark() string {
	for p := range r.params {
		if !r.stage.Params[p].FP8 {
			continue
		}
		switch t := &r.last.Tensors[p]; {
		case t.Amax == 0:
			return fmt.Sprintf("the amax of %s is 0: its scale stays %s", r.stage.Params[p].Name, show(float32(t.Scale)))
		case !t.Scale.Finite():
			return fmt.Sprintf("the amax of %s is so small that its scale is infinite: every value is clipped", r.stage.Params[p].Name)
		}
	}
	return ""
}

// The limits of good health.
const (
	minSteps  = 20   // before that nothing is said about learning
	learned   = 0.95 // of the first loss
	muchState = 0.05 // share of elements whose second moment a step lost
	// Shares of parameters that the last cast flushed to zero, or clipped.
	muchParams = 0.1
)

// health judges a run and says why.
func (r *run) health() (Health, string) {
	switch {
	case r.stopped > 0:
		return Useless, r.note
	case r.step == 0:
		return Starting, ""
	}
	var all, lostG, clipped, lostP float64
	for p := range r.last.Tensors {
		t, n := &r.last.Tensors[p], float64(len(r.params[p]))
		all += n
		lostG += float64(n * t.GradFlushed)
		clipped += float64(n * t.Saturated)
		lostP += float64(n * t.Flushed)
	}
	loss := r.formatLoss(lostP/all, clipped/all)
	if r.c.LR == 0 {
		return Suspect, "nothing is learned: the learning rate is 0"
	}
	if last := float64(r.final()); r.step >= minSteps && !(last < learned*float64(r.first)) {
		why := "the learning rate, the format or too few steps"
		switch {
		case r.skipped == r.step:
			why = "every step was " + r.last.Event
		case loss != "":
			why = loss
		case lostG > all/2:
			why = fmt.Sprintf("%.0f %% of gradients became 0 in %s", 100*lostG/all, r.formats.params)
		case r.c.LR > 0.05:
			why = "the learning rate " + show(float32(r.c.LR)) + " is large"
		}
		how := "does not fall"
		if last < float64(r.first) {
			how = fmt.Sprintf("has fallen by less than %.0f %%", 100*(1-learned))
		}
		return Suspect, fmt.Sprintf("the loss %s: %s at first, %s now: %s", how, show(r.first), show(float32(last)), why)
	}
	health, note := Healthy, ""
	if !(float64(r.final()) < learned*float64(r.first)) {
		health, note = Early, fmt.Sprintf("before step %d nothing is said about learning", minSteps)
	}
	switch {
	case loss != "":
		return Suspect, loss
	case r.skipped > 0:
		return health, fmt.Sprintf("%d steps were skipped because a gradient overflowed; the loss scale is %s now", r.skipped, show(r.scaler.scale))
	}
	return health, note
}

// formatLoss says what a format loses of states and parameters, if it is much.
func (r *run) formatLoss(zero, clipped float64) string {
	switch {
	case r.lost > muchState:
		return fmt.Sprintf("up to %.0f %% of exp_avg_sq became 0 in %s though the gradient was not: those updates are m̂/eps", 100*r.lost, r.formats.state)
	case zero > muchParams:
		return fmt.Sprintf("%.0f %% of parameters became 0 in %s", 100*zero, r.variant.Params)
	case clipped > muchParams:
		return fmt.Sprintf("%.0f %% of parameters are clipped in %s", 100*clipped, r.variant.Params)
	}
	return ""
}

// show writes a number with four digits.
func show(x float32) string {
	if math.IsInf(float64(x), 0) {
		return spell.Replace(strconv.FormatFloat(float64(x), 'f', -1, 32))
	}
	return spell.Replace(strconv.FormatFloat(float64(x), 'g', 4, 32))
}

// spell writes numbers as the page does: a real minus, no plus, no leading zeros of an exponent.
var spell = strings.NewReplacer("+Inf", "∞", "Inf", "∞", "e+0", "e", "e+", "e", "e-0", "e−", "-", "−")
