package report

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// The flat block of spans that travels between worker and page: a header of four uint32 (magic,
// spans, length of First, 0), then the arrays of Spans one after the other, widest elements first,
// in memory order, without padding.
const (
	spansMagic  = 0x31505344 // "DSP1"
	spansHeader = 16
	// Bytes of one span: 2 of 8, 4 of 4, 2 of 2 and 5 of 1.
	spanBytes = 2*8 + 4*4 + 2*2 + 5
)

// MaxSpans bounds the spans of one result.
const MaxSpans = 1 << 24

// arrays lists the arrays of s in the order of the block, as bytes.
func (s *Spans) arrays() [14][]byte {
	return [...][]byte{
		memory(s.Start), memory(s.End),
		memory(s.By), memory(s.Work), memory(s.Micro), memory(s.Group), memory(s.First),
		memory(s.Stage), memory(s.Layer),
		memory(s.Lane), s.Kind, s.Cause, memory(s.State), memory(s.Chunk),
	}
}

// memory returns the bytes of s in place. Element by element, a large step takes tens of
// milliseconds to encode and more to decode. The machines that run this are little endian (amd64,
// arm64, wasm); on another one worker and page would still agree with each other.
func memory[T number](s []T) []byte {
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(element)))
}

// take cuts n elements off the front of b, in place.
func take[T number](b *[]byte, n int64) []T {
	var element T
	s := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*b))), n)
	*b = (*b)[n*int64(unsafe.Sizeof(element)):]
	return s
}

type number interface {
	int64 | int32 | uint16 | int16 | int8 | uint8 | Lane | State
}

// Encode returns s as one block of bytes.
func (s *Spans) Encode() []byte {
	b := make([]byte, 0, spansHeader+s.Len()*spanBytes+4*len(s.First))
	le := binary.LittleEndian
	b = le.AppendUint32(b, spansMagic)
	b = le.AppendUint32(b, uint32(s.Len()))
	b = le.AppendUint32(b, uint32(len(s.First)))
	b = le.AppendUint32(b, 0)
	for _, a := range s.arrays() {
		b = append(b, a...)
	}
	return b
}

// DecodeSpans reads what Encode wrote. Blocks that it did not write are refused, or give spans
// whose indices stay within the block: By below Len, First ascending from 0 to Len, lanes and
// stages as First has them. Work and Group point outside the block and are not checked. The spans
// lie in b, which the caller must leave alone.
func DecodeSpans(b []byte) (Spans, error) {
	le := binary.LittleEndian
	if len(b) < spansHeader || le.Uint32(b) != spansMagic {
		return Spans{}, fmt.Errorf("spans: got %d bytes that do not begin as spans do", len(b))
	}
	n, firsts := int64(le.Uint32(b[4:])), int64(le.Uint32(b[8:]))
	if want := spansHeader + n*spanBytes + 4*firsts; n > MaxSpans || int64(len(b)) != want {
		return Spans{}, fmt.Errorf("spans: got %d bytes, want %d for %d spans (at most %d)", len(b), want, n, MaxSpans)
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 != 0 {
		b = append(make([]byte, 0, len(b)), b...) // make aligns what is not tiny
	}
	b = b[spansHeader:]
	s := Spans{
		Start: take[int64](&b, n), End: take[int64](&b, n),
		By: take[int32](&b, n), Work: take[int32](&b, n), Micro: take[int32](&b, n), Group: take[int32](&b, n),
		First: take[int32](&b, firsts), Stage: take[uint16](&b, n), Layer: take[int16](&b, n),
		Lane: take[Lane](&b, n), Kind: take[uint8](&b, n), Cause: take[uint8](&b, n), State: take[State](&b, n), Chunk: take[int8](&b, n),
	}
	if err := s.check(); err != nil {
		return Spans{}, err
	}
	return s, nil
}

// check refuses indices that do not hold together.
func (s *Spans) check() error {
	n := s.Len()
	lanes := len(s.First) - 1
	if n == 0 && lanes <= 0 {
		return nil
	}
	if lanes < 0 || lanes%int(NumLanes) != 0 || s.First[0] != 0 || int(s.First[lanes]) != n {
		return fmt.Errorf("spans: first spans of %d lanes do not cover %d spans", lanes, n)
	}
	for l := range lanes {
		from, to := s.First[l], s.First[l+1]
		if from > to || int(to) > n {
			return fmt.Errorf("spans: lane %d has spans %d to %d of %d", l, from, to, n)
		}
		stage, lane := uint16(l/int(NumLanes)), Lane(l%int(NumLanes))
		for i := from; i < to; i++ {
			if s.Stage[i] != stage || s.Lane[i] != lane {
				return fmt.Errorf("spans: span %d is on lane %d of stage %d, want lane %d of stage %d", i, s.Lane[i], s.Stage[i], lane, stage)
			}
			if s.By[i] < -1 || int(s.By[i]) >= n || s.End[i] < s.Start[i] || i > from && s.Start[i] < s.Start[i-1] {
				return fmt.Errorf("spans: span %d from %d to %d ns, released by %d, is out of order", i, s.Start[i], s.End[i], s.By[i])
			}
		}
	}
	return nil
}
