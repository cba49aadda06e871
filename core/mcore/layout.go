package mcore

import (
	"cmp"
	"fmt"
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/units"
)

// Layout is everything about the buffers of one pipeline stage. It is the same on every rank; what a
// rank owns follows from it (Local).
type Layout struct {
	Options Options // defaults filled in
	Params  []Param // chunks ascending, each in model order
	Chunks  []Chunk

	// Buckets are those of all chunks: chunk by chunk, dense buffers before expert ones, each in order
	// of creation. Offsets and ids of Buckets are theirs; Buckets[i].ID == i.
	Buckets []bucket.Bucket
	Places  []BucketPlace // of each of Buckets
	Groups  []Group       // of all chunks: dense ones of a chunk before its expert ones

	owner []int32 // of each parameter: its group
}

// Chunk is a model chunk: one DistributedDataParallel object.
type Chunk struct {
	Params    [2]bucket.ParamID // half-open
	Bucketing Bucketing
	Buffers   []Buffer
	Groups    [2]int // its part of Layout.Groups
	Dense     int    // end of the dense ones among them
}

// Key is what parameters of one buffer have in common.
type Key struct {
	Param     dtype.DType // storage; U8 for any quantized weight
	Grad      dtype.DType
	Expert    bool
	LayerWise bool
}

// Buffer is a gradient buffer and, with the distributed optimizer, a parameter buffer of the same
// offsets.
type Buffer struct {
	Key
	GroupSize int // G
	Numel     units.Elems
	Unpadded  units.Elems // without the padding at the ends of buckets; gaps before parameters count
	Params    []Placed    // in reverse model order
	Buckets   []Bucket
	First     bucket.ID // of Buckets in Layout.Buckets
	Packed    *Packed   // own offsets of the parameter buffer; nil: the same ones
	// ParamData is the parameter buffer; no elements: none.
	ParamData Data
	// Shared: the parameter buffer is a view of the gradient buffer.
	Shared bool
	// FP32Grads are parameters with a private fp32 gradient, in model order.
	FP32Grads []bucket.ParamID
	// Indices are positions of the parameters, in model order, among those of equal nominal dtype,
	// gradient dtype and kind, as checkpoints count.
	Indices []int
}

// Data is an allocation.
type Data struct {
	DType dtype.DType
	Elems units.Elems
}

// Bytes returns its size.
func (d Data) Bytes() units.Bytes { return units.Bytes(d.Elems) * d.DType.Size() }

// Placed is where a parameter lies in its buffer.
type Placed struct {
	Param  bucket.ParamID
	Range  bucket.Range
	Bucket int // of the buffer
}

// Bucket is a part of a buffer that one collective works on.
type Bucket struct {
	Range    bucket.Range // with padding
	Unpadded units.Elems
	Params   [2]int // its part of Buffer.Params
}

// BucketPlace is where one of Layout.Buckets belongs.
type BucketPlace struct {
	Chunk, Buffer, Bucket int
	Group                 int // of Layout.Groups
	// Gather is what the all-gather moves; no elements: parameters are not gathered.
	Gather Data
}

// Group is a bucket group: what is started, waited for and coalesced together.
type Group struct {
	Chunk    int
	Expert   bool
	Buckets  []bucket.ID
	Params   int
	Next     int // group whose gather is started after this one's; -1: none
	Previous int // group whose reduction is drained before this one's; -1: none
}

// maxElems bounds the elements of a stage.
const maxElems = 1 << 56

// Build lays out a stage. params are chunks ascending, each in model order.
func Build(o Options, params []Param) (*Layout, error) {
	chunks := 0
	var total units.Elems
	for p := range params {
		c := params[p].Chunk
		if c < chunks-1 || c > chunks {
			return nil, fmt.Errorf("%s: got model chunk %d after %d, want chunks in order", params[p].Name, c, chunks-1)
		}
		chunks = max(chunks, c+1)
		if total += params[p].Numel; total > maxElems || params[p].Numel < 0 {
			return nil, fmt.Errorf("%s: got a stage of more than %d elements; use a smaller model", params[p].Name, int64(maxElems))
		}
	}
	if err := o.Check(chunks); err != nil {
		return nil, err
	}
	l := &Layout{
		Options: o.withDefaults(), Params: slices.Clone(params),
		Chunks: make([]Chunk, chunks), owner: make([]int32, len(params)),
	}
	for p := range l.Params {
		q := &l.Params[p]
		q.LayerWise = o.LayerWise && q.managed()
		c := &l.Chunks[q.Chunk]
		if c.Params[1] == 0 {
			c.Params[0] = bucket.ParamID(p)
		}
		c.Params[1] = bucket.ParamID(p + 1)
	}
	for c := range l.Chunks {
		if err := l.buildChunk(c, total); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Size returns the resolved bucket size of the rank, before the rules of its chunks.
func (l *Layout) Size() Bucketing {
	if len(l.Chunks) == 0 {
		return Bucketing{}
	}
	return l.Chunks[0].Bucketing
}

func (l *Layout) buildChunk(index int, total units.Elems) error {
	c := &l.Chunks[index]
	c.Bucketing = l.Options.bucketing(index, total)
	for _, list := range l.sorted(c) {
		b := l.newBuffer(list)
		b.First = bucket.ID(len(l.Buckets))
		spans := l.place(&b, list, c.Bucketing.Size)
		if end := b.Numel; end > maxElems {
			return fmt.Errorf("bucket padding: got a buffer of %d elements, want at most %d; use fewer data-parallel ranks", end, int64(maxElems))
		}
		l.storage(&b, list)
		for i := range spans {
			l.addBucket(index, len(c.Buffers), i, &b)
		}
		c.Buffers = append(c.Buffers, b)
	}
	l.buildGroups(index)
	return nil
}

// sorted returns the parameters of each buffer of a chunk in model order: dense buffers first, keys
// in order of first appearance.
func (l *Layout) sorted(c *Chunk) [][]bucket.ParamID {
	var keys []Key
	var lists [][]bucket.ParamID
	for p := c.Params[0]; p < c.Params[1]; p++ {
		key := l.key(p)
		at := slices.Index(keys, key)
		if at < 0 {
			at = len(keys)
			keys, lists = append(keys, key), append(lists, nil)
		}
		lists[at] = append(lists[at], p)
	}
	var ordered [][]bucket.ParamID
	for _, expert := range []bool{false, true} {
		for i, list := range lists {
			if keys[i].Expert == expert {
				ordered = append(ordered, list)
			}
		}
	}
	return ordered
}

// key returns the buffer that p belongs to.
func (l *Layout) key(p bucket.ParamID) Key {
	q := &l.Params[p]
	k := Key{Param: q.DType, Grad: q.DType, Expert: q.Expert, LayerWise: q.LayerWise}
	if q.Quant != Plain {
		k.Param = dtype.U8
	}
	if l.Options.GradReduceInFP32 {
		k.Grad = dtype.FP32
	}
	return k
}

func (l *Layout) newBuffer(list []bucket.ParamID) Buffer {
	b := Buffer{Key: l.key(list[0]), Params: make([]Placed, 0, len(list))}
	b.GroupSize = l.Options.GroupSize(b.Expert)
	for _, p := range list {
		if l.fp32Grad(p) {
			b.FP32Grads = append(b.FP32Grads, p)
		}
	}
	b.Indices = l.indices(list)
	return b
}

// indices counts quantized parameters together with those of the same nominal dtype.
func (l *Layout) indices(list []bucket.ParamID) []int {
	same := func(p bucket.ParamID) Key {
		k := l.key(p)
		k.Param = l.Params[p].DType
		return k
	}
	indices := make([]int, 0, len(list))
	chunk := &l.Chunks[l.Params[list[0]].Chunk]
	own, count := same(list[0]), 0
	for p := chunk.Params[0]; p < chunk.Params[1] && len(indices) < len(list); p++ {
		if same(p) != own {
			continue // buffers of one kind differ in storage alone
		}
		if list[len(indices)] == p {
			indices = append(indices, count)
		}
		count++
	}
	return indices
}

// addBucket appends one bucket of a buffer in the words that frameworks share.
func (l *Layout) addBucket(chunk, buffer, i int, b *Buffer) {
	span := &b.Buckets[i]
	id := bucket.ID(len(l.Buckets))
	size := span.Range.Len()
	out := bucket.Bucket{
		ID: id, Size: size, Shard: size, Offset: span.Range.Start,
		DTypes: bucket.DTypes{State: dtype.FP32, GradSync: b.Grad, ParamSync: b.Param},
		// An fp32 parameter is its own main parameter.
		StoresParams: b.Param != dtype.FP32,
	}
	place := BucketPlace{Chunk: chunk, Buffer: buffer, Bucket: i}
	if l.Options.DistributedOptimizer {
		out.Shard = size / units.Elems(b.GroupSize)
		place.Gather = Data{b.ParamData.DType, size}
		out.DTypes.ParamSync = b.ParamData.DType
		if b.Packed != nil {
			place.Gather.Elems = b.Packed.Buckets[i].Len()
		}
	}
	out.Fragments = make([]bucket.Fragment, 0, span.Params[1]-span.Params[0])
	for _, p := range b.Params[span.Params[0]:span.Params[1]] {
		n := p.Range.Len()
		f := bucket.Fragment{
			Param: p.Param, InParam: bucket.Range{End: n},
			InBucket: bucket.Range{Start: p.Range.Start - span.Range.Start, End: p.Range.End - span.Range.Start},
		}
		if n == 0 {
			f.InBucket = bucket.Range{Start: size, End: size}
		}
		out.Fragments = append(out.Fragments, f)
		if n > 0 {
			out.Filled = max(out.Filled, f.InBucket.End)
		}
	}
	if b.LayerWise {
		slices.SortStableFunc(out.Fragments, func(a, b bucket.Fragment) int {
			return cmp.Compare(a.InBucket.Start, b.InBucket.Start)
		})
	}
	l.Buckets = append(l.Buckets, out)
	l.Places = append(l.Places, place)
}

// Owner returns the bucket group of a parameter.
func (l *Layout) Owner(p bucket.ParamID) int { return int(l.owner[p]) }

// Sets numbers the buckets that are reduced and gathered together: bucket groups.
func (l *Layout) Sets() []int {
	sets := make([]int, len(l.Places))
	for id := range l.Places {
		sets[id] = l.Places[id].Group
	}
	return sets
}

// Use returns the elements of all parameters and those of all buffers: the rest is padding and gaps.
func (l *Layout) Use() (numel, size units.Elems) {
	for p := range l.Params {
		numel += l.Params[p].Numel
	}
	for id := range l.Buckets {
		size += l.Buckets[id].Size
	}
	return numel, size
}

// BucketID returns the number in Layout.Buckets of a bucket of a chunk's buffer.
func (l *Layout) BucketID(chunk, buffer, i int) bucket.ID {
	return l.Chunks[chunk].Buffers[buffer].First + bucket.ID(i)
}
