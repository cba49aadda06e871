package step

import (
	"encoding/binary"
	"math"

	"distopt/core/model"
)

// interner gives equal works one id. Layers are alike, so a step has few of them.
type interner struct {
	rec *Recording
	ids map[string]WorkID
	key []byte
	// passes holds 1 + the work of a set of module kinds, forward and backward, without kernels
	// of its own.
	passes [2][1 << model.NumModuleKind]WorkID
}

func (in *interner) init(rec *Recording) {
	in.rec = rec
	in.ids = map[string]WorkID{}
}

// intern returns the id of w. Its slices may be reused by the caller.
func (in *interner) intern(w Work) WorkID {
	k := append(in.key[:0], byte(w.Kind), byte(w.Op), byte(w.Group), byte(w.DType))
	k = binary.AppendVarint(k, int64(w.Bytes))
	k = binary.AppendVarint(k, int64(w.Count))
	k = binary.AppendVarint(k, int64(w.Memory))
	k = binary.AppendVarint(k, int64(len(w.Passes)))
	for i := range w.Passes {
		p := &w.Passes[i]
		k = append(k, byte(p.Module), flag(p.Backward))
		k = binary.AppendVarint(k, int64(p.Chunk))
		k = binary.AppendVarint(k, int64(p.Layer))
	}
	for i := range w.Kernels {
		n := &w.Kernels[i]
		k = append(k, byte(n.Kind), byte(n.DType), flag(n.FP8)|flag(n.Wgrad)<<1|flag(n.Gather)<<2|flag(n.Scatter)<<3)
		for _, v := range [...]int64{n.M, n.N, n.K, int64(n.Bytes), int64(n.Tensors), int64(n.Elems), int64(len(n.Name))} {
			k = binary.AppendVarint(k, v)
		}
		k = binary.LittleEndian.AppendUint64(k, math.Float64bits(float64(n.FLOPs)))
		k = append(k, n.Name...)
	}
	in.key = k
	if id, ok := in.ids[string(k)]; ok {
		return id
	}
	id := WorkID(len(in.rec.Works))
	w.Kernels = append([]model.Kernel(nil), w.Kernels...)
	w.Passes = append([]model.Pass(nil), w.Passes...)
	in.rec.Works = append(in.rec.Works, w)
	in.ids[string(k)] = id
	return id
}

// compute returns the work of a run of modules and of the gradient additions that go with it.
func (in *interner) compute(m *model.Stage, o run, back bool, adds []model.Kernel) WorkID {
	kinds := 0
	for i := o.first; i < o.last; i++ {
		kinds |= 1 << m.Modules[i].Kind
	}
	known := &in.passes[flag(back)][kinds]
	if len(adds) == 0 && *known != 0 {
		return *known - 1
	}
	layer := 0
	if o.layer < 0 {
		layer = -1
	}
	w := Work{Kind: Forward, Kernels: adds}
	if back {
		w.Kind = Backward
	}
	for i := range o.last - o.first {
		at := o.first + i
		if back {
			at = o.last - 1 - i
		}
		w.Passes = append(w.Passes, model.Pass{Module: m.Modules[at].Kind, Layer: layer, Backward: back})
	}
	id := in.intern(w)
	if len(adds) == 0 {
		*known = id + 1
	}
	return id
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
