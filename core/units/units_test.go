package units

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain puts an ordinary space for the thin gap, so that the tables can be read.
func plain(s string) string { return strings.ReplaceAll(s, Gap, " ") }

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 52428800: "52,428,800", -1234: "−1,234", -999: "−999",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "−9,223,372,036,854,775,808",
	} {
		require.Equal(t, want, Count(n))
	}
}

func TestFixed(t *testing.T) {
	for _, tt := range []struct {
		x        float64
		decimals int
		want     string
	}{
		{0, 1, "0.0"}, {1234.56, 1, "1,234.6"}, {-1234.56, 0, "−1,235"}, {-0.04, 1, "0.0"}, {math.Copysign(0, -1), 0, "0"},
		{999.96, 1, "1,000.0"}, {1e20, 0, "100,000,000,000,000,000,000"}, {math.NaN(), 1, "–"}, {math.Inf(-1), 1, "–"},
	} {
		require.Equal(t, tt.want, Fixed(tt.x, tt.decimals), "%v", tt.x)
	}
	require.Equal(t, "+1.9", Signed(1.92, 1))
	require.Equal(t, "−1.9", Signed(-1.92, 1))
	require.Equal(t, "+0.0", Signed(-0.01, 1))
}

func TestMilliseconds(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.0 ms", 1: "0.0 µs", 500: "0.5 µs", 99_949: "99.9 µs", 100_000: "0.1 ms", 194_217_000: "194.2 ms",
		-1_900_000: "−1.9 ms", -30_000: "−30.0 µs", 1_234_500_000: "1,234.5 ms",
	} {
		require.Equal(t, want, plain(Milliseconds(ns)))
	}
}

func TestPrint(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Bytes(0).String(), "0 B"},
		{Bytes(1023).String(), "1,023 B"},
		{(3 * KiB / 2).String(), "2 KiB"},
		{(782 * MiB).String(), "782 MiB"},
		{(84*GiB + 300*MiB).String(), "84.3 GiB"},
		{(-5 * GiB).String(), "−5.0 GiB"},
		{Elems(65536).String(), "65,536"},
		{BytesPerSecond(450e9).String(), "450 GB/s"},
		{BytesPerSecond(3.35e12).String(), "3,350 GB/s"},
		{BytesPerSecond(12.345e9).String(), "12.3 GB/s"},
		{BytesPerSecond(9.996e9).String(), "10.0 GB/s"},
		{FLOPsPerSecond(1979e12).String(), "1,979 TFLOP/s"},
		{FLOPs(2.5e15).String(), "2.50 PFLOP"},
		{FLOPs(0).String(), "0.00 FLOP"},
		{Seconds(0.1942).String(), "194.2 ms"},
		{Seconds(3.5e-6).String(), "3.5 µs"},
		{Seconds(12.345).String(), "12.35 s"},
		{Percent(0.0231), "2.3 %"},
		{Percent(1), "100.0 %"},
		{Large(5_050_000_000), "5.05 B"},
		{Large(355_000_000), "355 M"},
		{Large(1_008_000_000_000), "1.01 T"},
		{Large(1234), "1,234"},
	} {
		require.Equal(t, tt.want, plain(tt.got))
	}
}

func TestNanoseconds(t *testing.T) {
	require.Equal(t, int64(0), Seconds(-1).Nanoseconds())
	require.Equal(t, int64(3), Seconds(2.5e-9).Nanoseconds())
	require.Equal(t, int64(1_000_000_000), Seconds(1).Nanoseconds())
}
