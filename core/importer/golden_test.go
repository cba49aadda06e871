package importer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// dump writes a reading as text.
func dump(r *Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %q\n", r.Kind, r.Scenario.Name)
	for _, d := range r.Diagnostics {
		b.WriteString(line(d) + "\n")
	}
	for i := range scenario.Fields {
		if f := &scenario.Fields[i]; f.Applies(&r.Scenario) {
			fmt.Fprintf(&b, "%s = %s\n", f.Path, f.Get(&r.Scenario))
		}
	}
	d := r.Scenario.Derive()
	fmt.Fprintf(&b, "%+v\n", d)
	for _, k := range r.Keys {
		fmt.Fprintf(&b, "%d:%d-%d %s: %v", k.Line, k.Col, k.EndCol, k.Path, k.Status)
		for _, s := range []string{k.Value, k.Why, k.Near} {
			if s != "" {
				b.WriteString(", " + s)
			}
		}
		if k.Count != 1 {
			fmt.Fprintf(&b, " (%d values)", k.Count)
		}
		b.WriteByte('\n')
	}
	return b.String() + r.Document
}

// line writes a diagnostic as compilers do.
func line(d Diagnostic) string {
	s := fmt.Sprintf("%d:%d-%d %v: ", d.Line, d.Col, d.EndCol, d.Severity)
	if d.Path != "" {
		s += d.Path + ": "
	}
	if d.Fix == "" {
		return s + d.Message
	}
	return s + strings.TrimSuffix(d.Message, ".") + "; " + d.Fix
}

func TestConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/configs/*")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		seen++
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got, golden := dump(Read(string(text))), file+".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
	require.Positive(t, seen)
}

// What is computed again, overlapped or fused counts wherever a file says it.
func TestExecutionKeysAreUsed(t *testing.T) {
	paths := []string{
		"model.activations_checkpoint_granularity", "model.activations_checkpoint_method", "model.activations_checkpoint_num_layers",
		"model.ub_tp_comm_overlap", "model.hidden_dropout", "model.apply_rope_fusion",
	}
	files, err := filepath.Glob("testdata/configs/nemo-*.yaml")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, k := range Read(string(text)).Keys {
			if slices.Contains(paths, k.Path) {
				require.Equal(t, Used, k.Status, "%s: %s", file, k.Path)
				seen++
			}
		}
	}
	require.Equal(t, 5*5+1, seen)
}

// Those that are not listed yet, neither.
func TestPresetsHaveNoRemarks(t *testing.T) {
	files, err := filepath.Glob("../scenario/presets/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), len(scenario.Presets()))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		r := Read(string(text))
		require.Empty(t, r.Diagnostics, file)
		require.Contains(t, string(text), "\nname: "+r.Scenario.Name+"\n")
		for _, k := range r.Keys {
			require.LessOrEqual(t, k.Status, NoEffect, "%s: %+v", file, k)
		}
	}
}

// The opening preset is the one that the page promises.
func TestOpeningPreset(t *testing.T) {
	r := Read(scenario.Presets()[0].Text)
	want := scenario.Default(scenario.NeMoAdam)
	want.Name = "GPT-3 5B, FP8"
	want.Model.Layers, want.Model.Hidden, want.Model.FFN, want.Model.Heads = 24, 4096, 16384, 32
	want.Model.SeqLength, want.Model.TokenizerVocab, want.Model.MCore = 2048, 50304, true
	want.Batch = scenario.Batch{Micro: 1, Global: 16}
	want.Hardware.Nodes, want.Hardware.Devices = 1, 8
	want.Precision.Trainer, want.Precision.O2, want.Precision.GradFusion = scenario.BF16, true, true
	want.Precision.FP8, want.Precision.FP8Params = true, true
	want.Optim.BucketCapMB, want.Optim.GradSync, want.Optim.OverlapParamSync = 400, "bf16", true
	want.Optim.ContiguousParamBuffer = true
	require.Equal(t, want, r.Scenario)
	require.Equal(t, 8, r.Scenario.DP())
	require.Equal(t, 2, r.Scenario.Microbatches())
	require.Equal(t, 50304, r.Scenario.PaddedVocab())
}
