package bridge

import (
	"unsafe"

	"distopt/core/report"
)

// Arrays returns the arrays of s as bytes in the order of the block that report.Spans.Encode makes,
// which they are after its header: worker and page copy them from memory to memory, both being
// WebAssembly, which is little-endian. The bytes are those of the arrays themselves.
func Arrays(s *report.Spans) [14][]byte {
	return [...][]byte{
		raw(s.Start), raw(s.End), raw(s.By), raw(s.Work), raw(s.Micro), raw(s.Group), raw(s.First), raw(s.Stage), raw(s.Layer),
		raw(s.Lane), raw(s.Kind), raw(s.Cause), raw(s.State), raw(s.Chunk),
	}
}

func raw[T any](a []T) []byte {
	if len(a) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), len(a)*int(unsafe.Sizeof(a[0])))
}
