package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"distopt/core/bucket"
)

// The schedules of Megatron-Core at its recorded commit, as DistributedDataParallel sees them: the
// record says which pass comes next, the rules when the callbacks are made and when hooks register.

// pipeline runs the passes of one step.
func (r *megatronReplay) pipeline() {
	o := &r.l.Options
	chunks := len(r.l.Chunks)
	group := r.stages
	if r.c.GroupSize > 0 {
		group = r.c.GroupSize
	}
	order := virtualOrder(r.c.Microbatches, chunks, group)
	aligned := o.AlignGradReduce && o.OverlapGradReduce
	synced := make([]bool, chunks)
	quiet := true
	noSync := func(on bool) {
		quiet = on
		r.opt.NoSync(on)
	}
	noSync(true)
	if chunks > 1 {
		r.opt.ParamSyncFunc(0)
		r.opt.ParamSyncFunc(1)
	}
	forwards, backwards := 0, 0
	for r.err == nil {
		op, ok := r.nextPass()
		switch {
		case !ok:
			if forwards < len(order) || backwards < len(order) {
				r.err = fmt.Errorf("events: got %d forward and %d backward passes in step %d, want %d of each", forwards, backwards, r.step, len(order))
			}
			noSync(false)
			for c := range synced {
				if aligned && !synced[c] && (chunks > 1 || r.stage > 0) {
					r.opt.GradSyncFunc(c)
				}
			}
			return
		case op == "chunk_fwd":
			if k := forwards + r.stage; chunks > 1 && k < len(order) && order[k].micro == 0 && order[k].chunk+1 >= 2 {
				r.opt.ParamSyncFunc(order[k].chunk + 1)
			}
			if forwards >= len(order) {
				r.stimulus("no more passes")
				return
			}
			r.enter("fwd", order[forwards].micro)
			r.chunkForward(order[forwards].chunk)
			forwards++
		default:
			if backwards >= len(order) {
				r.stimulus("no more passes")
				return
			}
			k := backwards
			c := chunks - 1 - order[k].chunk
			last := order[k].micro == r.c.Microbatches-1
			if last && (!aligned || chunks == 1 && r.stage == 0) {
				noSync(false)
			}
			r.enter("bwd", k)
			r.stimulus("chunk_bwd")
			r.chunkBackward(c)
			backwards++
			if chunks == 1 {
				synced[0] = !quiet
				continue
			}
			if j := k - r.stage; aligned && j >= 0 && order[j].micro == r.c.Microbatches-1 {
				c := chunks - 1 - order[j].chunk
				noSync(false)
				r.opt.GradSyncFunc(c)
				synced[c] = true
			}
			noSync(true)
		}
	}
}

// nextPass returns the next pass of this step in the record.
func (r *megatronReplay) nextPass() (op string, ok bool) {
	for i := r.at; i < len(r.want) && number(r.want[i]["s"]) == r.step; i++ {
		if op := text(r.want[i]["op"]); op == "chunk_fwd" || op == "chunk_bwd" {
			return op, true
		}
	}
	return "", false
}

// chunkForward starts a pass through a chunk: modules whose parameters are not ready gather them.
func (r *megatronReplay) chunkForward(c int) {
	r.stimulus("chunk_fwd", "c", c)
	for _, p := range r.forwardOrder(c) {
		if r.opt.PendingForward(p) {
			r.opt.PreForward(p)
		}
	}
}

// chunkBackward lets the gradients of a chunk arrive: as recorded, else module by module backwards.
func (r *megatronReplay) chunkBackward(c int) {
	if !r.silent {
		r.backward()
		return
	}
	order := r.forwardOrder(c)
	slices.Reverse(order)
	for _, p := range order {
		r.opt.PostBackward(p)
	}
}

// forwardOrder lists the parameters of a chunk in the order in which its modules run.
func (r *megatronReplay) forwardOrder(c int) []bucket.ParamID {
	span := r.l.Chunks[c].Params
	var order []bucket.ParamID
	for p := span[0]; p < span[1]; p++ {
		order = append(order, p)
	}
	slices.SortStableFunc(order, func(a, b bucket.ParamID) int {
		return cmp.Compare(r.l.Params[a].Module, r.l.Params[b].Module)
	})
	return order
}

// virtualPass is a microbatch through a model chunk; backward it is a chunk as far from the end.
type virtualPass struct{ micro, chunk int }

// virtualOrder lists the passes of a step in forward order: groups of so many microbatches go through
// all chunks.
func virtualOrder(micros, chunks, group int) []virtualPass {
	list := make([]virtualPass, 0, micros*chunks)
	for first := 0; first < micros; first += group {
		for c := range chunks {
			for m := first; m < min(first+group, micros); m++ {
				list = append(list, virtualPass{m, c})
			}
		}
	}
	return list
}
