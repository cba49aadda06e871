package dtype

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func unpack(t testing.TB, name string) []byte {
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return data
}

// Each line of the reference data: an input and what eight conversions make of it.
func TestReferenceCasts(t *testing.T) {
	lines := 0
	for line := range strings.Lines(string(unpack(t, "casts.txt.gz"))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var bits uint32
		_, err := fmt.Sscanf(line, "%x", &bits)
		require.NoError(t, err)
		x := math.Float32frombits(bits)
		got := fmt.Sprintf("%08x %04x %04x", bits, EncodeBF16(x), EncodeFP16(x))
		for f := E4M3; f <= E5M2; f++ {
			for o := Saturate; o <= Torch; o++ {
				got += fmt.Sprintf(" %02x", f.EncodeAs(x, o))
			}
			require.Equal(t, f.EncodeAs(x, Saturate), f.Encode(x), "%08x", bits)
		}
		require.Equal(t, strings.TrimSpace(line), got)
		lines++
	}
	require.Equal(t, 4426, lines)
}

func TestReferenceFP8Values(t *testing.T) {
	var in map[string]string
	require.NoError(t, json.Unmarshal(unpack(t, "fp8_decode.json.gz"), &in))
	for f, digits := range []string{in["decode_e4m3fn_fp32"], in["decode_e5m2_fp32"]} {
		require.Len(t, digits, 256*8)
		for code := range 256 {
			got := fmt.Sprintf("%08x", math.Float32bits(FP8(f).Decode(uint8(code))))
			require.Equal(t, digits[8*code:8*code+8], got, "%s %02x", FP8(f), code)
		}
	}
}

// format is one format as the tests below go through it.
type format struct {
	name   string
	bits   int
	max    uint32 // code of the largest finite value
	inf    bool   // overflow gives the next code, infinity; otherwise the largest value
	nan    uint32
	encode func(float32) uint32
	decode func(uint32) float32
}

var formats = []format{
	{"bf16", 16, 0x7f7f, true, 0x7fff,
		func(x float32) uint32 { return uint32(EncodeBF16(x)) }, func(c uint32) float32 { return DecodeBF16(uint16(c)) }},
	{"fp16", 16, 0x7bff, true, 0x7fff,
		func(x float32) uint32 { return uint32(EncodeFP16(x)) }, func(c uint32) float32 { return DecodeFP16(uint16(c)) }},
	{"e4m3", 8, 0x7e, false, 0x7f,
		func(x float32) uint32 { return uint32(E4M3.Encode(x)) }, func(c uint32) float32 { return E4M3.Decode(uint8(c)) }},
	{"e5m2", 8, 0x7b, false, 0x7f,
		func(x float32) uint32 { return uint32(E5M2.Encode(x)) }, func(c uint32) float32 { return E5M2.Decode(uint8(c)) }},
}

// Every code comes back; between every two neighbours the half way point goes to the even one and the
// fp32 values beside it to the nearer one; beyond the largest value lie infinity or saturation.
func TestEveryCode(t *testing.T) {
	for _, f := range formats {
		sign := uint32(1) << (f.bits - 1)
		for code := uint32(0); code <= f.max; code++ {
			x := f.decode(code)
			if got := f.encode(x); got != code {
				t.Fatalf("%s: %#x is %x, which gives %#x", f.name, code, x, got)
			}
			if got := f.encode(-x); got != code|sign {
				t.Fatalf("%s: -%x gives %#x, want %#x", f.name, x, got, code|sign)
			}
			above := code + 1
			next := float64(f.decode(above))
			if code == f.max { // half a step further overflows
				next = 2*float64(x) - float64(f.decode(code-1))
				if !f.inf {
					above = code
				}
			}
			middle := float32((float64(x) + next) / 2)
			even := code
			if code&1 == 1 {
				even = above
			}
			for _, tt := range []struct {
				x    float32
				want uint32
			}{
				{middle, even},
				{math.Nextafter32(middle, 0), code},
				{math.Nextafter32(middle, math.MaxFloat32), above},
			} {
				if got := f.encode(tt.x); got != tt.want {
					t.Fatalf("%s: %x gives %#x, want %#x", f.name, tt.x, got, tt.want)
				}
				if got := f.encode(-tt.x); got != tt.want|sign {
					t.Fatalf("%s: %x gives %#x, want %#x", f.name, -tt.x, got, tt.want|sign)
				}
			}
		}
		inf := float32(math.Inf(1))
		want := f.max
		if f.inf {
			want++
			require.Equal(t, inf, f.decode(want), f.name)
		}
		require.Equal(t, want, f.encode(inf), f.name)
		require.Equal(t, want|sign, f.encode(-inf), f.name)
		require.Equal(t, want, f.encode(math.MaxFloat32), f.name)
		for _, bits := range []uint32{0x7f800001, 0x7fc00000, NaNBits, 0xff800001, 0xffffffff} {
			require.Equal(t, f.nan, f.encode(math.Float32frombits(bits)), "%s of NaN %08x", f.name, bits)
		}
		for code := f.max + 1; code < sign; code++ {
			if x := f.decode(code); x == x && x != inf {
				t.Fatalf("%s: %#x is %x, want NaN or infinity", f.name, code, x)
			}
		}
	}
}

// The table of FP8 codes agrees with the rule for every upper half of an fp32 value and the lower
// halves between which the rule can tell.
func TestFP8Table(t *testing.T) {
	for f := E4M3; f <= E5M2; f++ {
		for upper := range uint32(1 << 16) {
			for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0xffff} {
				x := math.Float32frombits(upper<<16 | lower)
				if got, want := f.Encode(x), f.EncodeAs(x, Saturate); got != want {
					t.Fatalf("%s of %08x: %02x, want %02x", f, upper<<16|lower, got, want)
				}
			}
		}
	}
}

// Bulk forms do what single ones do, at every length, in place where types allow.
func TestBulk(t *testing.T) {
	for n := range 20 {
		src := spread(n)
		if n > 5 {
			src[3], src[5] = float32(math.Inf(-1)), nan
		}
		bf, half := make([]uint16, n), make([]uint16, n)
		EncodeBF16s(bf, src)
		EncodeFP16s(half, src)
		bf32, half32 := make([]float32, n), make([]float32, n)
		DecodeBF16s(bf32, bf)
		DecodeFP16s(half32, half)
		rounded := append([]float32(nil), src...)
		BF16.RoundAll(rounded)
		rounded16 := append([]float32(nil), src...)
		FP16.RoundAll(rounded16)
		same := append([]float32(nil), src...)
		FP32.RoundAll(same)
		codes, scaled, back := make([]uint8, n), make([]uint8, n), make([]float32, n)
		for f := E4M3; f <= E5M2; f++ {
			f.EncodeAll(codes, src)
			f.EncodeScaled(scaled, src, 17.5)
			f.DecodeScaled(back, codes, 0.3)
			for i, x := range src {
				require.Equal(t, f.Encode(x), codes[i])
				require.Equal(t, f.Encode(float32(x*17.5)), scaled[i])
				requireBits(t, Canonical(f.Decode(codes[i])*0.3), back[i])
			}
		}
		for i, x := range src {
			require.Equal(t, EncodeBF16(x), bf[i])
			require.Equal(t, EncodeFP16(x), half[i])
			requireBits(t, RoundBF16(x), bf32[i])
			requireBits(t, FP16.Round(x), half32[i])
			requireBits(t, bf32[i], rounded[i])
			requireBits(t, half32[i], rounded16[i])
			requireBits(t, FP32.Round(x), same[i])
		}
	}
}

func requireBits(t *testing.T, want, got float32) {
	require.Equal(t, math.Float32bits(want), math.Float32bits(got), "want %x, got %x", want, got)
}

// The largest values: bf16's is 2^128 - 2^120, fp16's 65504.
func TestLargest(t *testing.T) {
	require.Equal(t, float32(0x1.fep127), BF16.Max())
	require.Equal(t, float32(65504), FP16.Max())
	require.Equal(t, float32(math.MaxFloat32), FP32.Max())
	require.Equal(t, float32(448), E4M3.Max())
	require.Equal(t, float32(57344), E5M2.Max())
}

// Every fp32 value of a stride that meets all upper halves survives; parameters show the nearer bf16
// value, ties away from zero.
func TestRemainders(t *testing.T) {
	for i := range uint32(1 << 22) {
		bits := i<<10 | i*2654435761>>22
		param, remainder := Split(bits)
		if Join(param, remainder) != bits {
			t.Fatalf("%08x: %04x and %04x give %08x", bits, param, remainder, Join(param, remainder))
		}
	}
	for bits, want := range map[uint32]uint16{
		0x3f808000: 0x3f81, // the tie that bf16's own rounding gives to 0x3f80
		0x3f807fff: 0x3f80, 0xbf808000: 0xbf81, 0x3f818000: 0x3f82,
		0x7f7fffff: 0x7f80, // shows as infinity
		0x7fffffff: 0x8000, // a NaN shows as -0
	} {
		param, remainder := Split(bits)
		require.Equal(t, want, param, "%08x", bits)
		require.Equal(t, uint16(bits), remainder)
	}
}
