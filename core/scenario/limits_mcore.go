package scenario

import (
	"fmt"

	"distopt/core/ddp"
	"distopt/core/units"
)

// exactBuckets bounds from above the buckets of all stages where no parameter is split: at most
// one for each parameter, and but for the last of a buffer each is filled to its size. Megatron-Core
// cuts only the first chunk of the first stage.
func (s *Scenario) exactBuckets() int64 {
	const (
		buffers = 6  // of a chunk at most: dtypes, experts, a tied embedding's own bucket
		align   = 64 // elements
	)
	z := s.sizes()
	layers := int64(s.StageLayers())
	least, most := s.layerBounds(&z)
	rest := z.word + z.position
	if s.Parallel.PP == 1 {
		if rest += z.finalNorm; !s.Model.Tied {
			rest += z.word
		}
	}
	elements := layers*most + rest
	params := layers*s.layerParams() + buffers
	if s.DDP() {
		size := max(int64(ddp.Limits(s.Optim.DDP.BucketCapMB)[0])/int64(s.ModelDType().Size()), 1)
		return min(params, elements/size+buffers)
	}
	size, cut := s.leastBucket(layers*least+rest), int64(0)
	if s.Optim.OverlapGradSync {
		cut = min(params, (elements+align*params)/size) // gaps count as filled
	}
	return cut + buffers*int64(s.Parallel.PP)*int64(s.Chunks())
}

// leastBucket returns the least bucket size that Megatron-Core's rules can give for that many
// parameters of a rank.
func (s *Scenario) leastBucket(elements int64) int64 {
	const least = 40_000_000
	switch m := &s.Optim.MCore; {
	case m.NumBuckets > 0:
		return max(elements/int64(m.NumBuckets), 1)
	case m.BucketSize > 0:
		return int64(m.BucketSize)
	}
	return least
}

// exactBucketLimit refuses settings that make too many buckets.
func (c *checker) exactBucketLimit() {
	s := c.s
	path := pathBucketSize
	switch {
	case s.DDP():
		path = pathDDPCap
	case s.Optim.MCore.NumBuckets > 0:
		path = pathNumBuckets
	}
	if !c.usable(path, pathOverlapGrad, pathPrecision, pathO2) {
		return
	}
	n := s.exactBuckets()
	if n <= MaxBuckets {
		return
	}
	want := fmt.Sprintf("at most %s buckets over all stages, not %s", units.Count(MaxBuckets), units.Count(n))
	probe := *s
	probe.Optim.MCore.BucketSize, probe.Optim.MCore.NumBuckets, probe.Optim.DDP.BucketCapMB = 0, 0, 0
	value := Null // the default fits, if not the model has too many parameters for it
	for size := 1 << 27; probe.exactBuckets() > MaxBuckets; size *= 2 {
		if size > maxBucket {
			c.failAs(path, want, "use a smaller model or fewer stages")
			return
		}
		probe.Optim.MCore.BucketSize, probe.Optim.DDP.BucketCapMB = size, min(float64(size>>20), maxCap)
		f, _ := ByPath(path)
		if value = f.Get(&probe); path == pathNumBuckets {
			value = Null
		}
	}
	edits := []Edit{{path, value}}
	if path == pathNumBuckets && probe.Optim.MCore.BucketSize > 0 {
		edits = append(edits, edit(pathBucketSize, probe.Optim.MCore.BucketSize))
	}
	c.fail(path, want, edits...)
}

// expertLimit refuses stages of too many experts.
func (c *checker) expertLimit() {
	s := c.s
	each := MaxExperts / (s.StageLayers() + 1)
	if n := s.Experts() / s.Parallel.EP; n > each {
		c.fail(pathExperts, fmt.Sprintf("at most %s experts in all layers of a stage on one rank, not %s", units.Count(MaxExperts), units.Count(int64(n*(s.StageLayers()+1)))),
			edit(pathExperts, max(each, 1)*s.Parallel.EP))
	}
}
