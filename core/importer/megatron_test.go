package importer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

// Each flag is listed once, and leads to a field.
func TestMegatronRules(t *testing.T) {
	names := slices.Sorted(slices.Values(megatron.names))
	for i := 1; i < len(names); i++ {
		require.NotEqual(t, names[i-1], names[i])
	}
	for name, r := range megatron.rules {
		require.Equal(t, hyphens(name), name)
		switch r.kind {
		case valueFlag, switchFlag:
			f, ok := scenario.ByPath(r.path)
			require.True(t, ok, "%s: %s", name, r.path)
			var s scenario.Scenario
			if r.kind == switchFlag {
				require.Nil(t, f.Set(&s, r.value), name)
			}
		case idleFlag, unsupportedFlag, refusedFlag:
			require.NotEmpty(t, r.reason, name)
		}
	}
}

// base are flags without remarks but for what they do not tell.
const base = "--num-layers 8\n--hidden-size 1024\n--num-attention-heads 16\n--seq-length 2048\n--max-position-embeddings 2048\n" +
	"--micro-batch-size 1\n--global-batch-size 64\n--vocab-size 32000\n--bf16\n--use-distributed-optimizer\n--nnodes 1\n--nproc_per_node 8\n"

// megatronRemarks returns the remarks on flags but for the one that nothing evaluates them yet.
func megatronRemarks(text string) []string {
	var all []string
	for _, d := range Read(text).Diagnostics {
		if d.Path != "model.optim.name" {
			all = append(all, line(d))
		}
	}
	return all
}

func TestMegatronRemarks(t *testing.T) {
	require.Empty(t, megatronRemarks(base))
	for _, c := range []struct{ name, more, want string }{
		{"unknown", "--overlap-grad-reduc\n", "13:1-21 warning: --overlap-grad-reduc: --overlap-grad-reduc is not a flag that is known here, and is ignored. Did you mean --overlap-grad-reduce?"},
		{"unknown to all", "--zzzzzzzz\n", "13:1-11 warning: --zzzzzzzz: --zzzzzzzz is not a flag that is known here, and is ignored."},
		{"wrong value", "--kv-channels x\n", "13:15-16 error: model.kv_channels: got x, want an integer from 1 to 1,048,576, or null"},
		{"no value", "--kv-channels\n", "13:1-14 error: --kv-channels: got 0 values, want one value behind --kv-channels"},
		{"value of a switch", "--sequence-parallel 2\n", "13:21-22 error: --sequence-parallel: got 1 values, want no value behind --sequence-parallel"},
		{"variable", "--kv-channels $KV\n", `13:15-18 error: model.kv_channels: The variable $KV has no value here; write the value in its place.`},
		{"refused", "--use-megatron-fsdp\n", "13:1-20 error: --use-megatron-fsdp: --use-megatron-fsdp is not simulated: fully sharded data parallelism has other buckets and is not simulated."},
		{"unsupported", "--delay-wgrad-compute\n", "13:1-22 warning: --delay-wgrad-compute: --delay-wgrad-compute is not simulated: weight gradients are simulated in the backward pass."},
		{"other value", "--transformer-impl local\n", "13:1-19 warning: --transformer-impl: --transformer-impl is not simulated: layers are simulated with Transformer Engine."},
		{"gather without reduce", "--overlap-param-gather\n", "13:1-23 error: model.optim.overlap_param_sync: got true, want false without overlap_grad_sync; set model.optim.overlap_grad_sync to true"},
		{"two sizes", "--ddp-bucket-size 5000000 --ddp-num-buckets 5 --overlap-grad-reduce\n",
			"13:45-46 error: framework.mcore.ddp_num_buckets: got 5, want null with ddp_bucket_size; set framework.mcore.ddp_num_buckets to null"},
		{"instances", "--num-distributed-optimizer-instances 3\n",
			"13:39-40 error: model.optim.num_distributed_optimizer_instances: got 3, want a divisor of the data-parallel ranks (8); set model.optim.num_distributed_optimizer_instances to 2"},
		{"layers of a chunk", "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3\n",
			"13:74-75 error: model.virtual_pipeline_model_parallel_size: got 3, want a divisor of the 2 layers of a stage"},
		{"16-bit main gradients", "--main-grads-dtype bf16\n", "13:20-24 error: model.optim.grad_sync_dtype: got bf16, want fp32 without --use-precision-aware-optimizer"},
		{"bf16 moments", "--exp-avg-dtype bf16\n",
			"13:17-21 error: framework.mcore.exp_avg_dtype: got bf16, want fp32 without use_precision_aware_optimizer; set framework.mcore.use_precision_aware_optimizer to true"},
		{"connections", "--tensor-model-parallel-size 2\n",
			"1:1-13 info: framework.mcore.cuda_device_max_connections: CUDA_DEVICE_MAX_CONNECTIONS is assumed to be 1, which Megatron-LM asks for here before Blackwell GPUs."},
		{"many connections", "CUDA_DEVICE_MAX_CONNECTIONS=8\n--tensor-model-parallel-size 2\n",
			"13:29-30 error: framework.mcore.cuda_device_max_connections: got 8, want 1 with tensor or context parallelism before Blackwell GPUs; set framework.mcore.cuda_device_max_connections to 1"},
		{"experts of some layers", "--num-experts 8 --moe-layer-freq [0,2]\n",
			"13:34-39 error: model.moe_layer_freq: got \"[0,2]\", want a number, or a list of 0 and 1 such as ([0]*3+[1]*58)"},
		{"experts by ranks", "--num-experts 6 --disable-bias-linear --expert-model-parallel-size 3\n",
			"13:68-69 error: model.expert_model_parallel_size: got 3, want expert tensor × expert parallel ranks (1 × 3) to divide the 8 ranks of a stage; set model.expert_model_parallel_size to 2"},
		{"positions", "--max-position-embeddings 4096\n",
			"13:27-31 warning: model.encoder_seq_length: Learned positions are simulated with a row for each token of a sequence (--seq-length), not with this many."},
		{"two stages", "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication\n",
			"13:75-105 error: model.overlap_p2p_comm: got false, want true with model chunks on 2 stages; set model.overlap_p2p_comm to true and model.batch_p2p_comm to false"},
		{"MXFP8", "--fp8-format hybrid --fp8-recipe mxfp8\n",
			"13:34-39 error: framework.mcore.fp8_recipe: got mxfp8, want another one than mxfp8 before Blackwell GPUs; set framework.mcore.fp8_recipe to delayed"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, []string{c.want}, megatronRemarks(base+c.more)) })
	}
}

// What flags become, and what applies without them.
func TestMegatronValues(t *testing.T) {
	for _, c := range []struct{ more, path, want string }{
		{"", "model.optim.name", "mcore_distributed_optim"},
		{"", "model.optim.overlap_grad_sync", "false"},
		{"", "model.optim.average_in_collective", "false"},
		{"--ddp-average-in-collective", "model.optim.average_in_collective", "true"},
		{"", "model.optim.align_grad_reduce", "true"},
		{"--no-align-grad-reduce", "model.optim.align_grad_reduce", "false"},
		{"", "model.optim.align_param_gather", "false"},
		{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "model.virtual_pipeline_model_parallel_size", "2"},
		{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "model.optim.align_param_gather", "true"},
		{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "model.overlap_p2p_comm", "true"},
		{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "model.batch_p2p_comm", "false"},
		{"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 --no-overlap-p2p-communication", "model.batch_p2p_comm", "true"},
		{"", "model.optim.grad_sync_dtype", "fp32"},
		{"--grad-reduce-in-bf16", "model.optim.grad_sync_dtype", "bf16"},
		{"--grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32", "model.optim.grad_sync_dtype", "bf16"},
		{"--main-grads-dtype bf16 --use-precision-aware-optimizer", "model.optim.grad_sync_dtype", "bf16"},
		{"", "model.optim.check_for_nan_in_grad", "true"},
		{"--no-check-for-nan-in-loss-and-grad", "model.optim.check_for_nan_in_grad", "false"},
		{"", "model.gradient_accumulation_fusion", "true"},
		{"", "model.ffn_hidden_size", "null"},
		{"--swiglu", "model.ffn_hidden_size", "2688"}, // 1024 × 8/3 = 2730, a multiple of 64
		{"--swiglu --ffn-hidden-size 4096", "model.ffn_hidden_size", "4096"},
		{"--num-query-groups 4", "model.num_query_groups", "null"},
		{"--group-query-attention --num-query-groups 4", "model.num_query_groups", "4"},
		{"--group-query-attention", "model.num_query_groups", "1"},
		{"", "model.position_embedding_type", "learned_absolute"},
		{"--use-rotary-position-embeddings", "model.position_embedding_type", "rope"},
		{"--use-rotary-position-embeddings", "model.apply_rope_fusion", "true"},
		{"--position-embedding-type rope --no-rope-fusion", "model.apply_rope_fusion", "false"},
		{"--normalization RMSNorm", "model.normalization", "rmsnorm"},
		{"--apply-layernorm-1p", "model.normalization", "layernorm1p"},
		{"--recompute-activations", "model.activations_checkpoint_granularity", "selective"},
		{"--fp8-format e4m3", "model.fp8_e4m3", "true"},
		{"--qk-layernorm", "model.qk_layernorm", "true"},
		{"--num-experts 8 --moe-layer-freq '([0]*3+[1]*5)'", "model.moe_layer_freq", "([0]*3+[1]*5)"},
		{"--num-experts 8 --moe-layer-freq ([0]*3+[1]*5)", "model.moe_layer_freq", "([0]*3+[1]*5)"},
		{"--num-experts 8 --moe-router-dtype fp32", "model.moe_router_dtype", "fp32"},
		{"--clip-grad 0", "trainer.gradient_clip_val", "null"},
		{"", "trainer.gradient_clip_val", "1"},
		{"--ddp-bucket-size 20000000", "model.optim.ddp_bucket_size", "20000000"},
		{"--micro-batch-size 2 --micro-batch-size 4", "model.micro_batch_size", "4"},
		{"KV=64\n--kv-channels $KV", "model.kv_channels", "64"},
		{"--kv-channels ${KV:-32}", "model.kv_channels", "32"},
	} {
		f, ok := scenario.ByPath(c.path)
		require.True(t, ok)
		r := Read(base + c.more)
		require.Equal(t, c.want, f.Get(&r.Scenario), "%s\n%v", c.more, r.Diagnostics)
	}
	require.Equal(t, "32", (&Reading{Scenario: Read("--num-layers 4 --hidden-size 64").Scenario}).Scenario.Precision.Trainer)
	require.Equal(t, 16, Read(strings.Replace(base, "--global-batch-size 64\n", "--micro-batch-size 2\n", 1)).Scenario.Batch.Global)
}

// Without a number of ranks, the fewest whole nodes are assumed over which all divides.
func TestMegatronWorld(t *testing.T) {
	for _, c := range []struct {
		more           string
		nodes, devices int
	}{
		{"", 1, 8},
		{"--tensor-model-parallel-size 4", 1, 8},
		{"--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4", 4, 8},
		{"--pipeline-model-parallel-size 4 --num-experts 8 --expert-model-parallel-size 8", 4, 8},
		{"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --num-experts 8 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1", 4, 8},
		{"--global-batch-size 6", 1, 1},
		{"--global-batch-size 1", 1, 1},
		{"--nnodes 2", 2, 8},
		{"--nproc-per-node 4", 1, 4},
		{"--nproc-per-node 4 --pipeline-model-parallel-size 8", 2, 4},
		{"NNODES=4\nGPUS_PER_NODE=2", 4, 2},
	} {
		text := "--num-layers 8 --hidden-size 64 --num-attention-heads 8 --micro-batch-size 1 --global-batch-size 64 " + c.more
		s := Read(text).Scenario
		require.Equal(t, [2]int{c.nodes, c.devices}, [2]int{s.Hardware.Nodes, s.Hardware.Devices}, c.more)
	}
}

// flagsOf draws flags that go together.
func flagsOf(rng *rand.Rand) []string {
	all := strings.Split(strings.TrimSpace(base), "\n")
	for _, f := range []string{
		"--overlap-grad-reduce", "--overlap-grad-reduce --overlap-param-gather", "--sequence-parallel", "--swiglu", "--untie-embeddings-and-output-weights",
		"--disable-bias-linear --num-experts 8 --moe-grouped-gemm --expert-model-parallel-size 4", "--group-query-attention --num-query-groups 4",
		"--position-embedding-type rope", "--normalization RMSNorm", "--ddp-bucket-size 3000000", "--use-precision-aware-optimizer --exp-avg-dtype bf16",
		"--fp8-format hybrid --fp8-param-gather", "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
		"--grad-reduce-in-bf16", "--tensor-model-parallel-size 2", "--lr 1e-4", "--save x", "--num-distributed-optimizer-instances 2", "--clip-grad 0.5",
	} {
		if rng.IntN(3) > 0 {
			continue
		}
		for _, x := range strings.Split(strings.ReplaceAll(f, " --", "\n--"), "\n") {
			if !slices.Contains(all, x) {
				all = append(all, x)
			}
		}
	}
	return all
}

// Flags mean the same in any order, on one line, with equals signs, and in a YAML file; the
// translation means it too, without remarks of its own.
func TestMegatronForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		all := flagsOf(rng)
		want := Read(strings.Join(all, "\n"))
		require.Equal(t, want.Scenario, Read(want.Document).Scenario)
		require.Equal(t, want.OK(), Read(want.Document).OK())
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		yaml := "MODEL_ARGS:\n"
		for _, f := range all {
			name, value, has := strings.Cut(f, " ")
			if !has {
				value = "true"
			}
			yaml += "  " + name + ": " + value + "\n"
		}
		for _, text := range []string{
			strings.Join(all, "\n"), strings.Join(all, " "), strings.Join(all, " \\\n"), strings.ReplaceAll(strings.Join(all, "\n"), " ", "="),
			"ARGS=(\n" + strings.Join(all, "\n") + "\n)\n", yaml, strings.ReplaceAll(strings.TrimPrefix(yaml, "MODEL_ARGS:\n"), "  --", "--"),
		} {
			r := Read(text)
			require.Equal(t, want.Scenario, r.Scenario, text)
			_, body, _ := strings.Cut(r.Document, "\n")
			require.True(t, strings.HasSuffix(want.Document, body), text)
			require.Len(t, r.Keys, len(all))
		}
	}
}

// A field that is edited turns flags into the document that they mean.
func TestSetFieldOfFlags(t *testing.T) {
	got, err := SetField(base, "model.num_layers", "12")
	require.NoError(t, err)
	require.Equal(t, strings.Replace(Read(base).Document, "num_layers: 8", "num_layers: 12", 1), got)
	want := Read(base).Scenario
	want.Model.Layers = 12
	require.Equal(t, want, Read(got).Scenario)
}

// Parameters of published models, from the files that train them.
func TestPublishedParameters(t *testing.T) {
	for _, c := range []struct {
		file      string
		published float64 // parameters, of the model's own report
		within    float64
	}{
		{"nemo-launcher-mcore_llama3_1_8b.yaml", 8.03e9, 0.001}, // Llama 3.1 8B: 8,030,261,248 in its model card
		{"megatron_train_mixtral_8x7b.args", 46.7e9, 0.001},     // Mixtral 8x7B: 46,702,792,704 on its hub page
	} {
		text, err := os.ReadFile(filepath.Join("testdata/configs", c.file))
		require.NoError(t, err)
		s := Read(string(text)).Scenario
		require.InEpsilon(t, c.published, float64(s.Parameters()), c.within, c.file)
	}
}
