package lab

import (
	"fmt"
	"math"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim/arrays"
	"distopt/core/units"
)

// FinalSteps is over how many steps the last loss is a mean.
const FinalSteps = 5

// run is one variant.
type run struct {
	c       *Config
	variant *Variant
	formats formats
	stage   *model.Stage
	net     network

	after  *side
	before *side  // nil: there is none
	reason string // what is to be said about it

	scaler scaler
	params [][]float32   // of one rank, decoded
	grads  [][][]float32 // of each rank, as the backward pass left them, times the loss scale
	was    *arrays.Checkpoint
	is     *arrays.Checkpoint
	taken  int // updates
	step   int // steps

	first   float32
	losses  []float32
	skipped int
	stopped int
	note    string
	agree   Check
	equal   Check

	last VariantRun
	bad  bool    // a gradient or a parameter of the last step is not finite
	lost float64 // largest share of elements whose second moment a step lost
	work scratch
}

// newRun builds the two sides of a variant with their common initial parameters.
func newRun(c *Config, v *Variant) (*run, error) {
	r := &run{c: c, variant: v, formats: v.formats()}
	var err error
	if r.stage, err = c.architecture(r.formats.params, r.formats.fp8); err != nil {
		return nil, err
	}
	r.net = c.network(r.stage)
	initial := c.initial(r.stage)
	if r.after, err = c.newSide(v, r.stage, initial, false); err != nil {
		return nil, err
	}
	if v.Scaled {
		r.reason = "scaled states came with Apex PR #1771: there is nothing before it to compare with"
	} else if r.before, err = c.newSide(v, r.stage, initial, true); err != nil {
		return nil, err
	}
	r.scaler = scaler{scale: 1}
	if r.formats.scaler() {
		r.scaler = newScaler(float32(c.LossScale), c.ScaleWindow)
	}
	r.params = make([][]float32, len(initial))
	r.grads = make([][][]float32, c.Ranks)
	for p := range initial {
		r.params[p] = make([]float32, len(initial[p]))
	}
	for rank := range r.grads {
		r.grads[rank] = make([][]float32, len(initial))
		for p := range initial {
			r.grads[rank][p] = make([]float32, len(initial[p]))
		}
	}
	r.is, err = r.after.ranks.Save(0)
	r.was = r.is
	r.agree = Check{Checked: true}
	if r.before != nil && c.ClipNorm > 0 {
		r.reason = "with clipping the norm is added up in the order of buckets, which differ: its last bit may too"
	}
	r.equal = Check{Checked: r.before != nil, Reason: r.reason}
	r.work.grow(r.stage)
	return r, err
}

// advance takes one step.
func (r *run) advance() error {
	r.step++
	if r.stopped > 0 {
		r.last = VariantRun{Loss: Value(math.NaN()), GradNorm: Value(math.NaN()), LossScale: Value(r.scaler.scale)}
		return nil
	}
	used := r.scaler.scale
	r.after.begin(used)
	if r.before != nil {
		r.before.begin(used)
	}
	total := 0.0
	for rank := range r.grads {
		for p := range r.params {
			r.after.ranks.ParamValues(rank, bucket.ParamID(p), r.params[p])
			clear(r.grads[rank][p])
		}
		data := r.c.data(r.step, rank, r.net.length())
		total += float64(r.net.pass(r.params, r.grads[rank], data, used))
	}
	loss := float32(total / float64(r.c.Ranks))
	if err := r.after.finish(r.grads); err != nil {
		return fmt.Errorf("variant %s, step %d: %w", r.variant.ID, r.step, err)
	}
	if r.before != nil {
		if err := r.before.finish(r.grads); err != nil {
			return fmt.Errorf("variant %s before the change, step %d: %w", r.variant.ID, r.step, err)
		}
	}
	if r.before != nil && r.formats.scaler() && finite(r.before.ranks.GradNorm()) != finite(r.after.ranks.GradNorm()) && r.equal.Reason == "" {
		r.equal.Reason = fmt.Sprintf("step %d was skipped before the change alone: Apex before PR #1771 took the gradient norm in the state's format, and it overflows %s",
			r.step, r.formats.state)
	}
	skipped := r.formats.scaler() && !finite(r.after.ranks.GradNorm())
	if skipped {
		r.skipped++
	} else {
		r.taken++
	}
	r.was = r.is
	var err error
	if r.is, err = r.after.ranks.Save(r.taken); err != nil {
		return err
	}
	r.record(loss, used, skipped)
	r.explain(loss, used, skipped)
	r.scaler.update(skipped)
	return nil
}

// record measures the step that was taken.
func (r *run) record(loss, lossScale float32, skipped bool) {
	if r.step == 1 {
		r.first = loss
	}
	r.losses = append(r.losses, loss)
	r.last = VariantRun{
		Loss: Value(loss), LossScale: Value(lossScale), Skipped: skipped,
		Tensors: make([]TensorRun, len(r.params)),
	}
	r.bad = skipped || !finite(loss)
	squares, zero, all := 0.0, 0.0, 0.0
	for p := range r.params {
		squares += r.measure(bucket.ParamID(p), &r.last.Tensors[p], skipped)
		n := float64(len(r.params[p]))
		zero += float64(n * r.last.Tensors[p].VFlushed)
		all += n
	}
	r.lost = max(r.lost, zero/all)
	// The optimizer's own norm follows the order of buckets in its last bit.
	r.last.GradNorm = Value(math.Sqrt(squares))
	if r.c.ClipNorm > 0 {
		r.last.GradNorm = Value(r.after.ranks.GradNorm())
	}
	if p, i, rank, ok := r.after.ranks.Difference(); ok {
		r.last.Differs = r.differing()
		r.agree.note(r.last.Differs, fmt.Sprintf("step %d: %s[%d] on rank %d", r.step, r.stage.Params[p].Name, i, rank))
	}
	if r.before != nil {
		for p := range r.params {
			n, at := different(r.after.ranks.Param(0, bucket.ParamID(p)), r.before.ranks.Param(0, bucket.ParamID(p)))
			if n > 0 {
				r.last.Before += n
				r.equal.note(n, fmt.Sprintf("step %d: %s[%d]", r.step, r.stage.Params[p].Name, at))
			}
		}
	}
}

func (c *Check) note(n int, where string) {
	if c.Different == 0 {
		c.First = where
	}
	c.Different += n
}

// differing counts elements of other ranks that are not those of the first.
func (r *run) differing() (n int) {
	for rank := 1; rank < r.c.Ranks; rank++ {
		for p := range r.params {
			d, _ := different(r.after.ranks.Param(0, bucket.ParamID(p)), r.after.ranks.Param(rank, bucket.ParamID(p)))
			n += d
		}
	}
	return n
}

// different counts elements whose bits differ, and finds the first.
func different(a, b arrays.Tensor) (n, first int) {
	if a.Equal(b) {
		return 0, 0
	}
	for i := range a.Len() {
		if a.Bits(i) != b.Bits(i) {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	return n, first
}

// status tells where the variant stands.
func (r *run) status() VariantStatus {
	s := VariantStatus{
		ID: r.variant.ID, Name: r.variant.Name, Formats: r.describe(),
		Buckets: len(r.after.layout.Buckets), EmptyShards: r.after.emptyShards(),
		First: Value(r.first), Last: r.final(), Skipped: r.skipped, Stopped: r.stopped,
		Note: r.note, Before: r.equal, Agree: r.agree,
	}
	for rank := range r.c.Ranks {
		s.State = max(s.State, units.Bytes(r.after.stateBytes(rank)))
	}
	s.Health, s.Note = r.health()
	return s
}

// final is the mean loss of the last steps, NaN after a stop.
func (r *run) final() Value {
	if r.stopped > 0 {
		return Value(math.NaN())
	}
	last := r.losses[max(0, len(r.losses)-FinalSteps):]
	if len(last) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range last {
		sum += float64(x)
	}
	return Value(sum / float64(len(last)))
}

// describe names the formats of the default bucket, and where main parameters are.
func (r *run) describe() string {
	o := r.after.layout.Options
	params := r.variant.Params
	main := "the parameters are the main parameters"
	switch {
	case o.StoreParams:
		main = o.State.String() + " main parameters"
	case o.StoreParamRemainders:
		main = "16-bit remainders"
	}
	scaled := ""
	if o.WithScaledStates {
		scaled = "scaled "
	}
	return fmt.Sprintf("%s parameters, %s%s state, %s grad sync, %s", params, scaled, o.State, o.GradSync, main)
}

func finite(x float32) bool { return x-x == 0 }
