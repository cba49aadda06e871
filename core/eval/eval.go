// Package eval is the one door: a scenario in, everything known about it out. It wires the four
// passes record, price, simulate, report, and knows nothing that another package could.
//
// The same scenario gives the same Result on every machine. Everything that can be said of a
// scenario without simulating it (errors, derived sizes) comes from package scenario.
package eval

import (
	"fmt"

	"distopt/core/apex"
	"distopt/core/cost"
	"distopt/core/ddp"
	"distopt/core/finding"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/sched"
	"distopt/core/step"
)

// ModelVersion names what a prediction was made with. It changes whenever a step time of a
// preset does (a golden test holds it to that), and links carry it.
const ModelVersion = "1.0"

// Simulator evaluates scenarios one after the other in memory that it keeps. It is for one
// goroutine at a time. The zero value is ready.
type Simulator struct {
	// Progress, if set, is told how much is done, 0 to 1; Evaluate ends with sched.ErrStopped
	// once it returns false.
	Progress func(done float64) bool

	engine sched.Engine
	rec    step.Recording
	spans  []sched.Span
	meets  []sched.Time
	report report.Memory
}

// Evaluate simulates s. The error is a scenario.Errors when s is impossible or too large.
func Evaluate(s *scenario.Scenario) (*report.Result, error) { return new(Simulator).Evaluate(s) }

// TakeBack makes the spans of r memory for the next evaluation, which overwrites them.
func (x *Simulator) TakeBack(r *report.Result) { x.report.TakeBack(r) }

// Evaluate simulates s. The Result holds no memory of the Simulator's.
func (x *Simulator) Evaluate(s *scenario.Scenario) (*report.Result, error) {
	errs, notes := s.Validate()
	if err := errs.Err(); err != nil {
		return nil, err
	}
	g, err := grid(s)
	if err != nil {
		return nil, err
	}
	c, e := architecture(s), execution(s)
	stages := make([]step.StageInput, s.Parallel.PP)
	layouts := make([]laidOut, s.Parallel.PP)
	for p := range stages {
		if layouts[p], err = layOut(c, s, g, p); err != nil {
			return nil, err
		}
		stages[p] = step.StageInput{Model: layouts[p].stage, New: layouts[p].construct}
	}
	if err := step.RecordInto(&x.rec, stages, schedule(s)); err != nil {
		return nil, err
	}
	gpu, network := machine(s)
	m := cost.NewMachine(gpu, network, computed(c, s), e, g)
	priced := cost.Price(&x.rec, m)
	if err := x.place(); err != nil {
		return nil, err
	}
	in := report.Input{
		Name: s.Name, ModelVersion: ModelVersion,
		Recording: &x.rec, Priced: priced, Spans: x.spans, Meets: x.meets,
		Grid: report.Grid{
			World: s.World(), TP: s.Parallel.TP, CP: s.Parallel.CP, PP: s.Parallel.PP, VP: s.Chunks(),
			DP: s.DP(), Distributed: s.Distributed(), Redundant: s.Redundant(), Micro: s.Microbatches(),
		},
		Parameters: s.Parameters(), Tokens: int64(s.Batch.Global) * int64(s.Model.SeqLength),
		Peak: gpu.Peak(s.Precision.FP8), PeakName: peakName(s, gpu.Name, gpu.FP8 > 0),
		OverlapGradSync: s.Optim.OverlapGradSync, OverlapParamSync: s.Optim.OverlapParamSync,
		Memory: &x.report,
	}
	in.ModelFLOPs, _ = c.ModelFLOPs(int64(s.Batch.Global))
	for k := range in.GroupSizes {
		in.GroupSizes[k] = m.Groups[k].Ranks
	}
	for _, n := range notes {
		in.Notes = append(in.Notes, report.Note{Path: n.Path, Text: n.Text})
	}
	for i := range layouts {
		in.Stages = append(in.Stages, layouts[i].holds())
	}
	out, err := report.Make(&in)
	if err == nil {
		out.Findings = finding.Of(s, out)
	}
	return out, err
}

// place runs the engine over the recording.
func (x *Simulator) place() error {
	p := &x.rec.Program
	x.spans = grow(x.spans, len(p.Tasks))
	x.meets = grow(x.meets, len(p.Messages))
	x.engine.Progress = nil
	if x.Progress != nil {
		x.engine.Progress = func(done, total int) bool { return x.Progress(float64(done) / float64(total)) }
	}
	return x.engine.Run(p, x.spans, x.meets)
}

// grow returns a slice of n elements whose old values do not matter.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// construct makes a stage's optimizer over a runtime.
type construct = func(optim.Runtime, optim.Observer) (optim.Sharded, error)

// laidOut is a stage with its buckets: one of the layouts.
type laidOut struct {
	stage     *model.Stage
	construct construct
	holds     func() report.StageInput // for the report, after the step

	apex  *apex.Layout
	mcore *mcore.Layout
	ddp   *ddp.Layout
}

// layOut builds one pipeline stage and its layout.
func layOut(c model.Config, s *scenario.Scenario, g parallel.Grid, p int) (laidOut, error) {
	st, err := model.BuildStage(c, split(s, p))
	if err != nil {
		return laidOut{}, err
	}
	switch s.Family() {
	case scenario.FamilyMCore:
		return mcoreStage(s, g, st)
	case scenario.FamilyDDP:
		return ddpStage(s, g, st)
	}
	return apexStage(s, g, st)
}

// Layout is the layout of one stage: that of the framework that the scenario names.
type Layout struct {
	Stage *model.Stage
	Apex  *apex.Layout // NeMo, or Apex by itself
	MCore *mcore.Layout
	DDP   *ddp.Layout
}

// LayOut returns the buckets of one stage: for plain Apex without init_params, those that the
// first backward pass makes.
func LayOut(s *scenario.Scenario, index int) (*Layout, error) {
	errs, _ := s.Validate()
	if err := errs.Err(); err != nil {
		return nil, err
	}
	if index < 0 || index >= s.Parallel.PP {
		return nil, fmt.Errorf("stage: got %d, want 0 to %d", index, s.Parallel.PP-1)
	}
	g, err := grid(s)
	if err != nil {
		return nil, err
	}
	l, err := layOut(architecture(s), s, g, index)
	if err != nil {
		return nil, err
	}
	if l.apex != nil && !l.apex.AllPlaced() {
		in := step.StageInput{Model: l.stage, New: l.construct}
		err = step.RunStage(in, schedule(s), step.Replay{Rank: g.Representative(index), World: s.World(), Steps: 1})
	}
	return &Layout{l.stage, l.apex, l.mcore, l.ddp}, err
}

// peakName names the rate that MFU divides by.
func peakName(s *scenario.Scenario, gpu string, hasFP8 bool) string {
	if s.Precision.FP8 && hasFP8 {
		return "FP8 dense, " + gpu
	}
	return "16-bit dense, " + gpu
}
