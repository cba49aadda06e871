package dtype

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between all codes in a row: each has its neighbours, and so does what lies between two, also where
// fp32 cannot tell it from one of them.
func TestNeighbours(t *testing.T) {
	for _, f := range Formats[1:] {
		sign := uint32(1) << (f.Bits() - 1)
		previous := -float64(f.Max())
		for m := -int64(f.max) + 1; m <= int64(f.max); m++ {
			code := uint32(m)
			if m < 0 {
				code = sign | uint32(-m)
			}
			x := float64(f.Decode(code))
			for _, between := range []float64{previous + (x-previous)/2, math.Nextafter(previous, x), math.Nextafter(x, previous)} {
				below, above := f.Neighbours(between)
				require.Equal(t, [2]float64{previous, x}, [2]float64{below, above}, "%s: %v", f.Name, between)
			}
			below, _ := f.Neighbours(x)
			require.Equal(t, previous, below, f.Name)
			_, above := f.Neighbours(previous)
			require.Equal(t, x, above, f.Name)
			previous = x
		}
		require.Equal(t, float64(f.Max()), previous)
		infinite := math.Inf(1)
		for _, beyond := range []float64{math.Nextafter(previous, infinite), 2 * previous, math.MaxFloat64, infinite} {
			below, above := f.Neighbours(beyond)
			require.Equal(t, [2]float64{previous, infinite}, [2]float64{below, above}, f.Name)
			below, above = f.Neighbours(-beyond)
			require.Equal(t, [2]float64{-infinite, -previous}, [2]float64{below, above}, f.Name)
		}
		below, above := f.Neighbours(previous)
		require.Less(t, below, previous)
		require.Equal(t, infinite, above, "nothing finite lies above")
	}
	fp32 := Formats[0]
	for _, c := range [][3]float64{
		{float64(math.Nextafter32(1, 0)), 1, float64(math.Nextafter32(1, 2))},
		{float64(math.Nextafter32(0.1, 0)), 0.1, float64(float32(0.1))},
		{0, 1e-50, 0x1p-149}, {-0x1p-149, -1e-50, 0}, {-0x1p-149, 0, 0x1p-149}, {-0x1p-149, math.Copysign(0, -1), 0x1p-149},
	} {
		below, above := fp32.Neighbours(c[1])
		require.Equal(t, c, [3]float64{below, c[1], above})
	}
	below, above := fp32.Neighbours(math.NaN())
	require.True(t, below != below && above != above)
}

// What overflows is what becomes infinite, or would without saturation.
func TestOverflows(t *testing.T) {
	for _, f := range Formats[1:] {
		encode := func(x float32) uint32 { return f.Encode(x) }
		infinite := f.max + 1
		switch f.Name {
		case "e4m3":
			encode = func(x float32) uint32 { return uint32(E4M3.EncodeAs(x, NoSaturate)) }
		case "e5m2":
			encode = func(x float32) uint32 { return uint32(E5M2.EncodeAs(x, NoSaturate)) }
		}
		top := f.Max()
		bits := math.Float32bits(top)
		for step := range uint32(1 << (23 - f.Mantissa)) {
			x := math.Float32frombits(bits + step)
			require.Equal(t, encode(x) == infinite, f.Overflows(x), "%s: %v", f.Name, x)
			require.Equal(t, f.Overflows(x), f.Overflows(-x))
		}
		require.True(t, f.Overflows(float32(math.Inf(1))))
		require.False(t, f.Overflows(nan))
	}
}

func TestFormats(t *testing.T) {
	bits := map[string]int{"fp32": 32, "bf16": 16, "fp16": 16, "e4m3": 8, "e5m2": 8}
	require.Len(t, Formats, len(bits))
	for _, f := range Formats {
		require.Equal(t, bits[f.Name], f.Bits())
		require.Equal(t, float32(1), f.Decode(f.Encode(1)))
		require.Equal(t, f.max, f.Encode(f.Max()))
	}
}
