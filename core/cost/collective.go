package cost

import (
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/parallel"
	"distopt/core/step"
	"distopt/core/units"
)

// operations maps the collectives of a recording.
var operations = [...]hw.Collective{
	step.OpReduceScatter: hw.ReduceScatter,
	step.OpAllGather:     hw.AllGather,
	step.OpAllReduce:     hw.AllReduce,
	step.OpAllToAll:      hw.AllToAll,
}

// collective prices a coalesced group as one collective on the sum of its buffers: NCCL runs the
// members of a group in one kernel, which pays its latency once.
func (p *pricer) collective(w *step.Work) units.Seconds {
	g := p.m.Groups[w.Group]
	if w.Op == step.OpSend {
		return p.fabric.Send(g.Nodes <= 1, w.Bytes)
	}
	return p.fabric.Time(operations[w.Op], place(g), w.Bytes)
}

// moduleComm prices a collective inside a module.
func (p *pricer) moduleComm(k *model.Kernel) units.Seconds {
	op := hw.AllReduce
	switch {
	case k.Gather:
		op = hw.AllGather
	case k.Scatter:
		op = hw.ReduceScatter
	case k.AllToAll:
		op = hw.AllToAll
	}
	group := &p.m.Groups[step.Tensor]
	if k.Over != model.OverTensor {
		group = &p.m.Experts[k.Over]
	}
	return p.fabric.Time(op, place(*group), k.Bytes)
}

// ring prices what context parallelism adds to a flash kernel of length compute: it is cut into
// as many parts as there are ranks, and beside all but the last one keys and values go to the
// next rank. What a part does not hide shows.
func (p *pricer) ring(k *model.Kernel, compute units.Seconds) units.Seconds {
	if k.Ring <= 1 {
		return compute
	}
	part := compute / units.Seconds(k.Ring)
	send := p.fabric.Send(p.m.Context.Nodes <= 1, k.Bytes)
	return part + units.Seconds(float64(k.Ring-1)*float64(max(part, send)))
}

// medium is what a group communicates over.
func (p *pricer) medium(g parallel.Placement) medium {
	if p.fabric.Crosses(place(g)) {
		return overNetwork
	}
	return overNVLink
}

type medium uint8

const (
	overNVLink medium = iota
	overNetwork
)
