package report

import (
	"encoding/binary"
	"fmt"
)

// The flat block of spans, as it travels between worker and page: a header of four uint32 (magic,
// spans, length of First, 0), then the arrays of Spans one after the other, widest elements first,
// little endian, without padding.
const (
	spansMagic  = 0x31505344 // "DSP1"
	spansHeader = 16
	// SpanBytes is what one span takes: 2 of 8, 4 of 4, 2 of 2 and 5 of 1.
	SpanBytes = 2*8 + 4*4 + 2*2 + 5
)

// MaxSpans bounds the spans of one result.
const MaxSpans = 1 << 24

// Header returns the beginning of the block.
func (s *Spans) Header() []byte {
	b := make([]byte, spansHeader)
	le := binary.LittleEndian
	le.PutUint32(b, spansMagic)
	le.PutUint32(b[4:], uint32(s.Len()))
	le.PutUint32(b[8:], uint32(len(s.First)))
	return b
}

// Encode returns s as one block of bytes.
func (s *Spans) Encode() []byte {
	w := writer{make([]byte, spansHeader+s.Len()*SpanBytes+4*len(s.First)), 0}
	copy(w.next(spansHeader), s.Header())
	put64(&w, s.Start)
	put64(&w, s.End)
	for _, a := range [...][]int32{s.By, s.Work, s.Micro, s.Group, s.First} {
		put32(&w, a)
	}
	put16(&w, s.Stage)
	put16(&w, s.Layer)
	put8(&w, s.Lane)
	put8(&w, s.Kind)
	put8(&w, s.Cause)
	put8(&w, s.State)
	put8(&w, s.Chunk)
	return w.block
}

// Empty returns arrays of zeros for the spans of a block of so many bytes that begins with header.
func Empty(header []byte, length int) (Spans, error) {
	le := binary.LittleEndian
	if len(header) < spansHeader || le.Uint32(header) != spansMagic {
		return Spans{}, fmt.Errorf("spans: got %d bytes that do not begin as spans do", length)
	}
	n, firsts := int64(le.Uint32(header[4:])), int64(le.Uint32(header[8:]))
	if want := spansHeader + n*SpanBytes + 4*firsts; n > MaxSpans || int64(length) != want {
		return Spans{}, fmt.Errorf("spans: got %d bytes, want %d for %d spans (at most %d)", length, want, n, MaxSpans)
	}
	var s Spans
	s.resize(int(n), int(firsts))
	return s, nil
}

// DecodeSpans reads what Encode wrote. Blocks that it did not write are refused, or give spans
// whose indices stay within the block, as Check finds.
func DecodeSpans(b []byte) (Spans, error) {
	s, err := Empty(b, len(b))
	if err != nil {
		return Spans{}, err
	}
	b = b[spansHeader:]
	b = get64(b, s.Start)
	b = get64(b, s.End)
	for _, a := range [...][]int32{s.By, s.Work, s.Micro, s.Group, s.First} {
		b = get32(b, a)
	}
	b = get16(b, s.Stage)
	b = get16(b, s.Layer)
	b = get8(b, s.Lane)
	b = get8(b, s.Kind)
	b = get8(b, s.Cause)
	b = get8(b, s.State)
	get8(b, s.Chunk)
	if err := s.Check(); err != nil {
		return Spans{}, err
	}
	return s, nil
}

// writer fills a block from the front.
type writer struct {
	block []byte
	at    int
}

// next returns the next n bytes of the block.
func (w *writer) next(n int) []byte {
	b := w.block[w.at : w.at+n]
	w.at += n
	return b
}

func put64(w *writer, a []int64) {
	for b, i := w.next(8*len(a)), 0; i < len(a); i++ {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(a[i]))
	}
}

func put32(w *writer, a []int32) {
	for b, i := w.next(4*len(a)), 0; i < len(a); i++ {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(a[i]))
	}
}

func put16[T uint16 | int16](w *writer, a []T) {
	for b, i := w.next(2*len(a)), 0; i < len(a); i++ {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(a[i]))
	}
}

func put8[T ~uint8 | ~int8](w *writer, a []T) {
	for b, i := w.next(len(a)), 0; i < len(a); i++ {
		b[i] = byte(a[i])
	}
}

func get64(b []byte, a []int64) []byte {
	for i := range a {
		a[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return b[8*len(a):]
}

func get32(b []byte, a []int32) []byte {
	for i := range a {
		a[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return b[4*len(a):]
}

func get16[T uint16 | int16](b []byte, a []T) []byte {
	for i := range a {
		a[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return b[2*len(a):]
}

func get8[T ~uint8 | ~int8](b []byte, a []T) []byte {
	for i := range a {
		a[i] = T(b[i])
	}
	return b[len(a):]
}

// Check refuses indices that do not hold together: By must lie below Len, First ascend from 0 to Len,
// lanes and stages be as First has them. Work and Group point outside the spans and are not looked at.
func (s *Spans) Check() error {
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
