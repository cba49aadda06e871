package hw

import (
	"math"

	"distopt/core/units"
)

// Power says what kernels draw at full clock, as parts of the power limit. Over some milliseconds
// the average stays at the limit: the clock sinks, and kernels that follow the clock take longer.
type Power struct {
	Product, ProductFP8 float64
	Attention           [NumBackend]float64
	Memory              float64 // memory-bound kernels; they do not follow the clock
	Communication       float64 // nor do collectives
}

// Slowdown returns the factor on the time of kernels that follow the clock, 1 if the limit does
// not bind. clocked is their time at full clock and clockedDraw the sum of time times draw; steady
// and steadyDraw are the same of all other kernels.
//
// A kernel that takes s times as long draws 1/s² of its power (less voltage, fewer operations a
// second), so the average is at the limit where clocked·s² + (steady - steadyDraw)·s = clockedDraw.
func Slowdown(clocked, clockedDraw, steady, steadyDraw units.Seconds) float64 {
	if clocked <= 0 {
		return 1
	}
	b := float64(steady-steadyDraw) / float64(clocked)
	c := float64(clockedDraw) / float64(clocked)
	s := (math.Sqrt(float64(b*b)+float64(4*c)) - b) / 2
	return max(s, 1)
}

// powers by generation. Hopper's are fitted to products and layers that were repeated until the
// clock had settled (gemm_sustained, layer_sustained; TestPowerFollowsFromMeasurements of
// core/cost), the others follow from what long series of large products reach:
//
//	draw = (rate that the curve gives for a large product / rate that was measured)²
//
// Ampere 263 TFLOP/s (large shapes of aiconfigurator's A100 SXM table), Blackwell 1105 (median of
// SimuMax's B200 forward products). Nothing was measured for the rest: FP8 is taken as 16 bit,
// attention and memory as on Hopper, communication is a guess between idle and memory-bound.
var powers = [NumArch]Power{
	Ampere:    {Product: 1.17, ProductFP8: 1.17, Attention: [NumBackend]float64{1, 1}, Memory: 0.7, Communication: 0.6},
	Ada:       {Product: 1, ProductFP8: 1, Attention: [NumBackend]float64{1, 1}, Memory: 0.7, Communication: 0.6},
	Hopper:    {Product: 1.4, ProductFP8: 1.4, Attention: [NumBackend]float64{0.8, 1.1}, Memory: 0.7, Communication: 0.6},
	Blackwell: {Product: 2.7, ProductFP8: 2.7, Attention: [NumBackend]float64{0.8, 1.1}, Memory: 0.7, Communication: 0.6},
}
