package canvas

import (
	"distopt/core/report"
	"distopt/web/derive"
)

// Step finds the operation that a key leads to from span: −1 when there is none.
func Step(p *derive.Picture, slot int, span int32, key string) (int, int32) {
	r := p.Results[slot]
	if r == nil {
		for s, x := range p.Results {
			if x != nil {
				slot, r, span = s, x, -1
			}
		}
	}
	if r == nil {
		return 0, -1
	}
	s := &r.Spans
	if span < 0 || int(span) >= s.Len() {
		return slot, firstOperation(s)
	}
	switch key {
	case "ArrowRight":
		return slot, neighbour(s, span, 1)
	case "ArrowLeft":
		return slot, neighbour(s, span, -1)
	case "ArrowDown":
		return slot, otherLane(s, span, 1)
	case "ArrowUp":
		return slot, otherLane(s, span, -1)
	case "]":
		return slot, exposed(r, span, 1)
	case "[":
		return slot, exposed(r, span, -1)
	case ".":
		return slot, sameBucket(r, span, 1)
	case ",":
		return slot, sameBucket(r, span, -1)
	case "r", "R":
		if by := s.By[span]; by >= 0 {
			return slot, by
		}
		return slot, span
	}
	return slot, -1
}

func firstOperation(s *report.Spans) int32 {
	for i, l := range s.Lane {
		if l == report.LanePhase {
			return int32(i)
		}
	}
	return -1
}

// neighbour is the span before or after in the lane.
func neighbour(s *report.Spans, span int32, by int32) int32 {
	next := span + by
	if next < 0 || int(next) >= s.Len() || s.Lane[next] != s.Lane[span] || s.Stage[next] != s.Stage[span] {
		return span
	}
	return next
}

// otherLane is the span nearest in time in the next lane up or down that holds any.
func otherLane(s *report.Spans, span int32, by int) int32 {
	t := s.Start[span]
	k := int(s.Stage[span])*int(report.NumLanes) + int(s.Lane[span])
	for k += by; k >= 0 && k+1 < len(s.First); k += by {
		lane := report.Lane(k % int(report.NumLanes))
		if lane == report.LaneExposed || lane == report.LaneHidden || s.First[k] == s.First[k+1] {
			continue
		}
		best, distance := int32(-1), int64(0)
		for i := s.First[k]; i < s.First[k+1]; i++ {
			d := max(s.Start[i]-t, t-s.Start[i])
			if best < 0 || d < distance {
				best, distance = i, d
			}
		}
		return best
	}
	return span
}

// exposed is the next or previous operation with exposed time, by start.
func exposed(r *report.Result, span int32, by int64) int32 {
	t := r.Spans.Start[span]
	best, distance := span, int64(-1)
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if c.Exposed+c.InBubble == 0 || c.Span == span {
			continue
		}
		if d := (int64(c.Start) - t) * by; d > 0 && (distance < 0 || d < distance) {
			best, distance = c.Span, d
		}
	}
	return best
}

// sameBucket is the next or previous collective of one of the span's buckets.
func sameBucket(r *report.Result, span int32, by int64) int32 {
	g := r.Spans.Group[span]
	if g < 0 || int(g) >= len(r.Collectives) {
		return span
	}
	own := &r.Collectives[g]
	t := int64(own.Start)
	best, distance := span, int64(-1)
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if int32(i) == g || c.Stage != own.Stage || !derive.Meet(c.Buckets, own.Buckets) {
			continue
		}
		if d := (int64(c.Start) - t) * by; d > 0 && (distance < 0 || d < distance) {
			best, distance = c.Span, d
		}
	}
	return best
}
