// Package dtype names the number formats that the optimizer stores and sends.
package dtype

import (
	"fmt"
	"strings"

	"distopt/core/units"
)

// DType is a storage format of one element.
type DType uint8

// The formats, in the spelling of the reference data.
const (
	FP32 DType = iota
	FP16
	BF16
	U8  // raw bytes of an FP8 tensor, as they are sent
	I16 // 16-bit remainder of an fp32 main parameter beside its bf16 parameter
	numDTypes
)

var names = [numDTypes]string{"fp32", "fp16", "bf16", "uint8", "int16"}

// String returns the short name: fp32, fp16, bf16, uint8, int16.
func (d DType) String() string {
	if d < numDTypes {
		return names[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element.
func (d DType) Size() units.Bytes {
	switch d {
	case FP32:
		return 4
	case U8:
		return 1
	default:
		return 2
	}
}

// Parse reads a dtype as NeMo accepts it: any case, an optional "torch." prefix, and
// the aliases float, half, bfloat16 and "32", "16", "bf16". ok is false for another word.
func Parse(s string) (d DType, ok bool) {
	switch strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "torch.") {
	case "fp32", "float32", "float", "32":
		return FP32, true
	case "fp16", "float16", "half", "16":
		return FP16, true
	case "bf16", "bfloat16":
		return BF16, true
	case "uint8":
		return U8, true
	}
	return 0, false
}
