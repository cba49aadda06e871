package step

import (
	"fmt"

	"distopt/core/optim"
)

// wholeSteps are recorded before the tail: the second one is in steady state.
const wholeSteps = 2

// Record lays out two training steps of all stages and of a third as much as ends the second: the
// first forward of every stage and the call that hands its output on. Stages are recorded one by
// one: host order depends on no clock.
//
// Tasks are listed stage by stage. Dependencies point backwards, but for collectives between
// stages, which depend on what every stage contributes.
func Record(stages []StageInput, cfg Config) (*Recording, error) {
	rec := &Recording{}
	if err := RecordInto(rec, stages, cfg); err != nil {
		return nil, err
	}
	return rec, nil
}

// RecordInto is Record into the memory of an earlier recording, whose content is lost.
func RecordInto(rec *Recording, stages []StageInput, cfg Config) error {
	return record(rec, stages, cfg, wholeSteps, nil)
}

// record lays out so many whole steps. Under an observer of all stages no pass is shortened.
func record(rec *Recording, stages []StageInput, cfg Config, steps int, watch Observer) error {
	if err := checkStages(stages, &cfg); err != nil {
		return err
	}
	tasks, err := estimate(stages, &cfg)
	if err != nil {
		return err
	}
	first := cfg.firstMicrobatches(len(stages))
	s := newShared(rec, len(stages), len(stages[0].Model.Chunks), &cfg, first, steps, tasks)
	firstOrder := iterations(cfg.group(len(stages)), len(stages[0].Model.Chunks), first)
	order := iterations(cfg.group(len(stages)), len(stages[0].Model.Chunks), cfg.Microbatches)
	for p := range stages {
		loss := noLoss
		switch p {
		case 0:
			loss = receivesLoss
		case len(stages) - 1:
			loss = sendsLoss
		}
		r := newRunner(stages[p], &cfg)
		r.rec, r.obs = newRecorder(s, stages[p].Model, &cfg), watch
		if err := r.build(stages[p]); err != nil {
			return fmt.Errorf("pipeline stage %d: %w", p, err)
		}
		r.tailCall = true
		for k := range steps + 1 {
			r.tail = k == steps
			micros := cfg.Microbatches
			r.iterations = order
			if k == 0 {
				micros, r.iterations = first, firstOrder
			}
			if err := r.step(k, micros, loss); err != nil {
				return fmt.Errorf("pipeline stage %d, step %d: %w", p, k, err)
			}
		}
		s.rec.StepStart[p] = r.rec.starts
	}
	return s.join()
}

// build makes the stage's optimizer.
func (r *runner) build(in StageInput) (err error) {
	var obs optim.Observer
	if r.obs != nil {
		obs = r
	}
	r.opt, err = in.New(r.rec, obs)
	return err
}

// Replay says what of a stage to run, and who watches.
type Replay struct {
	Rank, World int // global rank and number of ranks
	Steps       int // whole steps; then one more up to its first backward
	Observer    Observer
	// Order, if not nil, returns the items of a pass in the order in which they happened. The
	// order inside a module is the model's and autograd's, not ours.
	Order func(at At, backward bool, items []Item) []Item
}

// RunStage runs one stage alone, as the rank of a replay, with all its events.
func RunStage(in StageInput, cfg Config, rp Replay) error {
	m := in.Model
	if err := cfg.check(m.PP, len(m.Chunks)); err != nil {
		return err
	}
	r := newRunner(in, &cfg)
	r.iterations = iterations(cfg.group(m.PP), len(m.Chunks), cfg.Microbatches)
	r.obs, r.order, r.world = rp.Observer, rp.Order, rp.World
	r.rec = newRecorder(newShared(&Recording{}, m.PP, len(m.Chunks), &cfg, cfg.Microbatches, 0, 0), m, &cfg)
	loss := noLoss
	switch rp.Rank {
	case rp.World - 1:
		loss = sendsLoss
	case 0:
		loss = receivesLoss
	}
	if err := r.build(in); err != nil {
		return err
	}
	for k := range rp.Steps + 1 {
		r.tail = k == rp.Steps
		if err := r.step(k, cfg.Microbatches, loss); err != nil {
			return fmt.Errorf("step %d: %w", k, err)
		}
	}
	return nil
}

// estimate returns about how many tasks a recording has, and refuses too many before anything is
// allocated.
func estimate(stages []StageInput, cfg *Config) (int, error) {
	n, perMicro := int64(0), int64(0)
	for p := range stages {
		chunks := stages[p].Model.Chunks
		for _, c := range chunks {
			passes := int64(c.Layers) + int64(flag(c.Pre)) + int64(flag(c.Post))
			perMicro += 2 * passes
			switch {
			case len(stages) == 1:
			case len(chunks) > 1 && cfg.BatchP2P:
				perMicro += 2 // one call, one wait
			default:
				perMicro += 4
			}
		}
		if len(chunks) > 1 {
			n += 2 * int64(min(2*(len(stages)-p)+(len(chunks)-1)*len(stages), cfg.Microbatches*len(chunks))) // warmup
		}
		n += 100 // the step itself
	}
	fixed, steps := wholeSteps*n, int64(wholeSteps)
	if first := cfg.firstMicrobatches(len(stages)); first < cfg.Microbatches {
		fixed += perMicro * int64(first)
		steps--
	}
	n = fixed + steps*perMicro*int64(cfg.Microbatches)
	if n > MaxTasks {
		return 0, fmt.Errorf("microbatches: got %d, that is about %d tasks, want at most %d; set it to %d or fewer",
			cfg.Microbatches, n, MaxTasks, max(1, (MaxTasks-fixed)/(steps*perMicro)))
	}
	return int(n), nil
}
