package cost

import (
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/units"
)

// kernelTime returns the time of one kernel on an idle GPU with a cool clock, launches of a
// multi-tensor kernel included. Collectives have their own price.
func kernelTime(c *hw.Curves, k *model.Kernel) units.Seconds {
	switch k.Kind {
	case model.GEMM:
		return gemmTime(c, k)
	case model.FlashForward, model.FlashBackward:
		flops := k.FLOPs
		if flops == 0 {
			flops = hw.FlashFLOPs(k.M, k.N, k.K, k.Kind == model.FlashBackward)
		}
		return c.Attention[k.Backend].Time(flops, k.M, k.N, k.K, k.Kind == model.FlashBackward, c.SMs)
	case model.MultiTensor:
		t, _ := c.Multi[k.Multi].Time(k.Tensors, k.Elems, k.Bytes, k.PerLaunch)
		return t
	case model.MemoryBound:
		return c.Streams[k.Pattern].Time(k.Bytes, c.L2)
	}
	return 0
}

// gemmTime prices a product. TF32 runs at half the 16-bit rate, as the peaks of every GPU here.
func gemmTime(c *hw.Curves, k *model.Kernel) units.Seconds {
	p := hw.Product{M: k.M, N: k.N, K: k.K, Groups: k.Groups, Operand: 2, Result: k.DType.Size(), Accumulate: k.Add}
	curve := &c.BF16
	switch {
	case k.FP8:
		p.Operand = 1
		curve = &c.FP8Fast
		if k.Grad {
			curve = &c.FP8Split
		}
	case k.TF32:
		p.Operand = 4
		half := *curve
		half.Rate /= 2
		return half.Time(p, c.SMs)
	}
	return curve.Time(p, c.SMs)
}

// launches returns how many kernels the GPU is given for k.
func launches(c *hw.Curves, k *model.Kernel) int {
	n := 1
	if k.Kind == model.MultiTensor {
		_, n = c.Multi[k.Multi].Time(k.Tensors, k.Elems, k.Bytes, k.PerLaunch)
	}
	return n * max(k.Repeat, 1)
}

// draw returns the part of the power limit that a kernel takes at full clock, and whether it runs
// slower at a lower clock.
func draw(p *hw.Power, k *model.Kernel) (part float64, clocked bool) {
	switch k.Kind {
	case model.GEMM:
		if k.FP8 {
			return p.ProductFP8, true
		}
		return p.Product, true
	case model.FlashForward, model.FlashBackward:
		return p.Attention[k.Backend], true
	case model.TensorComm:
		return p.Communication, false
	}
	return p.Memory, false
}
