package cost

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"sync"
)

// h200 is the part of core/hw/testdata/h200.json.gz that checks prices against whole layers and
// steps; none of it but gemm_sustained and layer_sustained was fitted to.
type h200File struct {
	Meta      struct{}
	Sustained []struct {
		H      int64
		Tokens int64
		Layer  string
		N, K   int64
		Pass   string
		BF16Ms float64 `json:"bf16_ms"`
		FP8Ms  float64 `json:"fp8_ms"`
	} `json:"gemm_sustained"`
	Burst []struct {
		H, Heads, Batch, Seq int64
		FwdMs                float64 `json:"fwd_ms"`
		BwdMs                float64 `json:"bwd_ms"`
		KernelSumMs          float64 `json:"kernel_sum_ms"`
	} `json:"layer_burst"`
	Layers []struct {
		H, Heads, Batch, Seq int64
		Attention            string
		Ms                   float64 `json:"fwd_bwd_ms_per_layer"`
		MHz                  float64 `json:"sm_mhz"`
	} `json:"layer_sustained"`
	Steps []struct {
		Name, Mode                          string
		H, Layers, Heads, Batch, Seq, Vocab int64
		Params                              int64
		Tensors                             int `json:"optimizer_params_tensors"`
		Buckets                             int
		IterationMs                         float64            `json:"iteration_ms"`
		KernelMs                            float64            `json:"kernel_ms_total"`
		EventMs                             map[string]float64 `json:"event_ms"`
		Sums                                map[string]struct {
			GpuMs    float64 `json:"gpu_ms"`
			Launches int
			ByKind   map[string]float64 `json:"by_kind_us"`
		} `json:"kernel_sums"`
	} `json:"e2e"`
	UnderCopy []struct {
		M, N, K    int64
		DType      string
		CopyBlocks int     `json:"copy_blocks"`
		GemmMs     float64 `json:"gemm_ms"`
		BaseMs     float64 `json:"base_ms"`
		CopyGBs    float64 `json:"copy_gbps_rw"`
	} `json:"gemm_under_copy"`
	CopyAlone []struct {
		Blocks int
		GBs    float64 `json:"gbps_rw"`
	} `json:"copy_alone"`
	AddUnderCopy []struct {
		CopyBlocks int     `json:"copy_blocks"`
		Ms         float64 `json:"ms"`
		BaseMs     float64 `json:"base_ms"`
	} `json:"add_bf16_268M_under_copy"`
}

var measuredH200 = sync.OnceValue(func() *h200File {
	f, err := os.Open("../hw/testdata/h200.json.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	var m h200File
	if err := json.NewDecoder(z).Decode(&m); err != nil {
		panic(err)
	}
	return &m
})
