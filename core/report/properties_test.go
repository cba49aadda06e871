package report_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/core/sched"
	"distopt/core/step"
)

// someRuns draws small runs of every shape of pipeline.
func someRuns(n int) []run {
	r := rand.New(rand.NewPCG(5, 6))
	runs := make([]run, n)
	for i := range runs {
		o := run{layers: 12, hidden: 512, heads: 8, tp: 1 << r.IntN(3), pp: 1 + r.IntN(4), vp: 1, dp: 1 + r.IntN(4), cap: []float64{1, 8, 50}[r.IntN(3)],
			micros: 1 + r.IntN(6), fp8: r.IntN(2) == 0, newNeMo: r.IntN(2) == 0, newApex: r.IntN(2) == 0,
			noGradOverlap: r.IntN(4) == 0, noParamOverlap: r.IntN(4) == 0}
		if o.pp > 2 && r.IntN(2) == 0 {
			o.vp = 12 / o.pp / (1 + r.IntN(2))
			o.micros = o.pp * (1 + r.IntN(2))
			o.overlapP2P = o.vp > 1 && r.IntN(2) == 0
		}
		if 12%(o.pp*o.vp) != 0 {
			o.vp = 1
		}
		o.overlapP2P = o.overlapP2P && o.vp > 1
		runs[i] = o
	}
	return runs
}

func TestReportProperties(t *testing.T) {
	for _, o := range someRuns(60) {
		in := o.simulate(t)
		r, err := report.Make(in)
		require.NoError(t, err, "%+v", o)
		requireSums(t, r, o)
		requireSpans(t, r)
		for s := range r.Stages {
			requireCoverage(t, in, r, s)
		}
		again, err := report.Make(in)
		require.NoError(t, err)
		a, _ := json.Marshal(r)
		b, _ := json.Marshal(again)
		require.Equal(t, string(a), string(b))
		require.Equal(t, r.Spans.Encode(), again.Spans.Encode())
	}
}

// requireSums checks that parts add up to their totals, to the nanosecond.
func requireSums(t *testing.T, r *report.Result, o run) {
	rows := make([]map[string]sched.Time, len(r.Stages))
	for i := range rows {
		rows[i] = map[string]sched.Time{}
	}
	families := map[string]string{
		"Reduce-scatter": "grad sync", "All-reduce of shards": "grad sync", "All-gather": "param sync", "All-reduce of FP8 amaxes": "amax",
		"All-reduce of the gradient norm": "norm", "All-reduce of tied embeddings": "embedding",
	}
	for i := range r.Collectives {
		c := &r.Collectives[i]
		rows[c.Stage][families[c.Kind]] += c.Exposed
		require.Equal(t, c.Exposed > 0 || c.InBubble > 0, c.Cause != "", "%+v", c)
		require.LessOrEqual(t, c.Exposed+c.InBubble+c.Hidden, c.Length)
		require.Equal(t, i, int(r.Spans.Group[c.Span]))
	}
	for s := range r.Stages {
		st := &r.Stages[s]
		var shares, exposed sched.Time
		for _, x := range st.Shares {
			require.Positive(t, x.Time, "%+v %+v", o, st.Shares)
			shares += x.Time
		}
		require.Equal(t, r.Figures.StepTime, shares)
		for _, x := range st.ExposedBy {
			exposed += x.Time
			if x.Kind != "tensor parallel" && x.Kind != "pipeline" {
				require.Equal(t, x.Time, rows[s][x.Kind], "rows of a kind add up: %s", x.Kind)
			}
		}
		require.Equal(t, st.Exposed, exposed)
		require.LessOrEqual(t, st.ExposedInBubble, st.Bubble)
		require.LessOrEqual(t, st.Hidden, st.SyncTotal)
		if len(r.Stages) == 1 {
			require.Zero(t, st.Bubble)
		}
	}
	require.InDelta(t, float64(o.dp*o.micros*2048)/(float64(r.Figures.StepTime)*1e-9), r.Figures.TokensPerSecond, 1e-3)
}

// requireSpans checks the drawn step.
func requireSpans(t *testing.T, r *report.Result) {
	s, err := report.DecodeSpans(r.Spans.Encode())
	require.NoError(t, err, "order and indices")
	for i := range s.Start {
		require.Less(t, s.Start[i], int64(r.Figures.StepTime))
		require.Positive(t, s.End[i])
		require.Less(t, int(s.Work[i]), len(r.Works))
		require.Less(t, int(s.Group[i]), len(r.Collectives))
		by := s.By[i]
		made := s.Lane[i] == report.LaneExposed || s.Lane[i] == report.LaneHidden
		switch {
		case by < 0:
		case made:
			require.Equal(t, s.Stage[by], s.Stage[i])
			require.GreaterOrEqual(t, s.Start[i], s.Start[by], "a part of the communication")
			require.LessOrEqual(t, s.End[i], s.End[by])
			require.Equal(t, s.Group[by], s.Group[i])
		case s.Cause[i] == uint8(sched.ByPeer):
			require.Contains(t, []uint8{uint8(step.Exchange), uint8(step.LossSend)}, s.Kind[by])
			require.Less(t, s.Start[i], s.Start[by])
		case s.Lane[i] != report.LaneHost:
			require.LessOrEqual(t, s.End[by], s.Start[i], "released by what ended before")
		}
	}
}

type interval struct{ start, end sched.Time }

// union returns how much of [from, to) the intervals cover.
func union(list []interval, from, to sched.Time) (total sched.Time) {
	slices.SortFunc(list, func(a, b interval) int { return int(a.start - b.start) })
	at := from
	for _, i := range list {
		start, end := max(i.start, at), min(i.end, to)
		if end > start {
			total += end - start
			at = end
		}
	}
	return total
}

// requireCoverage compares exposed time with its definition: covered by communication and by no
// compute.
func requireCoverage(t *testing.T, in *report.Input, r *report.Result, stage int) {
	starts := in.Recording.StepStart[0]
	from, to := in.Spans[starts[1]].Start, in.Spans[starts[2]].Start
	var compute, both []interval
	p := &in.Recording.Program
	for i, l := range in.Recording.Labels {
		if int(l.Stage) != stage {
			continue
		}
		s := interval{in.Spans[i].Start, in.Spans[i].End}
		switch l.Kind {
		case step.HostSync:
		case step.Forward, step.Backward, step.ZeroGrad, step.GradCopy, step.GradNorm, step.Adam, step.Cast, step.ParamCopy:
			compute = append(compute, s)
			both = append(both, s)
		default:
			for _, m := range p.Parts[p.Tasks[i].Messages[0]:p.Tasks[i].Messages[1]] {
				s.start = max(s.start, in.Meets[m]) // an exchange that waits does not communicate
			}
			both = append(both, s)
		}
	}
	st := &r.Stages[stage]
	exposed := st.ExposedInBubble
	for _, x := range st.ExposedBy {
		if x.Kind != "tensor parallel" {
			exposed += x.Time
		}
	}
	// Communication inside a pass is part of compute here; all-reduces after it are not.
	for i := range r.Collectives {
		if c := &r.Collectives[i]; c.Stage == stage && c.Kind == "All-reduce of sequence-parallel gradients" {
			exposed += c.Exposed
		}
	}
	require.Equal(t, union(both, from, to)-union(compute, from, to), exposed, "stage %d", stage)
}
