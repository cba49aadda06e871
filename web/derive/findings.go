package derive

import (
	"distopt/core/report"
	"distopt/core/scenario"
)

// Findings is what the rules found in the result shown.
type Findings struct {
	Rows  []FindingRow
	Empty string // why there are none
}

// FindingRow is one finding.
type FindingRow struct {
	Rule        string
	Cost        string // "4.2 ms", "1.2 GiB", or nothing
	Exposed     bool   // Cost is exposed time
	Text        string
	Key         string // that decides
	Change      string // "Set model.optim.align_grad_reduce to false"; nothing: no key mends it
	Description string // of the button
}

func findings(r *report.Result, family scenario.Family) *Findings {
	f := &Findings{}
	for i := range r.Findings {
		x := &r.Findings[i]
		row := FindingRow{Rule: x.Rule, Text: x.Text, Key: x.Path}
		switch {
		case x.Cost > 0:
			row.Cost, row.Exposed = Milliseconds(int64(x.Cost)), true
		case x.Bytes > 0:
			row.Cost = Size(x.Bytes)
		}
		for k, c := range x.Changes {
			if k > 0 {
				row.Change += ", "
			}
			row.Change += "Set " + c.Path + " to " + c.Value
		}
		f.Rows = append(f.Rows, row)
	}
	if len(f.Rows) == 0 {
		f.Empty = "Nothing found: no rule of " + family.String() + " fires on this step."
		if family != scenario.FamilyMCore {
			f.Empty = "There are no rules for " + family.String() + " yet. Exposed collectives and their reasons stand in Collectives."
		}
	}
	return f
}
