package lab

// scaler is the loss scale as NeMo's GradScaler moves it: halved when overflows come twice in a row
// (hysteresis 2), doubled after a number of steps without any.
type scaler struct {
	scale     float32
	window    int // 0: the scale is 1 for ever
	good      int // steps since the last overflow or change
	tolerance int // overflows that are let pass yet
}

const hysteresis = 2

func newScaler(scale float32, window int) scaler {
	return scaler{scale: scale, window: window, tolerance: hysteresis}
}

// update ends a step.
func (s *scaler) update(overflow bool) {
	switch {
	case s.window == 0:
	case overflow:
		s.good = 0
		s.tolerance--
		if s.tolerance <= 0 {
			s.scale /= 2
		}
	default:
		s.tolerance = hysteresis
		s.good++
		if s.good == s.window {
			s.good = 0
			if s.scale < 0x1p120 {
				s.scale *= 2
			}
		}
	}
}
