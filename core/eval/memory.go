package eval

import (
	"distopt/core/cost"
	"distopt/core/memory"
	"distopt/core/model"
	"distopt/core/scenario"
	"distopt/core/units"
)

// Memory returns the memory of every stage at its peak, from the order of the schedule alone.
func Memory(s *scenario.Scenario) (*memory.Result, error) {
	in, err := memoryInput(s)
	if err != nil {
		return nil, err
	}
	return memory.Static(in)
}

// Memory simulates s and returns the memory of every stage over the drawn step, as at most so many points
// for each stage; 0: as many as there are.
func (x *Simulator) Memory(s *scenario.Scenario, points int) (*memory.Result, error) {
	if _, err := x.Evaluate(s); err != nil {
		return nil, err
	}
	in, err := memoryInput(s)
	if err != nil {
		return nil, err
	}
	in.Points = points
	return memory.Of(in, &x.rec, x.spans)
}

// memoryInput describes s for package memory.
//
// What a scenario does not say: attention is a flash kernel, cross entropy Megatron's own, context
// parallelism a ring, layers Transformer Engine's, which keeps placeholders of weight gradients in
// Megatron-Core's time and made them anew in NeMo's.
func memoryInput(s *scenario.Scenario) (*memory.Input, error) {
	g, err := grid(s)
	if err != nil {
		return nil, err
	}
	gpu, network := machine(s)
	c, e, order := architecture(s), execution(s), schedule(s)
	in := &memory.Input{
		GPU: gpu, Model: computed(c, s), Execution: e, Microbatches: s.Microbatches(),
		Storage:  model.Storage{KeptDummies: s.MCore(), RecomputeGroup: recomputeGroup(s)},
		Megatron: order.Megatron, Group: order.Group,
		Message: units.Bytes(order.Activation) * order.DType.Size(),
	}
	for _, group := range cost.NewMachine(gpu, network, in.Model, e, g).Groups {
		if group.Ranks > 1 {
			in.Communicators++
		}
	}
	for p := range s.Parallel.PP {
		l, err := LayOut(s, p)
		if err != nil {
			return nil, err
		}
		stage := memory.StageInput{Model: l.Stage}
		switch {
		case l.MCore != nil:
			stage.Optimizer = memory.FromMCore(l.MCore, states(s), 0)
		case l.DDP != nil:
			stage.Optimizer = memory.FromDDP(l.DDP)
		default:
			stage.Optimizer = memory.FromApex(l.Apex)
		}
		in.Stages = append(in.Stages, stage)
	}
	return in, nil
}

// recomputeGroup returns the layers that the uniform method computes again together.
func recomputeGroup(s *scenario.Scenario) int {
	if s.Recompute.Granularity == scenario.Full && s.Recompute.Method == scenario.Uniform {
		return s.Recompute.Layers
	}
	return 0
}
