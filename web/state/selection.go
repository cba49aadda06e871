package state

import (
	"slices"
	"strconv"

	"distopt/core/report"
)

func itoa(n int) string { return strconv.Itoa(n) }

// spanSelection selects a span and the first bucket it moves.
func (s *State) spanSelection(slot int, span int32) Selection {
	sel := Selection{Slot: slot, Span: span, Bucket: -1}
	r := s.Slots[slot].Result
	if r == nil || span < 0 || int(span) >= len(r.Spans.Start) {
		return NoSelection
	}
	sel.Stage = int(r.Spans.Stage[span])
	if g := r.Spans.Group[span]; g >= 0 && int(g) < len(r.Collectives) {
		ids := r.Collectives[g].Buckets
		old := s.Select
		switch {
		case len(ids) == 0:
		case old.Slot == slot && old.Stage == sel.Stage && slices.Contains(ids, old.Bucket):
			sel.Bucket = old.Bucket
		default:
			sel.Bucket = ids[0]
		}
	}
	return sel
}

// simulated takes a result in and keeps the selection where the new result has its namesake.
func (s *State) simulated(m Simulated) []Effect {
	x := &s.Slots[m.Slot]
	if x.Request != m.ID {
		return nil
	}
	old := x.Result
	x.Request, x.Slow, x.Failure, x.Report, x.Stopped, x.Halted = 0, false, "", "", false, false
	x.Result, x.Of, x.ReadOf = m.Result, x.Doc.Text, x.Read
	s.Draws++
	if s.Select.Slot == m.Slot && s.Select.Chosen {
		s.Select = follow(s.Select, old, m.Result)
	}
	s.settle()
	s.Live = announce(old, m.Result, m.Slot, s.Compare || m.Slot != s.Shown)
	effects := []Effect{Drawn{s.Draws}}
	if old == nil || old.Figures.StepTime != m.Result.Figures.StepTime {
		if s.View != [2]float64{} && m.Slot == s.Shown {
			s.View = [2]float64{}
			effects = append(effects, ShowSpan{})
		}
	}
	return effects
}

// settle selects the most exposed operation while the visitor has selected nothing.
func (s *State) settle() {
	if s.Select.Chosen && (s.Compare || s.Select.Slot == s.Shown) {
		return
	}
	r := s.Current().Result
	s.Select = NoSelection
	if r == nil || s.Compare { // comparing, the difference itself is told
		return
	}
	var worst *report.Collective
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if len(c.Buckets) > 0 && (worst == nil || c.Exposed > worst.Exposed) {
			worst = c
		}
	}
	if worst != nil {
		s.Select = s.spanSelection(s.Shown, worst.Span)
	}
}

// follow finds the selection's namesake in a new result.
func follow(sel Selection, old, r *report.Result) Selection {
	if sel.Stage >= len(r.Stages) {
		return NoSelection
	}
	if int(sel.Bucket) >= len(r.Stages[sel.Stage].Buckets) {
		sel.Bucket = -1
	}
	if sel.Span < 0 || old == nil {
		return sel
	}
	if int(sel.Span) < len(old.Spans.Group) {
		if g := old.Spans.Group[sel.Span]; g >= 0 && int(g) < len(old.Collectives) {
			was := &old.Collectives[g]
			for i := range r.Collectives {
				c := &r.Collectives[i]
				if c.Stage == was.Stage && c.Kind == was.Kind && slices.Equal(c.Buckets, was.Buckets) {
					sel.Span = c.Span
					return sel
				}
			}
		}
	}
	return NoSelection
}

// announce says what a new result means, for the live region.
func announce(old, r *report.Result, slot int, named bool) string {
	text := "Simulated"
	if named {
		text += " " + string(rune('A'+slot))
	}
	text += ". Step time " + milliseconds(int64(r.Figures.StepTime)) + " milliseconds"
	if old != nil && old.Figures.StepTime != r.Figures.StepTime {
		d, word := int64(r.Figures.StepTime-old.Figures.StepTime), "more"
		if d < 0 {
			d, word = -d, "less"
		}
		text += ", " + milliseconds(d) + " " + word
	}
	return text + ". Exposed " + milliseconds(int64(r.Figures.Exposed)) + "."
}

func milliseconds(ns int64) string { return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) }
