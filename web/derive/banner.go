package derive

import (
	"distopt/web/state"
)

type bannerKey struct {
	errors, line int
	stale        bool
	failure      string
	halted       bool
	note, bad    string
	remade       string
	undo         bool   // there is something to undo
	other        string // the one of A and B that is compared and has errors, while the other is edited
	empty        bool
}

func (c *Cache) bannerOf(s *state.State, p *Problems) *Banner {
	cur := s.Current()
	k := bannerKey{errors: p.Errors, stale: cur.Result != nil, failure: cur.Failure, halted: cur.Halted, note: s.Shared.Note, bad: s.Shared.Bad}
	if cur.Stopped {
		k.failure = ""
	}
	k.remade, k.undo, k.empty = remade(s), s.CanUndo(), cur.Empty()
	if other := &s.Slots[1-s.Shown]; s.Compare && other.Read != nil && !other.Read.OK() {
		k.other = string(rune('A' + 1 - s.Shown))
	}
	for i := range p.Items {
		if p.Items[i].Error {
			k.line = p.Items[i].Line
			break
		}
	}
	return c.banner.get(k, func() *Banner {
		switch {
		case k.errors > 0:
			b := &Banner{Kind: "error", Lead: plural(k.errors, "error") + " in the configuration.", Line: k.line, Undo: k.undo}
			if k.stale {
				b.Text = "The picture shows the last valid one, from before these edits."
			}
			return b
		case k.failure != "":
			return &Banner{Kind: "error", Lead: "Not simulated.", Text: k.failure, Undo: k.undo}
		case k.other != "":
			return &Banner{Kind: "error", Lead: k.other + " has errors.", Text: "The comparison shows its last valid configuration, if there was one. Show " + k.other + " to mend it."}
		case k.empty:
			return &Banner{Kind: "note", Lead: "The configuration is empty.", Text: "Pick a preset, or paste or drop a NeMo configuration.", Undo: k.undo, Stays: true}
		case k.halted:
			return &Banner{Kind: "note", Stays: true, Lead: "Cancelled.", Text: "The earlier result stays.", Again: true}
		case k.bad != "":
			return &Banner{Kind: "error", Lead: "The link could not be read.", Text: k.note, Bad: k.bad}
		case k.note != "":
			return &Banner{Kind: "note", Text: k.note}
		case k.remade != "":
			return &Banner{Kind: "note", Text: k.remade}
		}
		return &Banner{}
	})
}

// remade says that a link was made with another model, and what that changes.
func remade(s *state.State) string {
	x, link := s.Current(), &s.Shared
	r := x.Result
	if link.Model == "" || r == nil || r.ModelVersion == link.Model || x.Of != link.Texts[s.Shown] {
		return ""
	}
	text := "This link was made with model " + link.Model + "; model " + r.ModelVersion + " gives " + Milliseconds(int64(r.Figures.StepTime))
	if made := link.Made[s.Shown]; made > 0 && made != r.Figures.StepTime {
		return text + " instead of " + Milliseconds(int64(made)) + "."
	}
	return text + " as well."
}

// busy is the card over the timeline, if any.
func busy(s *state.State) Busy {
	for i := range s.Slots {
		x := &s.Slots[i]
		if !s.Compare && i != s.Shown {
			continue
		}
		if x.Stopped {
			return Busy{Title: "The simulator stopped. Your configuration is safe.", Text: x.Failure, Restart: true, Report: x.Report}
		}
		if x.Request != 0 && x.Slow {
			b := Busy{Title: "Simulating", Cancel: true}
			if s.Compare {
				b.Title += " " + string(rune('A'+i))
			}
			if x.Done > 0 {
				b.Share = "width:" + fixed(x.Done*100, 0) + "%"
				b.Percent = fixed(x.Done*100, 0) + thin + "%"
			}
			return b
		}
	}
	return Busy{}
}
