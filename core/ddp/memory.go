package ddp

import (
	"distopt/core/dtype"
	"distopt/core/units"
)

// Memory is what one rank holds on the device, by kind. Nothing of it is sharded.
type Memory struct {
	Params  units.Bytes
	Buckets units.Bytes
	Grads   units.Bytes // param.grad, where it is no view of a bucket; from backward until zero_grad
	Main    units.Bytes // fp32 main parameters
	Moments units.Bytes
	// MainGrads are fp32 copies of 16-bit gradients, for the step.
	MainGrads units.Bytes
	// Temporary is the root of the second moment, of all parameters of a list at once, in a step
	// without the fused kernel.
	Temporary units.Bytes
}

// Total adds everything up.
func (m Memory) Total() units.Bytes {
	return m.Params + m.Buckets + m.Grads + m.Main + m.Moments + m.MainGrads + m.Temporary
}

// Memory returns what a rank holds.
func (l *Layout) Memory() Memory {
	var m Memory
	for p := range l.Params {
		n, d := units.Bytes(l.Params[p].Numel), l.Params[p].DType
		m.Params += n * d.Size()
		m.Buckets += n * d.Size()
		if !l.Options.BucketView {
			m.Grads += n * d.Size()
		}
		state := l.Options.State
		if l.main(d) {
			m.Main += n * dtype.FP32.Size()
			m.MainGrads += n * dtype.FP32.Size()
			state = dtype.FP32
		}
		m.Moments += 2 * n * state.Size()
		if l.Options.Foreach {
			m.Temporary += n * state.Size()
		}
	}
	return m
}
