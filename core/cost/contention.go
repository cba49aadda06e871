package cost

import (
	"distopt/core/hw"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// The contention classes.
const (
	classLayers  sched.Class = iota // forward and backward passes
	classMemory                     // memory-bound kernels of optimizer and copies
	classNVLink                     // collectives inside a node
	classNetwork                    // collectives between nodes
	classSend                       // messages between stages
	classFree                       // the host, and what takes nothing
	numClasses
)

var _ = [1]struct{}{}[sched.NumClasses-int(numClasses)] // as many as the engine has

// Thread blocks of NCCL's kernels, each of which takes an SM: 24 channels inside a node of
// Hopper or Ampere (NVIDIA/nccl issues 652 and 1259), 16 between nodes (logs in deepseek-ai/DeepEP
// issue 106), 2 for a message to one peer (same).
const (
	nodeCTAs    = 24
	networkCTAs = 16
	sendCTAs    = 2
)

// linkShare is the speed of two transfers over one link.
const linkShare = 0.5

// class returns the contention class of a work.
func (p *pricer) class(w *step.Work) sched.Class {
	switch w.Kind {
	case step.Forward, step.Backward:
		return classLayers
	case step.Exchange, step.LossSend:
		return classSend
	case step.HostSync:
		return classFree
	}
	if w.Op == step.NoCollective {
		return classMemory
	}
	if p.medium(p.m.Groups[w.Group]) == overNetwork {
		return classNetwork
	}
	return classNVLink
}

// mix is how the time of layers divides: what it is made of decides what slows it down.
type mix struct{ product, memory, comm units.Seconds }

// rates is the table of speeds. SMs that communication takes slow products and memory-bound
// kernels as much as copies that take as many (core/hw: Taken); transfers over one link share it.
func (p *pricer) rates(m mix) *sched.Rates {
	total := float64(m.product + m.memory + m.comm)
	product, memory, comm := 1.0, 0.0, 0.0
	if total > 0 {
		product, memory, comm = float64(m.product)/total, float64(m.memory)/total, float64(m.comm)/total
	}
	sendsOverNetwork := p.medium(p.m.Groups[step.Pipeline]) == overNetwork
	var r sched.Rates
	for mask := range 1 << numClasses {
		beside := func(c sched.Class) bool { return mask>>c&1 != 0 }
		ctas := 0
		if beside(classNVLink) {
			ctas += p.ctas(nodeCTAs)
		}
		if beside(classNetwork) {
			ctas += p.ctas(networkCTAs)
		}
		if beside(classSend) {
			ctas += p.ctas(sendCTAs)
		}
		slowProduct, slowMemory := hw.Taken(ctas, p.curves.SMs)
		slowComm := 1.0
		if beside(classNVLink) {
			slowComm = 1 / linkShare
		}
		r[classLayers][mask] = fixed(1 / (float64(product*slowProduct) + float64(memory*slowMemory) + float64(comm*slowComm)))
		r[classMemory][mask] = fixed(1 / slowMemory)

		computing := beside(classLayers) || beside(classMemory)
		nvlink, network, send := 1.0, 1.0, 1.0
		if computing {
			nvlink = hw.CopyUnderProduct
		}
		if beside(classNVLink) {
			nvlink *= linkShare
			if !sendsOverNetwork {
				send *= linkShare
			}
		}
		if beside(classNetwork) {
			network *= linkShare
			if sendsOverNetwork {
				send *= linkShare
			}
		}
		if beside(classSend) {
			if sendsOverNetwork {
				network *= linkShare
			} else {
				nvlink *= linkShare
			}
		}
		r[classNVLink][mask], r[classNetwork][mask], r[classSend][mask] = fixed(nvlink), fixed(network), fixed(send)
		r[classFree][mask] = sched.FullSpeed
	}
	return &r
}

func (p *pricer) ctas(n int) int {
	if p.m.CTAs > 0 {
		return min(n, p.m.CTAs)
	}
	return n
}

// fixed is a rate in the engine's units; it is never 0, which would mean full speed.
func fixed(rate float64) uint32 {
	return max(1, min(sched.FullSpeed, uint32(float64(rate*sched.FullSpeed)+0.5)))
}
