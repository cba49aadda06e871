package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/units"
)

// MegatronCase says what of Megatron-Core was run. Fields that a kind of case does not have stay zero.
type MegatronCase struct {
	Model        MegatronModel              `json:"model"`
	DP           int                        `json:"dp"` // with context parallelism, which is 1
	PP           int                        `json:"pp"`
	PPRank       int                        `json:"pp_rank"`
	EP           int                        `json:"ep"`
	Instances    int                        `json:"instances"`
	Rank         int                        `json:"rank"`
	DDP          map[string]json.RawMessage `json:"ddp"`
	PerToken     bool                       `json:"per_token"`
	LayerWise    bool                       `json:"layerwise"`
	AGWithStep   bool                       `json:"ag_with_step"`
	AlignGrads   *bool                      `json:"align_grad_reduce"`
	AlignParams  bool                       `json:"align_param_gather"`
	Microbatches int                        `json:"mb"`
	Steps        int                        `json:"steps"`
	NumBuckets   int                        `json:"num_buckets"`
	GroupSize    int                        `json:"microbatch_group_size_per_vp_stage"`
}

// MegatronModel is the shape of a GPT as the cases of Megatron-Core write it.
type MegatronModel struct {
	Layers      int64  `json:"layers"`
	Hidden      int64  `json:"hidden"`
	FFN         int64  `json:"ffn"`
	Heads       int64  `json:"heads"`
	Groups      int64  `json:"groups"`
	Vocab       int64  `json:"vocab"`
	Seq         int64  `json:"seq"`
	Pos         string `json:"pos"`
	Norm        string `json:"norm"`
	Bias        *bool  `json:"bias"`
	GLU         bool   `json:"glu"`
	Tied        *bool  `json:"tied"`
	TP          int    `json:"tp"`
	PP          int    `json:"pp"`
	PPRank      int    `json:"pp_rank"`
	VP          int    `json:"vp"`
	EP          int    `json:"ep"`
	Experts     int64  `json:"experts"`
	MoEFFN      int64  `json:"moe_ffn"`
	SharedFFN   int64  `json:"shared_ffn"`
	RouterDType string `json:"router_dtype"`
	Quant       string `json:"quant"`
	DType       string `json:"dtype"`
}

// Stage builds the stage that the case ran, and its parameters.
func (c *MegatronCase) Stage() (*model.Stage, []mcore.Param, error) {
	m := &c.Model
	orTrue := func(b *bool) bool { return b == nil || *b }
	d, router := dtype.BF16, dtype.BF16
	for _, f := range []struct {
		path, word string
		to         []*dtype.DType
	}{{"dtype", m.DType, []*dtype.DType{&d, &router}}, {"router_dtype", m.RouterDType, []*dtype.DType{&router}}} {
		if f.word == "" {
			continue
		}
		parsed, ok := dtype.Parse(f.word)
		if !ok || !parsed.Float() {
			return nil, nil, fmt.Errorf("case.model.%s: got %q, want fp32, fp16 or bf16", f.path, f.word)
		}
		for _, to := range f.to {
			*to = parsed
		}
	}
	quant, ok := mcore.ParseQuant(m.Quant)
	if !ok {
		return nil, nil, fmt.Errorf("case.model.quant: got %q, want fp8, blockwise, mxfp8 or nvfp4", m.Quant)
	}
	groups, seq := m.Groups, m.Seq
	if groups == 0 {
		groups = m.Heads
	}
	if m.Heads < 1 {
		return nil, nil, fmt.Errorf("case.model.heads: got %d, want at least 1", m.Heads)
	}
	ffn := m.FFN
	if ffn == 0 {
		ffn = m.MoEFFN
	}
	stage, err := model.BuildStage(model.Config{
		Layers: m.Layers, Hidden: m.Hidden, FFN: ffn, Heads: m.Heads, Groups: groups,
		KVChannels: m.Hidden / m.Heads, Vocab: m.Vocab, Seq: max(seq, 1),
		LearnedPositions: m.Pos == "learned", RMSNorm: m.Norm == "rmsnorm",
		Bias: orTrue(m.Bias), Gated: m.GLU, Tied: orTrue(m.Tied), DType: d, FP8: quant != mcore.Plain, FP8Params: quant != mcore.Plain,
		Experts: m.Experts, ExpertFFN: m.MoEFFN, SharedFFN: m.SharedFFN, TopK: min(m.Experts, 1),
		FP32RouterWeight: router == dtype.FP32 && d != dtype.FP32,
	}, model.Split{
		TP: max(m.TP, 1), PP: max(c.PP, m.PP, 1), Index: max(c.PPRank, m.PPRank), VP: max(m.VP, 1),
		EP: max(c.EP, m.EP, 1), ETP: max(m.TP, 1),
	})
	if err != nil {
		return nil, nil, err
	}
	return stage, mcore.Params(stage, quant), nil
}

// noDDPEffect are arguments that decide neither layout nor control flow.
var noDDPEffect = []string{
	"check_for_large_grads", "create_all_gather_group", "delay_wgrad_compute",
	"disable_symmetric_registration", "fp4_param_gather", "fp8_param_gather", "gradient_reduce_div_fusion",
	"keep_fp8_transpose_cache", "nccl_ub", "preserve_fp32_weights", "suggested_communication_unit_size",
}

// Options returns the settings of a case.
func (c *MegatronCase) Options() (mcore.Options, error) {
	o := mcore.Options{
		World: c.DP, Expert: max(c.EP, c.Model.EP), Instances: c.Instances,
		Pipeline: max(c.PP, c.Model.PP), Stage: max(c.PPRank, c.Model.PPRank),
		PerTokenLoss: c.PerToken, LayerWise: c.LayerWise, GatherWithStep: c.AGWithStep,
		NumBuckets:      c.NumBuckets,
		AlignGradReduce: c.AlignGrads == nil || *c.AlignGrads, AlignParamGather: c.AlignParams,
	}
	var size *int64
	var buckets *int
	var distributed bool
	var perToken *bool
	to := map[string]any{
		"use_distributed_optimizer":                       &distributed,
		"overlap_grad_reduce":                             &o.OverlapGradReduce,
		"overlap_param_gather":                            &o.OverlapParamGather,
		"grad_reduce_in_fp32":                             &o.GradReduceInFP32,
		"average_in_collective":                           &o.AverageInCollective,
		"calculate_per_token_loss":                        &perToken,
		"align_param_gather":                              &o.AlignParamGather,
		"reduce_scatter_with_fp32_accumulation":           &o.FP32Accumulation,
		"pad_buckets_for_high_nccl_busbw":                 &o.HighBusBandwidth,
		"reuse_grad_buf_for_mxfp8_param_ag":               &o.ReuseGradBuffer,
		"num_distributed_optimizer_instances":             &o.Instances,
		"param_name_patterns_for_fp32_local_accumulation": &o.FP32Patterns,
		"bucket_size":                                     &size,
		"num_buckets":                                     &buckets,
	}
	for _, key := range sortedKeys(c.DDP) {
		switch {
		case to[key] != nil:
			if err := json.Unmarshal(c.DDP[key], to[key]); err != nil {
				return o, fmt.Errorf("case.ddp.%s: %w", key, err)
			}
		case !slices.Contains(noDDPEffect, key):
			return o, fmt.Errorf("case.ddp.%s: not an argument of DistributedDataParallelConfig that this model knows", key)
		}
	}
	// A layer-wise optimizer brings the distributed optimizer for everything that it leaves.
	o.DistributedOptimizer = distributed || c.LayerWise
	if size != nil {
		o.BucketSize = units.Elems(*size)
	}
	if buckets != nil {
		o.NumBuckets = *buckets
	}
	if perToken != nil {
		o.PerTokenLoss = *perToken
	}
	return o, o.Check(max(c.Model.VP, 1))
}

// Layout builds the buffers of a case that lists so many parameters in each of its chunks.
func (c *MegatronCase) Layout(listed []int) (*mcore.Layout, *model.Stage, error) {
	o, err := c.Options()
	if err != nil {
		return nil, nil, err
	}
	stage, params, err := c.Stage()
	if err != nil {
		return nil, nil, err
	}
	counts := make([]int, len(stage.Chunks))
	for p := range params {
		counts[params[p].Chunk]++
	}
	if !slices.Equal(counts, listed) {
		return nil, nil, fmt.Errorf("params: got %s in each chunk, want %s", show(counts), show(listed))
	}
	l, err := mcore.Build(o, params)
	return l, stage, err
}
