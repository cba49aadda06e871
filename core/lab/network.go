package lab

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
)

// network is a model with room for its activations: one pass of one rank at a time.
type network interface {
	// pass computes the mean loss of a rank's sequences and adds its gradients, times factor, to
	// grads. Both slices are by parameter.
	pass(params, grads [][]float32, data [][]int, factor float32) float32
	// length is how many characters a sequence has.
	length() int
}

// architecture returns the parameters of a network as a stage of the real model would hold them.
func (c *Config) architecture(d dtype.DType, fp8 bool) (*model.Stage, error) {
	if c.Model == Transformer {
		return model.BuildStage(model.Config{
			Layers: int64(c.Layers), Hidden: int64(c.Hidden), FFN: int64(c.FFN), Heads: int64(c.Heads), Groups: int64(c.Heads),
			KVChannels: int64(c.Hidden / c.Heads), Vocab: int64(len(alphabet)), Seq: int64(c.Window),
			LearnedPositions: true, Bias: true, Tied: true, FP8: fp8, FP8Params: fp8, DType: d,
		}, model.Split{TP: 1, PP: 1, VP: 1})
	}
	return c.mlpStage(d, fp8)
}

// network returns one for a stage.
func (c *Config) network(s *model.Stage) network {
	if c.Model == Transformer {
		return newTransformer(c, s)
	}
	return newMLP(c)
}

// initial returns the parameters that all variants begin with: weights normal with the deviation
// 1/√in, those that end a residual branch smaller, norms 1, biases 0.
func (c *Config) initial(s *model.Stage) [][]float32 {
	r := newRandom(c.Seed, 1)
	all := make([][]float32, len(s.Params))
	for p := range s.Params {
		q := &s.Params[p]
		n := int(q.Numel)
		switch {
		case q.Role == model.QKVNormWeight || q.Role == model.FC1NormWeight || q.Role == model.FinalNormWeight:
			all[p] = make([]float32, n)
			for i := range all[p] {
				all[p][i] = 1
			}
		case len(q.Shape) < 2:
			all[p] = make([]float32, n)
		case q.Role == model.WordEmbedding || q.Role == model.PositionEmbedding:
			all[p] = r.filled(n, 0.08)
		case q.Role == model.ProjWeight || q.Role == model.FC2Weight:
			all[p] = r.filled(n, 1/root(2*c.Layers*int(q.Shape[1])))
		default:
			all[p] = r.filled(n, 1/root(int(q.Shape[1])))
		}
	}
	return all
}

// data returns what rank reads in a step: it depends on the seed, the step and the rank alone.
func (c *Config) data(step, rank, length int) [][]int {
	r := newRandom(c.Seed, 2+uint64(step)<<16+uint64(rank))
	list := make([][]int, c.Batch)
	for i := range list {
		list[i] = sequence(r, length)
	}
	return list
}

// places finds a layer's parameters by their role.
func places(s *model.Stage, layer int) (at [model.OutputLayer + 1]bucket.ParamID) {
	for p := range s.Params {
		if s.Params[p].Layer == layer {
			at[s.Params[p].Role] = bucket.ParamID(p)
		}
	}
	return at
}
