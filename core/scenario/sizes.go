package scenario

import "math"

// sizes are elements of parameters as one rank holds them.
type sizes struct {
	proj, qkv, fc1, fc2 int64 // weights of a layer's linear layers; the last two are 0 with experts
	biases              int64 // of those, 0 without
	norms               int64 // weights and biases of a layer's two norms
	experts             int64 // weights of a layer's local experts
	expert              int64 // of one of them
	router, shared      int64 // of a layer with experts: router, and weights of shared experts
	word, position      int64
	finalNorm           int64
}

func (z *sizes) weights() int64 { return z.proj + z.qkv + z.fc1 + z.fc2 + z.shared + z.experts }

// small returns what a layer has besides its weights.
func (z *sizes) small() int64 { return z.biases + z.norms + z.router }

func (z *sizes) layer() int64 { return z.weights() + z.small() }

func (s *Scenario) sizes() sizes {
	n := int64(max(s.Parallel.TP, 1))
	h, ffn := int64(s.Model.Hidden), int64(s.FFN())
	wide := int64(1)
	if s.Gated() {
		wide = 2
	}
	f := wide * (ffn / n)
	query := int64(s.KVChannels()) * int64(s.Model.Heads) / n
	qkv := query + 2*int64(s.KVChannels())*int64(s.QueryGroups())/n
	norm := 2 * h
	if s.RMSNorm() {
		norm = h
	}
	z := sizes{
		proj: h * query, qkv: qkv * h, fc1: f * h, fc2: h * ffn / n,
		norms: 2 * norm, finalNorm: norm,
		word: int64(s.PaddedVocab()) / n * h,
	}
	if s.Model.Bias {
		z.biases = h + qkv + f + h
	}
	if s.Model.Position == LearnedAbsolute {
		z.position = int64(s.Model.SeqLength) * h
	}
	if count := int64(s.Experts()); count > 0 {
		if s.Model.Bias {
			z.biases = h + qkv
		}
		z.fc1, z.fc2 = 0, 0
		z.router = count * h
		z.shared = (wide + 1) * int64(s.Model.Experts.SharedFFN) / n * h
		z.expert = (wide + 1) * int64(s.ExpertFFN()) / int64(max(s.ExpertTP(), 1)) * h
		z.experts = math.MaxInt64 / 4
		if local := count / int64(max(s.Parallel.EP, 1)); z.expert == 0 || local < z.experts/z.expert {
			z.experts = local * z.expert
		}
	}
	return z
}

// layerParams returns how many parameters a layer has on a rank, at most.
func (s *Scenario) layerParams() int64 {
	const dense = 12
	if s.Experts() == 0 {
		return dense
	}
	return dense + 3 + 2*int64(s.Experts()/max(s.Parallel.EP, 1))
}
