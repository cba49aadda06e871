package hw

import (
	"math"

	"distopt/core/units"
)

// Collective is a collective operation on a buffer of which every rank sees the whole size once:
// the sum's operand, the gathered result, the scattered input, or what it sends to all others and itself.
type Collective uint8

// The collectives.
const (
	AllReduce Collective = iota
	AllGather
	ReduceScatter
	AllToAll
	NumCollective
)

// BusFactor is the part of the buffer that each rank sends and receives in a ring of n ranks
// (PERFORMANCE.md of nccl-tests): bus bandwidth = factor · size / time.
func (o Collective) BusFactor(n int) float64 {
	f := float64(n-1) / float64(n)
	if o == AllReduce {
		f *= 2
	}
	return f
}

// Line is a time that grows linearly with what is sent.
type Line struct {
	Latency   units.Seconds
	Bandwidth units.BytesPerSecond
}

func (l Line) time(sent float64) units.Seconds {
	return l.Latency + units.Seconds(sent/float64(l.Bandwidth))
}

// NodeCurve is a collective inside one node: NCCL takes the faster of a protocol with little
// latency and one with full bandwidth. Bandwidths are bus bandwidths.
type NodeCurve struct{ Small, Large Line }

func (c *NodeCurve) time(sent float64) units.Seconds {
	return min(c.Small.time(sent), c.Large.time(sent))
}

// Fabric is what a group of GPUs communicates over.
type Fabric struct {
	GPU     *GPU
	Network *Network
	node    *[NumCollective][len(nodeRanks)]NodeCurve
}

// NewFabric joins GPUs by a network; it may be nil if no group spans nodes.
func NewFabric(g *GPU, n *Network) *Fabric {
	return &Fabric{GPU: g, Network: n, node: nodeCurves(g)}
}

// nodeRanks are the group sizes that were measured inside a node.
var nodeRanks = [...]int{2, 4, 8}

// Place is how a group lies: its ranks, the nodes they are on, the most on one node.
type Place struct{ Ranks, Nodes, PerNode int }

// domain merges the nodes that NVLink joins into one.
func (f *Fabric) domain(p Place) Place {
	if f.GPU.Domain > f.GPU.PerNode && p.Nodes > 1 {
		per := f.GPU.Domain / f.GPU.PerNode
		p.PerNode = min(p.Ranks, p.PerNode*per)
		p.Nodes = (p.Nodes + per - 1) / per
	}
	return p
}

// Time returns the time of a collective on size bytes, beside nothing else. A group of one rank
// needs none.
func (f *Fabric) Time(op Collective, p Place, size units.Bytes) units.Seconds {
	if p.Ranks <= 1 {
		return 0
	}
	p = f.domain(p)
	sent := float64(size) * op.BusFactor(p.Ranks)
	if p.Nodes <= 1 {
		return f.inNode(op, p.Ranks, sent)
	}
	if op == AllToAll {
		return f.allToAll(p, size)
	}
	best := f.ring(op, p, sent)
	if op == AllReduce {
		best = min(best, f.tree(p, sent))
	}
	return best
}

// inNode interpolates between the measured group sizes. Larger groups (NVL72) have the bandwidth
// of the largest and a latency that goes on growing by as much per rank.
func (f *Fabric) inNode(op Collective, n int, sent float64) units.Seconds {
	curves := &f.node[op]
	last := len(nodeRanks) - 1
	for i := 1; i <= last; i++ {
		if n <= nodeRanks[i] {
			low, high := curves[i-1].time(sent), curves[i].time(sent)
			at := float64(n-nodeRanks[i-1]) / float64(nodeRanks[i]-nodeRanks[i-1])
			return low + units.Seconds(float64(high-low)*at)
		}
	}
	perRank := float64(curves[last].Small.Latency-curves[last-1].Small.Latency) / float64(nodeRanks[last]-nodeRanks[last-1])
	return curves[last].time(sent) + units.Seconds(max(perRank, 0)*float64(n-nodeRanks[last]))
}

// protocol holds NCCL's own tuning constants (src/graph/tuning.cc at 5067397c26): latency of an
// algorithm in us, of a step over NVLink and of a step over the network, and the part of the
// bandwidth that it reaches. The tables hold the protocols LL, LL128 and Simple.
type protocol struct{ base, nvlink, net, part float64 }

var (
	ringProtocols = [simple + 1]protocol{{6.6, 0.6, 2.7, 0.5}, {14, 1.9, 4, 0.92}, {8.4, 3.4, 14, 1}}
	treeProtocols = [simple + 1]protocol{{6.8, 0.6, 5, 0.5}, {14, 1.25, 8.5, 0.92}, {8.4, 4, 14, 1}}
)

// lowLatencyMax bounds the bus bandwidth of the first protocol (LL) over the network, in GB/s, by
// generation, for two and for more nodes (llMaxBws of the same file).
var lowLatencyMax = [NumArch][2]float64{Ampere: {22.5, 19}, Ada: {22.5, 19}, Hopper: {45, 35}, Blackwell: {90, 70}}

// The protocols, in the order of the tables.
const (
	lowLatency = iota
	lowLatency128
	simple
)

// rate is the bandwidth of a protocol where full bandwidth is wire; 0: it is not available.
func (f *Fabric) rate(i int, r *protocol, p Place, wire float64) float64 {
	switch {
	case i == lowLatency:
		return min(wire*r.part, lowLatencyMax[f.GPU.Arch][min(p.Nodes-2, 1)]*gb)
	case i == lowLatency128 && f.Network.NoLL128:
		return 0
	}
	return wire * r.part
}

// netOverhead is what NCCL adds to every step over the network, in us.
const netOverhead = 1

// wire is the bus bandwidth of rings through all network adapters of the ranks on a node, never
// above that of NVLink.
func (f *Fabric) wire(op Collective, p Place) float64 {
	net := float64(f.Network.PerGPU) * f.Network.Efficiency * float64(p.PerNode)
	if p.PerNode > 1 {
		net = min(net, float64(f.node[op][len(nodeRanks)-1].Large.Bandwidth))
	}
	return net
}

// ring prices ring algorithms over nodes: one step for every rank, most of them inside a node.
func (f *Fabric) ring(op Collective, p Place, sent float64) units.Seconds {
	steps, inter := float64(p.Ranks-1), float64(p.Nodes-1)
	if op == AllReduce {
		steps, inter = 2*steps, 2*inter
	}
	best := math.Inf(1)
	for i := range ringProtocols {
		r := &ringProtocols[i]
		us := r.base + float64((steps-inter)*r.nvlink) + float64(inter*(float64(r.net*f.Network.Hop)+netOverhead))
		best = min(best, float64(us*1e-6)+sent/f.rate(i, r, p, f.wire(ReduceScatter, p)))
	}
	return units.Seconds(best)
}

// tree prices double binary trees between nodes and chains inside: latency grows with the
// logarithm of the nodes. Between two nodes each byte crosses the network once each way, so the
// bus bandwidth exceeds the adapters' (1.57 to 1.7 times in the tables of two nodes), up to what
// NVLink SHARP reaches inside a node.
func (f *Fabric) tree(p Place, sent float64) units.Seconds {
	wire := f.wire(AllReduce, p)
	if p.Nodes == 2 {
		wire = float64(f.Network.PerGPU) * f.Network.Efficiency * float64(p.PerNode) * 1.65
		if p.PerNode > 1 {
			wire = min(wire, float64(f.node[AllReduce][len(nodeRanks)-1].Large.Bandwidth))
		}
	}
	depth := 0.0
	for n := 1; n < p.Nodes; n *= 2 {
		depth++
	}
	best := math.Inf(1)
	for i := range treeProtocols {
		r := &treeProtocols[i]
		steps := float64(float64(p.PerNode-1)*r.nvlink) + float64(depth*(float64(r.net*f.Network.Hop)+netOverhead))
		us := r.base + float64(2*steps)
		best = min(best, float64(us*1e-6)+sent/f.rate(i, r, p, wire))
	}
	return units.Seconds(best)
}

// Point-to-point messages: the part of an NVLink's rate that one send reaches (A100, 195 of 300
// GB/s at 1 GiB; table a100x8_sendrecv) and the latency of a message.
const (
	sendPart     = 0.65
	pcieSend     = 20e9 // two L40S of a node (aic_l40s tables)
	sendLatency  = 10e-6
	sendNetSteps = 14e-6 // one step of NCCL's Simple protocol, times Hop
)

// Send returns the time of one message between two GPUs.
func (f *Fabric) Send(sameNode bool, size units.Bytes) units.Seconds {
	if sameNode {
		rate := sendPart * float64(f.GPU.NVLink)
		if rate == 0 {
			rate = pcieSend
		}
		return units.Seconds(sendLatency + float64(size)/rate)
	}
	latency := sendLatency + float64(sendNetSteps*f.Network.Hop)
	return units.Seconds(latency + float64(size)/(float64(f.Network.PerGPU)*f.Network.Efficiency))
}

// p2pChannels is how many peers NCCL serves side by side over the network: one on each channel of
// the logs that bound collectives there (deepseek-ai/DeepEP issue 106).
const p2pChannels = 16

// allToAll prices messages between all pairs of ranks: what goes to other nodes through each
// rank's own adapter, never faster than inside a node, beside it what stays there. Each round of
// peers pays a network step. No table of several nodes was found: this is a rule and no fit.
func (f *Fabric) allToAll(p Place, size units.Bytes) units.Seconds {
	each := float64(size) / float64(p.Ranks)
	far := p.Ranks - p.PerNode
	rounds := float64((far + p2pChannels - 1) / p2pChannels)
	wire, near := float64(f.Network.PerGPU)*f.Network.Efficiency, units.Seconds(0)
	if p.PerNode > 1 {
		wire = min(wire, float64(f.node[AllToAll][len(nodeRanks)-1].Large.Bandwidth))
		near = f.inNode(AllToAll, p.PerNode, float64(each*float64(p.PerNode-1)))
	}
	net := sendLatency + float64(rounds*sendNetSteps*f.Network.Hop) + float64(each*float64(far))/wire
	return max(near, units.Seconds(net))
}

// Crosses reports whether a group uses the network.
func (f *Fabric) Crosses(p Place) bool { return f.domain(p).Nodes > 1 }
