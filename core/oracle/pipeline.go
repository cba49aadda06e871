package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"distopt/core/apex"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/step"
	"distopt/core/units"
)

// CheckPipeline runs one stage of a pipeline as the case describes it. Every recorded event, with
// all its fields, must follow in order: passes, messages, waits, callbacks and what the optimizer
// does. Nothing is replayed but the order of events inside a module, which no rule decides.
func CheckPipeline(data []byte) error {
	var in caseFile
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkCase(data, always(pipelineCase)); err != nil {
		return err
	}
	c := &in.Case
	if c.Microbatches > len(in.Events) {
		return fmt.Errorf("case.microbatches: got %d, want an event for each", c.Microbatches)
	}
	l, stage, err := c.NewLayout(in.Params)
	if err != nil {
		return err
	}
	if stage == nil {
		return fmt.Errorf("case.model: missing, want the model whose stage ran")
	}
	if err := compareRecorded(data, l); err != nil {
		return err
	}
	p := &pipeline{stage: stage}
	p.params = l.Params
	if err := p.read(in.Events); err != nil {
		return err
	}
	cfg, err := stepConfig(c, stage)
	if err != nil {
		return err
	}
	input := step.StageInput{Model: stage, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
		return apex.NewSharded(l, apexConfig(c, stage, l, rt, obs))
	}}
	err = step.RunStage(input, cfg, step.Replay{
		Rank: c.GlobalRank, World: c.GlobalWorld, Steps: wholeSteps, Observer: p, Order: p.order,
	})
	if err != nil {
		return err
	}
	return p.end()
}

// caseFile is a case with events.
type caseFile struct {
	Case   Case              `json:"case"`
	Params []ParamRow        `json:"params"`
	Events []json.RawMessage `json:"events"`
}

// wholeSteps are what every recorded run has; what follows breaks off.
const wholeSteps = 2

// stepConfig returns the schedule of a case: NeMo's defaults unless it says otherwise.
func stepConfig(c *Case, stage *model.Stage) (step.Config, error) {
	o, err := c.Options()
	if err != nil {
		return step.Config{}, err
	}
	cfg := step.Config{Microbatches: c.Microbatches, BatchP2P: true, GradSync: o.GradSync}
	if c.P2P != nil {
		cfg.BatchP2P, cfg.OverlapP2P = c.P2P.Batch, c.P2P.Overlap
	}
	seq := c.Model.Seq
	if stage.SP {
		seq /= int64(stage.TP)
	}
	cfg.Activation = units.Elems(seq * c.Model.Hidden)
	cfg.DType, _ = dtype.Parse(c.Model.DType)
	return cfg, nil
}

// apexConfig returns the optimizer of the rank that ran.
func apexConfig(c *Case, stage *model.Stage, l *apex.Layout, rt optim.Runtime, obs optim.Observer) apex.Config {
	config := apex.Config{
		Rank: l.Options.DistributedRank(c.Rank), World: max(c.GlobalWorld, c.World), Tensor: stage.TP,
		Runtime: rt, Observer: obs, ListedOnce: true,
	}
	if c.Clip != nil {
		config.MaxNorm = *c.Clip
	}
	if stage.Config.Tied && stage.PP > 1 && (stage.Index == 0 || stage.Index == stage.PP-1) {
		config.EmbeddingSize = 2
	}
	return config
}

// pipeline compares the events of a stage with the recorded ones.
type pipeline struct {
	replay
	stage *model.Stage

	places map[passKey]map[string]int // where in its pass the record has an item
	unused []passKey                  // received in the last step for passes that it should not reach
	used   map[passKey]bool           // passes of the last step
}

// passKey names a pass of a microbatch through a chunk.
type passKey struct {
	step, micro, chunk int
	backward           bool
}

// read takes in the recorded events.
func (p *pipeline) read(events []json.RawMessage) error {
	p.places = map[passKey]map[string]int{}
	p.used = map[passKey]bool{}
	for i, raw := range events {
		event, err := decodeAny(raw)
		if err != nil {
			return fmt.Errorf("events[%d]: %w", i, err)
		}
		fields, ok := event.(map[string]any)
		if !ok {
			return fmt.Errorf("events[%d]: got %s, want an object", i, show(event))
		}
		p.want = append(p.want, fields)
		if name := itemName(fields); name != "" {
			key := passKey{number(fields["s"]), number(fields["m"]), number(fields["c"]), fields["ph"] == step.InBwd.String()}
			if p.places[key] == nil {
				p.places[key] = map[string]int{}
			}
			if _, ok := p.places[key][name]; !ok {
				p.places[key][name] = i
			}
		}
	}
	return nil
}

// itemName returns the module or parameter of an event of the model, else nothing.
func itemName(event map[string]any) string {
	switch optim.Op(text(event["op"])) {
	case "fwd", "bwd":
		return "module " + text(event["mod"])
	case optim.OpGradReady, optim.OpParamAccess:
		return "hook of " + text(event["p"])
	}
	return ""
}

// number returns an integer field, -1 if there is none.
func number(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return int(i)
}

// order sorts the items of every module as the record has them. What it does not have stays
// last, but for computations that are not announced, which stay first. Attention belongs to the
// output projection, whose weight the recorded model reads before it.
func (p *pipeline) order(at step.At, backward bool, items []step.Item) []step.Item {
	places := p.places[passKey{at.Step, at.Micro, at.Chunk, backward}]
	module := func(it step.Item) int32 {
		if !backward && p.stage.Modules[it.Module].Kind == model.Attention {
			return it.Module + 1
		}
		return it.Module
	}
	place := func(it step.Item) int {
		name := "module " + p.stage.Modules[it.Module].Name
		if it.Param >= 0 {
			name = "hook of " + p.params[it.Param].Name
		}
		if i, ok := places[name]; ok {
			return i
		}
		if it.Param >= 0 {
			return math.MaxInt
		}
		return -1
	}
	items = slices.Clone(items)
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && module(items[to]) == module(items[from]) {
			to++
		}
		slices.SortStableFunc(items[from:to], func(a, b step.Item) int { return cmp.Compare(place(a), place(b)) })
		from = to
	}
	return items
}

// Event compares one event with the next recorded one.
func (p *pipeline) Event(at step.At, e *optim.Event) {
	if p.err != nil {
		return
	}
	key := passKey{at.Step, e.Micro, e.Chunk, e.Op == "recv_backward"}
	if at.Step == wholeSteps && (e.Op == "recv_forward" || e.Op == "recv_backward") &&
		p.at < len(p.want) && p.want[p.at]["op"] == string(e.Op) && p.want[p.at]["m"] == nil {
		// The record does not say for what it was received: for nothing that it still holds.
		p.unused = append(p.unused, key)
		unlabelled := *e
		unlabelled.Micro, unlabelled.Chunk = -1, -1
		e = &unlabelled
	}
	if e.Op == "forward_step" && at.Step == wholeSteps {
		p.used[key] = true
	}
	p.match(p.document(at, e), e.Op)
}

// match compares the next recorded event.
func (p *pipeline) match(document map[string]any, op optim.Op) {
	got, err := asRead(document)
	if err != nil {
		p.err = err
		return
	}
	if p.at >= len(p.want) {
		p.err = fmt.Errorf("events[%d]: got %s, want the end", p.at, show(got))
		return
	}
	if op == optim.OpTransposeFP8 {
		p.findTranspose(got)
	}
	if err := difference(fmt.Sprintf("events[%d]", p.at), got, p.want[p.at]); err != nil {
		p.err = fmt.Errorf("%w (got %s, want %s)", err, show(got), show(p.want[p.at]))
		return
	}
	p.at++
}

// document writes an event as the pipeline cases do.
func (p *pipeline) document(at step.At, e *optim.Event) map[string]any {
	d := EventDocument(e, p.params)
	switch e.Op {
	case "fwd", "bwd":
		d["mod"] = e.Module
	case "send_forward", "recv_forward", "send_backward", "recv_backward":
		d["n"], d["by"] = e.N, e.Bytes
		if e.Batch > 0 {
			d["bt"] = e.Batch
		} else {
			d["rq"] = e.Request
		}
	case "p2p_wait":
		d["rq"] = e.Request
	case "no_sync":
		d["on"] = e.On
	case "send_loss":
		d["to"] = e.Peer
	case "recv_loss":
		d["from"] = e.Peer
	}
	d["ph"] = at.Phase.String()
	for key, n := range map[string]int{"s": at.Step, "m": e.Micro, "c": e.Chunk} {
		if n >= 0 {
			d[key] = n
		}
	}
	return d
}

// end reports what was left over.
func (p *pipeline) end() error {
	if p.err != nil {
		return p.err
	}
	if p.at < len(p.want) {
		return fmt.Errorf("events[%d]: got nothing, want %s", p.at, show(p.want[p.at]))
	}
	for _, key := range p.unused {
		if p.used[key] {
			return fmt.Errorf("events: a tensor for microbatch %d, chunk %d is used in the last step, but its message does not say so", key.micro, key.chunk)
		}
	}
	return nil
}
