package apex

import (
	"distopt/core/bucket"
	"distopt/core/units"
)

// Buffer is a contiguous buffer: one per triple, for gradients and for parameters alike.
type Buffer struct {
	DTypes bucket.DTypes
	Length units.Elems // highest end of its buckets; the first bucket of a second triple lies at bucket 0's end
}

// Buffers returns the lengths of the contiguous buffers, triples in order of first appearance.
// Gradient buffers exist if ContiguousGradBuffer, parameter buffers if ContiguousParamBuffer.
func (l *Layout) Buffers() []Buffer {
	var buffers []Buffer
	for i := range l.Buckets {
		b := &l.Buckets[i]
		end := b.Offset + b.Size
		found := false
		for j := range buffers {
			if buffers[j].DTypes == b.DTypes {
				buffers[j].Length = max(buffers[j].Length, end)
				found = true
			}
		}
		if !found {
			buffers = append(buffers, Buffer{DTypes: b.DTypes, Length: end})
		}
	}
	return buffers
}

// View is where a parameter lies in the contiguous buffer of a triple.
type View struct {
	DTypes bucket.DTypes
	Offset units.Elems
}

// View returns where p lies in the contiguous buffers: at its first fragment, from which its other
// fragments follow without a gap. ok is false for a parameter without fragments.
func (l *Layout) View(p bucket.ParamID) (v View, ok bool) {
	if len(l.Fragments[p]) == 0 {
		return View{}, false
	}
	ref := l.Fragments[p][0]
	b := &l.Buckets[ref.Bucket]
	return View{DTypes: b.DTypes, Offset: b.Offset + b.Fragments[ref.Index].InBucket.Start}, true
}
