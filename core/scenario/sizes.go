package scenario

// sizes are elements of parameters as one of tp tensor-parallel ranks holds them.
type sizes struct {
	proj, qkv, fc1, fc2 int64 // weights of a layer's linear layers
	biases              int64 // of those, 0 without
	norms               int64 // weights and biases of a layer's two norms
	word, position      int64
	finalNorm           int64
}

func (z sizes) weights() int64 { return z.proj + z.qkv + z.fc1 + z.fc2 }

// small returns what a layer has besides its weights.
func (z sizes) small() int64 { return z.biases + z.norms }

func (s *Scenario) sizes(tp int) sizes {
	n := int64(max(tp, 1))
	h, f := int64(s.Model.Hidden), int64(s.FFN())/n
	if s.Gated() {
		f *= 2
	}
	query := int64(s.KVChannels()) * int64(s.Model.Heads) / n
	qkv := query + 2*int64(s.KVChannels())*int64(s.QueryGroups())/n
	norm := 2 * h
	if s.RMSNorm() {
		norm = h
	}
	z := sizes{
		proj: h * query, qkv: qkv * h, fc1: f * h, fc2: h * int64(s.FFN()) / n,
		norms: 2 * norm, finalNorm: norm,
		word: int64(s.PaddedVocab()) / n * h,
	}
	if s.Model.Bias {
		z.biases = h + qkv + f + h
	}
	if s.Model.Position == LearnedAbsolute {
		z.position = int64(s.Model.SeqLength) * h
	}
	return z
}
