// Package parallel is the rank grid: which rank holds which part of the model and of the batch,
// which ranks form each process group, and how a group lies on nodes.
//
// Ranks are numbered as Megatron-core numbers them: tensor fastest, then context, then data, then
// pipeline. Experts divide the ranks of a stage once more, in Megatron-core's order tp-ep-dp: expert tensor
// fastest, then expert, then expert data. Ranks fill nodes in order.
package parallel

import "fmt"

// Grid is the parallel layout of a job. World = TP * CP * DP * PP.
type Grid struct {
	TP int // tensor-parallel size
	CP int // context-parallel size
	DP int // data-parallel size, context not counted
	PP int // pipeline stages
	VP int // model chunks on each stage; 1: no virtual stages

	EP  int // expert-parallel size; 0 counts as 1
	ETP int // tensor-parallel size of experts; 0: TP

	Redundant int // copies of the distributed optimizer's group; 1: none
	PerNode   int // ranks on one node
}

// MaxWorld bounds the ranks of a job.
const MaxWorld = 1 << 20

// NewGrid divides world ranks: what tensor, context and pipeline parallelism leave is data-parallel.
func NewGrid(world, tp, cp, pp, vp, perNode int) (Grid, error) {
	for _, f := range []struct {
		path string
		got  int
	}{
		{"world_size", world},
		{"tensor_model_parallel_size", tp},
		{"context_parallel_size", cp},
		{"pipeline_model_parallel_size", pp},
		{"virtual_pipeline_model_parallel_size", vp},
		{"ranks per node", perNode},
	} {
		if f.got < 1 || f.got > MaxWorld {
			return Grid{}, fmt.Errorf("%s: got %d, want 1 to %d", f.path, f.got, MaxWorld)
		}
	}
	model := int64(tp) * int64(cp) // at most 2^40
	if model <= MaxWorld {
		model *= int64(pp)
	}
	if model > int64(world) || int64(world)%model != 0 {
		return Grid{}, fmt.Errorf("world_size: got %d, want a multiple of tensor %d x context %d x pipeline %d; change one of them",
			world, tp, cp, pp)
	}
	return Grid{TP: tp, CP: cp, DP: int(int64(world) / model), PP: pp, VP: vp, Redundant: 1, PerNode: perNode}, nil
}

// WithExperts returns the grid with expert parallelism. etp 0 is the tensor-parallel size.
func (g Grid) WithExperts(ep, etp int) (Grid, error) {
	if etp == 0 {
		etp = g.TP
	}
	n := int64(ep) * int64(etp)
	if ep < 1 || etp < 1 || ep > MaxWorld || etp > MaxWorld || int64(g.PerStage())%n != 0 {
		return g, fmt.Errorf("expert_model_parallel_size: got %d with expert tensor parallel %d, want a divisor of %d ranks of a stage together; change one of them",
			ep, etp, g.PerStage())
	}
	g.EP, g.ETP = ep, etp
	return g, nil
}

// experts returns the expert-parallel and the expert-tensor-parallel size.
func (g Grid) experts() (ep, etp int) {
	if etp = g.ETP; etp == 0 {
		etp = g.TP
	}
	return max(g.EP, 1), etp
}

// ExpertProcess returns the ranks that hold the same experts.
func (g Grid) ExpertProcess() int {
	ep, etp := g.experts()
	return g.PerStage() / (ep * etp)
}

// World returns the number of ranks.
func (g Grid) World() int { return g.TP * g.CP * g.DP * g.PP }

// PerStage returns the ranks of one pipeline stage.
func (g Grid) PerStage() int { return g.TP * g.CP * g.DP }

// Process returns the size of the optimizer's process group: data times context parallel.
func (g Grid) Process() int { return g.DP * g.CP }

// Distributed returns the ranks over which the optimizer state is sharded. It is 0 if Redundant
// does not divide the process group.
func (g Grid) Distributed() int {
	if g.Redundant < 1 || g.Process()%g.Redundant != 0 {
		return 0
	}
	return g.Process() / g.Redundant
}

// Coord is a rank's place in the grid.
type Coord struct{ Tensor, Context, Data, Stage int }

// Rank returns the number of the rank at c.
//
//go:noinline
func (g Grid) Rank(c Coord) int {
	return ((c.Stage*g.DP+c.Data)*g.CP+c.Context)*g.TP + c.Tensor
}

// Coord returns the place of rank.
func (g Grid) Coord(rank int) Coord {
	return Coord{
		Tensor:  rank % g.TP,
		Context: rank / g.TP % g.CP,
		Data:    rank / (g.TP * g.CP) % g.DP,
		Stage:   rank / g.PerStage(),
	}
}

// Representative returns the rank that stands for a stage: its first.
func (g Grid) Representative(stage int) int { return stage * g.PerStage() }

// Node returns the node on which rank runs.
func (g Grid) Node(rank int) int { return rank / g.PerNode }
