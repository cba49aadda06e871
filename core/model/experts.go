package model

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/units"
)

// Layers with experts, as Megatron-core builds them with grouped GEMMs (moe_grouped_gemm).

// expertLayer reports whether a layer of the whole model has experts.
func (c *Config) expertLayer(layer int) bool {
	if c.Experts == 0 || c.ExpertLayers == "" {
		return c.Experts > 0
	}
	return c.ExpertLayers[layer%len(c.ExpertLayers)] == '1'
}

// numExpertLayers counts the layers with experts.
func (c *Config) numExpertLayers() (n int64) {
	for layer := range int(c.Layers) {
		if c.expertLayer(layer) {
			n++
		}
	}
	return n
}

func (c *Config) expertFFN() int64 {
	if c.ExpertFFN == 0 {
		return c.FFN
	}
	return c.ExpertFFN
}

// ExpertPattern reads moe_layer_freq into Config.ExpertLayers: a number, every which layer from the
// first on has experts, or a list of 0 and 1 for each layer as Python writes it: "[0,1,1]", "([0]*3+[1]*58)".
func ExpertPattern(freq string) (string, error) {
	bad := fmt.Errorf(`moe_layer_freq: got %.40q, want a number above 0 or a list of 0 and 1; write it like "[0,1,1]" or "([0]*3+[1]*58)"`, freq)
	s := strings.ReplaceAll(freq, " ", "")
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > maxLayers {
			return "", bad
		}
		return "1" + strings.Repeat("0", n-1), nil
	}
	var out strings.Builder
	for term := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(s, "("), ")"), "+") {
		list, times, repeated := strings.Cut(strings.Trim(term, "()"), "*")
		if repeated && !strings.HasPrefix(list, "[") {
			list, times = times, list
		}
		n, err := 1, error(nil)
		if repeated {
			n, err = strconv.Atoi(times)
		}
		if err != nil || n < 0 || n > maxLayers || len(list) > 2*maxLayers || !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, "]") {
			return "", bad
		}
		part := strings.ReplaceAll(list[1:len(list)-1], ",", "")
		if out.Len()+n*len(part) > maxLayers || strings.Trim(part, "01") != "" {
			return "", bad
		}
		out.WriteString(strings.Repeat(part, n))
	}
	if out.Len() == 0 {
		return "", bad
	}
	return out.String(), nil
}

// checkExperts is check for experts.
func (c *Config) checkExperts(s Split) error {
	if c.Experts == 0 {
		return nil
	}
	ep := int64(max(s.EP, 1))
	etp := int64(s.ETP)
	if etp == 0 {
		etp = int64(s.TP)
	}
	for _, f := range []struct {
		path          string
		got, low, top int64
	}{
		{"num_moe_experts", c.Experts, 1, maxDim},
		{"moe_router_topk", c.TopK, 0, c.Experts},
		{"moe_ffn_hidden_size", c.ExpertFFN, 0, maxDim},
		{"moe_shared_expert_intermediate_size", c.SharedFFN, 0, maxDim},
		{"expert_model_parallel_size", int64(s.EP), 0, maxDim},
		{"expert_tensor_parallel_size", int64(s.ETP), 0, maxDim},
	} {
		if f.got < f.low || f.got > f.top {
			return fmt.Errorf("%s: got %d, want %d to %d", f.path, f.got, f.low, f.top)
		}
	}
	for _, f := range []struct {
		path string
		got  int64
		by   string
		n    int64
	}{
		{"num_moe_experts", c.Experts, "expert_model_parallel_size", ep},
		{"moe_ffn_hidden_size", c.expertFFN(), "expert_tensor_parallel_size", etp},
		{"moe_shared_expert_intermediate_size", c.SharedFFN, "tensor_model_parallel_size", int64(s.TP)},
	} {
		if f.got%f.n != 0 {
			return fmt.Errorf("%s: got %d, want a multiple of %s %d; set it to %d", f.path, f.got, f.by, f.n, (f.got/f.n+1)*f.n)
		}
	}
	if perStage := c.Experts / ep * (c.Layers/int64(s.PP) + 1); perStage > maxExperts {
		return fmt.Errorf("num_moe_experts: got %d, that is %d on a stage, want at most %d; raise expert_model_parallel_size", c.Experts, perStage, maxExperts)
	}
	if strings.Trim(c.ExpertLayers, "01") != "" {
		return fmt.Errorf("moe_layer_freq: got %.40q, want only 0 and 1", c.ExpertLayers)
	}
	return nil
}

// maxExperts bounds the experts of a stage, far beyond any model.
const maxExperts = 1 << 16

// Parameters counts the parameters of the whole model, and those that work on one token: of the
// experts only the chosen ones.
func (c *Config) Parameters() (total, active units.Elems) {
	query, qkv := c.heads()
	h := c.Hidden
	norms, bias := int64(2), int64(0)
	if c.RMSNorm {
		norms = 1
	}
	if c.Bias {
		bias = 1
	}
	layer := (query+qkv)*h + bias*(qkv+h) + 2*norms*h
	if c.QKNorm {
		layer += 2 * norms * c.KVChannels
	}
	mlp := func(ffn int64) int64 { return (c.wide(ffn)+ffn)*h + bias*(c.wide(ffn)+h) }
	sparse := c.numExpertLayers()
	n := c.Layers*layer + (c.Layers-sparse)*mlp(c.FFN) + c.Vocab*h + norms*h
	if !c.Tied {
		n += c.Vocab * h
	}
	if c.LearnedPositions {
		n += c.Seq * h
	}
	n += sparse * (c.Experts*(h+bias) + (c.wide(c.SharedFFN)+c.SharedFFN)*h)
	expert := sparse * mlp(c.expertFFN())
	return units.Elems(n + c.Experts*expert), units.Elems(n + max(c.TopK, 1)*expert)
}

// Parameters counts what one rank of the stage holds.
func (s *Stage) Parameters() (n units.Elems) {
	for p := range s.Params {
		n += s.Params[p].Numel
	}
	return n
}

// expert reports whether experts are reduced over another group than the rest.
func (s *Split) expert() bool { return s.EP > 1 || s.ETP != s.TP }

func (b *stageBuilder) expertModules(trace string) {
	b.add(MLPNorm, trace+"mlp_norm")
	b.add(Router, trace+"router")
	b.add(ExpertFC1, trace+"experts.fc1")
	b.add(ExpertFC2, trace+"experts.fc2")
	if b.stage.Config.SharedFFN > 0 {
		b.add(SharedFC1, trace+"shared.fc1")
		b.add(SharedFC2, trace+"shared.fc2")
	}
}

// experts appends what stands in the place of a dense MLP. A grouped projection registers the
// weight and the bias of one expert after the other; shared experts have no biases.
func (b *stageBuilder) experts(layer string) {
	c, s := &b.stage.Config, b.stage
	h, ffn, etp := c.Hidden, c.expertFFN(), int64(s.ETP)
	b.norm(MLPNormWeight, MLPNorm, layer+"pre_mlp_layernorm", h)
	mlp := layer + "mlp."
	b.param(RouterWeight, Router, mlp+"router.weight", c.Experts, h)
	if c.Bias {
		b.param(RouterBias, Router, mlp+"router.bias", c.Experts)
	}
	for k := range c.Experts / int64(s.EP) {
		b.expert(ExpertFC1Weight, ExpertFC1, mlp+"experts.linear_fc1.", k, c.wide(ffn)/etp, h)
	}
	for k := range c.Experts / int64(s.EP) {
		b.expert(ExpertFC2Weight, ExpertFC2, mlp+"experts.linear_fc2.", k, h, ffn/etp)
	}
	if c.SharedFFN > 0 {
		b.param(SharedFC1Weight, SharedFC1, mlp+"shared_experts.linear_fc1.weight", c.wide(c.SharedFFN)/b.tp, h)
		b.param(SharedFC2Weight, SharedFC2, mlp+"shared_experts.linear_fc2.weight", h, c.SharedFFN/b.tp)
	}
}

// expert appends one expert's projection; the role of its bias follows that of its weight.
func (b *stageBuilder) expert(weight Role, owner ModuleKind, name string, k, out, in int64) {
	n := strconv.FormatInt(k, 10)
	b.param(weight, owner, name+"weight"+n, out, in)
	if b.stage.Config.Bias {
		b.param(weight+1, owner, name+"bias"+n, out)
	}
}

// norm appends a norm of its own; the role of its bias follows that of its weight.
func (b *stageBuilder) norm(weight Role, owner ModuleKind, name string, size int64) {
	b.param(weight, owner, name+".weight", size)
	if !b.stage.Config.RMSNorm {
		b.param(weight+1, owner, name+".bias", size)
	}
}
