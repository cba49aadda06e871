package dtype

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between all codes in a row: each has its neighbours, and so does what lies between two.
func TestNeighbours(t *testing.T) {
	for _, f := range Formats[1:] {
		previous := f.Decode(f.max | 1<<(f.Bits()-1))
		require.Equal(t, -f.Max(), previous)
		for m := -int64(f.max) + 1; m <= int64(f.max); m++ {
			x := f.next(previous, 1)
			below, above := f.Neighbours(previous/2 + x/2)
			if x > 0x1p-126 || x < 0 && previous < -0x1p-126 { // the mean is exact
				require.Equal(t, [2]float32{previous, x}, [2]float32{below, above}, "%s", f.Name)
			}
			below, _ = f.Neighbours(x)
			require.Equal(t, previous, below, f.Name)
			_, above = f.Neighbours(previous)
			require.Equal(t, x, above, f.Name)
			previous = x
		}
		require.Equal(t, f.Max(), previous)
		_, above := f.Neighbours(f.Max())
		require.Equal(t, f.Max(), above, "nothing finite lies above")
		below, above := f.Neighbours(float32(math.Inf(-1)))
		require.Equal(t, [2]float32{-f.Max(), -f.Max()}, [2]float32{below, above})
	}
	fp32 := Formats[0]
	below, above := fp32.Neighbours(1)
	require.Equal(t, [2]float32{math.Nextafter32(1, 0), math.Nextafter32(1, 2)}, [2]float32{below, above})
	below, above = fp32.Neighbours(nan)
	require.True(t, below != below && above != above)
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
