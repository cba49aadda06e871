package hw

import "distopt/core/units"

// FlashCurve is the time of causal flash attention of one direction at one head dimension: tiles
// of 128 queries, with a longest tile that ends alone.
type FlashCurve struct {
	Dim   float64              // head dimension at which it was measured
	Rate  units.FLOPsPerSecond // long sequences, all SMs
	Half  float64              // sequence length at which half the rate is reached
	Tail  float64              // length of the end in tiles
	Floor units.Seconds
}

const flashTile = 128 // queries of a tile

// FlashFLOPs counts what causal attention of heads (over all sequences) needs at least: half of
// the score matrix, two products forward and five backward.
func FlashFLOPs(heads, seq, dim int64, backward bool) units.FLOPs {
	f := 2 * float64(heads) * float64(seq) * float64(seq) * float64(dim)
	if backward {
		f *= 2.5
	}
	return units.FLOPs(f)
}

// Time returns the time of flops over heads (of all sequences) and seq queries each.
func (c *FlashCurve) Time(flops units.FLOPs, heads, seq int64, sms int) units.Seconds {
	count := float64(heads) * float64(seq) / flashTile
	tile := float64(flops) / count / (float64(c.Rate) / float64(sms)) * (1 + c.Half/float64(seq))
	return c.Floor + units.Seconds(tile*(count/float64(sms)+c.Tail))
}

// Attention is the curves of one implementation: by direction, for head dimensions 64 and 128.
type Attention struct{ Forward, Backward [2]FlashCurve }

// Time interpolates between the two measured head dimensions; beyond them the nearer one counts.
func (a *Attention) Time(flops units.FLOPs, heads, seq, dim int64, backward bool, sms int) units.Seconds {
	curves := &a.Forward
	if backward {
		curves = &a.Backward
	}
	low, high := &curves[0], &curves[1]
	at := (float64(dim) - low.Dim) / (high.Dim - low.Dim)
	switch {
	case at <= 0:
		return low.Time(flops, heads, seq, sms)
	case at >= 1:
		return high.Time(flops, heads, seq, sms)
	}
	below, above := low.Time(flops, heads, seq, sms), high.Time(flops, heads, seq, sms)
	return below + units.Seconds(float64(above-below)*at)
}
