package oracle

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// All numerics cases, and among them every way to store state.
func TestNumericsCases(t *testing.T) {
	files, err := filepath.Glob("testdata/numerics/*.json.gz")
	require.NoError(t, err)
	require.Len(t, files, 21)
	kinds := map[string]int{}
	for _, file := range files {
		data := unpack(t, file)
		r := Run(data)
		require.NoError(t, r.Err, file)
		require.Equal(t, Passed, r.Status)
		require.Contains(t, r.Note, "ieee_nofma: equal to the bit in 5 steps", file)
		require.Contains(t, r.Note, "; fast_math: ", file)
		require.Equal(t, strings.Contains(file, "bf16_scaled_w2_zeros"), strings.Contains(r.Note, "NaN included"), file)
		var in struct{ Case NumericsCase }
		require.NoError(t, json.Unmarshal(data, &in))
		for _, key := range []string{"with_scaled_states", "store_param_remainders", "adam_w_mode", "contiguous_param_buffer"} {
			if _, ok := in.Case.Optim[key]; ok {
				kinds[key]++
			}
		}
		if in.Case.NeMo {
			kinds["fp8"]++
		}
	}
	require.Equal(t, map[string]int{
		"with_scaled_states": 3, "store_param_remainders": 3, "adam_w_mode": 1, "contiguous_param_buffer": 2, "fp8": 2,
	}, kinds)
}

// The real code's NaNs come from subnormal scales of bf16 states, whose reciprocals are infinite: they
// begin in the first step, in moments that were zero, and reach the parameters in the second.
func TestScaledBF16GivesNaN(t *testing.T) {
	var in struct {
		Steps []stateRecord `json:"ieee_nofma"`
	}
	require.NoError(t, json.Unmarshal(unpack(t, "testdata/numerics/bf16_scaled_w2_zeros.json.gz"), &in))
	first, second := in.Steps[0].Ranks[0], in.Steps[1].Ranks[0]
	require.Equal(t, "0007875f", first.Scales[0][3], "a subnormal scale")
	require.Contains(t, first.Buckets[0].ExpAvg, "7fff", "zero times infinity")
	require.NotContains(t, *first.Buckets[0].Param, "7fff")
	require.True(t, strings.HasPrefix(*second.Buckets[0].Param, "7fff7fff"))
}

// numericsCase decodes a case into plain values.
func numericsCase(t *testing.T, name string) map[string]any {
	var whole map[string]any
	require.NoError(t, json.Unmarshal(unpack(t, "testdata/numerics/"+name+".json.gz"), &whole))
	return whole
}

func runCase(t *testing.T, whole map[string]any) Result {
	data, err := json.Marshal(whole)
	require.NoError(t, err)
	return Run(data)
}

// A case in which any single value, number or word of the results is changed fails: in the IEEE build
// by a bit, in others by more than the tolerance.
func TestEveryNumberCounts(t *testing.T) {
	for _, name := range []string{"fp8_w2_contig_bucket_overflow", "fp16_scaled_bf16_params_w2", "fp32_w4_clip", "bf16_remainders_w2"} {
		whole := numericsCase(t, name)
		leaves := 0
		for _, section := range []string{"layout", "reduced_grads", "initial", "ieee_nofma", "fast_math"} {
			walkDigits(whole[section], func(old string, approximate bool, set func(string)) {
				leaves++
				if leaves%part(19) != 0 { // a part of them keeps the test short
					return
				}
				// One bit of one element, or an exponent of the other builds.
				at := len(old) - 1
				if section == "fast_math" || approximate {
					at = len(old)/8/2*8 + 1
				}
				changed := []byte(old)
				changed[at] = "123456789abcdef0"[strings.IndexByte("0123456789abcdef", changed[at])]
				set(string(changed))
				r := runCase(t, whole)
				set(old)
				require.Equal(t, Failed, r.Status, "%s: a change in %s of %.40s at %d goes unseen", name, section, old, at)
			})
		}
		require.Greater(t, leaves, 100, name)
		require.Equal(t, Passed, runCase(t, whole).Status)
	}
}

// walkDigits visits every string of hexadecimal digits. Norms and gradient scales are approximate.
func walkDigits(v any, visit func(old string, approximate bool, set func(string))) {
	approximate := false
	one := func(x any, set func(any)) {
		if s, ok := x.(string); ok && len(s) > 0 && strings.Trim(s, "0123456789abcdef") == "" {
			visit(s, approximate, func(to string) { set(to) })
			return
		}
		walkDigits(x, visit)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if approximate = strings.HasPrefix(key, "grad_"); !strings.Contains(key, "dtype") {
				one(v[key], func(x any) { v[key] = x })
			}
		}
	case []any:
		for i := range v {
			one(v[i], func(x any) { v[i] = x })
		}
	}
}

// What is missing or impossible is said, not skipped.
func TestNumericsInput(t *testing.T) {
	for _, tt := range []struct {
		what   string
		change func(whole, c map[string]any)
		want   string
	}{
		{"no results", func(w, _ map[string]any) { delete(w, "ieee_nofma") }, "ieee_nofma: got nothing in the case"},
		{"fewer steps", func(w, _ map[string]any) { w["ieee_nofma"] = w["ieee_nofma"].([]any)[:4] }, "ieee_nofma: got 4 steps"},
		{"no gradients", func(w, _ map[string]any) { delete(w, "grads_fp32") }, "grads_fp32: got nothing in the case"},
		{"no initial values", func(w, _ map[string]any) { delete(w, "init_params_fp32") }, "init_params_fp32: got nothing in the case"},
		{"no initial state", func(w, _ map[string]any) { delete(w, "initial") }, "initial: got nothing in the case"},
		{"no case", func(w, _ map[string]any) { w["case"] = nil }, "case: got nothing"},
		{"no layout", func(w, _ map[string]any) { delete(w, "layout") }, "layout: got nothing in the case"},
		{"world", func(_, c map[string]any) { c["world"] = 3 }, "grads_fp32[0]: got 4 ranks, want 3"},
		{"no world", func(_, c map[string]any) { c["world"] = 0 }, "case.world: got 0"},
		{"dtype", func(_, c map[string]any) { c["pdtypes"] = []string{"fp32", "fp8", "fp32"} }, `case.pdtypes[1]: got "fp8"`},
		{"integer parameters", func(_, c map[string]any) { c["pdtypes"] = []string{"fp32", "uint8", "fp32"} }, "parameter 1: got dtype uint8"},
		{"shape", func(_, c map[string]any) { c["shapes"] = [][]int{{7, 13}, {65}, {129}} }, "parameter 1: got 64 initial values, want 65"},
		{"init", func(_, c map[string]any) { c["init"] = "nowhere" }, `case.init: got "nowhere"`},
		{"algo", func(_, c map[string]any) { c["algo"] = "least" }, `case.algo: got "least"`},
		{"lr", func(_, c map[string]any) { c["optim"].(map[string]any)["lr"] = "fast" }, "case.optim.lr"},
		{"other lr", func(_, c map[string]any) { c["optim"].(map[string]any)["lr"] = 0.02 }, "ieee_nofma[0].ranks[0].buckets[0].p[0]"},
		{"group", func(_, c map[string]any) { c["groups"] = []any{map[string]any{"idx": []int{0, 1, 7}}} }, "got parameter 7"},
		{"beta", func(_, c map[string]any) { c["optim"].(map[string]any)["betas"] = []float64{1.5, 0.9} }, "betas of parameter group 0"},
		{"a rank too few", func(w, _ map[string]any) {
			s := w["fast_math"].([]any)[2].(map[string]any)
			s["ranks"] = s["ranks"].([]any)[:3]
		}, "fast_math[2]: got 3 parameters on 4 ranks, want 3 on 3"},
		{"odd digits", func(w, _ map[string]any) { w["init_params_fp32"].([]any)[0] = "3f8" }, "init_params_fp32[0]: got 3 digits"},
		{"no digits", func(w, _ map[string]any) { w["init_params_fp32"].([]any)[0] = "3f8x0000" }, "init_params_fp32[0]: element 0"},
	} {
		whole := numericsCase(t, "fp32_w4_clip")
		tt.change(whole, whole["case"].(map[string]any))
		r := runCase(t, whole)
		require.Equal(t, Failed, r.Status, tt.what)
		require.Equal(t, "numerics", r.Kind, tt.what)
		require.ErrorContains(t, r.Err, tt.want, tt.what)
	}
}

func TestCasts(t *testing.T) {
	data := unpack(t, "../dtype/testdata/casts.txt.gz")
	require.Equal(t, Result{Kind: Casts, Status: Passed}, Run(data))
	lines := strings.SplitAfter(string(data), "\n")
	for column := range castColumns {
		fields := strings.Fields(lines[1234])
		fields[column] = strings.Repeat("a", len(fields[column]))
		if column == 0 {
			fields[column] = "42424242"
		}
		r := Run([]byte(strings.Join(append(append([]string{}, lines[:1234]...), strings.Join(fields, " ")+"\n"), "")))
		require.Equal(t, Failed, r.Status)
		require.ErrorContains(t, r.Err, "line 1235, column")
	}
	for _, tt := range []struct{ text, want string }{
		{lines[0], "got no line of codes"},
		{lines[0] + "00000000 0000\n", "line 2: got 2 codes"},
		{lines[1] + "00000000 0000 0000 00 00 00 00 00 0x\n", `line 2: code 8: got "0x"`},
	} {
		r := Run([]byte(tt.text))
		require.Equal(t, Casts, r.Kind)
		require.ErrorContains(t, r.Err, tt.want)
	}

	values := unpack(t, "../dtype/testdata/fp8_decode.json.gz")
	require.Equal(t, Result{Kind: "fp8 decode", Status: Passed}, Run(values))
	for _, change := range []struct{ from, to, want string }{
		{"3b800000", "3b800001", "decode_e4m3fn_fp32[2]: got 3b800000, want 3b800001"},
		{"3b800000", "", "got 256 codes, want 255"},
	} {
		r := Run([]byte(strings.Replace(string(values), change.from, change.to, 1)))
		require.ErrorContains(t, r.Err, change.want)
	}
}

func FuzzNumerics(f *testing.F) {
	// One step of small parameters.
	f.Add([]byte(`{"case":{"world":1,"steps":1,"shapes":[[1],[2]],"pdtypes":["bf16","bf16"],"nemo":true,"fp8":[0,1],"hist":2,"init":"bucket",
		"optim":{"lr":0.01,"param_sync_dtype":"bf16","bucket_cap_mb":1e-5}},
		"layout":[{"bucket_size":32,"filled_size":2},{"bucket_size":32}],
		"init_params_fp32":["3f800000","bf80000040000000"],"grads_fp32":[[[["3f800000","3f80000000000000"]]]],
		"reduced_grads":[[["",""]]],"initial":{"model_params":["3f80","b8c0"],"ranks":[]},"ieee_nofma":[{"model_params":[],"ranks":[]}]}`))
	whole := map[string]any{}
	require.NoError(f, json.Unmarshal(unpack(f, "testdata/numerics/fp8_w2_delayed.json.gz"), &whole))
	whole["case"].(map[string]any)["steps"] = 1
	for _, part := range []string{"grads_fp32", "reduced_grads", "ieee_nofma", "fast_math", "nvcc_fma"} {
		whole[part] = whole[part].([]any)[:1]
	}
	data, err := json.Marshal(whole)
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = CheckNumerics(data) })
}
