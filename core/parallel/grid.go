// Package parallel is the rank grid: which rank holds which part of the model and of the batch,
// which ranks form each process group, and how a group lies on nodes.
//
// Ranks are numbered as Megatron-core numbers them: tensor fastest, then context, then data, then
// pipeline. Ranks fill nodes in order. Expert parallelism is not modelled.
package parallel

import "fmt"

// Grid is the parallel layout of a job. World = TP * CP * DP * PP.
type Grid struct {
	TP int // tensor-parallel size
	CP int // context-parallel size
	DP int // data-parallel size, context not counted
	PP int // pipeline stages
	VP int // model chunks on each stage; 1: no virtual stages

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
