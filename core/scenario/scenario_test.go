package scenario

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// good is a valid scenario with every kind of parallelism.
func good() Scenario {
	s := Default(NeMoAdam)
	experts := s.Model.Experts
	s.Model = Model{
		Experts: experts,
		Layers:  24, Hidden: 1024, FFN: 4096, Heads: 16, QueryGroups: 8, SeqLength: 2048, TokenizerVocab: 50257,
		VocabDivisor: 128, Position: LearnedAbsolute, Activation: "gelu", Normalization: "layernorm", Bias: true, Tied: true, MCore: true,
	}
	s.Batch = Batch{Micro: 2, Global: 64}
	s.Parallel = Parallel{TP: 2, PP: 4, CP: 2, VP: 3, EP: 1, SequenceParallel: true, BatchP2P: true}
	s.Precision.Trainer, s.Precision.O2, s.Precision.FP8, s.Precision.FP8Params = BF16, true, true, true
	s.Optim.GradSync = "bf16"
	s.Hardware.Nodes, s.Hardware.Devices = 8, 8
	return s
}

func TestGood(t *testing.T) {
	s := good()
	errs, notes := s.Validate()
	require.NoError(t, errs.Err())
	require.Empty(t, notes)
	require.Equal(t, Derived{
		World: 64, DP: 4, Microbatches: 8, PaddedVocab: 50432, StageLayers: 6,
		Parameters:  24*(1024*1024*2+1024*512*2+2*1024*4096+(1024+2048+4096+1024)+4*1024) + (50432+2048)*1024 + 2*1024,
		Distributed: 8, Redundant: 1, BucketSize: 100 << 19, ShardSize: 100 << 16,
	}, s.Derive())
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *Scenario)
		want string
	}{
		{"range", func(s *Scenario) { s.Model.Layers = 0 }, "model.num_layers: got 0, want an integer from 1 to 10,000; " +
			"set model.num_layers to 1, model.pipeline_model_parallel_size to 1 and model.virtual_pipeline_model_parallel_size to null"},
		{"choice", func(s *Scenario) { s.Framework.Version = "aftr" }, "framework.version: got aftr, want before, before-new-apex, after-old-apex or after; set framework.version to after"},
		{"heads by TP", func(s *Scenario) { s.Model.Heads, s.Model.KVChannels, s.Model.QueryGroups = 15, 64, 0 },
			"model.num_attention_heads: got 15, want a multiple of tensor_model_parallel_size (2); set model.tensor_model_parallel_size to 1"},
		{"groups by TP", func(s *Scenario) { s.Model.QueryGroups = 1 },
			"model.num_query_groups: got 1, want a multiple of tensor_model_parallel_size (2); set model.tensor_model_parallel_size to 1"},
		{"heads by groups", func(s *Scenario) { s.Model.QueryGroups = 6 },
			"model.num_query_groups: got 6, want a divisor of num_attention_heads (16); set model.num_query_groups to 4"},
		{"ffn by TP", func(s *Scenario) { s.Model.FFN, s.Precision.FP8, s.Precision.FP8Params = 4097, false, false },
			"model.ffn_hidden_size: got 4097, want a multiple of tensor_model_parallel_size (2); set model.tensor_model_parallel_size to 1"},
		{"vocabulary by TP", func(s *Scenario) { s.Model.OverrideVocab = 50257 },
			"model.override_vocab_size: got 50257, want a multiple of tensor_model_parallel_size (2); set model.tensor_model_parallel_size to 1"},
		{"hidden by heads", func(s *Scenario) {
			s.Model.Heads, s.Model.QueryGroups, s.Precision.FP8, s.Precision.FP8Params = 12, 0, false, false
		},
			"model.hidden_size: got 1024, want a multiple of num_attention_heads (12), or kv_channels; set model.kv_channels to 85"},
		{"groups without mcore", func(s *Scenario) { s.Model.MCore = false },
			"model.mcore_gpt: got false, want true with grouped-query attention; set model.mcore_gpt to true"},
		{"sequence by CP and TP", func(s *Scenario) { s.Model.SeqLength, s.Batch.Micro, s.Batch.Global = 2046, 8, 128 },
			"model.encoder_seq_length: got 2046, want a multiple of context_parallel_size (2) × lcm(2, tensor_model_parallel_size (2)); set model.encoder_seq_length to 2044 or 2048\n" +
				"model.encoder_seq_length: got 2046, want micro_batch_size × encoder_seq_length / CP to be a multiple of 16 in FP8, not 8184; set model.encoder_seq_length to 2044 or 2048"},
		{"world", func(s *Scenario) {
			s.Parallel.TP, s.Model.Heads, s.Model.QueryGroups, s.Model.FFN, s.Model.Hidden = 3, 48, 48, 4608, 3072
		},
			"model.encoder_seq_length: got 2048, want a multiple of context_parallel_size (2) × lcm(2, tensor_model_parallel_size (3)); set model.encoder_seq_length to 2016 or 2064\n" +
				"model.tensor_model_parallel_size: got 3, want TP × CP × PP (3 × 2 × 4) to divide the 64 ranks of num_nodes × devices; set trainer.num_nodes to 9 and model.global_batch_size to 72"},
		{"world too small", func(s *Scenario) { s.Hardware.Nodes = 1 },
			"model.pipeline_model_parallel_size: got 4, want TP × CP × PP (2 × 2 × 4) to divide the 8 ranks of num_nodes × devices; set trainer.num_nodes to 2"},
		{"world too large", func(s *Scenario) { s.Hardware.Nodes, s.Hardware.Devices = 1<<20, 8 },
			"trainer.num_nodes: got 1048576, want at most 1,048,576 ranks (num_nodes × devices); set trainer.num_nodes to 131072 and model.global_batch_size to 524288"},
		{"stages", func(s *Scenario) { s.Parallel.PP, s.Parallel.VP, s.Hardware.Nodes = 32, 0, 64 },
			"model.pipeline_model_parallel_size: got 32, want at most num_layers (24); set model.pipeline_model_parallel_size to 8"},
		{"chunks of two stages", func(s *Scenario) { s.Parallel.PP = 2 },
			"model.virtual_pipeline_model_parallel_size: got 3, want null, or more than 2 pipeline stages (there are 2); set model.virtual_pipeline_model_parallel_size to null"},
		{"chunks without O2", func(s *Scenario) { s.Precision.O2 = false },
			"model.megatron_amp_O2: got false, want true with model chunks; set model.megatron_amp_O2 to true"},
		{"chunks by layers", func(s *Scenario) { s.Parallel.VP = 4 },
			"model.virtual_pipeline_model_parallel_size: got 4, want a divisor of the 6 layers of a stage; set model.virtual_pipeline_model_parallel_size to 3"},
		{"messages", func(s *Scenario) { s.Parallel.OverlapP2P = true },
			"model.batch_p2p_comm: got true, want false with overlap_p2p_comm; set model.batch_p2p_comm to false"},
		{"batch", func(s *Scenario) { s.Batch.Global = 100 },
			"model.global_batch_size: got 100, want a multiple of 32 (microbatch 2 × DP 4 × PP 4, with model chunks); set model.global_batch_size to 96 or 128"},
		{"small batch", func(s *Scenario) { s.Batch.Global, s.Parallel.VP = 3, 0 },
			"model.global_batch_size: got 3, want a multiple of 8 (microbatch 2 × DP 4); set model.global_batch_size to 8"},
		{"FP8 width", func(s *Scenario) { s.Model.FFN = 4112 },
			"model.ffn_hidden_size: got 4112, want ffn_hidden_size / TP to be a multiple of 16 in FP8, not 2056; set model.fp8 to false and model.fp8_params to false, or change model.ffn_hidden_size"},
		{"FP8 format", func(s *Scenario) { s.Precision.FP8Hybrid = false },
			"model.fp8_hybrid: got false, want true, or fp8_e4m3 true, with fp8; set model.fp8_hybrid to true"},
		{"FP8 hardware", func(s *Scenario) { s.Hardware.GPU = "a100-80gb" },
			"hardware.gpu: got a100-80gb, want a GPU with FP8 units, with fp8; set hardware.gpu to h100"},
		{"O2 without buffer", func(s *Scenario) { s.Optim.ContiguousGradBuffer = false },
			"model.optim.contiguous_grad_buffer: got false, want true with megatron_amp_O2; set model.optim.contiguous_grad_buffer to true"},
		{"scaled fp32", func(s *Scenario) { s.Optim.WithScaledStates = true },
			"model.optim.dtype: got fp32, want fp16 or bf16 with with_scaled_states; set model.optim.dtype to fp16"},
		{"scaled on old Apex", func(s *Scenario) {
			s.Optim.WithScaledStates, s.Optim.State, s.Framework.Version = true, "fp16", AfterOldApex
		}, "model.optim.with_scaled_states: got true, want false with the old Apex, which does not have it; set model.optim.with_scaled_states to false"},
		{"scaled without main parameters", func(s *Scenario) {
			s.Optim.WithScaledStates, s.Optim.State, s.Precision.FP8Params = true, "bf16", false
		}, "model.optim.with_scaled_states: got true, want false unless main parameters are stored (here the state and the model are both bf16); set model.optim.with_scaled_states to false"},
		{"full recompute alone", func(s *Scenario) { s.Recompute.Granularity = Full },
			"model.activations_checkpoint_method: got null, want uniform or block with activations_checkpoint_granularity full; set model.activations_checkpoint_method to uniform\n" +
				"model.activations_checkpoint_num_layers: got null, want at least 1 with activations_checkpoint_granularity full; set model.activations_checkpoint_num_layers to 1"},
		{"selective recompute of some", func(s *Scenario) { s.Recompute = Recompute{Granularity: Selective, Layers: 2} },
			"model.activations_checkpoint_num_layers: got 2, want null with activations_checkpoint_granularity selective, which covers every layer; set model.activations_checkpoint_num_layers to null"},
		{"groups of recompute", func(s *Scenario) { s.Parallel.VP, s.Recompute = 1, Recompute{Full, Uniform, 4} },
			"model.activations_checkpoint_num_layers: got 4, want a divisor of the 6 layers of a model chunk with uniform; set model.activations_checkpoint_num_layers to 3"},
		{"dropout", func(s *Scenario) { s.Model.HiddenDropout = 1.5 },
			"model.hidden_dropout: got 1.5, want a number from 0 to 1; set model.hidden_dropout to 1"},
		{"buckets", func(s *Scenario) { s.Optim.BucketCapMB = 0.0001 },
			"model.optim.bucket_cap_mb: got 0.0001, want at most 100,000 buckets over all stages, not 375,814; set model.optim.bucket_cap_mb to 0.0064"},
		{"fragments", func(s *Scenario) {
			s.Optim.BucketCapMB, s.Parallel, s.Model.Layers, s.Batch.Global = 0.2, Parallel{TP: 1, PP: 1, CP: 1, EP: 1, BatchP2P: true}, 400, 128
		}, "model.optim.bucket_cap_mb: got 0.2, want at most 2,000,000 fragments on one stage, not 3,861,299; set model.optim.bucket_cap_mb to 0.4"},
		{"tasks", func(s *Scenario) { s.Batch.Global = 1 << 20 },
			"model.global_batch_size: got 1048576, want at most 2,000,000 layer passes and messages in two steps, not 23,068,672 (131,072 microbatches); set model.global_batch_size to 90880"},
		{"width of the heads", func(s *Scenario) { s.Model.KVChannels = 1 << 20 },
			"model.kv_channels: got 1048576, want at most 8,388,608 channels in all 16 heads; set model.kv_channels to 524288"},
		{"work of a pass", func(s *Scenario) { s.Model.SeqLength = 1 << 27 },
			"model.micro_batch_size: got 2, want at most 1e18 operations in a pass of one layer and 1e21 in two steps, not 9e19 and 1e23; " +
				"set model.micro_batch_size to 1 and model.encoder_seq_length to 8388608"},
		{"work of a step", func(s *Scenario) { s.Model.SeqLength, s.Batch.Global = 1<<23, 64*100 },
			"model.global_batch_size: got 6400, want at most 1e18 operations in a pass of one layer and 1e21 in two steps, not 4e17 and 5e22; set model.global_batch_size to 96"},
		{"parameters", func(s *Scenario) { s.Model.Layers, s.Model.Hidden, s.Model.FFN, s.Parallel.VP = 8000, 1<<20, 0, 0 },
			"model.num_layers: got 96,757,178,938,949,632 parameters, want at most 100,000,000,000,000; set model.num_layers to 8 and model.optim.bucket_cap_mb to 1600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good()
			c.do(&s)
			errs, _ := s.Validate()
			require.Equal(t, c.want, errs.Error())
		})
	}
}

func TestValidatePlain(t *testing.T) {
	plain := func() Scenario {
		s := Default(PlainApex)
		s.Model.MCore = true
		s.Batch.Global, s.Hardware.Devices = 32, 8
		s.Precision.Trainer, s.Precision.O2 = BF16, true
		return s
	}
	s := plain()
	errs, notes := s.Validate()
	require.NoError(t, errs.Err())
	require.Empty(t, notes)
	for _, c := range []struct {
		name string
		do   func(s *Scenario)
		want string
	}{
		{"both", func(s *Scenario) { s.Optim.Plain.StoreParamRemainders, s.Optim.Plain.ParamSync = true, "bf16" },
			"model.optim.store_param_remainders: got true, want false with store_params; set model.optim.store_params to false"},
		{"remainders of fp32", func(s *Scenario) { s.Optim.Plain.StoreParamRemainders, s.Optim.Plain.StoreParams = true, false },
			"model.optim.store_param_remainders: got true, want false unless param_sync_dtype is bf16; set model.optim.param_sync_dtype to bf16"},
		{"remainders of bf16", func(s *Scenario) {
			s.Optim.Plain.StoreParamRemainders, s.Optim.Plain.StoreParams, s.Optim.State = true, false, "bf16"
		}, "model.optim.store_param_remainders: got true, want false unless dtype is fp32; set model.optim.store_param_remainders to false"},
		{"buffer", func(s *Scenario) { s.Optim.ContiguousParamBuffer = true },
			"model.optim.contiguous_param_buffer: got true, want false unless param_sync_dtype is the parameters' dtype (bf16); set model.optim.param_sync_dtype to bf16"},
		{"stages", func(s *Scenario) { s.Parallel.PP = 2 },
			"model.pipeline_model_parallel_size: got 2, want 1 with apex_distributed_fused_adam: pipeline callbacks are NeMo's; set model.pipeline_model_parallel_size to 1"},
		{"redundant", func(s *Scenario) { s.Optim.Plain.DistributedSize = 3 },
			"framework.distributed_size: got 3, want a divisor of the data-parallel size (8); set framework.distributed_size to 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plain()
			c.do(&s)
			errs, _ := s.Validate()
			require.Equal(t, c.want, errs.Error())
		})
	}
	s.Optim.Plain.DistributedSize = 4
	require.Equal(t, 4, s.Distributed())
	require.Equal(t, 2, s.Redundant())
	s.Optim.OneRankState = true
	require.Equal(t, 1, s.Distributed())
	require.Equal(t, 8, s.Redundant())
}

func TestNotes(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *Scenario)
		path string
		warn bool
	}{
		{"dropped layers", func(s *Scenario) { s.Model.Layers = 26 }, pathLayers, true},
		{"legacy model", func(s *Scenario) { s.Model.MCore, s.Model.QueryGroups = false, 0 }, pathMCore, true},
		{"overlap without chunks", func(s *Scenario) { s.Parallel.VP, s.Parallel.OverlapP2P = 0, true }, pathOverlapP2P, true},
		{"sequence parallel alone", func(s *Scenario) { s.Parallel.TP = 1 }, pathSP, false},
		{"fp8_params alone", func(s *Scenario) { s.Precision.FP8 = false }, pathFP8Params, true},
		{"method of selective", func(s *Scenario) { s.Recompute = Recompute{Granularity: Selective, Method: Block} }, pathRecomputeMethod, false},
		{"method of nothing", func(s *Scenario) { s.Recompute.Method = Block }, pathRecomputeMethod, false},
		{"layers of nothing", func(s *Scenario) { s.Recompute.Layers = 3 }, pathRecomputeLayers, false},
		{"more layers than a chunk", func(s *Scenario) { s.Recompute = Recompute{Full, Block, 3} }, pathRecomputeLayers, false},
		{"overlap without sequence parallelism", func(s *Scenario) { s.Parallel.SequenceParallel, s.Parallel.TPOverlap = false, true }, pathTPOverlap, false},
		{"fused learned positions", func(s *Scenario) { s.Model.RopeFusion = true }, pathRopeFusion, false},
		{"bf16 scales", func(s *Scenario) { s.Optim.State, s.Optim.WithScaledStates = "bf16", true }, pathScaled, true},
		{"store_params", func(s *Scenario) { s.Optim.Plain.StoreParams = false }, pathStore, false},
		{"later without chunks", func(s *Scenario) { s.Parallel.VP, s.Framework.Later.StageBuckets = 0, true }, pathLaterBuckets, false},
		{"later before", func(s *Scenario) { s.Framework.Version, s.Framework.Later.FP32EmbeddingGrads = Before, true }, pathLaterFP32, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good()
			c.do(&s)
			errs, notes := s.Validate()
			require.NoError(t, errs.Err())
			require.Len(t, notes, 1)
			require.Equal(t, c.path, notes[0].Path)
			require.Equal(t, c.warn, notes[0].Warning)
		})
	}
}

// Uniform covers every layer, however large its groups; block the first layers of every chunk.
func TestRecomputedLayers(t *testing.T) {
	for _, c := range []struct {
		recompute Recompute
		vp, want  int
	}{
		{Recompute{}, 0, 0},
		{Recompute{Granularity: Selective}, 0, 0},
		{Recompute{Full, Uniform, 1}, 0, 6},
		{Recompute{Full, Uniform, 3}, 0, 6},
		{Recompute{Full, Uniform, 1}, 3, 2},
		{Recompute{Full, Block, 4}, 0, 4},
		{Recompute{Full, Block, 1}, 3, 1},
		{Recompute{Full, Block, 2}, 3, 2},
		{Recompute{Full, Block, 100}, 0, 6},
	} {
		s := good()
		s.Recompute, s.Parallel.VP = c.recompute, c.vp
		errs, _ := s.Validate()
		require.NoError(t, errs.Err())
		require.Equal(t, c.want, s.RecomputedLayers(), "%+v", c)
	}
}

// Values that could not be read do not lead to more errors.
func TestValidateLeavesOut(t *testing.T) {
	s := good()
	s.Model.Heads = 7
	errs, _ := s.Validate(pathHeads)
	require.NoError(t, errs.Err())
}

// random draws a scenario, mostly an invalid one.
func random(rng *rand.Rand) Scenario {
	name := optimNames[max(0, rng.IntN(10)-6)] // mostly the first
	s := Default(name)
	for i := range Fields {
		f := &Fields[i]
		if f.Path == pathName || rng.IntN(3) == 0 {
			continue
		}
		switch v := f.at(&s).(type) {
		case *int:
			*v = 1 << rng.IntN(8)
			if rng.IntN(4) == 0 {
				*v += rng.IntN(9) - 4
			}
		case *float64:
			*v = float64(rng.IntN(4000)) / 16
		case *bool:
			*v = rng.IntN(2) == 0
		case *string:
			if f.Kind == Text {
				*v = strconv.Itoa(1 + rng.IntN(3))
			} else {
				*v = f.Choices[rng.IntN(len(f.Choices))]
			}
		}
	}
	return s
}

// bothWays runs a test with the families that are simulated, and as if all were.
func bothWays(t *testing.T, test func(t *testing.T)) {
	t.Run("simulated", test)
	was := simulated
	defer func() { simulated = was }()
	simulated = [numFamilies]bool{true, true, true, true}
	t.Run("all", test)
}

// Whatever is wrong, doing what the first error says leads to a valid scenario in a few steps.
func TestEditsMend(t *testing.T) { bothWays(t, editsMend) }

func editsMend(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		s := random(rng)
		start := s
		var trail []string
		for step := 0; ; step++ {
			errs, _ := s.Validate()
			if len(errs) == 0 {
				break
			}
			require.Less(t, step, 40, "%+v\n%v", start, strings.Join(trail, "\n"))
			fixed := errs[0]
			for _, e := range errs {
				if len(fixed.Edits) == 0 {
					fixed = e
				}
			}
			require.NotEmpty(t, fixed.Edits, "%v", errs)
			trail = append(trail, fixed.Error())
			for _, e := range fixed.Edits {
				f, ok := ByPath(e.Path)
				require.True(t, ok)
				require.Nil(t, f.Set(&s, e.Value))
			}
		}
		d := s.Derive()
		require.Positive(t, d.DP)
		require.Positive(t, d.Microbatches)
		require.Positive(t, d.StageLayers)
		require.Equal(t, s.Family() < FamilyMCore, d.BucketSize > 0)
		require.Equal(t, d.DP*s.Parallel.CP, d.Distributed*d.Redundant)
	}
}
