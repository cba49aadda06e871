package step

import (
	"encoding/binary"

	"distopt/core/model"
)

// interner gives equal works one id. Layers are alike, or of two kinds, so a step has few of them.
type interner struct {
	rec        *Recording
	recomputed int // Config.RecomputeLayers
	ids        map[string]WorkID
	key        []byte

	kernels map[model.Kernel]kernelID
	list    []model.Kernel

	// passes holds 1 + the work of a set of module kinds, forward, backward, and backward of layers
	// behind the recomputed ones, without kernels of its own. Sets of layers with experts are looked up.
	passes [3][1 << model.NumDenseKind]WorkID
	plan   []model.Pass
}

// kernelID numbers the kernels of an interner.
type kernelID uint32

func (in *interner) init(rec *Recording, recomputed int) {
	in.rec, in.recomputed = rec, recomputed
	in.ids = map[string]WorkID{}
	in.kernels = map[model.Kernel]kernelID{}
}

func (in *interner) kernel(k model.Kernel) kernelID {
	id, ok := in.kernels[k]
	if !ok {
		id = kernelID(len(in.list))
		in.kernels[k] = id
		in.list = append(in.list, k)
	}
	return id
}

// intern returns the id of w with the given kernels. w.Passes may be reused by the caller.
func (in *interner) intern(w Work, kernels ...kernelID) WorkID {
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
	for _, id := range kernels {
		k = binary.AppendUvarint(k, uint64(id))
	}
	in.key = k
	if id, ok := in.ids[string(k)]; ok {
		return id
	}
	id := WorkID(len(in.rec.Works))
	w.Passes = append([]model.Pass(nil), w.Passes...)
	for _, n := range kernels {
		w.Kernels = append(w.Kernels, in.list[n])
	}
	in.rec.Works = append(in.rec.Works, w)
	in.ids[string(k)] = id
	return id
}

// compute returns the work of a run of modules and of the gradient additions that go with it. Its
// passes name the first layer that is like theirs.
func (in *interner) compute(m *model.Stage, o run, back bool, adds []kernelID) WorkID {
	kinds := 0
	for i := o.first; i < o.last; i++ {
		kinds |= 1 << m.Modules[i].Kind
	}
	way, layer := flag(back), min(int(o.layer), 0)
	if back && in.recomputed > 0 && int(o.layer) >= in.recomputed {
		way, layer = 2, in.recomputed
	}
	var known *WorkID
	if len(adds) == 0 && kinds < len(in.passes[way]) {
		if known = &in.passes[way][kinds]; *known != 0 {
			return *known - 1
		}
	}
	w := Work{Kind: Forward, Passes: in.plan[:0]}
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
	in.plan = w.Passes
	id := in.intern(w, adds...)
	if known != nil {
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
