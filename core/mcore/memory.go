package mcore

import (
	"fmt"

	"distopt/core/dtype"
	"distopt/core/units"
)

// States says in which formats the optimizer keeps its state. The zero value is fp32 everywhere, in
// Megatron's own main parameters.
type States struct {
	PrecisionAware bool        // use_precision_aware_optimizer: Transformer Engine's FusedAdam keeps the state
	Main           dtype.DType // main_params_dtype: fp32 or fp16
	ExpAvg         dtype.DType // exp_avg_dtype: fp32, fp16, bf16, or U8 for fp8
	ExpAvgSq       dtype.DType
	// NoRemainders: bf16 parameters have full main parameters instead of 16-bit remainders
	// (store_param_remainders off).
	NoRemainders bool
	FP8          bool // GEMMs run in FP8,
	Delayed      bool // with delayed scaling
	// Offload is the part of the state that lies in the host's memory, 0 to 1
	// (optimizer_offload_fraction with optimizer_cpu_offload).
	Offload float64
}

// Check refuses what Megatron-Core refuses.
func (t States) Check(o *Options) error {
	switch {
	case t.PrecisionAware && !o.DistributedOptimizer:
		return fmt.Errorf("use_precision_aware_optimizer: got true without use_distributed_optimizer, want both; set use_distributed_optimizer")
	case !t.PrecisionAware && (t.Main != dtype.FP32 || t.ExpAvg != dtype.FP32 || t.ExpAvgSq != dtype.FP32):
		return fmt.Errorf("main_params_dtype, exp_avg_dtype, exp_avg_sq_dtype: got %s, %s, %s, want fp32 without use_precision_aware_optimizer; set it", t.Main, t.ExpAvg, t.ExpAvgSq)
	case t.Main != dtype.FP32 && t.Main != dtype.FP16:
		return fmt.Errorf("main_params_dtype: got %s, want fp32 or fp16", t.Main)
	case !(t.Offload >= 0 && t.Offload <= 1):
		return fmt.Errorf("optimizer_offload_fraction: got %v, want 0 to 1", t.Offload)
	case t.Offload > 0 && !t.PrecisionAware:
		return fmt.Errorf("optimizer_cpu_offload: got true without use_precision_aware_optimizer, want both; set use_precision_aware_optimizer")
	}
	for _, d := range []dtype.DType{t.ExpAvg, t.ExpAvgSq} {
		if !d.Float() && d != dtype.U8 {
			return fmt.Errorf("exp_avg_dtype, exp_avg_sq_dtype: got %s, want fp32, fp16, bf16 or fp8", d)
		}
	}
	return nil
}

// readsGrads reports whether the update reads gradients as they were reduced (decoupled_grad);
// otherwise they are copied to fp32 in every step, and Megatron keeps fp32 main parameters.
func (t States) readsGrads() bool {
	return t.PrecisionAware && (t.Main != dtype.FP32 || !t.FP8 || t.Delayed || t.Offload > 0)
}

// remainders reports whether the main parameters of a parameter are it and 16-bit remainders.
func (t States) remainders(stored dtype.DType) bool {
	return t.readsGrads() && t.Main == dtype.FP32 && !t.NoRemainders && stored == dtype.BF16
}

// operands of the update of parameters that are stored and reduced in given formats.
func (t States) operands(stored, grad dtype.DType) []dtype.DType {
	if !t.readsGrads() {
		grad = dtype.FP32
	}
	if t.remainders(stored) {
		return []dtype.DType{dtype.BF16, dtype.I16, t.ExpAvg, t.ExpAvgSq, grad, dtype.BF16}
	}
	return []dtype.DType{t.Main, t.ExpAvg, t.ExpAvgSq, grad}
}

// store marks the buckets whose main parameters are remainders.
func (l *Layout) store(t States) {
	for id := range l.Buckets {
		b, k := &l.Buckets[id], &l.Places[id]
		b.StoresRemainders = t.remainders(l.Chunks[k.Chunk].Buffers[k.Buffer].Param)
		b.StoresParams = b.StoresParams && !b.StoresRemainders
	}
}

// Memory is what one rank holds on the device, by kind.
type Memory struct {
	Params    units.Bytes // parameter buffers, or the parameters themselves where there are none
	Grads     units.Bytes // gradient buffers
	FP32Grads units.Bytes // private ones of local fp32 accumulation
	Main      units.Bytes // main parameters or remainders
	Moments   units.Bytes
	Scales    units.Bytes // of main parameters and moments in fp16 and fp8
	StepGrads units.Bytes // fp32 copies of owned gradients, from the step until they are cleared
	Exchange  units.Bytes // the largest bucket, of an all-to-all
	// Quantized copies lie outside the buffers: column-wise ones of FP8 weights, both copies and scales
	// of MXFP8 weights.
	Quantized units.Bytes
}

// Total adds everything up.
func (m Memory) Total() units.Bytes {
	return m.Params + m.Grads + m.FP32Grads + m.Main + m.Moments + m.Scales + m.StepGrads + m.Exchange + m.Quantized
}

// Memory returns what a rank of the dp_cp group holds. State counts owned elements, buffers count
// padding too.
func (l *Layout) Memory(t States, rank int) Memory {
	var m Memory
	for c := range l.Chunks {
		for i := range l.Chunks[c].Buffers {
			b := &l.Chunks[c].Buffers[i]
			m.Grads += units.Bytes(b.Numel) * b.Grad.Size()
			if !b.Shared {
				m.Params += b.ParamData.Bytes()
			}
			for _, p := range b.FP32Grads {
				m.FP32Grads += 4 * units.Bytes(l.Params[p].Numel)
			}
			if l.Options.FP32Accumulation {
				for k := range b.Buckets {
					m.Exchange = max(m.Exchange, units.Bytes(b.Buckets[k].Range.Len())*b.Grad.Size())
				}
			}
			for _, p := range b.Params {
				q := &l.Params[p.Param]
				m.Quantized += q.outside()
				if !l.Options.DistributedOptimizer {
					m.Params += units.Bytes(q.Numel) * q.DType.Size()
					m.state(t, b.Key, q.Numel)
				}
			}
			for _, own := range l.Local(c, i, l.Options.Position(rank, b.Expert)) {
				m.state(t, b.Key, own.World.Len())
			}
		}
	}
	m.Main -= units.Bytes(float64(m.Main) * t.Offload)
	m.Moments -= units.Bytes(float64(m.Moments) * t.Offload)
	return m
}

// state adds the state of n owned elements of one parameter.
func (m *Memory) state(t States, k Key, n units.Elems) {
	switch {
	case k.Param == dtype.FP32: // it is its own main parameter
	case t.remainders(k.Param):
		m.Main += units.Bytes(n) * dtype.I16.Size()
	default:
		m.Main += units.Bytes(n) * t.Main.Size()
		if t.Main == dtype.FP16 {
			m.Scales += 4
		}
	}
	for _, d := range []dtype.DType{t.ExpAvg, t.ExpAvgSq} {
		m.Moments += units.Bytes(n) * d.Size()
		if d == dtype.FP16 || d == dtype.U8 {
			m.Scales += 4
		}
	}
	if k.Grad != dtype.FP32 && !t.readsGrads() {
		m.StepGrads += 4 * units.Bytes(n)
	}
}

// outside returns the bytes of a quantized weight that its buffer does not hold. The scales of
// blockwise FP8 and of NVFP4, and NVFP4's column-wise copy, are left out.
func (p *Param) outside() units.Bytes {
	n := units.Bytes(p.Numel)
	switch p.Quant {
	case FP8, BlockFP8:
		return n
	case MXFP8:
		return 2 * (n + n/32)
	}
	return 0
}
