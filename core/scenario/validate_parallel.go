package scenario

import (
	"fmt"

	"distopt/core/units"
)

// ranks checks that the job's ranks divide into copies of the model.
func (c *checker) ranks() {
	s := c.s
	if !c.usable(pathNodes, pathDevices) {
		return
	}
	if s.World() > maxRanks {
		c.fail(pathNodes, fmt.Sprintf("at most %s ranks (num_nodes × devices)", units.Count(maxRanks)), edit(pathNodes, maxRanks/s.Hardware.Devices))
		c.invalid[pathNodes] = true
		return
	}
	if !c.usable(pathTP, pathCP, pathPP) || s.DP() > 0 {
		return
	}
	product, path := 1, pathTP
	for _, x := range []struct {
		path string
		n    int
	}{{pathTP, s.Parallel.TP}, {pathCP, s.Parallel.CP}, {pathPP, s.Parallel.PP}} {
		if product *= x.n; s.World()%product != 0 {
			path = x.path
			break
		}
	}
	want := fmt.Sprintf("TP × CP × PP (%d × %d × %d) to divide the %s ranks of num_nodes × devices",
		s.Parallel.TP, s.Parallel.CP, s.Parallel.PP, units.Count(int64(s.World())))
	n := s.Parallel.TP * s.Parallel.CP * s.Parallel.PP
	step := n / gcd(n, s.Hardware.Devices) // nodes that hold whole copies
	nodes := (s.Hardware.Nodes + step - 1) / step * step
	if nodes <= maxGrowth*s.Hardware.Nodes && nodes*s.Hardware.Devices <= maxRanks {
		c.fail(path, want, edit(pathNodes, nodes))
		return
	}
	f, _ := ByPath(path)
	size := *f.at(s).(*int)
	others := n / size
	near := c.nearestSplit(size, size, others, func(int) bool { return true })
	if s.World()%(others*near) != 0 {
		near = 1
	}
	c.fail(path, want, edit(path, near))
}

// maxGrowth bounds how many times the present nodes an edit asks for.
const maxGrowth = 16

// pipeline checks stages, chunks and their messages.
func (c *checker) pipeline() {
	s, p := c.s, &c.s.Parallel
	if !c.usable(pathLayers, pathPP) {
		return
	}
	if p.PP > s.Model.Layers {
		layers := s.Model.Layers
		near := c.nearestSplit(layers, layers, p.TP*p.CP, func(n int) bool { return layers%n == 0 })
		c.fail(pathPP, fmt.Sprintf("at most num_layers (%d)", s.Model.Layers), edit(pathPP, near))
		return
	}
	if rest := s.Model.Layers % p.PP; rest != 0 {
		c.warn(pathLayers, fmt.Sprintf("Megatron-core gives each of %d stages %d layers and drops the remaining %d in silence.",
			p.PP, s.StageLayers(), rest), edit(pathLayers, s.Model.Layers-rest))
	}
	if c.usable(pathVP) && p.VP > 1 {
		c.interleaved()
	} else if c.usable(pathVP, pathOverlapP2P) && p.OverlapP2P && p.PP > 1 {
		c.warn(pathOverlapP2P, "Overlapped messages need the interleaved schedule (Megatron-core refuses them without it); they are simulated as not overlapped.",
			Edit{pathOverlapP2P, "false"})
	}
}

// interleaved checks a schedule with model chunks.
func (c *checker) interleaved() {
	s, p := c.s, &c.s.Parallel
	none := Edit{pathVP, Null}
	if few := s.fewStages(); p.PP <= few {
		c.fail(pathVP, fmt.Sprintf("null, or more than %d pipeline stages (there are %d)", few, p.PP), none)
	}
	if p.PP == 2 && s.MCore() && c.usable(pathOverlapP2P, pathBatchP2P) && !p.OverlapP2P { // messages of one batch would meet
		c.fail(pathOverlapP2P, "true with model chunks on 2 stages", Edit{pathOverlapP2P, "true"}, Edit{pathBatchP2P, "false"})
	}
	if c.usable(pathO2) && !s.Precision.O2 && !(s.MCore() && s.Optim.MCore.TrainingCode) {
		c.fail(pathO2, "true with model chunks", Edit{pathO2, "true"})
	}
	if layers := s.StageLayers(); layers%p.VP != 0 {
		near := nearestFit(min(p.VP, layers), layers, func(n int) bool { return layers%n == 0 })
		c.fail(pathVP, fmt.Sprintf("a divisor of the %d layers of a stage", layers), edit(pathVP, near))
	}
	if c.usable(pathOverlapP2P, pathBatchP2P) && p.OverlapP2P && p.BatchP2P {
		c.fail(pathBatchP2P, "false with overlap_p2p_comm", Edit{pathBatchP2P, "false"})
	}
}

// fewStages returns how many stages are too few for model chunks.
func (s *Scenario) fewStages() int {
	if s.MCore() {
		return 1
	}
	return 2
}

// batch checks that the global batch divides into microbatches.
func (c *checker) batch() {
	s := c.s
	if !c.usable(pathGlobal, pathMicro, pathNodes, pathDevices, pathTP, pathCP, pathPP, pathVP, pathGroupSize) || s.DP() == 0 {
		return
	}
	dp := s.DP()
	step, why := s.Batch.Micro*dp, fmt.Sprintf("a multiple of %d (microbatch %d × DP %d)", s.Batch.Micro*dp, s.Batch.Micro, dp)
	if s.Parallel.VP > 1 && s.Parallel.PP > s.fewStages() && !(s.MCore() && s.Optim.MCore.MicrobatchGroup > 0) {
		step *= s.Parallel.PP
		why = fmt.Sprintf("a multiple of %d (microbatch %d × DP %d × PP %d, with model chunks)", step, s.Batch.Micro, dp, s.Parallel.PP)
	}
	switch {
	case s.Batch.Global%step == 0:
	case step > maxBatch: // no global batch is large enough
		fit := []Edit{edit(pathMicro, 1)}
		if step /= s.Batch.Micro; s.Batch.Global%step != 0 {
			_, e := multiples(pathGlobal, s.Batch.Global, step, maxBatch)
			fit = append(fit, e)
		}
		c.fail(pathGlobal, why, fit...)
	default:
		fix, e := multiples(pathGlobal, s.Batch.Global, step, maxBatch)
		c.failAs(pathGlobal, why, fix, e)
	}
}
