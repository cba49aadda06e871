package derive

import (
	"distopt/core/report"
	"distopt/web/state"
)

func timeline(k timelineKey, sel state.Selection) *Timeline {
	t := &Timeline{Picture: k.picture, Marked: *k.marked, Table: k.table, Slot: k.slot, Fade: k.fade}
	if k.busy.Title != "" {
		card := k.busy
		t.Busy = &card
	}
	var r *report.Result
	for _, x := range k.picture.Results {
		if x != nil && r == nil {
			r = x
		}
	}
	if r == nil {
		t.Empty = true
		t.Scope = "no result yet"
		return t
	}
	switch {
	case k.compare:
		t.Scope = "two steps"
	case len(r.Stages) > 1:
		t.Scope = plural(len(r.Stages), "stage")
	default:
		t.Scope = "one step"
	}
	t.Legend = legend(k.picture)
	if own := k.picture.Results[sel.Slot]; own != nil && sel.Span >= 0 && int(sel.Span) < own.Spans.Len() {
		t.Current = Describe(own, sel.Span)
	}
	return t
}

// legend lists the colours that the picture uses.
func legend(p *Picture) (items []LegendItem) {
	var used [NumClasses]bool
	for i := range p.Rows {
		for _, s := range p.Rows[i].Strips {
			if s.Parts != nil && s.Len() > 0 {
				used[ClassTensor] = true
				continue
			}
			for _, c := range s.Class {
				used[c] = true
			}
		}
	}
	names := [...]struct {
		c    Class
		name string
	}{{ClassForward, "forward"}, {ClassBackward, "backward"}, {ClassOptimizer, "optimizer"}, {ClassGradSync, "grad sync"}, {ClassParamSync, "param sync"}, {ClassTensor, "TP"}, {ClassPipeline, "P2P"}, {ClassExposed, "exposed"}}
	for _, n := range names {
		if used[n.c] {
			items = append(items, LegendItem{ClassName(n.c), n.name})
		}
	}
	if used[ClassExposedBubble] {
		items = append(items, LegendItem{"bubbled", "in a bubble"})
	}
	return items
}

// Describe says what a span is, for screen readers.
func Describe(r *report.Result, i int32) string {
	s := &r.Spans
	text := Name(r, i) + ", " + laneName(laneOf(s, i)) + ", stage " + itoa(int(s.Stage[i])) + ". Starts at " + fixed(float64(s.Start[i])/1e6, 1) + " milliseconds, takes " + say(s.End[i]-s.Start[i])
	if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		switch c := &r.Collectives[g]; {
		case c.Exposed >= c.Length:
			text += ", all exposed"
		case c.Exposed > 0:
			text += ", " + say(int64(c.Exposed)) + " exposed"
		default:
			text += ", hidden"
		}
	}
	from, to := laneRange(s, int(s.Stage[i]), laneOf(s, i))
	return text + ". " + Count(int64(i-from+1)) + " of " + Count(int64(to-from)) + "."
}

// say is Milliseconds for a screen reader.
func say(ns int64) string {
	n, unit := length(ns)
	return n + " " + map[string]string{"ms": "milliseconds", "µs": "microseconds"}[unit]
}

func laneName(l report.Lane) string {
	return [...]string{"exposed", "compute", "compute", "hidden", "optimizer", "grad sync", "param sync", "tensor parallel", "pipeline", "host"}[l]
}
