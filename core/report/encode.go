package report

import (
	"encoding/binary"
	"fmt"
)

// The flat block of spans that travels between worker and page: a header of four uint32 (magic,
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

// Encode returns s as one block of bytes.
func (s *Spans) Encode() []byte { return s.EncodeInto(nil) }

// EncodeInto is Encode into the memory of an earlier block, if that suffices.
func (s *Spans) EncodeInto(block []byte) []byte {
	w := writer{resize(block, spansHeader+s.Len()*SpanBytes+4*len(s.First)), 0}
	le := binary.LittleEndian
	le.PutUint32(w.block, spansMagic)
	le.PutUint32(w.block[4:], uint32(s.Len()))
	le.PutUint32(w.block[8:], uint32(len(s.First)))
	le.PutUint32(w.block[12:], 0)
	w.at = spansHeader
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

// DecodeSpans reads what Encode wrote. Blocks that it did not write are refused, or give spans
// whose indices stay within the block: By below Len, First ascending from 0 to Len, lanes and
// stages as First has them. Work and Group point outside the block and are not checked.
func DecodeSpans(b []byte) (Spans, error) {
	le := binary.LittleEndian
	if len(b) < spansHeader || le.Uint32(b) != spansMagic {
		return Spans{}, fmt.Errorf("spans: got %d bytes that do not begin as spans do", len(b))
	}
	n, firsts := int64(le.Uint32(b[4:])), int64(le.Uint32(b[8:]))
	if want := spansHeader + n*SpanBytes + 4*firsts; n > MaxSpans || int64(len(b)) != want {
		return Spans{}, fmt.Errorf("spans: got %d bytes, want %d for %d spans (at most %d)", len(b), want, n, MaxSpans)
	}
	var s Spans
	s.resize(int(n), int(firsts))
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
	if err := s.check(); err != nil {
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

// The arrays are copied four or eight elements at a time: in WebAssembly the way back to the head of
// a loop costs more than what is done in it.

func put64(w *writer, a []int64) {
	b := w.next(8 * len(a))
	for ; len(a) >= 4 && len(b) >= 32; a, b = a[4:], b[32:] {
		binary.LittleEndian.PutUint64(b[0:8], uint64(a[0]))
		binary.LittleEndian.PutUint64(b[8:16], uint64(a[1]))
		binary.LittleEndian.PutUint64(b[16:24], uint64(a[2]))
		binary.LittleEndian.PutUint64(b[24:32], uint64(a[3]))
	}
	for i, v := range a {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
}

func put32(w *writer, a []int32) {
	b := w.next(4 * len(a))
	for ; len(a) >= 4 && len(b) >= 16; a, b = a[4:], b[16:] {
		binary.LittleEndian.PutUint32(b[0:4], uint32(a[0]))
		binary.LittleEndian.PutUint32(b[4:8], uint32(a[1]))
		binary.LittleEndian.PutUint32(b[8:12], uint32(a[2]))
		binary.LittleEndian.PutUint32(b[12:16], uint32(a[3]))
	}
	for i, v := range a {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
}

func put16[T uint16 | int16](w *writer, a []T) {
	b := w.next(2 * len(a))
	for ; len(a) >= 4 && len(b) >= 8; a, b = a[4:], b[8:] {
		binary.LittleEndian.PutUint16(b[0:2], uint16(a[0]))
		binary.LittleEndian.PutUint16(b[2:4], uint16(a[1]))
		binary.LittleEndian.PutUint16(b[4:6], uint16(a[2]))
		binary.LittleEndian.PutUint16(b[6:8], uint16(a[3]))
	}
	for i, v := range a {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	}
}

func put8[T ~uint8 | ~int8](w *writer, a []T) {
	b := w.next(len(a))
	for ; len(a) >= 8 && len(b) >= 8; a, b = a[8:], b[8:] {
		b[0], b[1], b[2], b[3] = byte(a[0]), byte(a[1]), byte(a[2]), byte(a[3])
		b[4], b[5], b[6], b[7] = byte(a[4]), byte(a[5]), byte(a[6]), byte(a[7])
	}
	for i, v := range a {
		b[i] = byte(v)
	}
}

func get64(b []byte, a []int64) []byte {
	for ; len(a) >= 4 && len(b) >= 32; a, b = a[4:], b[32:] {
		a[0] = int64(binary.LittleEndian.Uint64(b[0:8]))
		a[1] = int64(binary.LittleEndian.Uint64(b[8:16]))
		a[2] = int64(binary.LittleEndian.Uint64(b[16:24]))
		a[3] = int64(binary.LittleEndian.Uint64(b[24:32]))
	}
	for i := range a {
		a[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return b[8*len(a):]
}

func get32(b []byte, a []int32) []byte {
	for ; len(a) >= 4 && len(b) >= 16; a, b = a[4:], b[16:] {
		a[0] = int32(binary.LittleEndian.Uint32(b[0:4]))
		a[1] = int32(binary.LittleEndian.Uint32(b[4:8]))
		a[2] = int32(binary.LittleEndian.Uint32(b[8:12]))
		a[3] = int32(binary.LittleEndian.Uint32(b[12:16]))
	}
	for i := range a {
		a[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return b[4*len(a):]
}

func get16[T uint16 | int16](b []byte, a []T) []byte {
	for ; len(a) >= 4 && len(b) >= 8; a, b = a[4:], b[8:] {
		a[0] = T(binary.LittleEndian.Uint16(b[0:2]))
		a[1] = T(binary.LittleEndian.Uint16(b[2:4]))
		a[2] = T(binary.LittleEndian.Uint16(b[4:6]))
		a[3] = T(binary.LittleEndian.Uint16(b[6:8]))
	}
	for i := range a {
		a[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return b[2*len(a):]
}

func get8[T ~uint8 | ~int8](b []byte, a []T) []byte {
	for ; len(a) >= 8 && len(b) >= 8; a, b = a[8:], b[8:] {
		a[0], a[1], a[2], a[3] = T(b[0]), T(b[1]), T(b[2]), T(b[3])
		a[4], a[5], a[6], a[7] = T(b[4]), T(b[5]), T(b[6]), T(b[7])
	}
	for i := range a {
		a[i] = T(b[i])
	}
	return b[len(a):]
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
