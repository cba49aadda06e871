package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/apex"
	"distopt/core/optim"
	"distopt/core/step"
)

// traceByStep compares those events of a stage that a trace holds too. Traces know no model
// chunks and no pipeline; their last forward pass has no microbatch number.
type traceByStep struct {
	pipeline
	tail bool // the record ends with a forward pass
}

var notTraced = []optim.Op{"forward_step", "forward_step_end", "backward_step", "backward_step_end", "no_sync"}

// Event compares one event.
func (p *traceByStep) Event(at step.At, e *optim.Event) {
	if p.err != nil || slices.Contains(notTraced, e.Op) {
		return
	}
	e.Chunk = -1
	if at.Step == wholeSteps {
		if !p.tail || at.Phase != step.Begin && (at.Phase != step.InFwd || e.Micro > 0) {
			return
		}
		e.Micro = -1
	}
	p.match(p.document(at, e), e.Op)
}

func (p *traceByStep) orderOf(at step.At, backward bool, items []step.Item) []step.Item {
	at.Chunk = -1
	if at.Step == wholeSteps {
		at.Micro = -1
	}
	return p.order(at, backward, items)
}

// checkStimulus runs the step of a trace's model without being told when a module starts, a gradient
// arrives or a parameter is read: the record must be the same, up to the order inside a module. A
// replay alone would not miss what the record lacks.
func checkStimulus(data []byte) error {
	var in caseFile
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	c := &in.Case
	l, stage, err := c.NewLayout(in.Params)
	if err != nil {
		return err
	}
	if stage == nil {
		return fmt.Errorf("case.model: got nothing, want the model that ran")
	}
	if len(c.Init) > 0 && string(c.Init) != "null" {
		if err := initialise(l, c.Init); err != nil {
			return err
		}
	}
	p := &traceByStep{pipeline{stage: stage}, l.Options.OverlapParamSync}
	p.params = l.Params
	if err := p.read(in.Events); err != nil {
		return err
	}
	cfg, err := stepConfig(c, stage)
	if err != nil {
		return err
	}
	input := step.StageInput{Model: stage, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
		config := apexConfig(c, stage, l, rt, obs)
		config.Tensor = 1 // the recorded runs left NeMo's all-reduce over the tensor-parallel group out
		return apex.NewSharded(l, config)
	}}
	err = step.RunStage(input, cfg, step.Replay{World: c.World, Steps: wholeSteps, Observer: p, Order: p.orderOf})
	if err != nil {
		return err
	}
	return p.end()
}
