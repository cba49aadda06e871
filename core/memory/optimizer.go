package memory

import (
	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/units"
)

// Optimizer is the memory of parameters, gradients and state on one rank of a stage, whatever the framework.
type Optimizer struct {
	Held Amounts // throughout

	StepGrads units.Bytes // copies of gradients, from the update until gradients are cleared
	Exchange  units.Bytes // the target of an all-to-all, during each reduction
	Scratch   units.Bytes // of the update

	// Buckets are allocated and freed on the way; none: Held has everything.
	Buckets []Bucket
	// CopiedAtOnce: gathered parameters are copied in the optimizer's step, not when they are first used.
	CopiedAtOnce bool
}

// Bucket is what a bucket takes outside of contiguous buffers; 0: nothing.
type Bucket struct {
	Grad   units.Bytes // from the first gradient that it gets until it is reduced
	Shard  units.Bytes // from its reduction until gradients are cleared
	Param  units.Bytes // from the start of its gather until its parameters are copied out
	Update units.Bytes // its shard of updated values: from the update until it is gathered
	Params []bucket.ParamID
}

// FromApex returns the memory of Apex's optimizer. Layouts that place parameters lazily must have done so.
//
// Without contiguous buffers a bucket's gradients exist from the first of them to the end of their reduction,
// and gathered parameters until the last is copied. State is padded as buckets are.
func FromApex(l *apex.Layout) Optimizer {
	o := &l.Options
	out := Optimizer{CopiedAtOnce: !o.OverlapParamSync, Buckets: make([]Bucket, len(l.Buckets))}
	held := &out.Held
	for p := range l.Params {
		q := &l.Params[p]
		switch {
		case q.FP8: // bytes, and their transpose
			held[Params] += units.Bytes(q.Numel)
			held[Quantized] += units.Bytes(q.Numel)
		case !o.ContiguousParamBuffer:
			held[Params] += units.Bytes(q.Numel) * q.DType.Size()
		}
	}
	for _, b := range l.Buffers() {
		if o.ContiguousGradBuffer {
			held[Grads] += units.Bytes(b.Length) * b.DTypes.GradSync.Size()
			if o.Later.NCCLUserBuffers { // and one of reduced shards
				held[Grads] += units.Bytes(b.Length) / units.Bytes(o.Distributed) * b.DTypes.GradSync.Size()
			}
		}
		if o.ContiguousParamBuffer && b.DTypes.ParamSync != dtype.U8 {
			held[Params] += units.Bytes(b.Length) * b.DTypes.ParamSync.Size()
		}
	}
	for i := range l.Buckets {
		b, k := &l.Buckets[i], &out.Buckets[i]
		shard := units.Bytes(b.Shard)
		held[Moments] += 2 * shard * b.DTypes.State.Size()
		if b.StoresParams {
			held[Main] += shard * b.DTypes.State.Size()
		}
		if b.StoresRemainders {
			held[Remainders] += shard * dtype.I16.Size()
		}
		if !o.ContiguousGradBuffer {
			k.Grad = units.Bytes(b.Size) * b.DTypes.GradSync.Size()
		}
		if o.Distributed > 1 && !o.Later.NCCLUserBuffers {
			k.Shard = shard * b.DTypes.GradSync.Size()
		}
		inPlace := o.ContiguousParamBuffer && (o.NewApex || b.DTypes.ParamSync != dtype.U8)
		if !inPlace {
			if o.Distributed > 1 {
				k.Param = units.Bytes(b.Size) * b.DTypes.ParamSync.Size()
			}
			if !b.StoresParams || b.DTypes.State != b.DTypes.ParamSync {
				k.Update = shard * b.DTypes.ParamSync.Size()
			}
		}
		for _, f := range b.Fragments {
			k.Params = append(k.Params, f.Param)
		}
	}
	return out
}

// FromMCore returns the memory of Megatron-Core's optimizer on a rank of the dp_cp group: whole buffers,
// from start to end.
func FromMCore(l *mcore.Layout, t mcore.States, rank int) Optimizer {
	m := l.Memory(t, rank)
	var out Optimizer
	out.Held[Params] = m.Params
	out.Held[Quantized] = m.Quantized
	out.Held[Grads] = m.Grads + m.FP32Grads
	out.Held[Main] = m.Main
	out.Held[Moments] = m.Moments + m.Scales
	for b := range l.Buckets {
		if l.Buckets[b].StoresRemainders { // of all buffers or of none that has main parameters
			out.Held[Main], out.Held[Remainders] = 0, m.Main
		}
	}
	out.StepGrads, out.Exchange = m.StepGrads, m.Exchange
	return out
}

// FromDDP returns the memory of PyTorch's DistributedDataParallel, of whose state nothing is sharded.
// Gradients beside the buckets are taken to be there throughout; they are not between zero_grad and backward.
func FromDDP(l *ddp.Layout) Optimizer {
	m := l.Memory()
	var out Optimizer
	out.Held[Params] = m.Params
	out.Held[Grads] = m.Buckets + m.Grads
	out.Held[Main] = m.Main
	out.Held[Moments] = m.Moments
	out.StepGrads, out.Scratch = m.MainGrads, m.Temporary
	return out
}
