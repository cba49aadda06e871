package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/units"
)

// gpt is a small model with everything that a stage may hold.
var gpt = Config{
	Layers: 8, Hidden: 64, FFN: 256, Heads: 4, Groups: 2, KVChannels: 16, Vocab: 512, Seq: 32,
	LearnedPositions: true, Bias: true, Tied: true, DType: dtype.BF16,
}

func build(t testing.TB, c Config, s Split) *Stage {
	t.Helper()
	stage, err := BuildStage(c, s)
	require.NoError(t, err)
	return stage
}

// Names, order and shapes of specification §4.1, over two tensor-parallel ranks.
func TestParameterOrder(t *testing.T) {
	c := gpt
	c.Layers, c.FP8Params = 1, true
	s := build(t, c, Split{TP: 2, SP: true, PP: 1, VP: 1})
	type row struct {
		name   string
		shape  []int64
		module string
		fp8    bool
		sp, tp bool
	}
	var got []row
	for _, p := range s.Params {
		got = append(got, row{p.Name, p.Shape, s.Modules[p.Module].Name, p.FP8, p.SequenceParallel, p.TensorParallel})
	}
	const layer = "decoder.layers.0."
	require.Equal(t, []row{
		{"embedding.word_embeddings.weight", []int64{256, 64}, "embedding", false, false, true},
		{"embedding.position_embeddings.weight", []int64{32, 64}, "embedding_out", false, false, false},
		{layer + "self_attention.linear_proj.weight", []int64{64, 32}, "L0.proj", true, false, true},
		{layer + "self_attention.linear_proj.bias", []int64{64}, "L0.proj", false, true, false},
		{layer + "self_attention.linear_qkv.layer_norm_weight", []int64{64}, "L0.qkv", false, true, false},
		{layer + "self_attention.linear_qkv.layer_norm_bias", []int64{64}, "L0.qkv", false, true, false},
		{layer + "self_attention.linear_qkv.weight", []int64{64, 64}, "L0.qkv", true, false, true},
		{layer + "self_attention.linear_qkv.bias", []int64{64}, "L0.qkv", false, false, true},
		{layer + "mlp.linear_fc1.layer_norm_weight", []int64{64}, "L0.fc1", false, true, false},
		{layer + "mlp.linear_fc1.layer_norm_bias", []int64{64}, "L0.fc1", false, true, false},
		{layer + "mlp.linear_fc1.weight", []int64{128, 64}, "L0.fc1", true, false, true},
		{layer + "mlp.linear_fc1.bias", []int64{128}, "L0.fc1", false, false, true},
		{layer + "mlp.linear_fc2.weight", []int64{64, 128}, "L0.fc2", true, false, true},
		{layer + "mlp.linear_fc2.bias", []int64{64}, "L0.fc2", false, true, false},
		{"decoder.final_layernorm.weight", []int64{64}, "final_layernorm", false, true, false},
		{"decoder.final_layernorm.bias", []int64{64}, "final_layernorm", false, true, false},
	}, got)

	c.Gated, c.RMSNorm, c.Bias, c.LearnedPositions, c.Tied = true, true, false, false, false
	s = build(t, c, Split{TP: 1, PP: 1, VP: 1})
	var names []string
	for _, p := range s.Params {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{
		"embedding.word_embeddings.weight",
		layer + "self_attention.linear_proj.weight", layer + "self_attention.linear_qkv.layer_norm_weight",
		layer + "self_attention.linear_qkv.weight", layer + "mlp.linear_fc1.layer_norm_weight",
		layer + "mlp.linear_fc1.weight", layer + "mlp.linear_fc2.weight",
		"decoder.final_layernorm.weight", "output_layer.weight",
	}, names)
	require.Equal(t, []int64{512, 64}, s.Params[5].Shape, "a gated projection has two halves")
	require.Equal(t, dtype.BF16, s.Params[5].DType, "the nominal dtype of an FP8 weight stays")
	require.False(t, s.Params[8].Shared)
}

// Modules stand in forward order and own every parameter once.
func TestModules(t *testing.T) {
	s := build(t, gpt, Split{TP: 1, PP: 2, Index: 1, VP: 2})
	var names []string
	owner := make([]int, len(s.Params))
	for m, module := range s.Modules {
		names = append(names, module.Name)
		for _, p := range module.Params {
			require.Equal(t, m, s.Params[p].Module)
			require.Equal(t, module.Chunk, s.Params[p].Chunk)
			require.Equal(t, module.Layer, s.Params[p].Layer)
			owner[p]++
		}
	}
	for p, n := range owner {
		require.Equal(t, 1, n, s.Params[p].Name)
	}
	layers := []string{"L0.qkv", "L0.attn", "L0.proj", "L0.fc1", "L0.fc2", "L1.qkv", "L1.attn", "L1.proj", "L1.fc1", "L1.fc2"}
	require.Equal(t, append(append(append([]string{}, layers...), layers...), "final_layernorm", "output_layer", "loss"), names)
	require.Equal(t, "chunk1.output_layer.weight", s.Params[len(s.Params)-1].Name)
	require.True(t, s.Params[len(s.Params)-1].Shared, "the last stage's copy of tied weights")
	require.Equal(t, ParamIDs(2, 3, 4, 5), s.Modules[0].Params, "norm, weight, bias as forward reads them")
}

// ParamIDs shortens the table above.
func ParamIDs(ids ...bucket.ParamID) []bucket.ParamID { return ids }

// 8 layers over 2 stages and 2 chunks, specification §4.3; what does not divide is dropped.
func TestStageSplit(t *testing.T) {
	for _, tt := range []struct {
		layers    int64
		pp, vp    int
		stage     int
		first     []int
		perChunk  int
		pre, post []bool
	}{
		{8, 2, 2, 0, []int{0, 4}, 2, []bool{true, false}, []bool{false, false}},
		{8, 2, 2, 1, []int{2, 6}, 2, []bool{false, false}, []bool{false, true}},
		{8, 4, 1, 2, []int{4}, 2, []bool{false}, []bool{false}},
		{11, 2, 1, 1, []int{5}, 5, []bool{false}, []bool{true}},
		{3, 1, 1, 0, []int{0}, 3, []bool{true}, []bool{true}},
	} {
		c := gpt
		c.Layers = tt.layers
		s := build(t, c, Split{TP: 1, PP: tt.pp, Index: tt.stage, VP: tt.vp})
		require.Len(t, s.Chunks, tt.vp)
		end := [2]int{}
		for v, chunk := range s.Chunks {
			require.Equal(t, tt.first[v], chunk.FirstLayer)
			require.Equal(t, tt.perChunk, chunk.Layers)
			require.Equal(t, tt.pre[v], chunk.Pre)
			require.Equal(t, tt.post[v], chunk.Post)
			require.Equal(t, end, [2]int{chunk.Params[0], chunk.Modules[0]}, "chunks follow each other")
			end = [2]int{chunk.Params[1], chunk.Modules[1]}
		}
		require.Equal(t, [2]int{len(s.Params), len(s.Modules)}, end)
	}
}

// The parameters of all ranks and stages add up to the model's.
func TestWholeModel(t *testing.T) {
	// GPT-3 175B, untied: 12 h^2 + 13 h per layer, two vocabularies, positions, final norm.
	c := Config{
		Layers: 96, Hidden: 12288, FFN: 49152, Heads: 96, Groups: 96, KVChannels: 128, Vocab: 51200, Seq: 2048,
		LearnedPositions: true, Bias: true, DType: dtype.BF16,
	}
	const h = 12288
	want := units.Elems(96*(12*h*h+13*h) + 2*51200*h + 2048*h + 2*h)
	for _, split := range []Split{{TP: 1, PP: 1, VP: 1}, {TP: 8, PP: 8, VP: 6}} {
		total := units.Elems(0)
		for split.Index = range split.PP {
			for _, p := range build(t, c, split).Params {
				if p.TensorParallel {
					total += p.Numel * units.Elems(split.TP)
				} else {
					total += p.Numel
				}
			}
		}
		require.Equal(t, want, total)
	}
}

func TestOptimizerGroups(t *testing.T) {
	s := build(t, gpt, Split{TP: 1, PP: 1, VP: 1})
	groups := s.OptimizerGroups(false)
	require.Len(t, groups, 2)
	for _, p := range groups[1] {
		require.Regexp(t, `\.bias$`, s.Params[p].Name)
	}
	require.Len(t, groups[1], 4*8+1)
	require.Len(t, groups[0], len(s.Params)-4*8-1)
	one := s.OptimizerGroups(true)
	require.Len(t, one, 1)
	require.Len(t, one[0], len(s.Params))
}

func TestPadVocab(t *testing.T) {
	for _, tt := range []struct {
		tokens, divisor int64
		tp              int
		want            int64
	}{
		{50257, 128, 1, 50304}, {50257, 128, 8, 51200}, {51200, 128, 8, 51200}, {1, 128, 1, 128},
	} {
		got, err := PadVocab(tt.tokens, tt.divisor, tt.tp)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	for _, bad := range [][3]int64{{0, 128, 1}, {50257, 0, 1}, {50257, 128, -1}, {1 << 40, 128, 1}} {
		_, err := PadVocab(bad[0], bad[1], int(bad[2]))
		require.Error(t, err)
	}
}

func TestBuildStageRefuses(t *testing.T) {
	for path, damage := range map[string]func(c *Config, s *Split){
		"num_layers: got 0":                    func(c *Config, s *Split) { c.Layers = 0 },
		"num_layers: got 8":                    func(c *Config, s *Split) { s.PP = 3; s.VP = 4 },
		"num_layers: got 1000000000000":        func(c *Config, s *Split) { c.Layers = 1e12 },
		"hidden_size: got -64":                 func(c *Config, s *Split) { c.Hidden = -64 },
		"num_attention_heads: got 4, want a m": func(c *Config, s *Split) { s.TP = 8 },
		"num_query_groups: got 2, want a m":    func(c *Config, s *Split) { s.TP = 4 },
		"ffn_hidden_size: got 255":             func(c *Config, s *Split) { s.TP, c.FFN = 2, 255 },
		"vocab_size: got 513":                  func(c *Config, s *Split) { s.TP, c.Vocab = 2, 513 },
		"kv_channels":                          func(c *Config, s *Split) { c.KVChannels, c.Heads = 1<<20, 1<<20 },
		"embedding.word_embeddings.weight":     func(c *Config, s *Split) { c.Vocab, c.Hidden = 1<<31, 1<<31 },
		"pipeline stage: got 1":                func(c *Config, s *Split) { s.Index = 1 },
		"tensor_model_parallel_size: got 0":    func(c *Config, s *Split) { s.TP = 0 },
	} {
		c, s := gpt, Split{TP: 1, PP: 1, VP: 1}
		damage(&c, &s)
		_, err := BuildStage(c, s)
		require.ErrorContains(t, err, path)
	}
}

func BenchmarkBuildStage(b *testing.B) {
	c := gpt
	c.Layers = 128
	b.ReportAllocs()
	for b.Loop() {
		if _, err := BuildStage(c, Split{TP: 1, PP: 1, VP: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
