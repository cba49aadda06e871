package scenario

import "math"

// sizes are elements of parameters as one rank holds them.
type sizes struct {
	proj, qkv, fc1, fc2 int64 // weights of a layer's linear layers
	biases, mlpBiases   int64 // of attention and MLP, 0 without
	norms               int64 // weights and biases of a layer's norms
	router, shared      int64 // of a layer with experts: router, and weights of shared experts
	expert              int64 // weights and biases of one expert
	experts             int64 // of a layer's local experts, 0: there are none
	word, position      int64
	finalNorm           int64
}

// weights returns what a layer with one MLP has in FP8 if it can.
func (z *sizes) weights() int64 { return z.proj + z.qkv + z.fc1 + z.fc2 }

// small returns what such a layer has besides its weights.
func (z *sizes) small() int64 { return z.biases + z.mlpBiases + z.norms }

// dense and sparse return a layer with one MLP, and one with experts.
func (z *sizes) dense() int64 { return z.weights() + z.small() }
func (z *sizes) sparse() int64 {
	return z.proj + z.qkv + z.biases + z.norms + z.router + z.shared + z.experts
}

// layerBounds returns the least and the most that a layer holds.
func (s *Scenario) layerBounds(z *sizes) (least, most int64) {
	switch {
	case s.Experts() == 0:
		return z.dense(), z.dense()
	case s.ExpertPattern() == "":
		return z.sparse(), z.sparse()
	}
	return min(z.dense(), z.sparse()), max(z.dense(), z.sparse())
}

func (s *Scenario) sizes() sizes {
	n := int64(max(s.Parallel.TP, 1))
	h, ffn := int64(s.Model.Hidden), int64(s.FFN())
	wide, bias, norms := int64(1), int64(0), int64(2)
	if s.Gated() {
		wide = 2
	}
	if s.Model.Bias {
		bias = 1
	}
	if s.RMSNorm() {
		norms = 1
	}
	f := wide * (ffn / n)
	query := int64(s.KVChannels()) * int64(s.Model.Heads) / n
	qkv := query + 2*int64(s.KVChannels())*int64(s.QueryGroups())/n
	z := sizes{
		proj: h * query, qkv: qkv * h, fc1: f * h, fc2: h * ffn / n,
		biases: bias * (h + qkv), mlpBiases: bias * (f + h),
		norms: 2 * norms * h, finalNorm: norms * h,
		word: int64(s.PaddedVocab()) / n * h,
	}
	if s.Model.QKNorm {
		z.norms += 2 * norms * int64(s.KVChannels())
	}
	if s.Model.Position == LearnedAbsolute {
		z.position = int64(s.Model.SeqLength) * h
	}
	if count := int64(s.Experts()); count > 0 {
		inner := int64(s.ExpertFFN()) / int64(max(s.ExpertTP(), 1))
		z.router = count * (h + bias)
		z.shared = (wide + 1) * (int64(s.Model.Experts.SharedFFN) / n) * h
		z.expert = (wide+1)*inner*h + bias*(wide*inner+h)
		local := max(count/int64(max(s.Parallel.EP, 1)), 1)
		z.experts = local * min(z.expert, math.MaxInt64/4/local)
	}
	return z
}

// layerParams returns how many parameters a layer has on a rank, at most.
func (s *Scenario) layerParams() int64 {
	const dense = 12 + 4 // with norms of queries and keys
	if s.Experts() == 0 {
		return dense
	}
	return dense + 4 + 4*int64(s.Experts()/max(s.Parallel.EP, 1))
}
