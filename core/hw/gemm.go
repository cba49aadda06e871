package hw

import (
	"math"

	"distopt/core/units"
)

// Product is C[M,N] = A[M,K] B[K,N] on tensor cores.
type Product struct {
	M, N, K int64
	Groups  int64       // so many of these in one kernel (grouped GEMM), their tiles share the waves; 0: one
	Operand units.Bytes // of one element of A and B
	Result  units.Bytes // of one element of C
	// Accumulate: C is read, added to and written.
	Accumulate bool
}

// FLOPs counts a multiplication and an addition as two.
func (p Product) FLOPs() units.FLOPs {
	return units.FLOPs(2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(max(p.Groups, 1)))
}

// GEMMCurve is the time of a product on an idle GPU with a cool clock. Of several tile shapes and
// splits along K the fastest counts, as a library's heuristic would choose. A tile costs its K
// steps plus a prologue; tiles run in waves of one per SM.
type GEMMCurve struct {
	Rate      units.FLOPsPerSecond // of all SMs with infinitely large tiles
	Prologue  float64              // in elements of K: filling the pipeline and writing the tile
	WaveLoss  float64              // part of the idle share of the last wave that costs time
	TileSide  float64              // harmonic tile side at which half the rate is reached
	Floor     units.Seconds        // launch to first instruction, and the end
	Bandwidth units.BytesPerSecond // at which operands and result move
	Split     units.Seconds        // second kernel that sums a split product
}

// AccumulateExposed is the part of the extra traffic of C += AB into fp32 that the product does
// not hide. Of it 0.3 show on an A100 PCIe and 0.5 on a B200 (SimuMax system files at
// 4dcaae513b: 61 and 144 products of forward, input gradient and accumulating weight gradient
// at K = 4096); on the H200 it was not timed.
const AccumulateExposed = 0.4

// What a grouped product takes beyond the tiles of its groups: its set-up, and slower tiles (42 products of
// torch._grouped_mm in 16 bit on an H200; TestGroupedProducts in core/cost).
const (
	GroupedSetup = 8e-6
	GroupedTiles = 1.13
)

// tiles are shapes of thread block tiles that cuBLAS uses on Hopper (kernel names in h200.json).
var tiles = [...][2]float64{
	{256, 128}, {128, 256}, {320, 128}, {128, 320}, {192, 192}, {128, 192}, {192, 128},
	{128, 128}, {64, 256}, {256, 64}, {128, 64}, {64, 128}, {64, 64},
}

// splits of K that are tried when the tiles do not fill one wave.
var splits = [...]float64{1, 2, 3, 4, 6, 8}

// minSplitK is the shortest K of a split product's part.
const minSplitK = 256

// Time returns the time of p on sms SMs. It is exact arithmetic and a square root: the same on
// every machine.
func (c *GEMMCurve) Time(p Product, sms int) units.Seconds {
	m, n, k, groups := float64(p.M), float64(p.N), float64(p.K), float64(max(p.Groups, 1))
	compute := math.Inf(1)
	perSM := float64(c.Rate) / float64(sms)
	for _, tile := range tiles {
		side := tile[0] * tile[1] / (tile[0] + tile[1])
		rate := perSM * (side / (side + c.TileSide))
		count := math.Ceil(m/tile[0]) * math.Ceil(n/tile[1]) * groups
		for _, s := range splits {
			if s > 1 && (count > float64(sms) || k < s*minSplitK) {
				break
			}
			waves := count * s / float64(sms)
			full := math.Ceil(waves)
			waves += float64((full - waves) * c.WaveLoss)
			seconds := waves * (k/s + c.Prologue) * (2 * tile[0] * tile[1]) / rate
			if s > 1 { // partial sums in fp32, written and read
				seconds += float64(c.Split) + float64(groups*s*m*n*4/float64(c.Bandwidth))
			}
			compute = min(compute, seconds)
		}
	}
	operands := groups * float64(float64(p.Operand)*(float64(m*k)+float64(n*k)))
	result := groups * float64(float64(p.Result)*(m*n))
	memory := (operands + result) / float64(c.Bandwidth)
	seconds := float64(c.Floor) + math.Sqrt(float64(compute*compute)+float64(memory*memory))
	if p.Accumulate {
		seconds += float64(AccumulateExposed * result / float64(c.Bandwidth))
		if p.Result > 2 { // the curve was measured with a 16-bit result
			seconds += float64(AccumulateExposed * (result - float64(groups*2*m*n)) / float64(c.Bandwidth))
		}
	}
	if groups > 1 {
		seconds = GroupedSetup + float64(GroupedTiles*seconds)
	}
	return units.Seconds(seconds)
}
