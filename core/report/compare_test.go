package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// The two changes taken apart, on GPT-3 5B: what happens to the amaxes and to the first all-gather
// after the update. Which kernels hide it follows from the control flow, not from prices.
func TestTheSeedChange(t *testing.T) {
	after := preset5B()
	a := after.report(t)
	require.Equal(t, 1, a.Figures.AmaxReductions)
	for _, c := range []struct {
		name             string
		newNeMo, newApex bool
		reductions       int
		amax, gather     string
	}{
		{"before", false, false, 1, "once, before the first all-gather", "beside zero gradients"},
		{"before on new Apex", false, true, 2, "twice, the first before the first all-gather", "beside Adam"},
		{"after on old Apex", true, false, 1, "once, before the first all-gather", "beside zero gradients"},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := after
			other.newNeMo, other.newApex = c.newNeMo, c.newApex
			b := other.report(t)
			require.Equal(t, c.reductions, b.Figures.AmaxReductions)
			moved := report.Compare(a, b).Moved
			require.GreaterOrEqual(t, len(moved), 2)
			require.Equal(t, "FP8 amax all-reduce", moved[0].What)
			require.Equal(t, "once, after the first all-gather was started", moved[0].A)
			require.Equal(t, c.amax, moved[0].B)
			require.Equal(t, "First all-gather after the update", moved[1].What)
			require.True(t, strings.HasPrefix(moved[1].A, "buckets 23–26: hidden"), moved[1].A)
			require.True(t, strings.HasSuffix(moved[1].A, " beside Adam"), moved[1].A)
			require.True(t, strings.HasSuffix(moved[1].B, " "+c.gather), moved[1].B)
			if !c.newNeMo {
				move := find(moved, "All-gather of the embeddings")
				require.NotNil(t, move, "the embeddings are gathered on demand")
				require.Contains(t, move.B, "exposed")
				require.Positive(t, move.Cost)
			}
		})
	}
}

// On the old Apex every gathered parameter is copied once more: that and nothing else of the optimizer's kernels
// costs time, and it is said.
func TestKernelsAreCompared(t *testing.T) {
	a, b := preset5B(), preset5B()
	b.newApex = false
	ra, rb := a.report(t), b.report(t)
	moved := report.Compare(ra, rb).Moved
	move := find(moved, "Parameter copy")
	require.NotNil(t, move)
	require.Regexp(t, `^[0-9.]+`+units.Gap+`ms in \d+ kernels$`, move.A)
	sum := func(r *report.Result) (sum sched.Time) {
		for i, k := range r.Spans.Kind {
			if step.Kind(k) == step.ParamCopy && r.Spans.Lane[i] == report.LaneCompute {
				sum += sched.Time(r.Spans.End[i] - r.Spans.Start[i])
			}
		}
		return sum
	}
	require.Equal(t, sum(rb)-sum(ra), move.Cost)
	require.Positive(t, move.Cost)
	for i := range moved[2:] {
		if i > 0 {
			require.GreaterOrEqual(t, max(moved[i+1].Cost, -moved[i+1].Cost), max(moved[i+2].Cost, -moved[i+2].Cost), "dearest first")
		}
	}
}

func find(moves []report.Move, what string) *report.Move {
	for i := range moves {
		if moves[i].What == what {
			return &moves[i]
		}
	}
	return nil
}

func TestCompareFigures(t *testing.T) {
	a, b := new(report.Result), new(report.Result)
	a.Figures = report.Figures{
		StepTime: 100, Exposed: 20, ExposedBy: []report.ExposedBy{{Kind: "grad sync", Time: 15}, {Kind: "amax", Time: 5}},
		MFU: 0.5, Buckets: 3, AmaxReductions: 1,
	}
	b.Figures = report.Figures{
		StepTime: 90, Exposed: 25, ExposedBy: []report.ExposedBy{{Kind: "grad sync", Time: 25}},
		MFU: 0.5, Buckets: 4, AmaxReductions: 2, Bubble: 7, ExposedInBubble: 3,
	}
	better := map[string]int{}
	parts := map[string]bool{}
	for _, r := range report.Compare(a, b).Rows {
		better[r.Name], parts[r.Name] = r.Better, r.Part
	}
	require.Equal(t, map[string]int{
		"Step time": 1, "Tokens/s/GPU": 0, "MFU": 0, "Exposed communication": -1, "grad sync": -1, "amax": 1,
		"Bubble": -1, "exposed in it": 0, "Overlap efficiency": 0, "Amax reductions": -1, "Buckets": 0, "Bucket utilisation": 0,
		"Padding moved per step": 0,
	}, better)
	require.True(t, parts["amax"] && parts["exposed in it"] && !parts["Bubble"])
}

func TestCompareWithItself(t *testing.T) {
	r := preset5B().report(t)
	c := report.Compare(r, r)
	require.Empty(t, c.Buckets)
	require.Empty(t, c.Moved)
	for _, row := range c.Rows {
		require.Zero(t, row.Better)
		require.Equal(t, row.A, row.B)
	}
}

func TestCompareBuckets(t *testing.T) {
	small := preset5B()
	small.cap = 300
	a, b := preset5B().report(t), small.report(t)
	c := report.Compare(a, b)
	require.Len(t, c.Buckets, max(a.Figures.Buckets, b.Figures.Buckets), "all sizes differ")
	last := c.Buckets[len(c.Buckets)-1]
	require.Zero(t, last.A.Size, "a bucket that A has not")
	require.Positive(t, last.B.Size)
}

// Layers that share their fate share a row.
func TestMovesJoinLayers(t *testing.T) {
	a, b := preset5B(), preset5B()
	b.noGradOverlap = true
	moved := report.Compare(a.report(t), b.report(t)).Moved
	var rows []string
	for _, m := range moved {
		if strings.HasPrefix(m.What, "Reduce-scatter") {
			rows = append(rows, m.What)
			require.True(t, strings.HasPrefix(m.B, "buckets 0–26: "), m.B)
			require.NotContains(t, strings.ReplaceAll(m.B, units.Gap, " "), "hidden")
		}
	}
	require.Contains(t, rows, "Reduce-scatter of layer 0")
	require.LessOrEqual(t, len(rows), 27)
}
