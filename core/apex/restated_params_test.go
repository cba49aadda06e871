package apex

import (
	"fmt"
	"maps"
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// table is the order of the parameter bucket table.
func (x *restated) table() []bucket.ID {
	ids := slices.Sorted(maps.Keys(x.values))
	slices.Reverse(ids)
	return ids
}

func (x *restated) step() {
	x.say(optim.OpStepBegin)
	if x.o.NewApex {
		x.init(x.order(), x.plain())
	}
	x.paramSync()
	x.gradSync()
	if x.c.GradScaler {
		x.gradNorm(false)
	}
	if x.o.ContiguousParamBuffer {
		x.buildBuffer()
	}
	var all []bucket.ID
	bytes := false
	for id := range x.buckets {
		x.values[bucket.ID(id)] = &restatedValues{status: optim.ParamSharded, updated: map[bucket.ParamID]bool{}}
		all = append(all, bucket.ID(id))
		bytes = bytes || x.buckets[id].DTypes.ParamSync == dtype.U8
	}
	overlap := x.o.Distributed > 1 && x.o.OverlapParamSync
	if overlap && len(x.buckets) > 0 && (x.o.NewApex || !bytes) {
		newest := x.buckets[len(x.buckets)-1].Fragments
		var first, others []bucket.ID
		for _, ref := range x.of[newest[len(newest)-1].Param] {
			first = append(first, ref.Bucket)
		}
		slices.Sort(first)
		for _, id := range all {
			if !slices.Contains(first, id) {
				others = append(others, id)
			}
		}
		x.localStep(first, false)
		x.launchParams(first)
		x.localStep(others, !x.o.NewApex)
	} else {
		x.localStep(all, false)
		if !x.o.NewApex {
			x.check(x.table())
		}
	}
	if overlap {
		x.prefetch()
		for _, p := range x.order() {
			x.pending[p] = true
		}
	} else {
		x.paramSync()
	}
	x.list(optim.OpStepEnd, x.table())
}

func (x *restated) localStep(ids []bucket.ID, generator bool) {
	x.list(optim.OpLocalStep, ids)
	defer x.say(optim.OpLocalStepEnd)
	if x.o.WithScaledStates {
		for _, id := range ids {
			fs, ns := x.local(id)
			n := units.Elems(0)
			for _, m := range ns {
				n += m
			}
			x.copied(3*len(fs), 3*bytesOf(n, dtype.FP32))
			x.adam([]bucket.ID{id}, false)
			x.check([]bucket.ID{id})
			x.copied(3*len(fs), 3*bytesOf(n, x.o.State))
		}
		return
	}
	if x.o.StoreParamRemainders {
		with, without := []bucket.ID{}, []bucket.ID{}
		for _, id := range ids {
			if x.buckets[id].StoresRemainders {
				with = append(with, id)
			} else {
				without = append(without, id)
			}
		}
		if len(with) > 0 {
			x.adam(with, true)
			if x.o.NewApex {
				x.check(with)
			}
		}
		if ids = without; len(ids) == 0 || generator {
			return
		}
	}
	x.adam(ids, false)
	if x.o.NewApex {
		x.check(ids)
	}
}

func (x *restated) adam(ids []bucket.ID, remainders bool) {
	var keys []string
	events := map[string]*optim.Event{}
	for _, id := range ids {
		d := x.buckets[id].DTypes
		fs, ns := x.local(id)
		for i, f := range fs {
			key := fmt.Sprint(x.groupOf(f.Param), d)
			if events[key] == nil {
				keys = append(keys, key)
				e := &optim.Event{Op: optim.OpAdam, Param: -1, Kind: "fused"}
				state, out := d.State, d.ParamSync
				if out == dtype.U8 {
					out = state
				}
				e.DTypes = []string{state.String(), state.String(), state.String(), d.GradSync.String(), out.String()}
				if x.o.WithScaledStates {
					e.DTypes = []string{"fp32", "fp32", "fp32", d.GradSync.String(), "fp32"}
				}
				if remainders {
					e.Kind, e.DTypes = "remainders", []string{"bf16", "int16", "fp32", "fp32", d.GradSync.String(), "bf16"}
				}
				events[key] = e
			}
			events[key].Tensors++
			events[key].N += int64(ns[i])
		}
	}
	for _, key := range keys {
		x.emit(*events[key])
	}
}

// check is _check_params_shard_dtypes: NeMo's, which ends in Apex's.
func (x *restated) check(ids []bucket.ID) {
	x.list(optim.OpCheckDTypes, ids)
	fp8, _ := split(x.order(), x.isFP8)
	done := map[bucket.ID]bool{}
	if x.o.NeMo && len(fp8) > 0 {
		pack := func() { x.copied(len(fp8), units.Bytes(4*len(fp8))) }
		renew := func() { pack(); pack() }
		amax := func() {
			pack()
			x.reduce(-1, units.Elems(len(fp8)), dtype.FP32, optim.Distributed, x.o.Distributed, optim.Max)
			pack()
		}
		castTo := func(id bucket.ID, only bucket.ParamID) {
			if x.buckets[id].DTypes.ParamSync != dtype.U8 {
				return
			}
			fs, ns := x.local(id)
			for i, f := range fs {
				if only < 0 || f.Param == only {
					x.emit(optim.Event{Op: optim.OpCastFP8, Param: -1, N: int64(ns[i])})
					done[id] = true
				}
			}
		}
		if x.o.NewNeMo {
			for _, id := range ids {
				castTo(id, -1)
				done[id] = x.buckets[id].DTypes.ParamSync == dtype.U8
			}
			if x.cast = append(x.cast, ids...); len(x.cast) == len(x.buckets) {
				renew()
				amax()
				x.cast = nil
			}
		} else {
			renew()
			for _, p := range fp8 {
				for _, ref := range x.of[p] {
					if slices.Contains(ids, ref.Bucket) {
						castTo(ref.Bucket, p)
					}
				}
			}
			amax()
		}
	}
	tensors, bytes := 0, units.Bytes(0)
	for _, id := range ids {
		b := &x.buckets[id]
		holds := b.DTypes.ParamSync // what the shard holds after Adam
		if x.o.WithScaledStates {
			holds = dtype.FP32
		} else if holds == dtype.U8 {
			holds = b.DTypes.State
		}
		if !done[id] && holds != b.DTypes.ParamSync {
			tensors++
			bytes += bytesOf(b.Shard, b.DTypes.ParamSync)
		}
	}
	x.copied(tensors, bytes)
}

func (x *restated) paramAccess(p bucket.ParamID) {
	if !x.pending[p] {
		return
	}
	x.about(optim.OpParamAccess, p)
	x.pending[p] = false
	if _, placed := x.of[p]; placed {
		x.use(p)
		x.prefetch()
	}
}

func (x *restated) prefetch() {
	for _, id := range x.table() {
		if x.values[id].status == optim.ParamSyncing {
			return
		}
	}
	for _, id := range x.table() {
		if x.values[id].status == optim.ParamSharded {
			fs := x.buckets[id].Fragments
			x.tryParamSync([]bucket.ParamID{fs[len(fs)-1].Param})
			return
		}
	}
}

func (x *restated) tryParamSync(list []bucket.ParamID) {
	ids := map[bucket.ID]bool{}
	for _, p := range list {
		for _, ref := range x.of[p] {
			if v := x.values[ref.Bucket]; v != nil && v.status == optim.ParamSharded {
				ids[ref.Bucket] = true
			}
		}
	}
	if len(ids) > 0 {
		x.launchParams(slices.Sorted(maps.Keys(ids)))
	}
}

func (x *restated) launchParams(ids []bucket.ID) {
	x.list(optim.OpStartParamSync, ids)
	x.finishParams()
	var sharded []bucket.ID
	for _, id := range ids {
		if x.values[id].status == optim.ParamSharded {
			x.values[id].status = optim.ParamSyncing
			sharded = append(sharded, id)
		}
	}
	if x.o.Distributed > 1 {
		x.coalesced(optim.OpAllGather, sharded, optim.Distributed, x.o.Distributed, optim.NoReduce, func(b *bucket.Bucket) (units.Elems, dtype.DType) {
			return b.Size, b.DTypes.ParamSync
		})
	}
}

func (x *restated) finishParams() {
	var ids []bucket.ID
	for _, id := range x.table() {
		if x.values[id].status == optim.ParamSyncing {
			x.values[id].status = optim.ParamReady
			ids = append(ids, id)
		}
	}
	x.list(optim.OpFinishParamSync, ids)
}

func (x *restated) use(list ...bucket.ParamID) {
	var refs []optim.ParamCopy
	var ids []bucket.ID
	ready := true
	for _, p := range list {
		for _, ref := range x.of[p] {
			if v := x.values[ref.Bucket]; v != nil {
				f := x.buckets[ref.Bucket].Fragments[ref.Index]
				refs = append(refs, optim.ParamCopy{Bucket: ref.Bucket, Param: p, N: int64(f.InParam.Len())})
				ready = ready && v.status == optim.ParamReady
				if !slices.Contains(ids, ref.Bucket) {
					ids = append(ids, ref.Bucket)
				}
			}
		}
	}
	if len(refs) == 0 {
		return
	}
	if !ready {
		x.launchParams(ids)
		x.finishParams()
	}
	x.emit(optim.Event{Op: optim.OpParamCopy, Param: -1, Copies: refs})
	tensors, bytes := 0, units.Bytes(0)
	var transposed []bucket.ParamID
	for _, c := range refs {
		// Apex before PR #1771 gathered bytes outside the contiguous buffer.
		inPlace := x.o.ContiguousParamBuffer && (x.o.NewApex || x.buckets[c.Bucket].DTypes.ParamSync != dtype.U8)
		if c.N > 0 && !inPlace {
			tensors++
			bytes += bytesOf(units.Elems(c.N), x.storage(c.Param))
		}
		if x.params[c.Param].FP8 && !slices.Contains(transposed, c.Param) {
			transposed = append(transposed, c.Param)
		}
	}
	x.copied(tensors, bytes)
	for _, p := range transposed {
		x.emit(optim.Event{Op: optim.OpTransposeFP8, Param: -1, N: int64(x.params[p].Numel)})
	}
	for _, c := range refs {
		v := x.values[c.Bucket]
		v.updated[c.Param] = true
		if len(v.updated) == len(x.buckets[c.Bucket].Fragments) {
			delete(x.values, c.Bucket)
		}
	}
}

func (x *restated) paramSync() {
	x.say(optim.OpParamSync)
	if x.o.ContiguousParamBuffer {
		x.use(x.order()...)
	} else {
		for len(x.values) > 0 {
			fs := x.buckets[x.table()[0]].Fragments
			for i := len(fs) - 1; i >= 0; i-- {
				x.use(fs[i].Param)
			}
		}
	}
	clear(x.values)
	x.say(optim.OpParamSyncEnd)
}
