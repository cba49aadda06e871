package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"distopt/core/apex"
	"distopt/core/units"
)

// Limits of what is simulated. A scenario beyond them is refused before anything is allocated.
const (
	MaxBuckets    = apex.MaxBuckets   // over all stages
	MaxFragments  = apex.MaxFragments // on one stage
	MaxTasks      = 2_000_000         // layer passes and messages of both simulated steps
	MaxParameters = 100_000_000_000_000
	MaxLayers     = 6_000   // on one stage
	MaxPassWork   = 1e18    // operations of one layer and microbatch on one rank: hours
	MaxStepWork   = 1e21    // of both simulated steps, by the heaviest pass
	MaxExperts    = 1 << 16 // on one rank, over the layers of a stage and one more
	MaxRows       = 1 << 30 // of the word embeddings, padded
	MaxHeadWidth  = 1 << 23 // of all attention heads together
)

// limits checks sizes that follow from several fields.
func (c *checker) limits() {
	s := c.s
	c.widthLimits()
	if !c.usable(pathLayers, pathHidden, pathFFN, pathHeads, pathGroups, pathKV, pathSeq, pathVocab, pathOverride, pathVocabDivisor, pathTP) ||
		!c.usable(pathExperts, pathTopK, pathExpertFFN, pathSharedFFN, pathEP, pathETP, pathLayerFreq) {
		return
	}
	if n := s.Parameters(); n == 0 || n > MaxParameters {
		got := "more than 2^62 parameters"
		if n > 0 {
			got = units.Count(n) + " parameters"
		}
		e := &FieldError{Path: pathLayers, Got: got, Want: "at most " + units.Count(MaxParameters), Fix: "use fewer layers or smaller ones"}
		if fit := s.fittingLayers(); fit > 0 {
			e.Edits = []Edit{edit(pathLayers, fit)}
			e.Fix = setTo(e.Edits...)
		}
		c.errs = append(c.errs, e)
		return
	}
	if !c.usable(pathPP, pathVP, pathNodes, pathDevices, pathCP, pathCap, pathGradSync, pathState) || s.StageLayers() == 0 || s.Redundant() == 0 {
		return
	}
	if s.StageLayers() > MaxLayers {
		c.fail(pathLayers, fmt.Sprintf("at most %s layers on each of %d stages", units.Count(MaxLayers), s.Parallel.PP), edit(pathLayers, MaxLayers*s.Parallel.PP))
		return
	}
	switch {
	case s.MCore() || s.DDP():
		c.expertLimit()
		c.exactBucketLimit()
	default:
		c.bucketLimits()
	}
	if c.usable(pathGlobal, pathMicro) && s.Microbatches() > 0 {
		c.taskLimit()
		c.workLimit()
	}
}

// widthLimits refuses widths that are products of fields.
func (c *checker) widthLimits() {
	s := c.s
	if c.usable(pathHeads, pathKV, pathHidden) && s.KVChannels() > MaxHeadWidth/s.Model.Heads {
		fit := MaxHeadWidth / s.Model.Heads
		c.fail(pathKV, fmt.Sprintf("at most %s channels in all %s heads", units.Count(MaxHeadWidth), units.Count(int64(s.Model.Heads))), edit(pathKV, fit))
	}
	if c.usable(pathVocab, pathOverride, pathVocabDivisor, pathTP) && s.PaddedVocab() > MaxRows {
		c.fail(pathVocabDivisor, fmt.Sprintf("a vocabulary of at most %s tokens when padded, not %s", units.Count(MaxRows), units.Count(int64(s.PaddedVocab()))),
			edit(pathVocabDivisor, 1))
	}
}

// passWork bounds the operations of the heaviest pass of a microbatch through a layer or the
// output layer on one rank, backward; a byte that is moved counts as a thousand.
func (s *Scenario) passWork() float64 {
	z := s.sizes()
	tokens := float64(s.Batch.Micro) * float64(s.Model.SeqLength) / float64(s.Parallel.CP)
	products := 4 * tokens * float64(max(z.weights(), z.proj+z.qkv+z.shared+int64(s.Model.Experts.TopK)*z.expert, z.word))
	width := float64(s.KVChannels()) * float64(s.Model.Heads) / float64(s.Parallel.TP)
	attention := 10 * tokens * float64(s.Model.SeqLength) * width
	rows := float64(s.Model.Hidden) + 3*width + 3*float64(s.FFN())/float64(s.Parallel.TP) + float64(s.PaddedVocab())/float64(s.Parallel.TP)
	return max(products, attention, 1000*32*tokens*rows)
}

// tooMuchWork reports whether a pass or the steps would take days.
func (s *Scenario) tooMuchWork() bool {
	w := s.passWork()
	return w > MaxPassWork || w*float64(s.EstimateTasks()) > MaxStepWork
}

// workLimit refuses passes and steps that take days.
func (c *checker) workLimit() {
	s := c.s
	if !s.tooMuchWork() {
		return
	}
	w := s.passWork()
	number := func(x float64) string { return strings.Replace(fmt.Sprintf("%.0e", x), "e+", "e", 1) }
	want := fmt.Sprintf("at most %s operations in a pass of one layer and %s in two steps, not %s and %s",
		number(MaxPassWork), number(MaxStepWork), number(w), number(w*float64(s.EstimateTasks())))
	path, least := pathSeq, 1 // microbatches
	if s.Parallel.VP > 1 {
		least = s.Parallel.PP
	}
	switch {
	case w <= MaxPassWork && s.Microbatches() > least:
		path = pathGlobal
	case s.Batch.Micro > 1:
		path = pathMicro
	}
	f, _ := ByPath(path)
	probe := *s
	value := f.at(&probe).(*int)
	for *value > 1 && probe.tooMuchWork() {
		*value /= 2
	}
	if path == pathSeq && probe.tooMuchWork() {
		c.failAs(path, want, "use a smaller model")
		return
	}
	c.fail(path, want, edit(path, *value))
}

// fittingLayers returns how many of the model's layers MaxParameters have room for.
func (s *Scenario) fittingLayers() int {
	none := *s
	none.Model.Layers = 0
	one := none
	one.Model.Layers = 1
	rest, layer := none.Parameters(), one.Parameters()-none.Parameters()
	if rest == 0 || layer <= 0 || rest > MaxParameters {
		return 0
	}
	return int(min((MaxParameters-rest)/layer, int64(s.Model.Layers)))
}

// taskLimit refuses a global batch of too many microbatches.
func (c *checker) taskLimit() {
	s := c.s
	tasks, m := s.EstimateTasks(), s.Microbatches()
	if tasks <= MaxTasks {
		return
	}
	want := fmt.Sprintf("at most %s layer passes and messages in two steps, not %s (%s microbatches)",
		units.Count(MaxTasks), units.Count(int64(tasks)), units.Count(int64(m)))
	fit := MaxTasks / (tasks / m)
	if s.Parallel.VP > 1 {
		fit = fit / s.Parallel.PP * s.Parallel.PP
	}
	switch {
	case fit > 0:
		c.fail(pathGlobal, want, edit(pathGlobal, fit*s.Batch.Micro*s.DP()))
	case s.Parallel.VP > 1:
		c.fail(pathGlobal, want, Edit{pathVP, Null})
	default:
		c.failAs(pathGlobal, want, "use fewer layers or stages")
	}
}

// bucketLimits refuses a bucket_cap_mb that makes too many buckets or fragments.
func (c *checker) bucketLimits() {
	s := c.s
	size, _ := s.BucketSize()
	if size == 0 {
		return
	}
	buckets, fragments := s.estimateBuckets(size)
	want := ""
	switch {
	case buckets > MaxBuckets:
		want = fmt.Sprintf("at most %s buckets over all stages, not %s", units.Count(MaxBuckets), units.Count(buckets))
	case fragments > MaxFragments:
		want = fmt.Sprintf("at most %s fragments on one stage, not %s", units.Count(MaxFragments), units.Count(fragments))
	default:
		return
	}
	probe := *s
	for fit := s.Optim.BucketCapMB * 2; fit <= maxCap; fit *= 2 {
		probe.Optim.BucketCapMB = fit
		size, _ := probe.BucketSize()
		if b, f := probe.estimateBuckets(size); b <= MaxBuckets && f <= MaxFragments {
			text := strconv.FormatFloat(fit, 'g', 3, 64)
			if fit >= 100 {
				text = strconv.FormatFloat(fit, 'f', 0, 64)
			}
			c.fail(pathCap, want, Edit{pathCap, text})
			return
		}
	}
	c.failAs(pathCap, want, "use a smaller model or more pipeline stages")
}

// estimateBuckets returns bounds from above: buckets of all stages, and fragments of the stage
// with most of them, for buckets of that size. NeMo has a list of buckets per layer, the first
// layer's holding what no other list does; every parameter of a list depends on all its buckets.
// Plain Apex has one list, and no such dependencies.
func (s *Scenario) estimateBuckets(size units.Elems) (buckets, fragments int64) {
	z := s.sizes()
	layers := int64(s.StageLayers())
	// Alignment adds at most 64 elements to each parameter.
	const pad, others = 64, 5
	perLayer := int64(12)
	if s.Model.QKNorm {
		perLayer += 4
	}
	count := func(elements, params int64) int64 {
		return (elements+params*pad)/int64(size) + 1
	}
	last := z.word // the output layer, or the last stage's copy of tied embeddings
	if s.Model.Tied && s.Parallel.PP == 1 {
		last = 0
	}
	if s.Plain() {
		params := layers*perLayer + others
		buckets = count(layers*(z.weights()+z.small())+z.finalNorm+z.word+z.position+last, params)
		return buckets, buckets + params
	}
	layer := count(z.weights(), 4)
	if !s.FP8Weights() {
		layer = count(z.weights()+z.small(), perLayer)
	}
	small := count(layers*z.small()+z.finalNorm, layers*perLayer+2) + 1 // BEFORE has a list of its own for the rest
	embedding, head := count(z.word+z.position, 2), count(last, 1)

	stages := int64(s.Parallel.PP)
	buckets = stages*(layers*layer+small) + embedding + head

	first := layer + small + embedding + head
	fragments = (layers-1)*layer*perLayer + first*(layers*perLayer+others)
	return buckets, fragments
}

// EstimateTasks returns about how many tasks two steps take: layer passes and messages. The
// optimizer's own tasks are few beside them.
func (s *Scenario) EstimateTasks() int {
	m := s.Microbatches()
	layers := s.StageLayers() * s.Parallel.PP
	messages := 0
	if s.Parallel.PP > 1 {
		messages = 2 * s.Parallel.PP * s.Chunks()
	}
	return 2 * m * (2*(layers+2*s.Parallel.PP) + messages)
}
