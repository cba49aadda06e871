package main

import (
	"fmt"

	"distopt/core/eval"
	"distopt/core/memory"
	"distopt/core/report"
	"distopt/core/share"
	"distopt/core/units"
)

func runVersion(e *env) error {
	_, err := fmt.Fprintf(e.stdout, "distopt, prediction model %s, link format %d\n", eval.ModelVersion, share.Version)
	return err
}

// runEval predicts a step.
func runEval(e *env) error {
	d, err := e.read(e.args.operands[0])
	if err != nil {
		return err
	}
	r, err := e.scenario(d)
	if err != nil {
		return err
	}
	result, err := eval.Evaluate(&r.Scenario)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name(), err)
	}
	if e.args.set["json"] {
		return e.json(result)
	}
	e.figures(result)
	held, err := eval.Memory(&r.Scenario)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name(), err)
	}
	e.memory(held)
	e.row("Prediction model", "%s", result.ModelVersion)
	return nil
}

// memory writes the peak of the fullest stage and its largest parts.
func (e *env) memory(m *memory.Result) {
	verdict := "fits"
	if ok, left := m.Fits(); !ok {
		verdict = (-left).String() + " over"
	}
	peak := &m.Stages[m.Worst].Peak.Bytes
	e.row("Peak memory", "%v of %v, stage %d (%s)", peak.Total(), m.Capacity, m.Worst, verdict)
	for k, n := range peak {
		if n*100 >= peak.Total() {
			e.row("  "+memory.Kind(k).String(), "%v", n)
		}
	}
}

// row writes one figure.
func (e *env) row(name, format string, args ...any) {
	fmt.Fprintf(e.stdout, "%-24s %s\n", name, fmt.Sprintf(format, args...))
}

// figures writes the key figures, one a line.
func (e *env) figures(r *report.Result) {
	f, g := &r.Figures, &r.Grid
	row := e.row
	row("Configuration", "%s", r.Name)
	row("Parameters", "%s", units.Large(f.Parameters))
	row("Ranks", "%s = TP %d × CP %d × PP %d × DP %d", units.Count(int64(g.World)), g.TP, g.CP, g.PP, g.DP)
	chunks := ""
	if g.VP > 1 {
		chunks = fmt.Sprintf(", %d model chunks per stage", g.VP)
	}
	row("Microbatches", "%s%s", units.Count(int64(g.Micro)), chunks)
	row("Step time", "%s", units.Milliseconds(int64(f.StepTime)))
	row("Tokens/s/GPU", "%s", units.Fixed(f.TokensPerGPU, 0))
	row("MFU", "%s of %s (%s)", units.Percent(f.MFU), units.FLOPsPerSecond(f.PeakFLOPs), f.PeakName)
	row("Exposed communication", "%s (%s)", units.Milliseconds(int64(f.Exposed)), units.Percent(ratio(f.Exposed, f.StepTime)))
	for _, x := range f.ExposedBy {
		row("  "+x.Kind, "%s", units.Milliseconds(int64(x.Time)))
	}
	if g.PP > 1 {
		row("Exposed in bubbles", "%s (delays nothing)", units.Milliseconds(int64(f.ExposedInBubble)))
		row("Bubble", "%s, stage %d", units.Milliseconds(int64(f.Bubble)), f.WorstStage)
	}
	row("Overlap efficiency", "%s", units.Percent(f.Overlap))
	if f.SmallestBucket < f.BucketSize {
		row("Buckets", "%s of %s to %s elements", units.Count(int64(f.Buckets)), units.Count(f.SmallestBucket), units.Count(f.BucketSize))
	} else {
		row("Buckets", "%s × %s elements", units.Count(int64(f.Buckets)), units.Count(f.BucketSize))
	}
	row("Bucket utilisation", "%s, %s of padding moved per step", units.Percent(f.Utilisation), units.Bytes(f.WastedBytes))
	row("FP8 amax reductions", "%d per step", f.AmaxReductions)
}

func ratio[T ~int64](part, whole T) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
