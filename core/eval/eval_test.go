package eval

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"distopt/core/importer"
	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/sched"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file of a new ModelVersion")

func preset(t testing.TB, id string) *scenario.Scenario {
	for _, p := range scenario.Presets() {
		if p.ID == id {
			r := importer.Read(p.Text)
			require.True(t, r.OK(), "%v", r.Diagnostics)
			return &r.Scenario
		}
	}
	t.Fatalf("no preset %s", id)
	return nil
}

// Step times are promised per ModelVersion: links carry both. The golden file has the version in
// its name and is written once; whoever changes a step time makes a new version.
func TestStepTimesBelongToModelVersion(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "# step and exposed times in ns of the presets, prediction model %s\n", ModelVersion)
	var x Simulator
	for _, p := range scenario.Presets() {
		out, err := x.Evaluate(preset(t, p.ID))
		require.NoError(t, err, p.ID)
		f := &out.Figures
		fmt.Fprintf(&b, "%s step %d exposed %d in bubbles %d buckets %d tasks %d\n", p.ID, f.StepTime, f.Exposed, f.ExposedInBubble, f.Buckets, f.Tasks)
	}
	file := filepath.Join("testdata", "step-times-"+ModelVersion+".golden")
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) && *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "a prediction changed: raise ModelVersion and run with -update")
}

// The claim of NeMo PR 8221, from the simulation: it must hold in order, whatever the figures are.
func TestSeedChange(t *testing.T) {
	versions := map[string]*report.Result{}
	for _, v := range []string{scenario.Before, scenario.BeforeNewApex, scenario.AfterOldApex, scenario.After} {
		s := *preset(t, "gpt3-5b-fp8")
		s.Framework.Version = v
		out, err := Evaluate(&s)
		require.NoError(t, err)
		versions[v] = out
	}
	require.Equal(t, 1, versions[scenario.Before].Figures.AmaxReductions)
	require.Equal(t, 2, versions[scenario.BeforeNewApex].Figures.AmaxReductions)
	require.Equal(t, 1, versions[scenario.AfterOldApex].Figures.AmaxReductions)
	require.Equal(t, 1, versions[scenario.After].Figures.AmaxReductions)
	// Which gather the embedding waits for at the start of the forward pass, and whether Adam runs
	// beside the first gather of a step.
	for v, want := range map[string]bool{scenario.Before: false, scenario.BeforeNewApex: true, scenario.AfterOldApex: false, scenario.After: true} {
		require.Equal(t, want, gatherBesideAdam(versions[v]), "%s: an all-gather runs beside Adam", v)
	}
	require.Less(t, versions[scenario.After].Figures.StepTime, versions[scenario.Before].Figures.StepTime)
}

// gatherBesideAdam reports whether an all-gather of buckets overlaps an optimizer kernel.
func gatherBesideAdam(r *report.Result) bool {
	s := &r.Spans
	for _, c := range r.Collectives {
		if c.Kind != "All-gather" {
			continue
		}
		for i := range s.Start {
			if s.Lane[i] == report.LaneOptimizer && strings.HasPrefix(r.Works[s.Work[i]].Name, "Adam") &&
				s.Start[i] < int64(c.Start+c.Length) && int64(c.Start) < s.End[i] {
				return true
			}
		}
	}
	return false
}

func TestEvaluateRefusesInOneGo(t *testing.T) {
	s := *preset(t, "gpt3-5b-fp8")
	s.Parallel.TP, s.Batch.Global = 3, -1
	_, err := Evaluate(&s)
	var errs scenario.Errors
	require.ErrorAs(t, err, &errs)
	require.GreaterOrEqual(t, len(errs), 2)
}

func TestSimulatorKeepsNothingBetweenEvaluations(t *testing.T) {
	var x Simulator
	small := preset(t, "tiny-fp8")
	first, err := x.Evaluate(small)
	require.NoError(t, err)
	block := first.Spans.Encode()
	_, err = x.Evaluate(preset(t, "llama3-70b-fp8"))
	require.NoError(t, err)
	second, err := x.Evaluate(small)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, block, second.Spans.Encode())
}

func TestProgressStops(t *testing.T) {
	seen := 0.0
	x := Simulator{Progress: func(done float64) bool { seen = done; return done < 0.5 }}
	_, err := x.Evaluate(preset(t, "gpt3-1t-bf16"))
	require.ErrorIs(t, err, sched.ErrStopped)
	require.InDelta(t, 0.5, seen, 0.3)
	x.Progress = nil
	_, err = x.Evaluate(preset(t, "tiny-fp8"))
	require.NoError(t, err)
}

// Sums that a reader would check by hand.
func TestFiguresAddUp(t *testing.T) {
	var x Simulator
	for _, p := range scenario.Presets() {
		out, err := x.Evaluate(preset(t, p.ID))
		require.NoError(t, err, p.ID)
		f := &out.Figures
		var by sched.Time
		for _, e := range f.ExposedBy {
			by += e.Time
		}
		require.Equal(t, f.Exposed, by, p.ID)
		for i := range out.Stages {
			st := &out.Stages[i]
			var sum sched.Time
			for _, share := range st.Shares {
				sum += share.Time
			}
			require.Equal(t, f.StepTime, sum, "%s stage %d", p.ID, i)
			require.LessOrEqual(t, st.Exposed, f.StepTime, "%s stage %d", p.ID, i)
		}
		require.InDelta(t, 1, f.MFU, 1, p.ID)
		s := &out.Spans
		for i := range s.Start {
			require.Less(t, s.Start[i], s.End[i], "%s span %d", p.ID, i)
		}
	}
}

func TestLayoutOfLazyApex(t *testing.T) {
	l, err := LayOut(preset(t, "gpt2-124m-apex"), 0)
	require.NoError(t, err)
	require.True(t, l.Apex.AllPlaced())
	_, err = LayOut(preset(t, "gpt2-124m-apex"), 1)
	require.EqualError(t, err, "stage: got 1, want 0 to 0")
}

// BenchmarkEvaluate times a warm evaluation of every preset: record, price, simulate, report.
func BenchmarkEvaluate(b *testing.B) {
	for _, p := range scenario.Presets() {
		b.Run(p.ID, func(b *testing.B) {
			s := preset(b, p.ID)
			var x Simulator
			for b.Loop() {
				_, err := x.Evaluate(s)
				require.NoError(b, err)
			}
		})
	}
}
