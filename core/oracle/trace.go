package oracle

import (
	"encoding/json"
	"fmt"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
)

// CheckTrace builds the optimizer of a trace case and replays what the model did: modules starting
// (fwd, bwd), gradients arriving (grad_ready), parameters being read (param_access). Every other
// event, with all its fields, must be the optimizer's answer, in order.
func CheckTrace(data []byte) error {
	var in struct {
		Case   Case              `json:"case"`
		Params []ParamRow        `json:"params"`
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkCase(data, always(traceCase)); err != nil {
		return err
	}
	c := &in.Case
	if c.Microbatches < 1 || c.Microbatches > len(in.Events) {
		return fmt.Errorf("case.microbatches: got %d, want at least 1 and an event for each", c.Microbatches)
	}
	l, _, err := c.NewLayout(in.Params)
	if err != nil {
		return err
	}
	if len(c.Init) > 0 && string(c.Init) != "null" {
		if err := initialise(l, c.Init); err != nil {
			return err
		}
	}
	r := &replay{params: l.Params, index: make(map[string]bucket.ParamID, len(l.Params))}
	for p := range l.Params {
		r.index[l.Params[p].Name] = bucket.ParamID(p)
	}
	for i, raw := range in.Events {
		event, err := decodeAny(raw)
		if err != nil {
			return fmt.Errorf("events[%d]: %w", i, err)
		}
		fields, ok := event.(map[string]any)
		if !ok {
			return fmt.Errorf("events[%d]: got %s, want an object", i, show(event))
		}
		r.want = append(r.want, fields)
	}
	config := apex.Config{
		Rank: l.Options.DistributedRank(c.Rank), World: max(c.GlobalWorld, c.World),
		Runtime: noRuntime{}, Observer: r, ListedOnce: true,
	}
	if c.Clip != nil {
		config.MaxNorm = *c.Clip
	}
	r.enter("init", nil, nil)
	if r.opt, err = apex.NewSharded(l, config); err != nil {
		return err
	}
	r.train(c.Microbatches, l.Options.OverlapParamSync)
	if r.err == nil {
		r.err = r.opt.Err()
	}
	if r.err == nil && r.at < len(r.want) {
		r.err = fmt.Errorf("events[%d]: got nothing, want %s", r.at, show(r.want[r.at]))
	}
	if r.err != nil {
		return r.err
	}
	if err := compareRecorded(data, l); err != nil {
		return err
	}
	return checkStimulus(data)
}

// replay drives an optimizer through a recorded run and observes its answers.
type replay struct {
	opt    *apex.Sharded
	params []model.Param
	index  map[string]bucket.ParamID
	want   []map[string]any
	at     int // next event of want
	err    error

	phase string
	step  *int
	micro *int
}

// train is two training steps and, if parameters are gathered in the next forward pass, that one.
func (r *replay) train(microbatches int, forwardAgain bool) {
	for step := range 2 {
		r.enter("begin", &step, nil)
		r.opt.ZeroGrad()
		r.stimulus()
		for m := range microbatches {
			r.opt.NoSync(m < microbatches-1)
			r.enter("fwd", &step, &m)
			r.stimulus()
			r.enter("bwd", &step, &m)
			r.stimulus()
		}
		r.opt.NoSync(false)
		r.enter("after_bwd", &step, nil)
		r.opt.AfterBackward()
		r.enter("clip", &step, nil)
		r.opt.ClipGradNorm()
		r.enter("opt", &step, nil)
		r.opt.Step()
	}
	if forwardAgain {
		step := 2
		r.enter("begin", &step, nil)
		r.opt.ZeroGrad()
		r.stimulus()
		r.enter("fwd", &step, nil)
		r.stimulus()
	}
}

func (r *replay) enter(phase string, step, micro *int) { r.phase, r.step, r.micro = phase, step, micro }

// stimulus does what the recorded model did until the optimizer or the next phase has the word.
func (r *replay) stimulus() {
	for r.err == nil && r.at < len(r.want) && r.here(r.want[r.at]) {
		want := r.want[r.at]
		switch optim.Op(text(want["op"])) {
		case "fwd", "bwd":
			r.at++
		case optim.OpGradReady:
			if p, ok := r.param(want); ok {
				r.opt.PostBackward(p)
			}
		case optim.OpParamAccess:
			p, ok := r.param(want)
			if ok && !r.opt.PendingForward(p) {
				r.err = fmt.Errorf("events[%d]: got no pre-forward hook of %s, want it to fire", r.at, r.params[p].Name)
			}
			if ok {
				r.opt.PreForward(p)
			}
		default:
			return
		}
		if r.err == nil {
			r.err = r.opt.Err()
		}
	}
}

// here reports whether an event belongs to the present phase.
func (r *replay) here(event map[string]any) bool {
	return difference("", r.place(), map[string]any{"ph": event["ph"], "s": event["s"], "m": event["m"]}) == nil
}

// place is where the replay stands, with nil for what an event there does not carry.
func (r *replay) place() map[string]any {
	at := map[string]any{"ph": r.phase, "s": nil, "m": nil}
	for key, n := range map[string]*int{"s": r.step, "m": r.micro} {
		if n != nil {
			at[key] = json.Number(fmt.Sprint(*n))
		}
	}
	return at
}

func (r *replay) param(event map[string]any) (bucket.ParamID, bool) {
	p, ok := r.index[text(event["p"])]
	if !ok {
		r.err = fmt.Errorf("events[%d].p: got %s, want the name of a parameter", r.at, show(event["p"]))
	}
	return p, ok
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Event compares one answer of the optimizer with the next recorded event.
func (r *replay) Event(e *optim.Event) {
	if r.err != nil {
		return
	}
	document := EventDocument(e, r.params)
	for key, v := range r.place() {
		if v != nil {
			document[key] = v
		}
	}
	got, err := asRead(document)
	if err != nil {
		r.err = err
		return
	}
	if r.at >= len(r.want) {
		r.err = fmt.Errorf("events[%d]: got %s, want the end", r.at, show(got))
		return
	}
	if e.Op == optim.OpTransposeFP8 {
		r.findTranspose(got)
	}
	if err := difference(fmt.Sprintf("events[%d]", r.at), got, r.want[r.at]); err != nil {
		r.err = fmt.Errorf("%w (got %s, want %s)", err, show(got), show(r.want[r.at]))
		return
	}
	r.at++
}

// findTranspose brings the transpose that was computed to the front of a run of transposes: when
// several parameters are copied at once, the real code goes over a set of them, in no fixed order.
func (r *replay) findTranspose(got any) {
	for i := r.at; i < len(r.want) && text(r.want[i]["op"]) == string(optim.OpTransposeFP8); i++ {
		if difference("", got, r.want[i]) == nil {
			r.want[r.at], r.want[i] = r.want[i], r.want[r.at]
			return
		}
	}
}

// noRuntime lets every effect go: a trace holds decisions only.
type noRuntime struct{}

func (noRuntime) Wait(_, _ optim.Stream)              {}
func (noRuntime) WaitCall(_, _ optim.Stream, _ int)   {}
func (noRuntime) ZeroGrad(*optim.Zero)                {}
func (noRuntime) AccumulateGrad(*optim.Accumulation)  {}
func (noRuntime) ReduceScatter(*optim.Collective)     {}
func (noRuntime) AllReduceShards(*optim.Collective)   {}
func (noRuntime) KeepShards(*optim.Kept)              {}
func (noRuntime) AllReduceGrads(*optim.GradReduction) {}
func (noRuntime) ScaleGrads(*optim.GradScaling)       {}
func (noRuntime) LocalNorm(*optim.Norm)               {}
func (noRuntime) AllReduceNorm(*optim.Reduction)      {}
func (noRuntime) Clip(float64)                        {}
func (noRuntime) CheckFinite() bool                   { return true }
func (noRuntime) Adam(*optim.Update)                  {}
func (noRuntime) Cast(*optim.Cast)                    {}
func (noRuntime) UpdateScaleInv(*optim.Reduction)     {}
func (noRuntime) AllReduceAmax(*optim.Reduction)      {}
func (noRuntime) AllGather(*optim.Collective)         {}
func (noRuntime) UseParams(*optim.ParamUse)           {}
