package arrays

import (
	"math"
	"slices"

	"distopt/core/dtype"
)

// Tensor is a flat array of elements of one format. One of its slices holds them, the others are
// nil; slices of tensors share memory.
type Tensor struct {
	DType dtype.DType
	Words []float32 // fp32, and int32 by its bits
	Halfs []uint16  // codes of bf16 or fp16, int16
	Bytes []uint8   // codes of FP8, uint8, int8
}

// NewTensor returns n zeros.
func NewTensor(d dtype.DType, n int) Tensor {
	t := Tensor{DType: d}
	switch d.Size() {
	case 4:
		t.Words = make([]float32, n)
	case 2:
		t.Halfs = make([]uint16, n)
	default:
		t.Bytes = make([]uint8, n)
	}
	return t
}

// Len returns the number of elements.
func (t Tensor) Len() int { return len(t.Words) + len(t.Halfs) + len(t.Bytes) }

// Slice returns elements from start to end, in the same memory.
func (t Tensor) Slice(start, end int) Tensor {
	switch {
	case t.Words != nil:
		t.Words = t.Words[start:end]
	case t.Halfs != nil:
		t.Halfs = t.Halfs[start:end]
	case t.Bytes != nil:
		t.Bytes = t.Bytes[start:end]
	}
	return t
}

// as returns the same memory as elements of another format of the same size.
func (t Tensor) as(d dtype.DType) Tensor {
	t.DType = d
	return t
}

// Clone returns a copy.
func (t Tensor) Clone() Tensor {
	c := NewTensor(t.DType, t.Len())
	c.copyBits(t)
	return c
}

// Clear sets all elements to zero.
func (t Tensor) Clear() {
	clear(t.Words)
	clear(t.Halfs)
	clear(t.Bytes)
}

// Bits returns the code of element i.
func (t Tensor) Bits(i int) uint32 {
	switch {
	case t.Words != nil:
		return math.Float32bits(t.Words[i])
	case t.Halfs != nil:
		return uint32(t.Halfs[i])
	}
	return uint32(t.Bytes[i])
}

// SetBits sets the code of element i.
func (t Tensor) SetBits(i int, bits uint32) {
	switch {
	case t.Words != nil:
		t.Words[i] = math.Float32frombits(bits)
	case t.Halfs != nil:
		t.Halfs[i] = uint16(bits)
	default:
		t.Bytes[i] = uint8(bits)
	}
}

// Load widens a floating-point tensor into dst, which is as long.
func (t Tensor) Load(dst []float32) {
	switch t.DType {
	case dtype.BF16:
		dtype.DecodeBF16s(dst, t.Halfs)
	case dtype.FP16:
		dtype.DecodeFP16s(dst, t.Halfs)
	default:
		copy(dst, t.Words)
	}
}

// Store rounds src, which is as long, into a floating-point tensor.
func (t Tensor) Store(src []float32) {
	switch t.DType {
	case dtype.BF16:
		dtype.EncodeBF16s(t.Halfs, src)
	case dtype.FP16:
		dtype.EncodeFP16s(t.Halfs, src)
	default:
		copy(t.Words, src)
	}
}

// Equal reports whether two tensors hold the same codes of the same format.
func (t Tensor) Equal(u Tensor) bool {
	if t.DType != u.DType || t.Len() != u.Len() {
		return false
	}
	for i, x := range t.Words {
		if math.Float32bits(x) != math.Float32bits(u.Words[i]) {
			return false
		}
	}
	return slices.Equal(t.Halfs, u.Halfs) && slices.Equal(t.Bytes, u.Bytes)
}

// copyBits copies the codes of a tensor of the same element size.
func (t Tensor) copyBits(src Tensor) {
	copy(t.Words, src.Words)
	copy(t.Halfs, src.Halfs)
	copy(t.Bytes, src.Bytes)
}

// copyTopBytes fills t with the most significant bytes of src, and with zeros below where t is wider:
// how values go through integer formats.
func (t Tensor) copyTopBytes(src Tensor) {
	to, from := t.DType.Size(), src.DType.Size()
	if to == from {
		t.copyBits(src)
		return
	}
	for i := range t.Len() {
		bits := src.Bits(i)
		if to < from {
			bits >>= 8 * (from - to)
		} else {
			bits <<= 8 * (to - from)
		}
		t.SetBits(i, bits)
	}
}

// convert fills t with the values of src: rounded between floating-point formats, by their most
// significant bytes otherwise.
func (t Tensor) convert(src Tensor, work []float32) {
	switch {
	case t.DType == src.DType:
		t.copyBits(src)
	case t.DType.Float() && src.DType.Float():
		for start := 0; start < t.Len(); start += len(work) {
			end := min(start+len(work), t.Len())
			src.Slice(start, end).Load(work[:end-start])
			t.Slice(start, end).Store(work[:end-start])
		}
	default:
		t.copyTopBytes(src)
	}
}

// values returns the elements of a floating-point tensor: those of fp32 themselves, others widened
// into work.
func (t Tensor) values(work []float32) []float32 {
	if t.DType == dtype.FP32 {
		return t.Words
	}
	work = work[:t.Len()]
	t.Load(work)
	return work
}

// keep ends what values began: x is rounded into t unless it is t's own memory.
func (t Tensor) keep(x []float32) {
	if t.DType != dtype.FP32 {
		t.Store(x)
	}
}
