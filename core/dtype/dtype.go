// Package dtype holds the number formats that the optimizer stores and sends: their names and sizes,
// and the conversions between them, on bit patterns, with the results of the GPU.
//
// Every conversion rounds to nearest, ties to even, unless it says otherwise. Sources: IEEE 754, the
// OCP specification of 8-bit floating point, and the reference data (an H200's own conversions) where
// they leave a choice: NaNs and overflow.
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
	I16 // 16-bit remainder of an fp32 main parameter beside its bf16 parameter, or two bytes as they are sent
	I8  // as U8, of signed type
	I32 // four bytes as they are sent
	numDTypes
)

var names = [numDTypes]string{"fp32", "fp16", "bf16", "uint8", "int16", "int8", "int32"}

// String returns the short name: fp32, fp16, bf16, uint8, int16, int8, int32.
func (d DType) String() string {
	if d < numDTypes {
		return names[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element.
func (d DType) Size() units.Bytes {
	switch d {
	case FP32, I32:
		return 4
	case U8, I8:
		return 1
	default:
		return 2
	}
}

// Parse reads a dtype as NeMo accepts it: any case, an optional "torch." prefix, and
// the aliases float, half, bfloat16 and "32", "16", "bf16"; integers carry raw bytes. ok is false for another word.
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
	case "int8":
		return I8, true
	case "int16", "short":
		return I16, true
	case "int32", "int":
		return I32, true
	}
	return 0, false
}
