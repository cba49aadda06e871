// Package finding names what a configuration pays for: rules that look at a scenario and at its
// simulated step. Each has its evidence in numbers of that step, a cost in time or bytes, and where one
// key mends it, the change.
//
// Sources: the gotchas of Megatron-Core's distributed optimizer at commit d98e8a64dd (docs/frameworks.md).
package finding

import (
	"cmp"
	"slices"

	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/sched"
)

// rule looks for one thing; it returns no text if it is not there.
type rule struct {
	name string
	of   scenario.Families
	find func(*look) report.Finding
}

// look is what rules look at.
type look struct {
	s *scenario.Scenario
	r *report.Result
}

// Of returns what the rules find, the dearest first: exposed time, then bytes, then what is only said.
func Of(s *scenario.Scenario, r *report.Result) []report.Finding {
	l := &look{s, r}
	var all []report.Finding
	for i := range rules {
		if !rules[i].of.Has(s.Family()) {
			continue
		}
		if f := rules[i].find(l); f.Text != "" {
			f.Rule = rules[i].name
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Bytes, a.Bytes))
	})
	return all
}

// Rules returns the names of all rules.
func Rules() []string {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].name
	}
	return names
}

// exposed adds up what collectives of a name expose on some stages, and their number.
func (l *look) exposed(name string, stage func(int) bool) (delays, inBubble sched.Time, n int) {
	for i := range l.r.Collectives {
		c := &l.r.Collectives[i]
		if c.Kind == name && stage(c.Stage) {
			delays += c.Exposed
			inBubble += c.InBubble
			n++
		}
	}
	return delays, inBubble, n
}

// worst is exposed on the stage where it delays most.
func (l *look) worst(name string) (delays sched.Time, stage int) {
	for p := range l.r.Stages {
		if d, _, _ := l.exposed(name, func(s int) bool { return s == p }); d > delays {
			delays, stage = d, p
		}
	}
	return delays, stage
}

// change sets one key.
func change(path, value string) []report.Change { return []report.Change{{Path: path, Value: value}} }
