package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A layout of Megatron-Core in which any single number, word or truth value is changed fails.
func TestEveryMegatronFieldCounts(t *testing.T) {
	for _, name := range []string{"moe_ep2_dp8_instances2", "nvfp4_dp4", "vp2_pp2_ag_with_step_dp4", "layerwise_muon_dp4", "fp32_local_accum_norms_dp2"} {
		var whole map[string]any
		require.NoError(t, json.Unmarshal(unpack(t, "testdata/mcore_layout/"+name+".json.gz"), &whole))
		leaves := 0
		delete(whole, "name")
		input := whole["case"]
		delete(whole, "case")
		walk(whole, func(change func() (undo func())) {
			if leaves++; leaves > 1 && leaves%part(37) != 0 { // a part of them keeps the test short
				return
			}
			undo := change()
			whole["case"] = input
			changed, err := json.Marshal(whole)
			delete(whole, "case")
			undo()
			require.NoError(t, err)
			r := Run(changed)
			require.Equal(t, Failed, r.Status, "%s: a change goes unseen", name)
			require.Equal(t, "megatron-core layout", r.Kind)
		})
		require.Greater(t, leaves, 500, name)
	}
}

// Settings that Megatron-Core does not have, or refuses, are refused.
func TestMegatronInput(t *testing.T) {
	var whole map[string]any
	require.NoError(t, json.Unmarshal(unpack(t, "testdata/mcore_layout/moe_ep4_dp8.json.gz"), &whole))
	c := whole["case"].(map[string]any)
	for _, tt := range []struct {
		in   map[string]any
		key  string
		to   any
		want string
	}{
		{c, "dp", 0, "data_parallel_size: got 0"},
		{c, "instances", 3, "case.instances: got 3, want 1"},
		{c["ddp"].(map[string]any), "bucket_cap_mb", 25, "case.ddp.bucket_cap_mb"},
		{c["model"].(map[string]any), "quant", "int4", `case.model.quant: got "int4"`},
		{c["model"].(map[string]any), "heads", 0, "case.model.heads: got 0"},
		{c["model"].(map[string]any), "router_dtype", "int8", "case.model.router_dtype"},
		{c["model"].(map[string]any), "experts", 3, "num_moe_experts: got 3"},
		{c["model"].(map[string]any), "experts", int64(4e18), "num_moe_experts: got 4000000000000000000"},
		{c["model"].(map[string]any), "layers", 3, "params: got"},
		{c["model"].(map[string]any), "hidden", 1 << 40, "hidden_size"},
	} {
		old, had := tt.in[tt.key]
		tt.in[tt.key] = tt.to
		data, err := json.Marshal(whole)
		require.NoError(t, err)
		require.ErrorContains(t, CheckMegatronLayout(data), tt.want)
		if tt.in[tt.key] = old; !had {
			delete(tt.in, tt.key)
		}
	}
}

// A trace of Megatron-Core in which any single field of an answer is changed fails, and so does one
// that lacks an answer, has one twice, or breaks off.
func TestEveryMegatronEventCounts(t *testing.T) {
	for _, name := range []string{"dp4_fp8_overlap", "dp4_rs_fp32_accum_overlap", "dp8_moe_ep4_no_overlap", "pp2_vp2_stage0_aligned_mb4", "pp2_stage1_tied_1f1b_mb4_aligned"} {
		var whole map[string]any
		require.NoError(t, json.Unmarshal(unpack(t, "testdata/mcore_trace/"+name+".json.gz"), &whole))
		fails := func(what string, changed any) {
			events := whole["events"]
			whole["events"] = changed
			data, err := json.Marshal(whole)
			whole["events"] = events
			require.NoError(t, err)
			require.Error(t, CheckMegatronTrace(data), "%s: %s", name, what)
		}
		events := whole["events"].([]any)
		require.NoError(t, CheckMegatronTrace(unpack(t, "testdata/mcore_trace/"+name+".json.gz")))
		fails("cut off", events[:len(events)-1])
		leaves := 0
		for i, event := range events {
			fields := event.(map[string]any)
			if slices.Contains([]string{"fwd", "bwd", "chunk_fwd", "chunk_bwd"}, text(fields["op"])) {
				continue
			}
			if i%part(29) == 0 {
				fails(fmt.Sprintf("without event %d", i), slices.Delete(slices.Clone(events), i, i+1))
				fails(fmt.Sprintf("event %d twice", i), slices.Insert(slices.Clone(events), i, event))
			}
			walk(fields, func(change func() (undo func())) {
				if leaves++; leaves%part(53) != 0 { // a part of them keeps the test short
					return
				}
				undo := change()
				fails(fmt.Sprintf("event %d: %s", i, show(fields)), events)
				undo()
			})
		}
		require.Greater(t, leaves, 200, name)
	}
}

// Cases of Megatron-Core and lists of DDP with any bytes changed end in a verdict.
func FuzzMegatron(f *testing.F) {
	for _, file := range []string{"mcore_layout/layerwise_muon_dp4", "mcore_layout/nvfp4_dp4", "mcore_trace/pp2_vp2_stage0_ag_with_step_mb4", "mcore_trace/dp8_moe_ep4_no_overlap", "pytorch_ddp/mixed_dtypes"} {
		f.Add(unpack(f, "testdata/"+file+".json.gz"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { Run(data) })
}
