package apex

import (
	"maps"
	"slices"
	"strings"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

func (x *restated) gradsOf(id bucket.ID) *restatedGrads {
	if x.grads[id] == nil {
		x.grads[id] = &restatedGrads{generated: map[bucket.ParamID]bool{}}
		x.gradTable = append(x.gradTable, id)
	}
	return x.grads[id]
}

func (x *restated) zeroGrad() {
	x.say(optim.OpZeroGrad)
	clear(x.grads)
	clear(x.grad)
	x.gradTable, x.norm = nil, false
	if x.o.ContiguousGradBuffer {
		x.init(x.order(), x.plain())
		for id := range x.buckets {
			x.gradsOf(bucket.ID(id))
		}
		for _, p := range x.order() {
			x.grad[p] = x.params[p].DType == x.buckets[x.of[p][0].Bucket].DTypes.GradSync
		}
	}
}

func (x *restated) noSync(on bool) {
	x.overlap, x.greedy = x.o.OverlapGradSync, true
	if on {
		x.overlap, x.greedy = false, x.o.NeMo && x.o.O2
	}
}

func (x *restated) lateCopy(p bucket.ParamID) bool {
	q := &x.params[p]
	return x.o.NeMo && !x.o.O2 && (q.SequenceParallel ||
		x.c.EmbeddingSize > 1 && (strings.Contains(q.Name, "word_embedding") || strings.Contains(q.Name, "output_layer")))
}

func (x *restated) gradReady(p bucket.ParamID) {
	x.about(optim.OpGradReady, p)
	_, placed := x.of[p]
	if !placed {
		x.place(p, x.plain())
	}
	x.grad[p] = true
	if x.greedy && !x.lateCopy(p) {
		x.copyGrad(p)
		if x.overlap && !x.params[p].NoOverlap {
			x.tryGradSync([]bucket.ParamID{p}, !placed)
		}
	}
}

func (x *restated) copyGrad(p bucket.ParamID) {
	x.about(optim.OpGradCopy, p)
	if x.o.ContiguousGradBuffer {
		x.init(x.order(), x.plain())
	}
	for _, ref := range x.of[p] {
		g := x.gradsOf(ref.Bucket)
		if g.status == optim.GradSyncing {
			x.finishGrads()
		}
		g.status = optim.GradPartial
	}
	x.grad[p] = false
}

func (x *restated) tryGradSync(list []bucket.ParamID, ignoreLast bool) {
	for _, p := range list {
		for _, ref := range x.of[p] {
			g := x.gradsOf(ref.Bucket)
			g.generated[p] = true
			if len(g.generated) == len(x.buckets[ref.Bucket].Fragments) {
				g.status = optim.GradFilled
			}
		}
	}
	var filled []bucket.ID
	for _, id := range slices.Sorted(maps.Keys(x.grads)) {
		if x.grads[id].status == optim.GradFilled && !(ignoreLast && int(id) == len(x.buckets)-1) {
			filled = append(filled, id)
		}
	}
	if len(filled) > 0 {
		x.launchGrads(filled)
	}
}

func (x *restated) launchGrads(ids []bucket.ID) {
	x.list(optim.OpStartGradSync, ids)
	if !x.o.ContiguousGradBuffer {
		x.finishGrads()
	}
	for _, id := range ids {
		x.grads[id].status = optim.GradSyncing
		clear(x.grads[id].generated)
	}
	op := optim.Sum
	if x.o.AverageGradSync {
		op = optim.Average
	}
	if x.o.Distributed > 1 {
		x.coalesced(optim.OpReduceScatter, ids, optim.Distributed, x.o.Distributed, op, func(b *bucket.Bucket) (units.Elems, dtype.DType) {
			return b.Size, b.DTypes.GradSync
		})
	}
	if x.o.Redundant > 1 {
		x.coalesced(optim.OpAllReduce, ids, optim.Redundant, x.o.Redundant, op, func(b *bucket.Bucket) (units.Elems, dtype.DType) {
			return b.Shard, b.DTypes.GradSync
		})
	}
}

func (x *restated) finishGrads() {
	var ids []bucket.ID
	for _, id := range slices.Sorted(maps.Keys(x.grads)) {
		if g := x.grads[id]; g.status == optim.GradSyncing {
			g.status, g.shard, x.norm = optim.GradReady, true, false
			ids = append(ids, id)
		}
	}
	x.list(optim.OpFinishGradSync, ids)
}

func (x *restated) gradSync() {
	x.say(optim.OpGradSync)
	for id := range x.buckets {
		for _, f := range slices.Clone(x.buckets[id].Fragments) {
			if x.grad[f.Param] {
				x.copyGrad(f.Param)
				if !x.o.ContiguousGradBuffer {
					x.tryGradSync([]bucket.ParamID{f.Param}, false)
				}
			}
		}
	}
	var ids []bucket.ID
	for _, id := range slices.Sorted(maps.Keys(x.grads)) {
		if s := x.grads[id].status; s != optim.GradReady && s != optim.GradSyncing {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		x.launchGrads(ids)
	}
	x.finishGrads()
	for id := range x.buckets {
		x.gradsOf(bucket.ID(id)).shard = true
	}
	x.say(optim.OpGradSyncEnd)
}

func (x *restated) chunk(c int) (list []bucket.ParamID) {
	for p := range x.params {
		if x.params[p].Chunk == c {
			list = append(list, bucket.ParamID(p))
		}
	}
	return list
}

func (x *restated) gradSyncFunc(c int) {
	x.emit(optim.Event{Op: optim.OpGradSyncFunc, Param: -1, Chunk: c + 1})
	if x.overlap {
		_, list := split(x.chunk(c), func(p bucket.ParamID) bool { return x.lateCopy(p) || x.params[p].NoOverlap })
		for _, p := range list {
			x.copyGrad(p)
		}
		x.tryGradSync(list, false)
	}
	x.emit(optim.Event{Op: optim.OpGradSyncFuncEnd, Param: -1, Chunk: c + 1})
}

func (x *restated) paramSyncFunc(c int) {
	x.emit(optim.Event{Op: optim.OpParamSyncFunc, Param: -1, Chunk: c + 1})
	x.tryParamSync(x.chunk(c))
	x.emit(optim.Event{Op: optim.OpParamSyncFuncEnd, Param: -1, Chunk: c + 1})
}

func (x *restated) afterBackward() {
	if !x.o.NeMo {
		return
	}
	n, d := units.Elems(0), dtype.FP32
	for p, q := range x.params {
		if q.SequenceParallel && x.c.Tensor > 1 {
			n, d = n+q.Numel, x.buckets[x.of[bucket.ParamID(p)][0].Bucket].DTypes.GradSync
		}
	}
	if n > 0 {
		x.reduce(-1, n, d, optim.Tensor, x.c.Tensor, optim.Sum)
	}
	x.finishGrads()
	if p := x.tied(); p >= 0 {
		x.reduce(p, x.params[p].Numel, x.buckets[x.of[p][0].Bucket].DTypes.GradSync, optim.Embedding, x.c.EmbeddingSize, optim.Sum)
	}
}

func (x *restated) gradNorm(clip bool) {
	x.say(optim.OpGradNorm)
	if !x.norm {
		x.gradSync()
		counts := func(p bucket.ParamID) bool {
			q := &x.params[p]
			return !clip || !x.o.NeMo || !q.Shared && (q.TensorParallel || x.c.TensorRank == 0)
		}
		type sum struct {
			tensors int
			n       units.Elems
		}
		var seen []dtype.DType
		sums := map[dtype.DType]sum{}
		add := func(d dtype.DType, n units.Elems) {
			if !slices.Contains(seen, d) {
				seen = append(seen, d)
			}
			sums[d] = sum{sums[d].tensors + 1, sums[d].n + n}
		}
		if list, others := split(x.order(), counts); len(others) == 0 {
			for _, id := range x.gradTable {
				add(x.buckets[id].DTypes.GradSync, x.buckets[id].Shard)
			}
		} else {
			for _, p := range list {
				for _, ref := range x.of[p] {
					fs, ns := x.local(ref.Bucket)
					for i, f := range fs {
						if f.Param == p {
							add(x.buckets[ref.Bucket].DTypes.GradSync, ns[i])
						}
					}
				}
			}
		}
		for _, d := range seen {
			x.emit(optim.Event{Op: optim.OpL2Norm, Param: -1, Tensors: sums[d].tensors, N: int64(sums[d].n), DTypes: []string{d.String()}})
		}
		d := dtype.FP32
		if !x.o.NewApex {
			d = x.o.State
		}
		if x.o.NeMo {
			x.reduce(-1, 1, d, optim.World, x.c.World, optim.Sum)
		} else {
			x.reduce(-1, 1, d, optim.Distributed, x.o.Distributed, optim.Sum)
		}
		x.norm = true
	}
	if x.o.NeMo {
		x.say(optim.OpGradNorm)
	}
}

func (x *restated) clip() {
	if x.c.MaxNorm > 0 {
		x.gradNorm(true)
	}
}
