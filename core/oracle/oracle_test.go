package oracle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every reference case of every kind that is implemented passes.
func TestReferenceCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json.gz")
	require.NoError(t, err)
	count := map[string]int{}
	for i, file := range files {
		kind := strings.NewReplacer("mcore_", "megatron-core ", "_", " ").Replace(filepath.Base(filepath.Dir(file)))
		count[kind]++
		if kind == "numerics" || runtime.GOARCH == "wasm" && i%3 > 0 {
			continue // TestNumericsCases has them; WebAssembly is slow
		}
		t.Run(kind+"/"+strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			r := Run(unpack(t, file))
			require.NoError(t, r.Err)
			require.Equal(t, Passed, r.Status)
			require.Equal(t, kind, r.Kind)
		})
	}
	require.Equal(t, map[string]int{
		"layout": 69, "trace": 23, "pipeline": 15, "numerics": 21,
		"megatron-core layout": 30, "megatron-core trace": 13, "pytorch ddp": 3,
	}, count)
}

// A case in which any single number, word or truth value is changed fails. (Without a model, rows of
// parameters are an input.)
func TestEveryFieldCounts(t *testing.T) {
	for _, name := range []string{"nemo_after_tinycap_fp8_dp6", "apex_dp6_multi_dtype", "nemo_before_vp2_pp2_stage0_dp8", "apex_zero_size_param"} {
		data := unpack(t, "testdata/layout/"+name+".json.gz")
		var whole map[string]any
		require.NoError(t, json.Unmarshal(data, &whole))
		leaves := 0
		for key := range whole {
			if key == "name" || key == "case" || (key == "params" && !strings.HasPrefix(name, "nemo")) {
				continue
			}
			walk(whole[key], func(change func() (undo func())) {
				leaves++
				if leaves%part(29) != 0 { // a part of them keeps the test short
					return
				}
				undo := change()
				changed, err := json.Marshal(whole)
				require.NoError(t, err)
				undo()
				r := Run(changed)
				require.Equal(t, Failed, r.Status, "%s: a change in %s goes unseen", name, key)
				require.Equal(t, "layout", r.Kind)
			})
		}
		require.Greater(t, leaves, 50)
	}
}

// walk calls visit for every leaf of v with a function that changes it.
func walk(v any, visit func(change func() (undo func()))) {
	leaf := func(get func() any, set func(any)) {
		old := get()
		var other any
		switch old := old.(type) {
		case float64:
			other = old + 1
		case string:
			other = old + "x"
		case bool:
			other = !old
		case nil:
			other = "fp32"
		default:
			walk(old, visit)
			return
		}
		visit(func() func() {
			set(other)
			return func() { set(old) }
		})
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			leaf(func() any { return v[key] }, func(x any) { v[key] = x })
		}
	case []any:
		for i := range v {
			leaf(func() any { return v[i] }, func(x any) { v[i] = x })
		}
	}
}

func TestKinds(t *testing.T) {
	layout := unpack(t, "testdata/layout/apex_zero_size_param.json.gz")
	for _, tt := range []struct {
		name   string
		data   string
		kind   string
		status Status
	}{
		{"layout", string(layout), "layout", Passed},
		{"spaces in front", "\n\t " + string(layout), "layout", Passed},
		{"no local shards", strings.Replace(string(layout), `"local"`, `"locals"`, 1), "layout", Failed},
		{"cut off", string(layout[:len(layout)/2]), Unreadable, Failed},
		{"cut off in the name", `{"name":"ap`, Unreadable, Failed},
		{"damaged", strings.Replace(string(layout), `"alignment"`, `alignment`, 1), Unreadable, Failed},
		{"nothing to check", `{"name":"x","case":{"kind":"nemo"}}`, Unreadable, Failed},
		{"wrong type", `{"case":{"kind":"nemo","world":"four"},"buckets":[]}`, "layout", Failed},
		{"numerics", `{"case":{},"init_params_fp32":[],"grads_fp32":[]}`, "numerics", Failed},
		{"casts", "# fp32 bf16\n00000000 0000 0000 00 00 00 00 00 00\n", Casts, Passed},
		{"not casts", "00000000 0000 000 00 00 00 00 00 00\n", "", Skipped},
		{"profile cut off", `{"schemaVersion":1,"traceEvents":[{`, "", Skipped},
		{"model config", `{"architectures":["x"]}`, "", Skipped},
		{"text", "# Reference\n", "", Skipped},
		{"empty", "", "", Skipped},
	} {
		r := Run([]byte(tt.data))
		require.Equal(t, tt.kind, r.Kind, "%s: %v", tt.name, r.Err)
		require.Equal(t, tt.status, r.Status, "%s: %v", tt.name, r.Err)
		require.Equal(t, tt.status == Failed, r.Err != nil, tt.name)
	}
}

func TestFirstDifferenceIsNamed(t *testing.T) {
	data := unpack(t, "testdata/layout/apex_zero_size_param.json.gz")
	changed := bytes.Replace(data, []byte(`"filled_size":357`), []byte(`"filled_size":358`), 1)
	require.EqualError(t, CheckLayout(changed), "buckets[0].filled_size: got 357, want 358")
}

func FuzzRun(f *testing.F) {
	f.Add(unpack(f, "testdata/layout/apex_zero_size_param.json.gz"))
	f.Add([]byte(`{"name":"x","case":{"kind":"nemo","world":2,"model":{"layers":2}},"buckets":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) { Run(data) })
}

func unpack(t testing.TB, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return data
}
