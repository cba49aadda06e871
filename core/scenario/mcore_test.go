package scenario

import (
	"math/rand/v2"
	"testing"

	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/units"

	"github.com/stretchr/testify/require"
)

// asIfSimulated lets a test use families that nothing evaluates yet.
func asIfSimulated(t *testing.T) {
	was := simulated
	simulated = [numFamilies]bool{true, true, true, true}
	t.Cleanup(func() { simulated = was })
}

// goodMCore is a valid scenario of Megatron-Core.
func goodMCore() Scenario {
	s := good()
	s.Optim = Default(MCoreAdam).Optim
	s.Optim.OverlapGradSync, s.Optim.OverlapParamSync = true, true
	return s
}

func TestValidateMCore(t *testing.T) {
	asIfSimulated(t)
	s := goodMCore()
	errs, notes := s.Validate()
	require.NoError(t, errs.Err())
	require.Empty(t, notes)
	for _, c := range []struct {
		name string
		do   func(s *Scenario, m *MCoreOptim)
		want string
	}{
		{"gather without reduce", func(s *Scenario, m *MCoreOptim) { s.Optim.OverlapGradSync = false },
			"model.optim.overlap_param_sync: got true, want false without overlap_grad_sync; set model.optim.overlap_grad_sync to true"},
		{"gather of what is not sharded", func(s *Scenario, m *MCoreOptim) { s.Precision.FP8Params, m.DistributedOptimizer = false, false },
			"model.optim.overlap_param_sync: got true, want false without use_distributed_optimizer; set framework.mcore.use_distributed_optimizer to true"},
		{"FP8 parameters that are not sharded", func(s *Scenario, m *MCoreOptim) { s.Optim.OverlapParamSync, m.DistributedOptimizer = false, false },
			"model.fp8_params: got true, want false without use_distributed_optimizer; set framework.mcore.use_distributed_optimizer to true"},
		{"with step, no chunks", func(s *Scenario, m *MCoreOptim) { s.Parallel.VP, m.GatherWithStep = 0, true },
			"model.optim.overlap_param_gather_with_optimizer_step: got true, want false without model chunks; set model.optim.overlap_param_gather_with_optimizer_step to false"},
		{"with step, no overlap", func(s *Scenario, m *MCoreOptim) { s.Optim.OverlapParamSync, m.GatherWithStep = false, true },
			"model.optim.overlap_param_gather_with_optimizer_step: got true, want false without overlap_param_sync; set model.optim.overlap_param_gather_with_optimizer_step to false"},
		{"instances", func(s *Scenario, m *MCoreOptim) { m.Instances = 3 },
			"model.optim.num_distributed_optimizer_instances: got 3, want a divisor of the data-parallel ranks (8); set model.optim.num_distributed_optimizer_instances to 2"},
		{"both sizes", func(s *Scenario, m *MCoreOptim) { m.BucketSize, m.NumBuckets = 1e6, 4 },
			"framework.mcore.ddp_num_buckets: got 4, want null with ddp_bucket_size; set framework.mcore.ddp_num_buckets to null"},
		{"average per token", func(s *Scenario, m *MCoreOptim) { m.PerTokenLoss = true },
			"model.optim.average_in_collective: got true, want false with calculate_per_token_loss; set model.optim.average_in_collective to false"},
		{"average of an all-to-all", func(s *Scenario, m *MCoreOptim) { m.FP32Accumulation, s.Optim.GradSync = true, "bf16" },
			"model.optim.average_in_collective: got true, want false with ddp_reduce_scatter_with_fp32_accumulation, which sums; set model.optim.average_in_collective to false"},
		{"all-to-all of instances", func(s *Scenario, m *MCoreOptim) {
			m.FP32Accumulation, m.AverageInCollective, m.Instances, s.Optim.GradSync = true, false, 2, "bf16"
		}, "framework.mcore.ddp_reduce_scatter_with_fp32_accumulation: got true, want false with optimizer instances; set model.optim.num_distributed_optimizer_instances to 1"},
		{"private gradients", func(s *Scenario, m *MCoreOptim) { m.FP32Grads = AllParameters },
			"framework.mcore.ddp_param_name_patterns_for_fp32_local_accumulation: got all, want null with fp32 gradients; set framework.mcore.ddp_param_name_patterns_for_fp32_local_accumulation to null"},
		{"main parameters", func(s *Scenario, m *MCoreOptim) { m.MainParams = "fp16" },
			"framework.mcore.main_params_dtype: got fp16, want fp32 without use_precision_aware_optimizer; set framework.mcore.use_precision_aware_optimizer to true"},
		{"MXFP8 on Hopper", func(s *Scenario, m *MCoreOptim) { m.FP8Recipe, m.ReuseGradBuffer = MXFP8, true },
			"framework.mcore.fp8_recipe: got mxfp8, want another one than mxfp8 before Blackwell GPUs; set framework.mcore.fp8_recipe to delayed"},
		{"reuse without FP8", func(s *Scenario, m *MCoreOptim) { s.Precision.FP8Params, m.ReuseGradBuffer = false, true },
			"framework.mcore.reuse_grad_buf_for_mxfp8_param_ag: got true, want false without fp8_params; set framework.mcore.reuse_grad_buf_for_mxfp8_param_ag to false"},
		{"small group", func(s *Scenario, m *MCoreOptim) { m.MicrobatchGroup = 3 },
			"framework.mcore.microbatch_group_size_per_vp_stage: got 3, want at least pipeline_model_parallel_size (4); set framework.mcore.microbatch_group_size_per_vp_stage to 4"},
		{"rest of a group", func(s *Scenario, m *MCoreOptim) { m.MicrobatchGroup = 6 },
			"framework.mcore.microbatch_group_size_per_vp_stage: got 6, want 8 microbatches to leave none, or at least as many as stages (4), not 2; set framework.mcore.microbatch_group_size_per_vp_stage to null"},
		{"connections", func(s *Scenario, m *MCoreOptim) { m.TrainingCode = true },
			"framework.mcore.cuda_device_max_connections: got null, want 1 with tensor or context parallelism before Blackwell GPUs; set framework.mcore.cuda_device_max_connections to 1"},
		{"one stage", func(s *Scenario, m *MCoreOptim) { s.Parallel.PP = 1 },
			"model.virtual_pipeline_model_parallel_size: got 3, want null, or more than 1 pipeline stages (there are 1); set model.virtual_pipeline_model_parallel_size to null"},
		{"buckets", func(s *Scenario, m *MCoreOptim) {
			m.BucketSize, s.Model.Layers, s.Parallel, s.Batch.Global = 1000, 6000, Parallel{TP: 1, PP: 1, CP: 1, EP: 1, BatchP2P: true}, 128
			s.Model.Experts.Count = 8
		}, "model.optim.ddp_bucket_size: got 1000, want at most 100,000 buckets over all stages, not 312,012; set model.optim.ddp_bucket_size to null"},
		{"experts by ranks", func(s *Scenario, m *MCoreOptim) { s.Model.Experts.Count, s.Parallel.EP = 8, 16 },
			"model.expert_model_parallel_size: got 16, want a divisor of num_moe_experts (8); set model.expert_model_parallel_size to 8"},
		{"expert ranks", func(s *Scenario, m *MCoreOptim) { s.Model.Experts.Count, s.Parallel.EP = 16, 16 },
			"model.expert_model_parallel_size: got 16, want expert tensor × expert parallel ranks (2 × 16) to divide the 16 ranks of a stage; set model.expert_model_parallel_size to 8"},
		{"expert parallel alone", func(s *Scenario, m *MCoreOptim) { s.Parallel.EP = 2 },
			"model.expert_model_parallel_size: got 2, want 1 without num_moe_experts; set model.expert_model_parallel_size to 1"},
		{"sequences of experts", func(s *Scenario, m *MCoreOptim) { s.Model.Experts.Count, s.Parallel.SequenceParallel = 8, false },
			"model.sequence_parallel: got false, want true with experts and tensor parallelism; set model.sequence_parallel to true"},
		{"too many experts of a token", func(s *Scenario, m *MCoreOptim) { s.Model.Experts.Count, s.Model.Experts.TopK = 4, 5 },
			"model.moe_router_topk: got 5, want at most num_moe_experts (4); set model.moe_router_topk to 4"},
		{"experts of Apex", func(s *Scenario, m *MCoreOptim) { s.Model.Experts.Count, s.Optim.Name = 8, NeMoAdam },
			"model.num_moe_experts: got 8, want null with distributed_fused_adam: experts need mcore_distributed_optim or torch_ddp; set model.optim.name to mcore_distributed_optim"},
		{"pipeline of DDP", func(s *Scenario, m *MCoreOptim) {
			s.Optim.Name, s.Precision.FP8Params, s.Parallel.SequenceParallel, s.Parallel.VP = TorchDDP, false, false, 0
		}, "model.pipeline_model_parallel_size: got 4, want 1 with torch_ddp: pipelines have code of their own; set model.pipeline_model_parallel_size to 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := goodMCore()
			c.do(&s, &s.Optim.MCore)
			errs, _ := s.Validate()
			require.Equal(t, c.want, errs.Error())
		})
	}
}

// What validation lets pass, Megatron-Core's own check does; and the bounds that are known before a
// layout is built hold for it.
func TestMCoreOptions(t *testing.T) {
	asIfSimulated(t)
	rng := rand.New(rand.NewPCG(11, 12))
	valid, buckets := 0, 0
	for range 1000 {
		s := random(rng)
		s.Optim.Name = MCoreAdam
		if rng.IntN(4) == 0 {
			s.Optim.Name = TorchDDP
		}
		for i := 0; i < 30; i++ {
			errs, _ := s.Validate()
			if len(errs) == 0 {
				break
			}
			s = apply(t, s, errs[0].Edits)
		}
		if errs, _ := s.Validate(); len(errs) > 0 || s.Parameters() > 1<<33 || s.StageLayers() > 64 || s.Optim.Name == NeMoAdam || s.Process()%s.Parallel.EP != 0 {
			continue
		}
		valid++
		buckets += checkExact(t, &s)
	}
	require.Greater(t, valid, 100)
	require.Greater(t, buckets, 500)
}

// checkExact builds the buckets of every stage and returns how many there are.
func checkExact(t *testing.T, s *Scenario) int {
	t.Helper()
	n := 0
	for stage := range s.Parallel.PP {
		st, err := model.BuildStage(architecture(s), model.Split{
			TP: s.Parallel.TP, SP: s.SequenceParallel(), PP: s.Parallel.PP, Index: stage, VP: s.Chunks(), EP: s.Parallel.EP, ETP: s.Parallel.ETP,
		})
		require.NoError(t, err, "%+v", s)
		require.LessOrEqual(t, int64(len(st.Params)), int64(s.StageLayers())*s.layerParams()+6)
		if s.DDP() {
			params := make([]ddp.Param, len(st.Params))
			order := make([]int, len(st.Params))
			for i := range st.Params {
				p := &st.Params[i]
				params[i] = ddp.Param{Name: p.Name, Dims: len(p.Shape), Format: p.DType.String(), Bytes: units.Bytes(p.Numel) * p.DType.Size()}
				order[i] = i
			}
			list, err := ddp.Assign(params, order, ddp.Limits(s.Optim.DDP.BucketCapMB))
			require.NoError(t, err)
			n += len(list)
			continue
		}
		o := s.MCoreOptions(stage)
		require.NoError(t, o.Check(s.Chunks()), "%+v", s)
		l, err := mcore.Build(o, mcore.Params(st, s.Quant()))
		require.NoError(t, err, "%+v", s)
		n += len(l.Buckets)
	}
	require.LessOrEqual(t, int64(n), s.exactBuckets(), "%+v", s)
	return n
}

func architecture(s *Scenario) model.Config {
	return model.Config{
		Layers: int64(s.Model.Layers), Hidden: int64(s.Model.Hidden), FFN: int64(s.FFN()), Heads: int64(s.Model.Heads),
		Groups: int64(s.QueryGroups()), KVChannels: int64(s.KVChannels()), Vocab: int64(s.PaddedVocab()), Seq: int64(s.Model.SeqLength),
		LearnedPositions: s.Model.Position == LearnedAbsolute, RMSNorm: s.RMSNorm(), Bias: s.Model.Bias, Gated: s.Gated(),
		Tied: s.Model.Tied, QKNorm: s.Model.QKNorm, FP8: s.Precision.FP8, FP8Params: s.FP8Weights(), DType: s.ModelDType(),
		Experts: int64(s.Experts()), TopK: int64(s.Model.Experts.TopK), ExpertFFN: int64(s.Model.Experts.FFN),
		SharedFFN: int64(s.Model.Experts.SharedFFN), ExpertLayers: s.ExpertPattern(),
	}
}

// The model counts the same parameters.
func TestParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 500 {
		s := random(rng)
		if s.Model.Heads < 1 || s.Model.Hidden%s.Model.Heads != 0 && s.Model.KVChannels == 0 || s.Parallel.TP < 1 ||
			min(s.Model.Layers, s.Model.VocabDivisor, s.Model.Experts.Count+1, s.Model.Experts.FFN+1, s.Model.Experts.SharedFFN+1, s.Model.FFN+1, s.Model.KVChannels+1, s.Model.QueryGroups+1, s.Model.OverrideVocab+1) < 1 {
			continue
		}
		c := architecture(&s)
		want, _ := c.Parameters()
		require.Equal(t, int64(want), s.Parameters(), "%+v", s.Model)
	}
}

func TestGradDType(t *testing.T) {
	for _, c := range []struct {
		name, gradSync string
		o2             bool
		want           dtype.DType
	}{
		{MCoreAdam, "", true, dtype.FP32}, {MCoreAdam, "fp32", true, dtype.FP32}, {MCoreAdam, "bf16", true, dtype.BF16},
		{MCoreAdam, "fp16", true, dtype.BF16}, {MCoreAdam, "bf16", false, dtype.FP32}, {TorchDDP, "", true, dtype.BF16}, {TorchDDP, "", false, dtype.FP32},
	} {
		s := Default(c.name)
		s.Precision.Trainer, s.Precision.O2, s.Optim.GradSync = BF16, c.o2, c.gradSync
		require.Equal(t, c.want, s.GradDType(), "%+v", c)
		require.Equal(t, c.want, s.Optimizer().GradSync)
	}
}

func TestFamilies(t *testing.T) {
	for f := range numFamilies {
		s := Default(f.Optimizer())
		require.Equal(t, f, s.Family())
		require.NotEmpty(t, f.String())
		for i := range Fields {
			x := &Fields[i]
			if require.Equal(t, x.ReadBy == 0 || x.ReadBy&(1<<f) != 0, x.Applies(&s)); !x.Applies(&s) {
				require.NotEmpty(t, x.WithoutEffect(&s))
			}
		}
	}
	other := Scenario{}
	require.Equal(t, FamilyNeMo, other.Family())
}
