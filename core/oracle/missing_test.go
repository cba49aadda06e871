package oracle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// redundant are, by kind, what some cases may lack and still say the same, and why. Whatever else is
// taken out of a case, it fails.
var redundant = map[string][][2]string{
	"layout": {
		{`note`, "a comment"},
		{`case\.model`, "plain Apex: rows of params say the same"},
		{`params\[[^]]*\]\[[^]]*\]\[[^]]*\]`, "plain Apex: an input, of which a dimension may be 1"},
		{`case\.optim\.name`, "the kind says the same"},
		{`case\.optim\.(contiguous_grad_buffer|dtype|with_scaled_states|overlap_grad_sync)`, "a default, or without effect on a layout"},
	},
	"trace": {
		{`case\.optim\.(overlap_grad_sync|overlap_param_sync|contiguous_grad_buffer)`, "a default"},
		{`case\.optim\.(name|lr|weight_decay|betas)`, "without effect on what happens when"},
		{`case\.(clip|rank)`, "none, 0"},
		{`case\.init`, "with a contiguous gradient buffer the first step does the same"},
	},
	"pipeline": {
		{`case\.refused_by_megatron`, "a comment"},
		{`case\.optim\.(overlap_grad_sync|overlap_param_sync|contiguous_grad_buffer)`, "a default"},
		{`case\.optim\.(name|lr|weight_decay|betas)`, "without effect on what happens when"},
		{`case\.later_vpp_buckets`, "false"},
	},
	"numerics": {
		{`note`, "a comment"},
		{`case\.(gscale|gset|pscale|pset|spread|zeros)(\[[^]]*\])?`, "how inputs were drawn, which are given too"},
		{`case\.microbatches`, "gradients are given for each"},
		{`nvcc_fma`, "few cases have it"},
		{`case\.groups\[[^]]*\]\.(lr|eps|weight_decay|betas)`, "as for all groups"},
	},
	"mcore_layout": {
		{`case\.ddp\.(overlap_grad_reduce|overlap_param_gather|use_distributed_optimizer)|case\.model\.(ep|pp|pp_rank|ffn)`, "a default, or said again"},
		{`case\.model\.(pos|seq)`, "rotary positions have no parameter"},
		{`case\.model\.tied|case\.ep`, "a default"},
		{`case\.rank`, "a layout is the same on every rank"},
		{`case\.ddp\.(fp8_param_gather|fp4_param_gather|reuse_grad_buf_for_mxfp8_param_ag)`, "decided by the weights"},
		{`case\.ddp\.bucket_size`, "without overlap there is one bucket"},
		{`chunks\[[^]]*\]\.local\.\d+`, "a larger group shows some ranks"},
	},
	"mcore_trace": {
		{`case\.ddp\.(overlap_grad_reduce|overlap_param_gather|use_distributed_optimizer)|case\.model\.(ep|pp|pp_rank|ffn)`, "a default, or said again"},
		{`case\.model\.(pos|seq)`, "rotary positions have no parameter"},
		{`case\.recipe`, "the weights say the same"},
		{`case\.ddp\.fp8_param_gather`, "decided by the weights"},
		{`case\.ddp\.bucket_size`, "later stages have one bucket"},
	},
	"pytorch_ddp": {
		{`ddp_runs\[[^]]*\]`, "any number of runs"},
	},
}

// part says of how many changes a test tries one: n, or more under WebAssembly, which is slower.
func part(n int) int {
	if runtime.GOARCH == "wasm" {
		return 6*n + 1
	}
	return n
}

// A case fails from which any field of an object, or the first or last entry of a list, was taken out.
// Each sort of place is tried in one of the smallest cases of its kind.
func TestNothingMayBeMissing(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json.gz")
	require.NoError(t, err)
	size := map[string]int64{}
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size[file] = info.Size()
	}
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(size[a], size[b]) })
	seen, tried, of := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, file := range files {
		kind := filepath.Base(filepath.Dir(file))
		if of[kind]++; of[kind] > 8 {
			continue
		}
		whole, err := decodeAny(unpack(t, file))
		require.NoError(t, err)
		for _, c := range cuts(whole, "") {
			if sort := kind + " " + c.sort; seen[sort] || mayLack(kind, c.sort) {
				continue
			} else {
				seen[sort] = true
			}
			every := map[string]int{"trace": 4, "numerics": 5, "pipeline": 13}[kind] // long ones
			if tried[kind]++; tried[kind]%part(max(every, 2)) != 0 {
				continue
			}
			undo := c.cut()
			var b bytes.Buffer
			require.NoError(t, json.NewEncoder(&b).Encode(whole))
			undo()
			require.Equal(t, Failed, Run(b.Bytes()).Status, "%s without %s", file, c.sort)
		}
	}
	for kind, n := range tried {
		require.Greater(t, n, 10, kind)
	}
}

func mayLack(kind, sort string) bool {
	for _, r := range redundant[kind] {
		if regexp.MustCompile("^(" + r[0] + ")$").MatchString(sort) {
			return true
		}
	}
	return false
}

// cut takes something out of a case. Its sort is its path, in which events are told apart by what
// they are, other entries only as the last one and the others.
type cut struct {
	sort string
	cut  func() (undo func())
}

// cuts lists everything that can be taken out of a value: fields, and first and last entries of lists.
func cuts(v any, path string) (list []cut) {
	inside := func(v any, at string, set func(any)) {
		if entries, ok := v.([]any); ok && len(entries) > 0 {
			list = append(list,
				cut{at + "[0]", func() func() { set(entries[1:]); return func() { set(entries) } }},
				cut{at + "[$]", func() func() { set(entries[:len(entries)-1]); return func() { set(entries) } }})
		}
		list = append(list, cuts(v, at)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			at, old := strings.TrimPrefix(path+"."+key, "."), v[key]
			list = append(list, cut{at, func() func() { delete(v, key); return func() { v[key] = old } }})
			inside(old, at, func(x any) { v[key] = x })
		}
	case []any:
		for i, old := range v {
			at := path + "[*]"
			if fields, ok := old.(map[string]any); ok && fields["op"] != nil {
				at = path + "[" + text(fields["op"]) + "]"
			}
			inside(old, at, func(x any) { v[i] = x })
		}
	}
	return list
}

// Damage that is more than something missing.
func TestDamagedCases(t *testing.T) {
	set := func(path string, to any) func(map[string]any) {
		return func(whole map[string]any) {
			keys := strings.Split(path, ".")
			var at any = whole
			for _, key := range keys[:len(keys)-1] {
				switch v := at.(type) {
				case map[string]any:
					at = v[key]
				case []any:
					i := 0
					if key == "$" {
						i = len(v) - 1
					}
					at = v[i]
				}
			}
			at.(map[string]any)[keys[len(keys)-1]] = to
		}
	}
	for _, tt := range []struct {
		file   string
		damage func(map[string]any)
		kind   string
		want   string
	}{
		{"layout/nemo_before_gpt2_bf16_dp8", set("case", map[string]any{"kind": "nemo"}), "layout", "case.name: got nothing in the case, want it"},
		{"layout/nemo_before_gpt2_bf16_dp8", func(w map[string]any) { delete(w, "case") }, "layout", "case: got nothing in the case, want it"},
		{"layout/nemo_before_gpt2_bf16_dp8", set("case.kind", "newx"), "layout", `case.kind: got "newx", want apex or nemo`},
		{"layout/nemo_before_gpt2_bf16_dp8", set("case.apex", nil), "layout", "case.apex: got null, want new or old"},
		{"layout/nemo_before_gpt2_bf16_dp8", set("case.apex", "newx"), "layout", `case.apex: got "newx", want new or old`},
		{"layout/nemo_before_gpt2_bf16_dp8", set("case.nemo", "later"), "layout", `case.nemo: got "later", want before or after`},
		{"layout/nemo_before_gpt2_bf16_dp8", set("name", "x"), "layout", "case.name: got"},
		{"layout/nemo_before_gpt2_bf16_dp8", set("local", map[string]any{}), "layout", "local.0: got nothing in the case"},
		{"trace/nemo_after_bf16", set("events.$.extra", 1), "trace", `.extra: got nothing, want 1`},
		{"trace/nemo_after_bf16", func(w map[string]any) {
			delete(w["events"].([]any)[len(w["events"].([]any))-1].(map[string]any), "mod")
		}, "trace", `mod: got "loss", want nothing`},
		{"trace/nemo_after_bf16", func(w map[string]any) { w["events"] = w["events"].([]any)[:len(w["events"].([]any))-1] }, "trace", "want the end"},
		{"pipeline/pp2_first_after_bf16_tp2_sp_m2", func(w map[string]any) { delete(w["case"].(map[string]any), "schedule") }, "pipeline", "case.schedule: got nothing in the case"},
		{"numerics/fp32_w2", set("fast_math", []any{}), "numerics", "fast_math: got 0 steps, want case.steps, 5"},
		{"numerics/fp32_w2", set("nvcc_fma", []any{}), "numerics", "nvcc_fma: got 0 steps, want case.steps, 5"},
		{"numerics/fp32_w2", set("ieee_nofma.0.ranks.0.q", "00"), "numerics", `ieee_nofma[0]: json: unknown field "q"`},
		{"numerics/fp32_w2", set("layout.0.q", 1), "numerics", "layout[0].q: got nothing, want 1"},
		{"mcore_layout/moe_ep2_dp8_instances2", set("case.pp", 2), "megatron-core layout", "case.pp: got 2, want 1 as in case.model.pp"},
		{"mcore_trace/dp4_no_overlap_mb2", set("events.0.mod", "x"), "megatron-core trace", `events[0].mod: got nothing, want "x"`},
		{"pytorch_ddp/mixed_dtypes", func(w map[string]any) { w["assignments"] = w["assignments"].([]any)[1:] }, "pytorch ddp", "assignments: got 14, want each list of limits in 3 orders"},
		{"pytorch_ddp/mixed_dtypes", set("assignments", []any{}), "pytorch ddp", "assignments: got 0"},
	} {
		decoded, err := decodeAny(unpack(t, "testdata/"+tt.file+".json.gz"))
		require.NoError(t, err)
		whole := decoded.(map[string]any)
		tt.damage(whole)
		data, err := json.Marshal(whole)
		require.NoError(t, err)
		r := Run(data)
		require.Equal(t, Failed, r.Status, "%s: %s", tt.file, tt.want)
		require.Equal(t, tt.kind, r.Kind, "%v", r.Err)
		require.ErrorContains(t, r.Err, tt.want, tt.file)
	}
}
