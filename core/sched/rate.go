package sched

import "math/bits"

// rerate brings the speeds of dev's running tasks in line with what runs beside them. The work
// left is an exact integer, so it does not matter how often a task is re-rated.
func (e *Engine) rerate(dev *device, lanes []lane, now Time) {
	running := dev.running &^ 1
	var once, twice uint32 // classes with at least one, two tasks
	if e.p.Rates != nil {
		for set := running; set != 0; set &= set - 1 {
			own := uint32(1) << lanes[bits.TrailingZeros64(set)].class
			twice |= once & own
			once |= own
		}
	}
	for set := running; set != 0; set &= set - 1 {
		l := &lanes[bits.TrailingZeros64(set)]
		rate := uint32(FullSpeed)
		if e.p.Rates != nil {
			own := uint32(1) << l.class
			if r := e.p.Rates[l.class][once&^own|twice&own]; r != 0 {
				rate = r
			}
		}
		if rate == l.rate {
			continue
		}
		if l.workEnd <= now && l.rate != 0 {
			l.remaining = 0
		} else {
			l.remaining -= int64(now-l.anchor) * int64(l.rate)
		}
		l.anchor, l.rate = now, rate
		if rate == FullSpeed {
			l.workEnd = now + Time((l.remaining+FullSpeed-1)/FullSpeed)
		} else {
			l.workEnd = now + Time((l.remaining+int64(rate)-1)/int64(rate))
		}
		l.end = never
		if l.messages == 0 {
			l.end = max(l.workEnd, l.floor)
		}
	}
}
