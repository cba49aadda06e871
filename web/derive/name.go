package derive

import (
	"strings"

	"distopt/core/report"
	"distopt/core/step"
)

func kindOf(s *report.Spans, i int32) step.Kind { return step.Kind(s.Kind[i]) }

// laneOf finds the lane of a span from where it is stored.
func laneOf(s *report.Spans, i int32) report.Lane {
	base := int(s.Stage[i]) * int(report.NumLanes)
	for l := report.Lane(0); l < report.NumLanes; l++ {
		if k := base + int(l) + 1; k < len(s.First) && i < s.First[k] {
			return l
		}
	}
	return s.Lane[i]
}

// buckets returns the buckets that a span moves, or nil.
func buckets(r *report.Result, i int32) []int32 {
	if g := r.Spans.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		return r.Collectives[g].Buckets
	}
	return nil
}

// Name is what a span is called: "Reduce-scatter, buckets 23–26".
func Name(r *report.Result, i int32) string {
	s := &r.Spans
	if laneOf(s, i) == report.LanePhase {
		return phaseName(s, i)
	}
	name := ""
	if w := s.Work[i]; w >= 0 && int(w) < len(r.Works) {
		name = r.Works[w].Name
	} else if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		name = upper(r.Collectives[g].Kind)
	}
	if ids := buckets(r, i); len(ids) > 0 {
		return name + ", " + IDs(ids)
	}
	if l := s.Layer[i]; l >= 0 && !strings.Contains(name, "layer") {
		name += ", layer " + itoa(int(l))
	}
	return name
}

func phaseName(s *report.Spans, i int32) string {
	word := "Backward"
	if kindOf(s, i) == step.Forward {
		word = "Forward"
	}
	return word + ", microbatch " + itoa(int(s.Micro[i]))
}

// Labels are the names of a span from full to short, for drawing into less and less room.
func Labels(r *report.Result, i int32) []string {
	s := &r.Spans
	switch laneOf(s, i) {
	case report.LanePhase:
		word := "Backward"
		if kindOf(s, i) == step.Forward {
			word = "Forward"
		}
		m := itoa(int(s.Micro[i]))
		return []string{word + ", microbatch " + m, word + " " + m, word[:1] + m}
	case report.LaneCompute:
		if l := s.Layer[i]; l >= 0 {
			n := itoa(int(l))
			return []string{"Layer " + n, "L" + n}
		}
	}
	full := Name(r, i)
	labels := []string{full}
	if ids := buckets(r, i); len(ids) > 0 {
		labels = append(labels, abbreviation(kindOf(s, i))+" "+Runs(ids), Runs(ids))
	} else if word, _, cut := strings.Cut(full, ","); cut {
		labels = append(labels, word)
	}
	return labels
}

func abbreviation(k step.Kind) string {
	switch k {
	case step.ReduceScatter:
		return "RS"
	case step.AllGather:
		return "AG"
	case step.ShardAllReduce, step.GradAllReduce:
		return "AR"
	}
	return ""
}

// Hover is the card of a span under the pointer: name, then facts.
func Hover(r *report.Result, i int32, part string) []string {
	s := &r.Spans
	lines := []string{Name(r, i)}
	if part != "" {
		lines = append(lines, part)
	}
	lines = append(lines, Instant(s.Start[i])+", takes "+Milliseconds(s.End[i]-s.Start[i]))
	if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		c := &r.Collectives[g]
		switch {
		case c.Exposed > 0:
			lines = append(lines, Milliseconds(int64(c.Exposed))+" exposed")
		case c.InBubble > 0:
			lines = append(lines, Milliseconds(int64(c.InBubble))+" exposed in a bubble")
		default:
			lines = append(lines, "hidden")
		}
		lines = append(lines, Size(c.Bytes)+", "+Rate(c.BusBW)+" busbw")
	}
	if m := s.Micro[i]; m >= 0 && laneOf(s, i) != report.LanePhase {
		lines = append(lines, "microbatch "+itoa(int(m)))
	}
	return lines
}
