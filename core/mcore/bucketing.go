package mcore

import (
	"distopt/core/units"
)

// SizeRule says where the bucket size comes from.
type SizeRule uint8

// The rules, the first that applies.
const (
	SizeOfCount   SizeRule = iota // all parameters of the rank / num_buckets
	SizeGiven                     // bucket_size
	SizeOfRanks                   // 1,000,000 for each data-parallel rank
	SizeOfMinimum                 // 40,000,000
)

var sizeRules = [...]string{
	"num_buckets: all parameters of the rank divided by it, rounded down",
	"bucket_size, in parameters",
	"default: 1,000,000 parameters for each data-parallel rank",
	"default: 40,000,000 parameters, the least for up to 40 data-parallel ranks",
}

// String returns the rule in words.
func (r SizeRule) String() string { return sizeRules[r] }

// OffRule says why a model chunk has one bucket per buffer instead of buckets of some size.
type OffRule uint8

// The reasons, the first that applies.
const (
	Bucketed      OffRule = iota // it has buckets
	OffNoOverlap                 // overlap_grad_reduce is off
	OffWithStep                  // overlap_param_gather_with_optimizer_step
	OffLaterChunk                // only model chunk 0 has buckets
	OffLaterStage                // only pipeline stage 0 has buckets
	numberOfReason
)

var offRules = [numberOfReason]string{
	"buckets are filled up to the bucket size",
	"overlap_grad_reduce is off: one bucket holds everything",
	"overlap_param_gather_with_optimizer_step switches bucketing off",
	"only the first model chunk of a stage has buckets",
	"only the first pipeline stage has buckets: later ones wait for others anyway",
}

// String returns the reason in words.
func (r OffRule) String() string { return offRules[r] }

// Bucketing is what was decided about the buckets of a model chunk.
type Bucketing struct {
	// Resolved is the bucket size before the rules of the chunk; 0: none, since nothing overlaps.
	Resolved units.Elems
	Rule     SizeRule // of Resolved, or of what it would be
	// Size is what buckets are filled to; 0: one bucket per buffer.
	Size units.Elems
	Off  OffRule
	// Disabled: disable_bucketing was passed, so that all buckets of the chunk are one group.
	Disabled bool
}

// String says in words what was decided and by which rule.
func (b Bucketing) String() string {
	if b.Off == Bucketed {
		return "Buckets of " + b.Size.String() + " parameters or more. " + b.Rule.String()
	}
	text := "No buckets: " + b.Off.String()
	if b.Resolved > 0 {
		text += " (else of " + b.Resolved.String() + " parameters)"
	}
	return text
}

const (
	minBucketSize = 40_000_000
	perRank       = 1_000_000
)

// size returns the bucket size of the settings; total counts the parameters of all chunks.
func (o Options) size(total units.Elems) (units.Elems, SizeRule) {
	ranks := o.World
	if o.Library {
		ranks = o.Data
	}
	switch {
	case o.NumBuckets > 0:
		return total / units.Elems(o.NumBuckets), SizeOfCount
	case o.BucketSize > 0:
		return o.BucketSize, SizeGiven
	case perRank*ranks > minBucketSize:
		return units.Elems(perRank * ranks), SizeOfRanks
	}
	return minBucketSize, SizeOfMinimum
}

// bucketing decides about one chunk. A resolved size of 0 parameters (fewer parameters than
// num_buckets) closes a bucket after every parameter, as a size of 1 does.
func (o Options) bucketing(chunk int, total units.Elems) Bucketing {
	size, rule := o.size(total)
	b := Bucketing{Resolved: size, Rule: rule, Disabled: chunk > 0 || o.GatherWithStep}
	switch {
	case !o.OverlapGradReduce:
		b.Resolved, b.Off = 0, OffNoOverlap
	case o.GatherWithStep:
		b.Off = OffWithStep
	case chunk > 0:
		b.Off = OffLaterChunk
	case o.Stage > 0:
		b.Off = OffLaterStage
	default:
		b.Size = max(size, 1)
	}
	return b
}
