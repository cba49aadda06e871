package mcore

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/units"
)

const (
	paramAlign  = 64      // elements to which parameters begin aligned, whatever their dtype
	bucketAlign = 128     // and bucket ends, together with the group size
	busAlign    = 1 << 16 // and this for a high bus bandwidth
)

// divisor returns what the length of a bucket is a multiple of.
func (l *Layout) divisor(group int) units.Elems {
	n := lcm(units.Elems(group), bucketAlign)
	if l.Options.HighBusBandwidth {
		n = lcm(n, busAlign)
	}
	return n
}

// place fills in the parameters and buckets of a buffer. size 0 stands for one bucket.
func (l *Layout) place(b *Buffer, list []bucket.ParamID, size units.Elems) []Bucket {
	switch {
	case !l.Options.DistributedOptimizer:
		l.placePlain(b, list, size)
	case b.LayerWise:
		l.placeLayerWise(b, list, size)
	default:
		l.placeSharded(b, list, size)
	}
	if n := len(b.Buckets); n > 0 {
		b.Numel = b.Buckets[n-1].Range.End
	}
	return b.Buckets
}

// placeSharded is the layout of the distributed optimizer: parameters begin aligned, buckets end at
// a multiple of the divisor, and a shared embedding has a bucket of its own.
func (l *Layout) placeSharded(b *Buffer, list []bucket.ParamID, size units.Elems) {
	divisor := l.divisor(b.GroupSize)
	f := filler{buffer: b}
	for i := len(list) - 1; i >= 0; i-- {
		q := &l.Params[list[i]]
		f.end = roundUp(f.end, paramAlign)
		if q.SharedEmbedding && f.open() {
			f.close(divisor)
		}
		f.add(list[i], q.Numel)
		if size > 0 && f.end-f.start >= size || q.SharedEmbedding {
			f.close(divisor)
		}
	}
	if f.open() {
		f.close(divisor)
	}
}

// placePlain is the layout without the distributed optimizer: no gap anywhere.
func (l *Layout) placePlain(b *Buffer, list []bucket.ParamID, size units.Elems) {
	f := filler{buffer: b}
	for i := len(list) - 1; i >= 0; i-- {
		f.add(list[i], l.Params[list[i]].Numel)
		if size > 0 && f.end-f.start >= size {
			f.close(1)
		}
	}
	if f.open() {
		f.close(1)
	}
}

// filler appends parameters to the last bucket of a buffer.
type filler struct {
	buffer     *Buffer
	start, end units.Elems // of the open bucket
	first      int         // its first parameter
}

func (f *filler) open() bool { return len(f.buffer.Params) > f.first }

func (f *filler) add(p bucket.ParamID, n units.Elems) {
	f.buffer.Params = append(f.buffer.Params, Placed{
		Param: p, Range: bucket.Range{Start: f.end, End: f.end + n}, Bucket: len(f.buffer.Buckets),
	})
	f.end += n
}

func (f *filler) close(divisor units.Elems) {
	b := f.buffer
	unpadded := f.end - f.start
	f.end = roundUp(f.end, divisor)
	b.Buckets = append(b.Buckets, Bucket{
		Range: bucket.Range{Start: f.start, End: f.end}, Unpadded: unpadded, Params: [2]int{f.first, len(b.Params)},
	})
	b.Unpadded += unpadded
	f.start, f.first = f.end, len(b.Params)
}

// storage decides about the parameter buffer.
func (l *Layout) storage(b *Buffer, list []bucket.ParamID) {
	if !l.Options.DistributedOptimizer {
		return
	}
	b.ParamData = Data{b.Param, b.Numel}
	mx, nv := false, false
	for _, p := range list {
		mx = mx || l.Params[p].Quant == MXFP8
		nv = nv || l.Params[p].Quant == NVFP4
	}
	switch {
	case mx:
		// Wide values are gathered where gradients were, in the nominal dtype.
		nominal := l.Params[list[0]].DType
		b.Shared = true
		b.ParamData = Data{nominal, b.Numel}
		if b.Grad == dtype.FP32 && nominal != dtype.FP32 {
			b.ParamData.Elems = 2 * ((b.Numel + 1) / 2)
		}
	case nv:
		b.Packed = l.pack(b)
		b.ParamData.Elems = b.Packed.Numel
	}
}

// Packed is the layout of a parameter buffer whose NVFP4 weights take half a byte for an element.
// Ranges are in bytes; buckets are those of the gradient buffer.
type Packed struct {
	Numel, Unpadded units.Elems
	Buckets         []bucket.Range
	Params          []bucket.Range // of Buffer.Params
}

// pack lays a buffer out again with the packed sizes.
func (l *Layout) pack(b *Buffer) *Packed {
	k := &Packed{Params: make([]bucket.Range, len(b.Params))}
	divisor := l.divisor(b.GroupSize)
	start := units.Elems(0)
	for i := range b.Buckets {
		end := start
		for j := b.Buckets[i].Params[0]; j < b.Buckets[i].Params[1]; j++ {
			p := &b.Params[j]
			n := p.Range.Len()
			if l.Params[p.Param].Quant == NVFP4 {
				n /= 2
			}
			end = roundUp(end, paramAlign)
			k.Params[j] = bucket.Range{Start: end, End: end + n}
			end += n
		}
		k.Unpadded += end - start
		k.Buckets = append(k.Buckets, bucket.Range{Start: start, End: roundUp(end, divisor)})
		start = k.Buckets[i].End
	}
	k.Numel = start
	return k
}

func roundUp(n, k units.Elems) units.Elems { return (n + k - 1) / k * k }

func lcm(a, b units.Elems) units.Elems {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
