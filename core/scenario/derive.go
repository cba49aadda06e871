package scenario

import (
	"math"
	"strings"

	"distopt/core/dtype"
	"distopt/core/units"
)

// Derived holds what follows from a scenario and a form shows beside it. A value is 0 when what
// it is computed from does not fit together (Validate says why).
type Derived struct {
	World        int         `json:"world"`
	DP           int         `json:"dp"` // data-parallel size, context not counted
	Microbatches int         `json:"microbatches"`
	PaddedVocab  int         `json:"padded_vocab"`
	StageLayers  int         `json:"stage_layers"`
	Parameters   int64       `json:"parameters"` // of the whole model
	Distributed  int         `json:"distributed"`
	Redundant    int         `json:"redundant"`
	BucketSize   units.Elems `json:"bucket_size"`
	ShardSize    units.Elems `json:"shard_size"`
}

// Derive computes all of Derived.
func (s *Scenario) Derive() Derived {
	d := Derived{
		World:        s.World(),
		DP:           s.DP(),
		Microbatches: s.Microbatches(),
		PaddedVocab:  s.PaddedVocab(),
		StageLayers:  s.StageLayers(),
		Parameters:   s.Parameters(),
		Distributed:  s.Distributed(),
		Redundant:    s.Redundant(),
	}
	d.BucketSize, d.ShardSize = s.BucketSize()
	return d
}

// World returns the ranks of the job.
func (s *Scenario) World() int { return s.Hardware.Nodes * s.Hardware.Devices }

// modelRanks returns the ranks that one copy of the model takes, or 0 if there are too few or it
// overflows the bounds of the fields.
func (s *Scenario) modelRanks() int {
	n := 1
	for _, size := range []int{s.Parallel.TP, s.Parallel.CP, s.Parallel.PP} {
		if size < 1 || size > maxRanks {
			return 0
		}
		n *= size
		if n > s.World() {
			return 0
		}
	}
	return n
}

// DP returns the data-parallel size, context parallelism not counted, or 0 if the ranks do not
// divide into copies of the model.
func (s *Scenario) DP() int {
	n := s.modelRanks()
	if n == 0 || s.World()%n != 0 {
		return 0
	}
	return s.World() / n
}

// Process returns the size of the optimizer's process group: data times context parallel.
func (s *Scenario) Process() int { return s.DP() * s.Parallel.CP }

// Distributed returns the ranks over which the optimizer state is sharded.
func (s *Scenario) Distributed() int {
	switch {
	case s.DDP(), s.Optim.OneRankState && !s.MCore():
		return min(1, s.Process())
	case s.Plain() && s.Optim.Plain.DistributedSize > 0:
		return s.Optim.Plain.DistributedSize
	case s.MCore():
		return s.mcoreDistributed(s.Process())
	default:
		return s.Process()
	}
}

// Redundant returns the number of copies of the distributed group, or 0 if it does not divide
// the process group.
func (s *Scenario) Redundant() int {
	n, d := s.Process(), s.Distributed()
	if d == 0 || n%d != 0 {
		return 0
	}
	return n / d
}

// Microbatches returns the forward passes of one rank in a step, or 0 if the batch does not divide.
func (s *Scenario) Microbatches() int {
	per := s.Batch.Micro * s.DP()
	if per <= 0 || s.Batch.Global%per != 0 {
		return 0
	}
	return s.Batch.Global / per
}

// Chunks returns the model chunks on each stage: 1 unless the schedule is interleaved.
func (s *Scenario) Chunks() int { return max(1, s.Parallel.VP) }

// StageLayers returns the layers of one pipeline stage. A remainder is dropped, as Megatron-core does.
func (s *Scenario) StageLayers() int {
	if s.Parallel.PP < 1 {
		return 0
	}
	return s.Model.Layers / s.Parallel.PP
}

// ChunkLayers returns the layers of one model chunk, or 0 if those of a stage do not divide.
func (s *Scenario) ChunkLayers() int {
	if s.StageLayers()%s.Chunks() != 0 {
		return 0
	}
	return s.StageLayers() / s.Chunks()
}

// RecomputedLayers returns the layers of each model chunk that full recompute covers.
func (s *Scenario) RecomputedLayers() int {
	switch r := &s.Recompute; {
	case r.Granularity != Full:
		return 0
	case r.Method == Block:
		return min(r.Layers, s.ChunkLayers())
	default:
		return s.ChunkLayers()
	}
}

// SequenceParallel reports whether sequence parallelism is in effect: NeMo turns it off when TP is 1.
func (s *Scenario) SequenceParallel() bool { return s.Parallel.SequenceParallel && s.Parallel.TP > 1 }

// TPOverlap reports whether tensor-parallel communication runs beside products: NeMo turns that
// off without sequence parallelism.
func (s *Scenario) TPOverlap() bool { return s.Parallel.TPOverlap && s.SequenceParallel() }

// OverlapP2P reports whether messages overlap: only with the interleaved schedule.
func (s *Scenario) OverlapP2P() bool { return s.Parallel.OverlapP2P && s.Parallel.VP > 1 }

// GradFusion reports whether weight gradients are added into the buckets by their GEMM.
func (s *Scenario) GradFusion() bool {
	return s.Precision.GradFusion && s.Precision.O2 && !s.DDP()
}

// FP8Weights reports whether the weights of the linear layers are FP8 tensors.
func (s *Scenario) FP8Weights() bool {
	return s.Precision.FP8 && s.Precision.FP8Params && !s.Plain() && !s.DDP()
}

// FFN returns ffn_hidden_size.
func (s *Scenario) FFN() int {
	if s.Model.FFN == 0 {
		return 4 * s.Model.Hidden
	}
	return s.Model.FFN
}

// KVChannels returns the width of an attention head.
func (s *Scenario) KVChannels() int {
	if s.Model.KVChannels == 0 && s.Model.Heads > 0 {
		return s.Model.Hidden / s.Model.Heads
	}
	return s.Model.KVChannels
}

// QueryGroups returns the key and value heads.
func (s *Scenario) QueryGroups() int {
	if s.Model.QueryGroups == 0 {
		return s.Model.Heads
	}
	return s.Model.QueryGroups
}

// Gated reports whether the MLP is gated.
func (s *Scenario) Gated() bool { return strings.HasSuffix(s.Model.Activation, "glu") }

// RMSNorm reports whether norms have no bias.
func (s *Scenario) RMSNorm() bool { return s.Model.Normalization == "rmsnorm" }

// PaddedVocab returns the rows of the word embeddings over all tensor-parallel ranks.
func (s *Scenario) PaddedVocab() int {
	if s.Model.OverrideVocab > 0 {
		return s.Model.OverrideVocab
	}
	step := s.Model.VocabDivisor * s.Parallel.TP
	if step < 1 {
		return 0
	}
	return (s.Model.TokenizerVocab + step - 1) / step * step
}

// ComputeDType returns the dtype of activations and of products that are not FP8, that of
// trainer.precision: without O2, autocast takes it although the parameters are fp32.
func (s *Scenario) ComputeDType() dtype.DType {
	switch s.Precision.Trainer {
	case BF16:
		return dtype.BF16
	case FP16:
		return dtype.FP16
	default:
		return dtype.FP32
	}
}

// ModelDType returns the dtype of the parameters that are not FP8: 16 bits only under O2.
func (s *Scenario) ModelDType() dtype.DType {
	if s.Precision.O2 {
		return s.ComputeDType()
	}
	return dtype.FP32
}

// Parameters counts the elements of the whole model, each once: copies of tied embeddings and
// over tensor-parallel ranks are not counted.
func (s *Scenario) Parameters() int64 {
	whole := *s
	whole.Parallel.TP, whole.Parallel.ETP, whole.Parallel.EP = 1, 1, 1
	whole.Model.OverrideVocab = s.PaddedVocab() // padded for the real TP
	z := whole.sizes()
	sparse := int64(s.expertLayers())
	dense := int64(s.Model.Layers) - sparse
	rest := z.word + z.position + z.finalNorm
	if !s.Model.Tied {
		rest += z.word
	}
	if float64(dense)*float64(z.dense())+float64(sparse)*float64(z.sparse())+float64(rest) > math.MaxInt64/2 {
		return 0
	}
	return dense*z.dense() + sparse*z.sparse() + rest
}

// BucketSize returns the elements of every bucket and of one shard of it; 0 if they are undefined.
// Only Apex's buckets are all of one size.
func (s *Scenario) BucketSize() (size, shard units.Elems) {
	if s.MCore() || s.DDP() {
		return 0, 0
	}
	o := s.bucketOptions()
	if o.Distributed < 1 || o.GradSync.Size() == 0 {
		return 0, 0
	}
	size, shard, err := o.BucketSize()
	if err != nil {
		return 0, 0
	}
	return size, shard
}
