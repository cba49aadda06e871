package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpacked reads a compressed reference case.
func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return data
}

// nemoDocument writes the configuration that a reference case of NeMo ran with.
func nemoDocument(t *testing.T, c *caseOfStage) string {
	t.Helper()
	m := &c.Model
	precision, activation := "bf16", "gelu"
	if m.DType == "fp32" {
		precision = "32"
	}
	if m.GLU {
		activation = "swiglu"
	}
	version := map[[2]string]string{
		{"before", "old"}: "before", {"before", "new"}: "before-new-apex", {"after", "old"}: "after-old-apex", {"after", "new"}: "after",
	}[[2]string{c.NeMo, c.Apex}]
	type section = map[string]any
	text, err := json.Marshal(section{
		"name":    c.Name,
		"trainer": section{"num_nodes": c.World * m.PP, "devices": m.TP, "precision": precision},
		"model": section{
			"mcore_gpt": true, "micro_batch_size": 1, "global_batch_size": c.World * m.PP,
			"num_layers": m.Layers, "hidden_size": m.Hidden, "ffn_hidden_size": m.FFN, "num_attention_heads": m.Heads,
			"num_query_groups": m.Groups, "kv_channels": m.KVChannels, "encoder_seq_length": m.Seq, "override_vocab_size": m.Vocab,
			"position_embedding_type": m.Pos, "normalization": strings.ToLower(m.Norm), "activation": activation, "bias": m.Bias,
			"share_embeddings_and_output_weights": m.Share,
			"tensor_model_parallel_size":          m.TP, "sequence_parallel": m.SP,
			"pipeline_model_parallel_size": m.PP, "virtual_pipeline_model_parallel_size": m.VP,
			"megatron_amp_O2": m.DType == "bf16", "fp8": m.FP8, "fp8_params": m.FP8, "optim": c.Optim,
		},
		"framework": section{"version": version},
	})
	require.NoError(t, err)
	return string(text)
}

// Every reference layout of NeMo comes out of a document with that configuration, in every field.
// Left out are those that Megatron or Transformer Engine refuse to run.
func TestLayoutOfReferenceCases(t *testing.T) {
	files, err := filepath.Glob("../../oracle/testdata/layout/*.json.gz")
	require.NoError(t, err)
	same, refused := 0, 0
	for _, file := range files {
		data := unpacked(t, file)
		var kind struct{ Case struct{ Kind string } }
		require.NoError(t, json.Unmarshal(data, &kind))
		if kind.Case.Kind != "nemo" {
			continue
		}
		var want struct{ Case caseOfStage }
		require.NoError(t, json.Unmarshal(data, &want))
		status, stdout, stderr := try(nemoDocument(t, &want.Case), "layout", "-stage", strconv.Itoa(want.Case.Model.PPRank), "-")
		if status != exitOK {
			require.Regexp(t, "more than 2 pipeline stages|multiple of 16 in FP8", stderr, file)
			refused++
			continue
		}
		var all, got map[string]any
		require.NoError(t, json.Unmarshal(data, &all))
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		for key := range all {
			require.True(t, reflect.DeepEqual(all[key], got[key]), "%s: %s", file, key)
		}
		require.Len(t, got, len(all), file)
		same++
	}
	require.GreaterOrEqual(t, same, 25)
	require.LessOrEqual(t, refused, 20)
}
