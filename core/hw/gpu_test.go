package hw

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

// The table agrees with the collected data sheets, and every entry says where it is from.
func TestGPUsAgainstDataSheets(t *testing.T) {
	f, err := os.Open("testdata/hardware.json.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var sheets struct {
		GPUs []struct {
			GPU       string
			MemoryGB  float64             `json:"memory_gb"`
			Bandwidth float64             `json:"memory_bw_gb_s"`
			Peak      map[string]*float64 `json:"peak_dense_tflops"`
			NVLink    map[string]*float64 `json:"nvlink_gb_s"`
			PerNode   int                 `json:"gpus_per_node"`
			SMs       *int
			Measured  map[string]*float64 `json:"measured_max_matmul_tflops"`
		}
	}
	require.NoError(t, json.NewDecoder(z).Decode(&sheets))
	ids := map[string]string{
		"A100-SXM4-40GB": "a100-40gb", "A100-SXM4-80GB": "a100-80gb", "H100-SXM5-80GB": "h100", "H200-SXM-141GB": "h200",
		"B200-SXM-180GB": "b200", "GB200-NVL72": "gb200", "L40S-PCIe-48GB": "l40s",
	}
	seen := 0
	for _, s := range sheets.GPUs {
		g := Lookup(ids[s.GPU])
		if g == nil {
			continue
		}
		seen++
		check := func(want *float64, unit, got float64) {
			if want != nil {
				require.InEpsilon(t, *want*unit, got, 1e-9, s.GPU)
			}
		}
		check(&s.MemoryGB, gb, float64(g.Memory))
		check(&s.Bandwidth, gb, float64(g.Bandwidth))
		check(s.Peak["bf16"], tflop, float64(g.BF16))
		check(s.Peak["fp8"], tflop, float64(g.FP8))
		check(s.NVLink["unidirectional"], gb, float64(g.NVLink))
		check(s.Measured["bf16"], tflop, float64(g.MatmulBF16))
		check(s.Measured["fp8"], tflop, float64(g.MatmulFP8))
		require.Equal(t, s.PerNode, g.PerNode, s.GPU)
		if s.SMs != nil {
			require.Equal(t, *s.SMs, g.SMs, s.GPU)
		}
	}
	require.Equal(t, len(GPUs), seen)
}

func TestEntriesAreComplete(t *testing.T) {
	ids := map[string]bool{}
	for i := range GPUs {
		g := &GPUs[i]
		require.False(t, ids[g.ID], g.ID)
		ids[g.ID] = true
		require.Same(t, g, Lookup(g.ID))
		require.NotEmpty(t, g.Sources, g.ID)
		require.Positive(t, g.SMs, g.ID)
		require.Positive(t, g.L2, g.ID)
		require.Positive(t, float64(g.MatmulBF16), g.ID)
		require.Equal(t, g.FP8 > 0, g.MatmulFP8 > 0, g.ID)
		require.Less(t, float64(g.MatmulBF16), float64(g.BF16), g.ID)
	}
	for i := range Networks {
		n := &Networks[i]
		require.False(t, ids[n.ID], n.ID)
		ids[n.ID] = true
		require.Same(t, n, LookupNetwork(n.ID))
		require.NotEmpty(t, n.Sources, n.ID)
		require.Positive(t, n.Efficiency, n.ID)
		require.GreaterOrEqual(t, n.Hop, 1.0, n.ID)
	}
	require.Equal(t, "h200", Reference.ID)
	require.Nil(t, Lookup("tpu"))
}

// A GPU with more of everything is faster, and none exceeds its peaks.
func TestCurvesAreCarried(t *testing.T) {
	p := Product{M: 8192, N: 16384, K: 8192, Operand: 2, Result: 2}
	eight := p
	eight.Operand = 1
	for i := range GPUs {
		g := &GPUs[i]
		c := g.Curves()
		rate := float64(p.FLOPs()) / float64(c.BF16.Time(p, c.SMs))
		require.Less(t, rate, float64(g.BF16), g.ID)
		require.Greater(t, rate, 0.5*float64(g.BF16), g.ID)
		rate = float64(p.FLOPs()) / float64(c.FP8Split.Time(eight, c.SMs))
		require.Less(t, rate, float64(g.Peak(true)), g.ID)
		const size = 1 << 30
		for pattern := range NumPattern {
			require.Less(t, size/float64(c.Streams[pattern].Time(size, c.L2)), float64(g.Bandwidth), "%s %d", g.ID, pattern)
		}
		require.Positive(t, c.Power.Product)
	}
	fast, slow := Lookup("b200").Curves(), Lookup("a100-80gb").Curves()
	require.Less(t, fast.BF16.Time(p, fast.SMs), slow.BF16.Time(p, slow.SMs))
}

// The chunk rule as measured: a full chunk takes 22 to 26 us, so do 16 of them; many tensors of a
// few launches take a launch each.
func TestChunkRule(t *testing.T) {
	adam := &h200.Multi[AdamUpdate]
	one, launches := adam.Time(1, MultiTensorChunk, 28*MultiTensorChunk, 30)
	require.Equal(t, 1, launches)
	require.InDelta(t, 24, float64(one)*1e6, 3)
	sixteen, _ := adam.Time(1, 16*MultiTensorChunk, 28*16*MultiTensorChunk, 30)
	require.InDelta(t, float64(one), float64(sixteen), 3e-6)
	_, launches = adam.Time(1, 320*MultiTensorChunk, 1, 30)
	require.Equal(t, 1, launches)
	_, launches = adam.Time(1, 321*MultiTensorChunk, 1, 30)
	require.Equal(t, 2, launches)
	_, launches = adam.Time(61, 61, 61, 30)
	require.Equal(t, 3, launches)
	none, launches := adam.Time(0, 0, 0, 30)
	require.Zero(t, none)
	require.Zero(t, launches)
}

func TestSlowdown(t *testing.T) {
	require.Equal(t, 1.0, Slowdown(0, 0, 1, 0.7))
	require.Equal(t, 1.0, Slowdown(1, 0.9, 1, 0.7), "the limit does not bind")
	require.InDelta(t, 1.2, Slowdown(1, 1.44, 0, 0), 1e-12)
	// Time at the limit: s·clocked·(draw/s²) + steadyDraw = s·clocked + steady.
	s := Slowdown(3, 4.5, 1, 0.5)
	require.InDelta(t, 3*s+1, 4.5/s+0.5, 1e-12)
	require.Less(t, s, Slowdown(3, 4.5, 0, 0))
}

func TestTaken(t *testing.T) {
	lastProduct, lastMemory := 0.0, 0.0
	for sms := range 200 {
		product, memory := Taken(sms, 132)
		require.GreaterOrEqual(t, product, lastProduct)
		require.GreaterOrEqual(t, memory, lastMemory)
		lastProduct, lastMemory = product, memory
	}
	product, memory := Taken(0, 132)
	require.Equal(t, [2]float64{1, 1}, [2]float64{product, memory})
	here, _ := Taken(16, 132)
	larger, _ := Taken(16, 148)
	require.Less(t, larger, here)
}

func TestNVLinkDomain(t *testing.T) {
	f := NewFabric(Lookup("gb200"), LookupNetwork("ndr"))
	require.False(t, f.Crosses(Place{Ranks: 72, Nodes: 18, PerNode: 4}))
	require.True(t, f.Crosses(Place{Ranks: 144, Nodes: 36, PerNode: 4}))
	require.Less(t, f.Time(AllGather, Place{64, 16, 4}, units.GiB), f.Time(AllGather, Place{64, 32, 2}, units.GiB))
	f = NewFabric(Lookup("h100"), LookupNetwork("ndr"))
	require.True(t, f.Crosses(Place{Ranks: 16, Nodes: 2, PerNode: 8}))
}
