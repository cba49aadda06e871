package lab

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
)

func TestInspect(t *testing.T) {
	for _, k := range []struct {
		number, format, in string // in: the format that is looked at
		bits               string
		value, ulp         float64
		kind, note         string
	}{
		{"0.1", "", "fp32", "0x3dcccccd", float64(float32(0.1)), 0x1p-27, "normal", ""},
		{"0.1", "", "bf16", "0x3dcd", 0.10009765625, 0x1p-11, "normal", ""},
		{"0.1", "", "fp16", "0x2e66", 0.0999755859375, 0x1p-14, "normal", ""},
		{"0.1", "", "e4m3", "0x1d", 0.1015625, 0x1p-7, "normal", ""},
		{"0.1", "", "e5m2", "0x2e", 0.09375, 0x1p-6, "normal", ""},
		{"1000", "", "e4m3", "0x7e", 448, 32, "normal", "saturated"},
		{"464", "", "e4m3", "0x7e", 448, 32, "normal", ""}, // still rounds
		{"-inf", "", "e4m3", "0xfe", -448, 32, "normal", "saturated"},
		{"70000", "", "fp16", "0x7c00", math.Inf(1), math.Inf(1), "infinite", "overflow: the largest finite value is 6.55e4"},
		{"1e-9", "", "fp16", "0x0000", 0, 0x1p-24, "zero", "flushed to zero"},
		{"0.001", "", "e4m3", "0x01", 0x1p-9, 0x1p-9, "subnormal", ""},
		{"0x3c00", "fp16", "fp32", "0x3f800000", 1, 0x1p-23, "normal", "exact"},
		{"0x7F", "e4m3", "bf16", "0x7fff", math.NaN(), math.NaN(), "NaN", "every NaN becomes this one"},
		{"0x7fc00000", "", "fp32", "0x7fffffff", math.NaN(), math.NaN(), "NaN", "every NaN becomes this one"},
		{"61440", "", "e5m2", "0x7b", 57344, 8192, "normal", "saturated"}, // a tie whose even code is infinity
		{"61439", "", "e5m2", "0x7b", 57344, 8192, "normal", ""},
		{"-65520", "", "fp16", "0xfc00", math.Inf(-1), math.Inf(1), "infinite", "overflow: the largest finite value is 6.55e4"},
		{"1e-50", "", "fp32", "0x00000000", 0, 0x1p-149, "zero", "flushed to zero"},
		{"inf", "", "fp32", "0x7f800000", math.Inf(1), math.Inf(1), "infinite", "exact"},
		{"1.0625", "", "e4m3", "0x38", 1, 0.125, "normal", "a tie between two values: the even code"},
		{"1e300", "", "fp32", "0x7f800000", math.Inf(1), math.Inf(1), "infinite", "overflow: the largest finite value is 3.403e38"},
	} {
		a, err := Inspect(Question{Number: k.number, Format: k.format})
		require.NoError(t, err, k.number)
		require.Len(t, a.Formats, len(dtype.Formats))
		_, err = json.Marshal(a)
		require.NoError(t, err)
		for _, f := range a.Formats {
			require.Len(t, f.Sign+f.Exponent+f.Mantissa, formatOf(f.Format).Bits())
			if f.Format != k.in {
				continue
			}
			require.Equal(t, k.bits, f.Bits, k.number)
			if k.value != k.value {
				require.True(t, f.Value != f.Value)
			} else {
				require.Equal(t, Value(k.value), f.Value, "%s in %s", k.number, k.in)
				require.Equal(t, Value(k.ulp), f.ULP, "%s in %s", k.number, k.in)
			}
			require.Equal(t, k.kind, f.Kind)
			require.Equal(t, k.note, f.Note, "%s in %s", k.number, k.in)
		}
	}
}

// Neighbours stand on both sides of what was typed, errors are those of what was typed.
func TestInspectLooksFromTheExactNumber(t *testing.T) {
	infinite, none := Value(math.Inf(1)), Value(math.NaN())
	for _, k := range []struct {
		number, in                    string
		below, above, error, relative Value
	}{
		{"0.1", "fp32", Value(math.Nextafter32(0.1, 0)), Value(float32(0.1)), Value(float64(float32(0.1)) - 0.1), Value((float64(float32(0.1)) - 0.1) / 0.1)},
		{"1e-50", "fp32", 0, 0x1p-149, -1e-50, -1},
		{"-1e-50", "bf16", -0x1p-133, 0, 1e-50, 1},
		{"65504", "fp16", 65472, infinite, 0, 0},
		{"57344", "e5m2", 49152, infinite, 0, 0},
		{"65520", "fp16", 65504, infinite, infinite, infinite},
		{"inf", "fp16", 65504, infinite, 0, 0},
		{"inf", "e4m3", 448, infinite, -infinite, none},
		{"-inf", "fp32", -infinite, -math.MaxFloat32, 0, 0},
	} {
		a, err := Inspect(Question{Number: k.number})
		require.NoError(t, err)
		for _, f := range a.Formats {
			if f.Format == k.in {
				require.Equal(t, [3]Value{k.below, k.above, k.error}, [3]Value{f.Below, f.Above, f.Error}, "%s in %s", k.number, k.in)
				require.True(t, k.relative == f.Relative || k.relative != k.relative && f.Relative != f.Relative, "%s in %s: %v", k.number, k.in, f.Relative)
			}
		}
	}
}

func TestInspectRefuses(t *testing.T) {
	for _, k := range []struct {
		q    Question
		want string
	}{
		{Question{}, `number: got "", want a number of at most 80 characters; type 0.1 or 0x3dcccccd`},
		{Question{Number: "1e400"}, `number: got "1e400", want a number of a size between 4.9e−324 and 1.8e308, 0, inf or nan`},
		{Question{Number: "-1e-400"}, `want a number of a size between`},
		{Question{Number: "0x1p-2000"}, `want a number of a size between`},
		{Question{Number: "one"}, `number: got "one", want a decimal number or hexadecimal bits`},
		{Question{Number: "0x12345", Format: "fp16"}, `number: got "0x12345", want 4 hexadecimal digits for fp16`},
		{Question{Number: "0x", Format: "fp16"}, `want 4 hexadecimal digits`},
		{Question{Number: "0x1", Format: "fp4"}, `format: got "fp4", want fp32, bf16, fp16, e4m3 or e5m2; set format to fp32`},
	} {
		_, err := Inspect(k.q)
		require.ErrorContains(t, err, k.want)
	}
}

// Whatever is typed has an answer that JSON can hold, or an error.
func FuzzInspect(f *testing.F) {
	f.Add("0.1", "")
	f.Add("0xffffffff", "fp32")
	f.Fuzz(func(t *testing.T, number, format string) {
		a, err := Inspect(Question{Number: number, Format: format})
		if err != nil {
			return
		}
		data, err := json.Marshal(a)
		require.NoError(t, err)
		var back Inspection
		require.NoError(t, json.Unmarshal(data, &back))
		for _, x := range a.Formats {
			if x.Kind == "normal" || x.Kind == "subnormal" {
				require.True(t, x.Below < a.Exact && a.Exact < x.Above, "%+v", x)
				require.True(t, x.Value == a.Exact || x.Value == x.Below || x.Value == x.Above, "%+v", x)
			}
		}
	})
}
