package derive

import (
	"distopt/core/report"
	"distopt/core/sched"
)

// why gives the three checks, the binding one first.
func why(r *report.Result, i int32) []Reason {
	s := &r.Spans
	by := s.By[i]
	text := func(t string) Piece { return Piece{Text: t, Span: -1} }
	link := func(j int32) Piece { return Piece{Text: Name(r, j), Span: j} }
	ended := func(j int32) string { return " ended at " + Instant(s.End[j]) }
	before := previous(s, i)
	free := Sentence{text("Its stream was free: nothing runs on it earlier in the step.")}
	if before >= 0 {
		free = Sentence{text("Its stream was free: "), link(before), text(" ended " + Milliseconds(s.Start[i]-s.End[before]) + " before.")}
		if s.Start[i] == s.End[before] {
			free = Sentence{text("Its stream was free: "), link(before), text(" ended just then.")}
		}
	}
	data := Sentence{text("Its data was ready by then.")}
	host := Sentence{text("The host was ahead: it had been launched.")}
	others := func(rest ...Sentence) (out []Reason) {
		for _, t := range rest {
			out = append(out, Reason{Text: t})
		}
		return out
	}
	bind := func(t Sentence) []Reason { return []Reason{{Binding: true, Text: t}} }
	named := func(lead, without string) Sentence {
		if by < 0 {
			return Sentence{text(without)}
		}
		return Sentence{text(lead), link(by), text(ended(by) + ".")}
	}
	switch sched.Cause(s.Cause[i]) {
	case sched.ByData:
		return append(bind(named("Waited for data: ", "Waited for data from before the step shown.")), others(free, host)...)
	case sched.ByStream:
		return append(bind(named("Waited for its stream: ", "Waited for its stream, busy from before the step shown.")), others(data, host)...)
	case sched.ByComm:
		return append(bind(named("Waited for its communicator: ", "Waited for its communicator, busy from before the step shown.")), others(data, host)...)
	case sched.ByHost:
		return append(bind(named("Waited for the host, which was held up until ", "Waited for the host: it starts as soon as it is launched.")), others(data, free)...)
	case sched.ByPeer:
		return append(bind(named("Waited for its peer: ", "Waited for its peer: the other stage had not reached the exchange.")), others(data, host)...)
	}
	return bind(Sentence{text("Nothing held it: it starts with the step.")})
}

// previous is the span before i on its lane, -1 if none.
func previous(s *report.Spans, i int32) int32 {
	from, _ := laneRange(s, int(s.Stage[i]), laneOf(s, i))
	best := int32(-1)
	for j := i - 1; j >= from && j >= i-8; j-- {
		if s.End[j] <= s.Start[i] && (best < 0 || s.End[j] > s.End[best]) {
			best = j
		}
	}
	return best
}

// waitsFor lists what span i released, at most four.
func waitsFor(r *report.Result, i int32) (out []Link) {
	s := &r.Spans
	for j := range s.By {
		if s.By[j] == i && s.Lane[j] != report.LanePhase && s.Lane[j] != report.LaneExposed && s.Lane[j] != report.LaneHidden {
			out = append(out, Link{Text: Name(r, int32(j)), Value: Instant(s.Start[j]), Span: int32(j)})
			if len(out) == 4 {
				break
			}
		}
	}
	return out
}

// hides says what runs beside a collective.
func hides(r *report.Result, i int32, c *report.Collective) Sentence {
	if c.Hidden == 0 {
		text := "Nothing."
		if c.Cause != "" {
			text += " " + upper(c.Cause)
		}
		return Sentence{{Text: text, Span: -1}}
	}
	s := &r.Spans
	var longest int32 = -1
	var most int64
	for _, lane := range []report.Lane{report.LaneCompute, report.LaneOptimizer} {
		from, to := laneRange(s, int(s.Stage[i]), lane)
		for j := from; j < to; j++ {
			if s.Start[j] >= s.End[i] {
				break
			}
			if o := min(s.End[j], s.End[i]) - max(s.Start[j], s.Start[i]); o > most {
				most, longest = o, j
			}
		}
	}
	out := Sentence{}
	if longest >= 0 {
		out = append(out, Piece{Text: Name(r, longest), Span: longest}, Piece{Text: ", for " + Milliseconds(most) + ".", Span: -1})
	}
	if c.Exposed > 0 && c.Cause != "" {
		out = append(out, Piece{Text: " The rest is exposed: " + c.Cause, Span: -1})
	}
	return out
}
