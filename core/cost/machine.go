package cost

import (
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/parallel"
	"distopt/core/step"
	"distopt/core/units"
)

// Machine is what a step is priced on.
type Machine struct {
	GPU     *hw.GPU
	Network *hw.Network // may be nil if no group spans nodes
	Host    Host

	Model     model.Config
	Execution model.Execution

	// Groups says how each group of the representative rank lies on nodes; Context that of
	// context parallelism. Pipeline is a pair of neighbouring stages.
	Groups  [step.NumGroups]parallel.Placement
	Context parallel.Placement
	Experts [model.NumCommGroup]parallel.Placement // of the groups of experts

	// CTAs bounds the thread blocks of a collective (NCCL_MAX_CTAS); 0: NCCL's choice.
	CTAs int
}

// NewMachine returns the machine of a grid of GPUs with PyTorch on the host.
func NewMachine(g *hw.GPU, n *hw.Network, c model.Config, e model.Execution, grid parallel.Grid) Machine {
	m := Machine{GPU: g, Network: n, Host: Eager, Model: c, Execution: e}
	for _, g := range [...]struct {
		group step.Group
		kind  parallel.Kind
	}{
		{step.Distributed, parallel.Distributed}, {step.Redundant, parallel.Redundant}, {step.World, parallel.World},
		{step.Tensor, parallel.Tensor}, {step.EmbeddingGroup, parallel.Embedding},
		{step.Process, parallel.Process}, {step.ExpertDistributed, parallel.ExpertDistributed}, {step.ExpertRedundant, parallel.Redundant},
	} {
		m.Groups[g.group] = grid.Placement(grid.Group(g.kind, 0))
	}
	m.Groups[step.Stages] = spread(grid, grid.Placement(grid.Group(parallel.Pipeline, 0)), grid.TP)
	m.Groups[step.Instance] = spread(grid, m.Groups[step.Stages], m.Groups[step.Distributed].Ranks)
	m.Experts = [...]parallel.Placement{
		model.OverExpert:       grid.Placement(grid.Group(parallel.Expert, 0)),
		model.OverExpertTensor: grid.Placement(grid.Group(parallel.ExpertTensor, 0)),
		model.OverExpertModel:  grid.Placement(grid.Group(parallel.ExpertModel, 0)),
	}
	m.Context = grid.Placement(grid.Group(parallel.Context, 0))
	if grid.PP > 1 {
		// Neighbours are as far apart as the widest pair: of stages 0 to 1, 1 to 2, ...
		pair := parallel.Placement{Ranks: 2, Nodes: 1, PerNode: 2}
		for stage := 1; stage < grid.PP; stage++ {
			if !grid.SameNode(grid.Representative(stage-1), grid.Representative(stage)) {
				pair.Nodes, pair.PerNode = 2, 1
				break
			}
		}
		m.Groups[step.Pipeline] = pair
	}
	return m
}

// spread returns how n times the ranks of p lie on nodes: those of a node are filled first.
func spread(grid parallel.Grid, p parallel.Placement, n int) parallel.Placement {
	out := parallel.Placement{Ranks: p.Ranks * max(n, 1)}
	out.PerNode = min(grid.PerNode, p.PerNode*max(n, 1))
	if out.PerNode > 0 {
		out.Nodes = max(p.Nodes, (out.Ranks+out.PerNode-1)/out.PerNode)
	}
	return out
}

// Host is what the CPU needs to issue work, one thread in order.
type Host struct {
	Launch units.Seconds // of a kernel from C++
	Call   units.Seconds // of a PyTorch operator, its kernel included
	// Forward and Backward are one module of a layer, all its kernels included.
	Forward, Backward units.Seconds
	Tensor            units.Seconds // of the optimizer's Python loop, per tensor
	Collective        units.Seconds // stream waits, event, launch
	Sync              units.Seconds // return from a device-wide wait
	Latency           units.Seconds // from a launch to the first instruction
}

// Eager is Megatron on PyTorch without CUDA graphs.
//
// Launch, Call, Collective (10.7 + 7.2 + 4.4 us), Sync (an event's) and Latency (an empty kernel
// less an empty pair of events) are the series launch of h200.json. A layer forward and backward
// takes the host at least 0.84 and 1.35 ms in 880 published steps of small models on A100 nodes
// (vTrain; fitted to 10 %), and 0.86 ms forward in the CPU-bound step 350m of h200.json; a fifth
// of it is a module. Tensor is that step's optimizer: 7.9 ms for 292 tensors.
var Eager = Host{
	Launch: 4.364e-6, Call: 8.004e-6, Forward: 0.168e-3, Backward: 0.27e-3,
	Tensor: 27e-6, Collective: 22.3e-6, Sync: 7.2e-6, Latency: 1.9e-6,
}

func place(p parallel.Placement) hw.Place {
	return hw.Place{Ranks: p.Ranks, Nodes: p.Nodes, PerNode: p.PerNode}
}
