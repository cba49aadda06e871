package hw

import "distopt/core/units"

// Backend is an implementation of flash attention.
type Backend uint8

// The implementations that were measured.
const (
	FlashAttention2 Backend = iota
	CuDNN
	NumBackend
)

// Attention returns the implementation that Transformer Engine prefers where both apply: cuDNN
// from Hopper on, before that FlashAttention 2 (NeMo's documentation as of NVIDIA/NeMo pull 9188).
func (a Arch) Attention() Backend {
	if a < Hopper {
		return FlashAttention2
	}
	return CuDNN
}

// Curves is everything that is known about the kernels of one GPU.
type Curves struct {
	SMs int
	L2  units.Bytes
	// BF16 is any 16-bit product; FP8Fast accumulates as FP8 forward passes do, FP8Split with
	// the higher precision of gradient products.
	BF16, FP8Fast, FP8Split GEMMCurve
	Attention               [NumBackend]Attention
	Streams                 [NumPattern]StreamCurve
	Multi                   [NumMultiTensor]ChunkCurve
	Power                   Power
}

// Curves carries the measured curves to g. Rules: products by the ratio of the fastest measured
// products and by the SM count, which sets the waves; attention by the ratio of measured prefill
// kernels, else as products; memory-bound kernels by the ratio of peak bandwidths. Floors and
// latencies stay. A GPU without FP8 units has the 16-bit curve in their place. FlashAttention 2
// is written for the tensor core instructions of Ampere and Ada, so there it follows the curve
// of cuDNN; on later GPUs it is measured, and slow.
func (g *GPU) Curves() *Curves {
	c := h200
	if g == Reference {
		return &c
	}
	c.SMs, c.L2 = g.SMs, g.L2
	matmul := float64(g.MatmulBF16) / float64(Reference.MatmulBF16)
	memory := float64(g.Bandwidth) / float64(Reference.Bandwidth)
	fp8 := matmul
	if g.FP8 > 0 {
		fp8 = float64(g.MatmulFP8) / float64(Reference.MatmulFP8)
	} else {
		c.FP8Fast, c.FP8Split = c.BF16, c.BF16
	}
	c.BF16.carry(matmul, memory)
	c.FP8Fast.carry(fp8, memory)
	c.FP8Split.carry(fp8, memory)

	attention := matmul
	if g.Prefill > 0 {
		attention = float64(g.Prefill) / float64(Reference.Prefill)
	}
	if g.Arch < Hopper {
		c.Attention[FlashAttention2] = c.Attention[CuDNN]
	}
	for i := range c.Attention {
		a := &c.Attention[i]
		for j := range a.Forward {
			a.Forward[j].Rate *= units.FLOPsPerSecond(attention)
			a.Backward[j].Rate *= units.FLOPsPerSecond(attention)
		}
	}
	for i := range c.Streams {
		c.Streams[i].Near *= units.BytesPerSecond(memory)
		c.Streams[i].Bandwidth *= units.BytesPerSecond(memory)
	}
	for i := range c.Multi {
		c.Multi[i].Bandwidth *= units.BytesPerSecond(memory)
		c.Multi[i].Elements *= memory
	}
	c.Power = powers[g.Arch]
	return &c
}

func (c *GEMMCurve) carry(rate, memory float64) {
	c.Rate *= units.FLOPsPerSecond(rate)
	c.Bandwidth *= units.BytesPerSecond(memory)
}
