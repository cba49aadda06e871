package derive

import (
	"strings"

	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/step"
	"distopt/web/state"
)

type versionsKey struct {
	rows    int
	of      string
	request int
	failure string
	stale   bool
}

// FourVersions is the table that takes the two changes apart.
type FourVersions struct {
	Rows    []VersionRow
	Others  []VersionRow // other frameworks
	Busy    bool
	Stale   bool
	Failure string
	Summary string
}

// VersionRow is one framework version.
type VersionRow struct {
	Version, Name, What string
	Step, Exposed, Amax string
	Change              string
	Better              int
	Overlap             string // of the first all-gather with the optimizer step
	Overlaps            bool
	Error               string
	Parts               [3]string // of another framework: exposed ms, buckets, their utilisation
}

func versionName(v string) (name, what string) {
	switch v {
	case scenario.Before:
		return "BEFORE", "NeMo before PR 8221 on Apex before PR 1771"
	case scenario.BeforeNewApex:
		return "BEFORE*", "the old NeMo on the new Apex"
	case scenario.AfterOldApex:
		return "AFTER on old Apex", "the new NeMo on the old Apex"
	case scenario.After:
		return "AFTER", "NeMo PR 8221 on Apex PR 1771"
	case scenario.MCoreAdam:
		return "Megatron-Core", "its distributed optimizer, with the settings of the document or NeMo's defaults"
	case scenario.TorchDDP:
		return "PyTorch DDP", "gradients are all-reduced, every rank holds the whole state"
	}
	return v, ""
}

func fourVersions(v *state.Versions, stale bool) *FourVersions {
	f := &FourVersions{Busy: v.Request != 0, Stale: stale, Failure: v.Failure}
	var before *report.Result
	for i := range v.Rows {
		if v.Rows[i].Version == scenario.Before {
			before = v.Rows[i].Result
		}
	}
	var after *report.Result
	for i := range v.Rows {
		x := &v.Rows[i]
		row := VersionRow{Version: x.Version, Error: x.Err}
		row.Name, row.What = versionName(x.Version)
		if r := x.Result; r != nil {
			row.Step = fixed(float64(r.Figures.StepTime)/1e6, 2)
			row.Exposed = fixed(float64(exposedBy(&r.Figures, "param sync"))/1e6, 2)
			row.Amax = itoa(r.Figures.AmaxReductions)
			row.Overlaps, row.Overlap = firstGather(r)
			if before != nil && r != before {
				row.Change, row.Better = change(float64(before.Figures.StepTime), float64(r.Figures.StepTime), false, -1)
			}
			if x.Version == scenario.After {
				after = r
			}
		}
		if x.Version == scenario.MCoreAdam || x.Version == scenario.TorchDDP {
			row.Parts = parts(x.Result)
			f.Others = append(f.Others, row)
			continue
		}
		if x.Version == scenario.After {
			same := row
			same.Name, same.What, same.Parts = "NeMo on Apex", "framework.version after", parts(x.Result)
			f.Others = append(f.Others, same)
		}
		f.Rows = append(f.Rows, row)
	}
	if before != nil && after != nil {
		f.Summary = gain(before, after)
	}
	return f
}

// parts are the figures in which frameworks differ.
func parts(r *report.Result) (p [3]string) {
	if r != nil {
		p = [3]string{fixed(float64(r.Figures.Exposed)/1e6, 2), Count(int64(r.Figures.Buckets)), Percent(r.Figures.Utilisation)}
	}
	return p
}

// gain says what the change is worth here, and does not dress up a small one.
func gain(before, after *report.Result) string {
	d := int64(before.Figures.StepTime - after.Figures.StepTime)
	share := ratio(float64(d), float64(before.Figures.StepTime))
	switch {
	case share < -0.0005:
		return "On this configuration AFTER is " + Milliseconds(-d) + " slower than BEFORE (" + Percent(-share) + ")."
	case share < 0.001:
		return "On this configuration the two changes make no difference that counts: " + Milliseconds(max(d, -d)) + " per step, less than 0.1" + thin + "%."
	case share < 0.01:
		return "On this configuration AFTER saves " + Milliseconds(d) + " per step, a small gain (" + Percent(share) + ")."
	}
	return "On this configuration AFTER saves " + Milliseconds(d) + " per step (" + Percent(share) + ")."
}

// firstGather says what the first all-gather after the gradients runs beside: the optimizer
// step proper (Adam), or only what comes after it.
func firstGather(r *report.Result) (overlaps bool, text string) {
	s := &r.Spans
	stage := r.Figures.WorstStage
	var ready int64 // the last backward pass has ended
	from, to := laneRange(s, stage, report.LanePhase)
	for i := from; i < to; i++ {
		if kindOf(s, i) == step.Backward {
			ready = max(ready, s.End[i])
		}
	}
	var c *report.Collective
	for i := range r.Collectives {
		x := &r.Collectives[i]
		if x.Stage == stage && len(x.Buckets) > 0 && kindOf(s, x.Span) == step.AllGather && int64(x.Start) >= ready && (c == nil || x.Start < c.Start) {
			c = x
		}
	}
	if c == nil {
		return false, "no all-gather before the next forward"
	}
	start, end := int64(c.Start), int64(c.Start+c.Length)
	var beside, most int64
	other := int32(-1)
	from, to = laneRange(s, stage, report.LaneOptimizer)
	for i := from; i < to; i++ {
		o := min(s.End[i], end) - max(s.Start[i], start)
		if o <= 0 {
			continue
		}
		if kindOf(s, i) == step.Adam {
			beside += o
		} else if o > most {
			most, other = o, i
		}
	}
	name := upper(IDs(c.Buckets))
	switch {
	case beside > 0:
		return true, name + ": yes, " + Milliseconds(beside) + " of " + Milliseconds(int64(c.Length))
	case other >= 0:
		return false, name + ": no; it runs beside " + strings.ToLower(Name(r, other))
	}
	return false, name + ": no"
}
