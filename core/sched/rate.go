package sched

import "math/bits"

// rerate brings the speeds of dev's running tasks in line with what runs beside them, and returns
// when the first of them ends. The work left is an exact integer, so it does not matter how often a
// task is re-rated.
func (e *Engine) rerate(dev *device, lanes []lane, now Time) Time {
	running := dev.running
	rates := e.p.Rates
	var once, twice uint32 // classes with at least one, two tasks
	if rates != nil && running&(running-1) != 0 {
		for set := running; set != 0; set &= set - 1 {
			own := uint32(1) << lanes[bits.TrailingZeros64(set)].class
			twice |= once & own
			once |= own
		}
	}
	at := never
	for set := running; set != 0; set &= set - 1 {
		l := &lanes[bits.TrailingZeros64(set)]
		rate := uint32(FullSpeed)
		if rates != nil {
			own := uint32(1) << l.class
			if r := rates[l.class][once&^own|twice&own]; r != 0 {
				rate = r
			}
		}
		if rate != l.rate {
			l.setRate(rate, now)
		}
		at = min(at, l.end)
	}
	return at
}

// setRate lets the running task go on at another speed.
func (l *lane) setRate(rate uint32, now Time) {
	switch {
	case l.rate == 0: // it has just begun
	case l.workEnd <= now:
		l.remaining = 0
	default:
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
