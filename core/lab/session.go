package lab

import (
	"fmt"
	"strconv"

	"distopt/core/dtype"
	"distopt/core/scenario"
	"distopt/core/units"
)

// Session is a run in progress.
type Session struct {
	c       Config
	runs    []*run
	memory  units.Bytes
	tensors []Tensor
	step    int
	records []StepRecord
}

// New begins a run. It fails with scenario.Errors where the Config cannot be done.
func New(c Config) (*Session, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Variants = append([]Variant(nil), c.Variants...)
	s := &Session{c: c}
	for i := range s.c.Variants {
		r, err := newRun(&s.c, &s.c.Variants[i])
		if err != nil {
			return nil, fmt.Errorf("variants[%d]: %w", i, err)
		}
		s.runs = append(s.runs, r)
	}
	stage, err := s.c.architecture(dtype.BF16, true)
	if err != nil {
		return nil, err
	}
	s.memory = s.c.memory(stage)
	for p := range stage.Params {
		q := &stage.Params[p]
		s.tensors = append(s.tensors, Tensor{Name: q.Name, Shape: q.Shape, Numel: int(q.Numel), GEMM: q.FP8})
	}
	return s, nil
}

// Config returns what is run.
func (s *Session) Config() Config { return s.c }

// Taken returns how many steps were taken.
func (s *Session) Taken() int { return s.step }

// Done reports whether there is nothing left to do: all steps are taken, or every variant has stopped.
func (s *Session) Done() bool {
	if s.step >= s.c.Steps {
		return true
	}
	for _, r := range s.runs {
		if r.stopped == 0 {
			return false
		}
	}
	return true
}

// Step takes one step of every variant. It does nothing when the run is done.
func (s *Session) Step() error {
	if s.Done() {
		return nil
	}
	record := StepRecord{Step: s.step + 1}
	for _, r := range s.runs {
		if err := r.advance(); err != nil {
			return err
		}
		record.Variants = append(record.Variants, r.last)
	}
	s.step++
	s.records = append(s.records, record)
	return nil
}

// Answer takes a run to where a request wants it. s is any session or nil: it is taken on where it is
// on the way, else the run is done again, with the same result. The session that answered is
// returned, for the next request. progress is told how much is done, from 0 to 1; it may be nil.
func Answer(s *Session, r Request, progress func(done float64)) (*Session, *Frame, error) {
	if r.From < 0 || r.From > MaxSteps {
		return s, nil, &scenario.FieldError{Path: "from", Got: strconv.Itoa(r.From), Want: fmt.Sprintf("0 to %d", MaxSteps), Fix: "set it to the steps that are known"}
	}
	if r.Steps < 0 || r.Steps > MaxSlice {
		return s, nil, &scenario.FieldError{Path: "steps", Got: strconv.Itoa(r.Steps), Want: fmt.Sprintf("0 to %d in one request", MaxSlice), Fix: "ask several times"}
	}
	target := r.From + r.Steps
	if s == nil || s.step > target || !s.c.equal(&r.Config) {
		fresh, err := New(r.Config)
		if err != nil {
			return s, nil, err
		}
		s = fresh
	}
	for begin := s.step; s.step < target && !s.Done(); {
		if err := s.Step(); err != nil {
			return s, nil, err
		}
		if progress != nil {
			progress(float64(s.step-begin) / float64(target-begin))
		}
	}
	f, err := s.Frame(r.From, r.Watch, r.Element)
	return s, f, err
}

// equal reports whether two configs are the same run.
func (c *Config) equal(d *Config) bool {
	if len(c.Variants) != len(d.Variants) {
		return false
	}
	for i := range c.Variants {
		if c.Variants[i] != d.Variants[i] {
			return false
		}
	}
	return c.scalars() == d.scalars()
}

// scalars is a Config without its variants.
func (c *Config) scalars() any {
	k := *c
	k.Variants = nil
	return [...]any{
		k.Model, k.Layers, k.Hidden, k.Heads, k.FFN, k.Window, k.Ranks, k.Batch, k.Steps, k.Seed,
		k.LR, k.WeightDecay, k.Beta1, k.Beta2, k.Eps, k.ClipNorm,
		k.BucketCapMB, k.AmaxHistory, k.MostRecent, k.Margin, k.LossScale, k.ScaleWindow,
	}
}

// Frame describes where the run is, with the steps after from, the histograms of watched numbers, and
// the journeys of one watched element if element is given.
func (s *Session) Frame(from int, w Watch, element *int) (*Frame, error) {
	f := &Frame{Tensors: s.tensors, Memory: s.memory, Step: s.step, Done: s.Done(), Steps: s.records[min(max(from, 0), s.step):]}
	if w.Part == "" {
		w.Part = Param
	}
	if w.Tensor < 0 || int(w.Tensor) >= len(s.tensors) {
		return nil, &scenario.FieldError{Path: "watch.tensor", Got: strconv.Itoa(int(w.Tensor)), Want: fmt.Sprintf("0 to %d", len(s.tensors)-1), Fix: "set it to 0"}
	}
	for _, t := range s.tensors {
		f.Parameters += t.Numel
	}
	if t := s.tensors[w.Tensor]; element != nil && (*element < 0 || *element >= t.Numel) {
		return nil, &scenario.FieldError{Path: "element", Got: strconv.Itoa(*element), Want: fmt.Sprintf("0 to %d in %s", t.Numel-1, t.Name), Fix: "set it to 0"}
	}
	for _, r := range s.runs {
		f.Variants = append(f.Variants, r.status())
		h, err := r.histogram(w)
		if err != nil {
			return nil, err
		}
		f.Histograms = append(f.Histograms, h)
		if element != nil {
			f.Journeys = append(f.Journeys, r.journey(w.Tensor, *element))
		}
	}
	return f, nil
}
