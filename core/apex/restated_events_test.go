package apex

import (
	"fmt"
	"strings"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// restatedEvents is the state of the restated control flow.
type restatedEvents struct {
	c      Config
	events []string

	overlap, greedy bool // at present
	grad            map[bucket.ParamID]bool
	grads           map[bucket.ID]*restatedGrads
	gradTable       []bucket.ID
	norm, built     bool
	values          map[bucket.ID]*restatedValues
	pending         map[bucket.ParamID]bool
	cast            []bucket.ID
	groupNumber     int
}

type restatedGrads struct {
	status    optim.GradStatus
	shard     bool
	generated map[bucket.ParamID]bool
}

type restatedValues struct {
	status  optim.ParamStatus
	updated map[bucket.ParamID]bool
}

// line writes an event down.
func line(e *optim.Event) string {
	return fmt.Sprintf("%s p%d %v #%d n%d %dB t%d %v %s/%d %s %s %v c%d",
		e.Op, e.Param, e.Buckets, e.Coalesced, e.N, e.Bytes, e.Tensors, e.DTypes, e.Group, e.GroupSize, e.Reduce, e.Kind, e.Copies, e.Chunk)
}

func (x *restated) emit(e optim.Event) {
	e.Chunk--
	x.events = append(x.events, line(&e))
}

func (x *restated) say(op optim.Op) { x.emit(optim.Event{Op: op, Param: -1}) }

func (x *restated) about(op optim.Op, p bucket.ParamID) { x.emit(optim.Event{Op: op, Param: p}) }

func (x *restated) list(op optim.Op, ids []bucket.ID) {
	x.emit(optim.Event{Op: op, Param: -1, Buckets: ids})
}

func (x *restated) copied(tensors int, bytes units.Bytes) {
	if tensors > 0 {
		x.emit(optim.Event{Op: optim.OpCopy, Param: -1, Tensors: tensors, Bytes: int64(bytes)})
	}
}

func (x *restated) reduce(p bucket.ParamID, n units.Elems, d dtype.DType, g optim.Group, size int, op optim.ReduceOp) {
	x.emit(optim.Event{
		Op: optim.OpAllReduce, Param: p, N: int64(n), Bytes: int64(bytesOf(n, d)), DTypes: []string{d.String()},
		Group: g.String(), GroupSize: size, Reduce: op.String(),
	})
}

func (x *restated) coalesced(op optim.Op, ids []bucket.ID, g optim.Group, size int, r optim.ReduceOp, of func(*bucket.Bucket) (units.Elems, dtype.DType)) {
	x.groupNumber++
	for _, id := range ids {
		n, d := of(&x.buckets[id])
		x.emit(optim.Event{
			Op: op, Param: -1, Buckets: []bucket.ID{id}, Coalesced: x.groupNumber, N: int64(n), Bytes: int64(bytesOf(n, d)),
			DTypes: []string{d.String()}, Group: g.String(), GroupSize: size, Reduce: r.String(),
		})
	}
}

// local lists the fragments of a bucket that this rank owns, with how many elements.
func (x *restated) local(id bucket.ID) (fs []bucket.Fragment, ns []units.Elems) {
	b := &x.buckets[id]
	first := b.Shard * units.Elems(x.c.Rank)
	for _, f := range b.Fragments {
		from, to := max(f.InBucket.Start, first), min(f.InBucket.End, first+b.Shard)
		if from < to {
			fs, ns = append(fs, f), append(ns, to-from)
		}
	}
	return fs, ns
}

// start is the constructor, after which NeMo builds the parameter buffers.
func (x *restated) start(c Config) {
	x.c = c
	x.overlap, x.greedy = x.o.OverlapGradSync, true
	x.grad, x.grads, x.values, x.pending = map[bucket.ParamID]bool{}, map[bucket.ID]*restatedGrads{}, map[bucket.ID]*restatedValues{}, map[bucket.ParamID]bool{}
	if !x.o.NeMo {
		x.groupNumber++
		for _, p := range x.order() {
			q := &x.params[p]
			x.emit(optim.Event{Op: optim.OpBroadcast, Param: p, Coalesced: x.groupNumber, N: int64(q.Numel), Bytes: int64(bytesOf(q.Numel, q.DType))})
		}
		return
	}
	if p := x.tied(); p >= 0 {
		x.reduce(p, x.params[p].Numel, x.params[p].DType, optim.Embedding, c.EmbeddingSize, optim.Sum)
	}
	if x.o.ContiguousParamBuffer {
		x.buildBuffer()
	}
}

func (x *restated) tied() bucket.ParamID {
	for p, q := range x.params {
		if x.c.EmbeddingSize > 1 && (strings.Contains(q.Name, "word_embedding") || strings.Contains(q.Name, "output_layer")) {
			return bucket.ParamID(p)
		}
	}
	return -1
}

func (x *restated) buildBuffer() {
	if x.built {
		return
	}
	x.built = true
	x.init(x.order(), x.plain())
	bytes := units.Bytes(0)
	for _, p := range x.order() {
		bytes += bytesOf(x.params[p].Numel, x.storage(p))
	}
	x.copied(len(x.order()), bytes)
}

// storage is the dtype of what a parameter's memory holds.
func (x *restated) storage(p bucket.ParamID) dtype.DType {
	if x.params[p].FP8 {
		return dtype.U8
	}
	return x.params[p].DType
}
