package report

import (
	"errors"
	"fmt"
	"slices"

	"distopt/core/bucket"
	"distopt/core/cost"
	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// Input is what a simulation leaves behind, and what it was about.
type Input struct {
	Name, ModelVersion string

	Recording *step.Recording
	Priced    []cost.Priced // of every work
	Spans     []sched.Span  // of every task
	Meets     []sched.Time  // when each message started

	Grid       Grid
	Stages     []StageInput
	GroupSizes [step.NumGroups]int
	Parameters int64                // of the whole model
	Tokens     int64                // of one step of the whole job
	ModelFLOPs units.FLOPs          // likewise
	Peak       units.FLOPsPerSecond // of one GPU, the one that MFU divides by
	PeakName   string
	Notes      []Note

	// Whether gradients and parameters are synchronized beside compute: only for the causes.
	OverlapGradSync, OverlapParamSync bool

	Memory *Memory // kept between reports; nil: none is
}

// StageInput is what one stage holds.
type StageInput struct {
	Model        *model.Stage
	Params       []model.Param   // as the layout set their flags; nil: the model's
	Buckets      []bucket.Bucket // as the recording left them: lazy placement adds some
	Sets         []int           // per bucket: those that complete together share a number; nil: none do
	GradBuffers  []Buffer
	ParamBuffers []Buffer
	Bucketing    []Rule // of each chunk: how its buckets came to be, where a rule decides
	Notes        []Note
}

// maker is the state of one Make.
type maker struct {
	*Memory
	in     *Input
	tasks  []sched.Task
	labels []step.Label
	spans  []sched.Span
	works  []workTime

	// The drawn step: from stage 0's first forward of the last recorded step but one to its next.
	index    int8 // which step that is
	from, to sched.Time

	joints joints
	out    *Result
}

// workTime is what the sweeps need of a work.
type workTime struct {
	exposed int64 // exposed tensor-parallel communication inside it, in 1/65536 of its length
}

// Make reports on a simulation.
func Make(in *Input) (*Result, error) {
	m := &maker{
		Memory: in.Memory, in: in, tasks: in.Recording.Program.Tasks, labels: in.Recording.Labels, spans: in.Spans,
		out: &Result{ModelVersion: in.ModelVersion, Name: in.Name, Grid: in.Grid, Notes: slices.Clone(in.Notes)},
	}
	for i := range in.Stages {
		m.out.Notes = append(m.out.Notes, in.Stages[i].Notes...)
	}
	if m.Memory == nil {
		m.Memory = &Memory{}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.reportWorks()
	for i := range m.stages {
		if !m.findPoints(&m.stages[i]) {
			return nil, errOrder
		}
	}
	for i := range m.stages {
		m.sweep(&m.stages[i])
	}
	for i := range m.stages {
		m.classify(&m.stages[i])
	}
	m.listCollectives()
	m.draw()
	m.explain()
	m.reportStages()
	m.reportFigures()
	return m.out, nil
}

var errOrder = errors.New("report: tasks of different stages are mixed, want tasks listed stage by stage")

// check finds the stages among the tasks and the step to draw.
func (m *maker) check() error {
	in := m.in
	n := len(m.tasks)
	starts := in.Recording.StepStart
	if len(m.labels) != n || len(m.spans) != n || len(in.Priced) != len(in.Recording.Works) ||
		len(in.Meets) != len(in.Recording.Program.Messages) || len(in.Stages) != len(starts) || len(starts) == 0 {
		return fmt.Errorf("report: %d tasks, %d labels, %d spans; %d works, %d prices; %d messages, %d starts of messages; %d stages, %d with steps: want equal numbers, and a stage",
			n, len(m.labels), len(m.spans), len(in.Recording.Works), len(in.Priced),
			len(in.Recording.Program.Messages), len(in.Meets), len(in.Stages), len(starts))
	}
	first := starts[0]
	if len(first) < 2 {
		return fmt.Errorf("report: %d steps begin on stage 0, want at least 2: a step lasts from one first forward to the next", len(first))
	}
	m.index = int8(len(first) - 2)
	m.from, m.to = m.spans[first[m.index]].Start, m.spans[first[m.index+1]].Start
	if m.to <= m.from {
		return fmt.Errorf("report: step %d begins at %d ns and the next at %d ns, want later", m.index, m.from, m.to)
	}
	m.begin(len(starts), n)
	at := 0
	for s := range m.stages {
		first := at
		at, _ = slices.BinarySearchFunc(m.labels, s+1, func(l step.Label, s int) int { return int(l.Stage) - s })
		if at < first {
			return errOrder
		}
		m.stages[s].first, m.stages[s].last = sched.TaskID(first), sched.TaskID(at)
	}
	if at != n {
		return errOrder
	}
	return nil
}

// clip returns the part of a length that lies inside the drawn step.
func (m *maker) clip(start, end sched.Time) sched.Time {
	return max(0, min(end, m.to)-max(start, m.from))
}
