package dtype

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

func TestParse(t *testing.T) {
	for word, want := range map[string]DType{
		"fp32": FP32, "float32": FP32, "Float": FP32, "torch.float32": FP32, "32": FP32,
		"fp16": FP16, "half": FP16, "TORCH.HALF": FP16, "16": FP16, "float16": FP16,
		"bf16": BF16, " bfloat16 ": BF16, "torch.BFloat16": BF16,
		"uint8": U8, "torch.uint8": U8, "int8": I8, "torch.int16": I16, "short": I16, "int32": I32, "INT": I32,
	} {
		got, ok := Parse(word)
		require.True(t, ok, word)
		require.Equal(t, want, got, word)
	}
	for _, word := range []string{"", "fp8", "torch.", "float64", "bf", "torch.torch.half", "int64"} {
		_, ok := Parse(word)
		require.False(t, ok, word)
	}
}

func TestNamesAndSizes(t *testing.T) {
	sizes := map[DType]units.Bytes{FP32: 4, FP16: 2, BF16: 2, U8: 1, I16: 2, I8: 1, I32: 4}
	require.Len(t, sizes, int(numDTypes))
	for d := range numDTypes {
		require.Equal(t, sizes[d], d.Size(), d)
		if back, ok := Parse(d.String()); ok {
			require.Equal(t, d, back)
		}
	}
	require.Equal(t, "dtype(200)", DType(200).String())
}
