package model

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/units"
)

// megatronModel is a model of testdata/mcore_params.json.gz.
type megatronModel struct {
	Layers, Hidden, FFN, Heads, Groups, Vocab, Seq, Experts int64

	Pos, Norm, Quant string
	Bias, Tied       *bool
	GLU              bool
	TP, PP, VP, EP   int
	Rank             int    `json:"pp_rank"`
	ExpertFFN        int64  `json:"moe_ffn"`
	SharedFFN        int64  `json:"shared_ffn"`
	RouterDType      string `json:"router_dtype"`
}

func (m *megatronModel) build() (*Stage, error) {
	return BuildStage(Config{
		Layers: m.Layers, Hidden: m.Hidden, FFN: m.FFN, Heads: m.Heads, Groups: cmp.Or(m.Groups, m.Heads),
		KVChannels: m.Hidden / m.Heads, Vocab: m.Vocab, Seq: max(m.Seq, 1), DType: dtype.BF16,
		LearnedPositions: m.Pos == "learned", RMSNorm: m.Norm == "rmsnorm", Gated: m.GLU,
		Bias: m.Bias == nil || *m.Bias, Tied: m.Tied == nil || *m.Tied, FP8Params: m.Quant != "",
		Experts: m.Experts, ExpertFFN: m.ExpertFFN, SharedFFN: m.SharedFFN, FP32RouterWeight: m.RouterDType == "fp32",
	}, Split{TP: max(m.TP, 1), PP: max(m.PP, 1), Index: m.Rank, VP: max(m.VP, 1), EP: m.EP})
}

// Names, shapes, dtypes, flags and order of all parameters are those of Megatron-Core.
func TestMegatronParameters(t *testing.T) {
	f, err := os.Open("testdata/mcore_params.json.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var d struct {
		Cases []struct {
			Name   string
			Model  megatronModel
			Params [][][4]any
		}
	}
	require.NoError(t, json.NewDecoder(z).Decode(&d))
	require.NotEmpty(t, d.Cases)
	for _, tt := range d.Cases {
		s, err := tt.Model.build()
		require.NoError(t, err, tt.Name)
		require.Len(t, tt.Params, len(s.Chunks), tt.Name)
		for v, want := range tt.Params {
			got := [][4]any{}
			for i := s.Chunks[v].Params[0]; i < s.Chunks[v].Params[1]; i++ {
				p := &s.Params[i]
				flags, shape := map[string]any{}, []any{}
				if p.FP8 {
					flags["q"] = tt.Model.Quant
				}
				if p.Expert {
					flags["allreduce"] = false
				}
				if p.SharedEmbedding {
					flags["shared_embedding"] = true
				}
				for _, n := range p.Shape {
					shape = append(shape, float64(n))
				}
				got = append(got, [4]any{strings.TrimPrefix(p.Name, "chunk"+strconv.Itoa(v)+"."), shape, p.DType.String(), flags})
			}
			require.Equal(t, want, got, "%s chunk %d", tt.Name, v)
		}
	}
}

// A model with everything: order of registration, and modules in forward order.
func TestExpertLayers(t *testing.T) {
	c := gpt
	c.QKNorm, c.Experts, c.TopK, c.ExpertFFN, c.SharedFFN, c.ExpertLayers, c.FP32RouterWeight = true, 4, 2, 32, 16, "01", true
	s := build(t, c, Split{TP: 2, SP: true, PP: 2, Index: 1, VP: 2, EP: 2, ETP: 1})
	const layer = "chunk1.decoder.layers.1."
	var names []string
	for _, p := range s.Params {
		if p.Chunk == 1 && p.Layer == 1 {
			names = append(names, strings.TrimPrefix(p.Name, layer))
		}
		require.Equal(t, p.Role >= ExpertFC1Weight && p.Role <= ExpertFC2Bias, p.Expert, p.Name)
		if p.Role == RouterWeight {
			require.Equal(t, dtype.FP32, p.DType)
			require.True(t, p.SequenceParallel)
		}
	}
	require.Equal(t, []string{
		"self_attention.linear_proj.weight", "self_attention.linear_proj.bias",
		"self_attention.linear_qkv.layer_norm_weight", "self_attention.linear_qkv.layer_norm_bias",
		"self_attention.linear_qkv.weight", "self_attention.linear_qkv.bias",
		"self_attention.q_layernorm.weight", "self_attention.q_layernorm.bias",
		"self_attention.k_layernorm.weight", "self_attention.k_layernorm.bias",
		"pre_mlp_layernorm.weight", "pre_mlp_layernorm.bias", "mlp.router.weight", "mlp.router.bias",
		"mlp.experts.linear_fc1.weight0", "mlp.experts.linear_fc1.bias0", "mlp.experts.linear_fc1.weight1", "mlp.experts.linear_fc1.bias1",
		"mlp.experts.linear_fc2.weight0", "mlp.experts.linear_fc2.bias0", "mlp.experts.linear_fc2.weight1", "mlp.experts.linear_fc2.bias1",
		"mlp.shared_experts.linear_fc1.weight", "mlp.shared_experts.linear_fc2.weight",
	}, names)
	names = nil
	owned := 0
	for m, module := range s.Modules {
		for _, p := range module.Params {
			require.Equal(t, m, s.Params[p].Module)
		}
		owned += len(module.Params)
		if module.Chunk == 0 {
			names = append(names, module.Name)
		}
	}
	require.Equal(t, len(s.Params), owned)
	require.Equal(t, []string{
		"L0.qkv", "L0.attn", "L0.proj", "L0.fc1", "L0.fc2",
		"L1.qkv", "L1.attn", "L1.proj", "L1.mlp_norm", "L1.router", "L1.experts.fc1", "L1.experts.fc2", "L1.shared.fc1", "L1.shared.fc2",
	}, names)

	// With one expert-parallel rank and the same tensor parallelism experts are like other parameters.
	for _, p := range build(t, c, Split{TP: 2, SP: true, PP: 1, VP: 1}).Params {
		require.False(t, p.Expert, p.Name)
	}
	require.True(t, build(t, c, Split{TP: 2, SP: true, PP: 1, VP: 1, ETP: 1}).expert())
}

// mixtral8x7B and qwen3 are published models (their config.json).
var (
	mixtral8x7B = Config{
		Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, Groups: 8, KVChannels: 128, Vocab: 32000, Seq: 4096,
		RMSNorm: true, Gated: true, DType: dtype.BF16, Experts: 8, TopK: 2,
	}
	qwen3 = Config{
		Layers: 48, Hidden: 2048, FFN: 6144, Heads: 32, Groups: 4, KVChannels: 128, Vocab: 151936, Seq: 4096,
		RMSNorm: true, Gated: true, QKNorm: true, DType: dtype.BF16, Experts: 128, TopK: 8, ExpertFFN: 768,
	}
)

// Totals are those of the models' authors (46.7B and 12.9B; 30.5B and 3.3B), and what the ranks of
// all stages hold.
func TestParameterCounts(t *testing.T) {
	total, active := mixtral8x7B.Parameters()
	require.InDelta(t, 46.7e9, float64(total), 0.05e9)
	require.InDelta(t, 12.9e9, float64(active), 0.05e9)
	total, active = qwen3.Parameters()
	require.InDelta(t, 30.5e9, float64(total), 0.05e9)
	require.InDelta(t, 3.3e9, float64(active), 0.1e9)

	odd := gpt
	odd.QKNorm, odd.Experts, odd.ExpertFFN, odd.SharedFFN, odd.ExpertLayers, odd.Tied, odd.TopK = true, 4, 32, 16, "011", false, 3
	for _, c := range []Config{gpt, odd, mixtral8x7B, gpt5B, llama70B} {
		total, _ := c.Parameters()
		for _, split := range []Split{{TP: 1, PP: 1, VP: 1}, {TP: 2, PP: 2, VP: 2, EP: 4, ETP: 1}} {
			sum := units.Elems(0)
			for split.Index = range split.PP {
				s := build(t, c, split)
				for _, p := range s.Params {
					switch {
					case p.Shared:
					case p.Role >= ExpertFC1Weight && p.Role <= ExpertFC2Bias:
						sum += p.Numel * units.Elems(s.EP*s.ETP)
					case p.TensorParallel:
						sum += p.Numel * units.Elems(split.TP)
					default:
						sum += p.Numel
					}
				}
				require.Positive(t, s.Parameters())
			}
			require.Equal(t, total, sum, "%+v", split)
		}
	}
}

// FLOPs of a token that Megatron Bridge's tables imply: 936 TFLOP/s at 40,706 tokens/s for Qwen3 30B
// (GB200, 26.06), 878 at 5,936 for 235B (B300).
func TestExpertFLOPs(t *testing.T) {
	perToken := func(c Config) float64 {
		causal, _ := c.ModelFLOPs(1)
		return float64(causal) / float64(c.Seq)
	}
	require.InEpsilon(t, 936e12/40706, perToken(qwen3), 0.001)
	large := qwen3
	large.Layers, large.Hidden, large.Heads, large.ExpertFFN = 94, 4096, 64, 1536
	require.InEpsilon(t, 878e12/5936, perToken(large), 0.0015)
}

func TestExpertPattern(t *testing.T) {
	for in, want := range map[string]string{
		"1": "1", " 3 ": "100", "[0,1,1]": "011", "[0, 1] * 2": "0101", "2*[1,0]": "1010",
		"([0]*3+[1]*4)": "0001111", "[0]+[1]*2": "011", "([1,0]*2)+[1]": "10101",
	} {
		got, err := ExpertPattern(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"", "0", "-1", "x", "[2]", "[1]*-1", "[1]*9999999", "[]", "([1]*", "[1]*2*2", "1e9", "[[1]]"} {
		_, err := ExpertPattern(in)
		require.Error(t, err, in)
	}
}

func TestExpertsRefused(t *testing.T) {
	for path, damage := range map[string]func(c *Config, s *Split){
		"num_moe_experts: got -1":                        func(c *Config, s *Split) { c.Experts = -1 },
		"num_moe_experts: got 8, want a m":               func(c *Config, s *Split) { s.EP = 3 },
		"moe_router_topk: got 9":                         func(c *Config, s *Split) { c.TopK = 9 },
		"moe_ffn_hidden_size: got -2":                    func(c *Config, s *Split) { c.ExpertFFN = -2 },
		"moe_ffn_hidden_size: got 14336, want a m":       func(c *Config, s *Split) { s.ETP = 3 },
		"moe_shared_expert_intermediate_size: got 33, w": func(c *Config, s *Split) { c.SharedFFN, s.TP = 33, 2 },
		"moe_layer_freq":                                 func(c *Config, s *Split) { c.ExpertLayers = "012" },
		"expert_model_parallel_size: got -1":             func(c *Config, s *Split) { s.EP = -1 },
		"num_moe_experts: got 1048576":                   func(c *Config, s *Split) { c.Experts = 1 << 20 },
	} {
		c, s := mixtral8x7B, Split{TP: 1, PP: 1, VP: 1}
		damage(&c, &s)
		_, err := BuildStage(c, s)
		require.ErrorContains(t, err, path)
	}
}

// The products of all kernels are the model's arithmetic and the routers', however it is cut.
func TestExpertKernelFLOPsAddUp(t *testing.T) {
	shared := qwen3
	shared.SharedFFN, shared.ExpertLayers, shared.FP8 = 1024, "10", true
	for _, c := range []Config{mixtral8x7B, qwen3, shared} {
		causal, _ := c.ModelFLOPs(2)
		for _, e := range []Execution{
			{Micro: 2, TP: 1},
			{Micro: 2, TP: 1, EP: 8},
			{Micro: 2, TP: 4, SP: true, EP: 2},
			{Micro: 2, TP: 4, SP: true, EP: 8, ETP: 1, Dispatch: AllGather},
			{Micro: 2, TP: 2, SP: true, CP: 2, EP: 2, ETP: 2, Dispatch: Flex},
		} {
			sum := 0.0
			for _, p := range passes(t, c) {
				for _, k := range c.Kernels(&e, p) {
					sum += float64(k.FLOPs) * float64(e.TP*max(e.CP, 1))
				}
			}
			tokens := 2 * float64(c.Seq)
			attention := float64(c.Layers) * tokens * float64(c.Seq) * float64(c.KVChannels*c.Heads) // recomputed scores
			routers := 6 * tokens * float64(c.numExpertLayers()) * float64(c.Experts*c.Hidden)
			require.InEpsilon(t, float64(causal)+attention+routers, sum, 1e-9, "%+v", e)
		}
	}
}

// A layer of Mixtral over eight ranks, by name; over one rank nothing is sent.
func TestExpertLayerKernels(t *testing.T) {
	names := func(c Config, e Execution, backward bool) (all []string) {
		modules := []ModuleKind{MLPNorm, Router, ExpertFC1, ExpertFC2}
		if backward {
			slices.Reverse(modules)
		}
		for _, m := range modules {
			for _, k := range c.Kernels(&e, Pass{Module: m, Backward: backward}) {
				all = append(all, k.Name)
			}
		}
		return all
	}
	e := Execution{Micro: 1, TP: 2, SP: true, EP: 4}
	require.Equal(t, []string{
		"norm", "router", "top-k", "load balancing loss", "permute", "token counts all-gather", "dispatch all-to-all",
		"dispatch all-gather", "sort by expert", "experts fc1", "activation", "experts fc2", "sort by expert",
		"combine reduce-scatter", "combine all-to-all", "unpermute", "bias, residual",
	}, names(mixtral8x7B, e, false))
	require.Equal(t, []string{
		"permute gradient", "dispatch gradient all-to-all", "dispatch gradient all-gather", "sort by expert gradient",
		"experts fc2 input gradient", "experts fc2 weight gradient", "activation backward",
		"experts fc1 input gradient", "experts fc1 weight gradient", "sort by expert gradient",
		"combine gradient reduce-scatter", "combine gradient all-to-all", "unpermute gradient",
		"load balancing gradient", "top-k gradient", "router input gradient", "router weight gradient", "add router gradient",
		"norm backward", "residual gradient",
	}, names(mixtral8x7B, e, true))
	require.Equal(t, []string{
		"norm", "router", "top-k", "load balancing loss", "permute", "experts fc1", "activation", "experts fc2", "unpermute", "bias, residual",
	}, names(mixtral8x7B, Execution{Micro: 1, TP: 1}, false))
	e.Dispatch = AllGather
	require.Contains(t, names(mixtral8x7B, e, false), "tokens all-gather")
	e.Recompute = FullLayers
	require.Contains(t, names(mixtral8x7B, e, true), "recomputed tokens all-gather")
}

// A token that chooses two of eight experts, two on a rank, reaches each of four ranks but for the
// chance that both of its experts are elsewhere.
func TestDistinctRanks(t *testing.T) {
	require.InDelta(t, 4*(1-6.0/8*5/7), distinct(8, 2, 2), 1e-12)
	require.InDelta(t, 2, distinct(8, 1, 2), 1e-12)
	require.InDelta(t, 1, distinct(8, 8, 2), 1e-12)
	sent := func(d Dispatch) (n units.Bytes) {
		for _, k := range qwen3.Kernels(&Execution{Micro: 1, TP: 1, EP: 8, Dispatch: d}, Pass{Module: ExpertFC1}) {
			if k.AllToAll {
				n += k.Bytes
			}
		}
		return n
	}
	require.InEpsilon(t, distinct(128, 16, 8)/8, float64(sent(Flex))/float64(sent(AllToAll)), 1e-3)
}

// With a capacity experts get as many tokens as it says, or fewer.
func TestCapacity(t *testing.T) {
	rows := func(e Execution) int64 {
		e.Micro, e.TP, e.EP = 1, 1, 8
		for _, k := range mixtral8x7B.Kernels(&e, Pass{Module: ExpertFC1}) {
			if k.Kind == GEMM {
				require.Equal(t, int64(1), k.Groups)
				return k.M
			}
		}
		return 0
	}
	require.Equal(t, int64(8192), rows(Execution{}))
	require.Equal(t, int64(4096), rows(Execution{Capacity: 0.5}))
	require.Equal(t, int64(8192), rows(Execution{Capacity: 1.25}), "a balanced load does not fill it")
	require.Equal(t, int64(10240), rows(Execution{Capacity: 1.25, PadToCapacity: true}))
}
