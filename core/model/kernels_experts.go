package model

import (
	"math"

	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/units"
)

// Kernels of layers with experts: Megatron-core's router, token dispatchers and grouped products,
// with unfused routing and fused permutation. Every expert gets as many tokens.
//
// Not modelled: the wait of the host for the token counts of an all-to-all without capacity, the
// shared expert beside the dispatch, padding of an expert's rows to multiples of 16 or 32 in FP8, sends
// between nodes that DeepEP saves by sending a token once to a node.

// Passes over the routing table, tokens times experts. Forward, top-k with softmax and tables of
// probabilities and of the map takes as long as 25 of 11 bytes an element, the auxiliary loss as long again
// (TestRoutingFollowsFromMeasurements in core/cost). Backward, each clears and fills tables: five of 8 bytes.
const (
	routingPasses, routingBytes   = 25, 11
	gradientPasses, gradientBytes = 5, 8
)

func (l *lister) setExperts() {
	c, e := l.c, l.e
	ep := max(e.EP, 1)
	l.etp = e.ETP
	if l.etp == 0 {
		l.etp = l.tp
	}
	l.ranks, l.local, l.expert, l.sharedWidth = ep*l.etp, c.Experts/ep, c.expertFFN()/l.etp, c.SharedFFN/l.tp
	// Without sequence parallelism ranks would route the same tokens; Megatron refuses to train so.
	l.routed = (l.tokens + l.tp - 1) / l.tp * max(c.TopK, 1)
	if e.Capacity > 0 && (e.Capacity < 1 || e.PadToCapacity) {
		l.routed = int64(math.Ceil(float64(l.routed) * e.Capacity))
	}
	l.rows, l.sent = l.routed*l.etp, l.routed
	if e.Dispatch == Flex {
		l.sent = min(l.sent, int64(math.Ceil(float64(l.tokens)/float64(l.tp)*distinct(c.Experts, l.local, max(c.TopK, 1)))))
	}
}

// distinct returns how many ranks of local experts a token reaches that chooses k of n at random.
func distinct(n, local, k int64) float64 {
	missed := 1.0
	for i := range k {
		missed *= max(float64(n-local-i), 0) / float64(n-i)
	}
	return float64(n/local) * (1 - missed)
}

func (l *lister) expertsForward(m ModuleKind) {
	h := l.c.Hidden
	switch m {
	case MLPNorm:
		l.memory("norm", l.normPattern(), 2*l.word*l.own*h)
	case Router:
		l.product(Kernel{Name: "router", M: l.own, N: l.c.Experts, K: h})
		if l.c.FP32Router { // of 16-bit operands all the same
			l.list[len(l.list)-1].DType = dtype.FP32
		}
		l.route("top-k", routingPasses, routingBytes)
		l.route("load balancing loss", routingPasses, routingBytes)
	case ExpertFC1:
		l.dispatch("")
		if l.c.FP8 {
			l.memory("expert input to FP8", hw.CastTransposeFP8, (l.word+2)*l.rows*h)
		}
		l.groupedForward("experts fc1", l.c.wide(l.expert), h)
		l.activation(l.rows, l.expert)
	case ExpertFC2:
		if l.c.FP8 {
			l.memory("expert activation to FP8", hw.CastTransposeFP8, (l.word+2)*l.rows*l.expert)
		}
		l.groupedForward("experts fc2", h, l.expert)
		l.combine("")
		if l.c.SharedFFN == 0 {
			l.residual()
		}
	case SharedFC1:
		if l.c.FP8 {
			l.memory("shared input to FP8", hw.CastTransposeFP8, (l.word+2)*l.own*h)
		}
		l.gather("shared fc1 input", l.norm*l.tokens*h).Beside = l.overlap()
		l.linearForward("shared fc1", l.c.wide(l.sharedWidth), h)
		l.activation(l.tokens, l.sharedWidth)
	case SharedFC2:
		l.rowProduct("shared fc2", l.sharedWidth)
		l.memory("add shared", hw.Elementwise, 3*l.word*l.own*h)
		l.residual()
	}
}

func (l *lister) expertsBackward(m ModuleKind) {
	h := l.c.Hidden
	switch m {
	case MLPNorm:
		l.normBackward()
	case Router:
		l.route("load balancing gradient", gradientPasses, gradientBytes)
		l.route("top-k gradient", gradientPasses, gradientBytes)
		l.product(Kernel{Name: "router input gradient", M: l.own, N: h, K: l.c.Experts, Grad: true})
		l.weightGradient(Kernel{Name: "router", M: l.c.Experts, N: h, K: l.own})
		l.memory("add router gradient", hw.Elementwise, 3*l.word*l.own*h)
	case ExpertFC1:
		l.activationBackward(l.rows, l.expert)
		l.groupedBackward("experts fc1", l.c.wide(l.expert), h)
		l.combine(" gradient")
	case ExpertFC2:
		if l.c.SharedFFN == 0 {
			l.residualBackward()
		}
		l.dispatch(" gradient")
		l.groupedBackward("experts fc2", h, l.expert)
	case SharedFC1:
		l.activationBackward(l.tokens, l.sharedWidth)
		l.columnGradients("shared fc1", l.c.wide(l.sharedWidth))
		l.memory("add shared gradient", hw.Elementwise, 3*l.word*l.own*h)
	case SharedFC2:
		l.residualBackward()
		l.rowGradients("shared fc2", l.sharedWidth)
	}
}

// route makes so many passes of so many bytes an element over the routing table.
func (l *lister) route(name string, passes int, bytes int64) {
	l.memory(name, hw.Elementwise, bytes*l.own*l.c.Experts)
	l.list[len(l.list)-1].Repeat = passes
}

// dispatch brings tokens to their experts: sorted by expert, sent, gathered where an expert is
// cut, and sorted again by local expert. The gradient of a combination takes the same way.
func (l *lister) dispatch(name string) {
	row := l.word * l.c.Hidden
	if l.e.Dispatch == AllGather {
		l.expertComm("tokens"+name+" all-gather", row*l.own*l.ranks, Kernel{Over: OverExpertModel, Gather: true})
		l.memory("permute"+name, hw.Elementwise, 2*row*l.rows)
		return
	}
	if l.e.Dispatch != Flex {
		l.memory("permute"+name, hw.Elementwise, 2*row*l.routed)
	}
	if name == "" && l.ranks > 1 { // token counts
		l.add(Kernel{
			Name: l.prefix + "token counts all-gather", Kind: TensorComm, Over: OverExpertModel, Gather: true,
			DType: dtype.FP32, Bytes: units.Bytes(4 * l.c.Experts * l.ranks),
		})
	}
	l.expertComm("dispatch"+name+" all-to-all", row*l.sent, Kernel{Over: OverExpert, AllToAll: true})
	if l.etp > 1 {
		l.expertComm("dispatch"+name+" all-gather", row*l.rows, Kernel{Over: OverExpertTensor, Gather: true})
	}
	l.sortChunks(name)
}

// combine is the way back: each token's results are summed.
func (l *lister) combine(name string) {
	row := l.word * l.c.Hidden
	if l.e.Dispatch == AllGather {
		l.memory("unpermute"+name, hw.Elementwise, row*(l.rows+l.own*l.ranks))
		l.expertComm("tokens"+name+" reduce-scatter", row*l.own*l.ranks, Kernel{Over: OverExpertModel, Scatter: true})
		return
	}
	l.sortChunks(name)
	if l.etp > 1 {
		l.expertComm("combine"+name+" reduce-scatter", row*l.rows, Kernel{Over: OverExpertTensor, Scatter: true})
	}
	l.expertComm("combine"+name+" all-to-all", row*l.sent, Kernel{Over: OverExpert, AllToAll: true})
	back := l.routed
	if l.e.Dispatch == Flex { // summed on the experts' ranks before
		back = l.sent
	}
	l.memory("unpermute"+name, hw.Elementwise, row*(back+l.own))
}

// sortChunks changes between the order of sending ranks and that of local experts; Flex copies here.
func (l *lister) sortChunks(name string) {
	if l.e.Dispatch == Flex {
		l.memory("permute"+name, hw.Elementwise, l.word*(l.sent*l.etp+l.rows)*l.c.Hidden)
	} else if l.local > 1 && l.ranks > 1 {
		l.memory("sort by expert"+name, hw.Elementwise, 2*l.word*l.rows*l.c.Hidden)
	}
}

// expertComm adds a collective of a group that has more than one rank.
func (l *lister) expertComm(name string, bytes int64, k Kernel) {
	if k.Over == OverExpert && l.ranks == l.etp || l.ranks == 1 {
		return
	}
	k.Name, k.Kind, k.Bytes, k.DType = l.prefix+name, TensorComm, units.Bytes(bytes), l.c.DType
	l.add(k)
}

// perExpert returns the rows of one expert.
func (l *lister) perExpert() int64 { return (l.rows + l.local - 1) / l.local }

// groupedForward multiplies each local expert's rows with its weight.
func (l *lister) groupedForward(name string, out, in int64) {
	l.castWeight(name, out*l.local, in)
	l.product(Kernel{Name: name, M: l.perExpert(), N: out, K: in, Groups: l.local, FP8: l.c.FP8})
	if l.c.Bias {
		l.memory(name+" bias", hw.Elementwise, 2*l.word*l.rows*out)
	}
}

func (l *lister) groupedBackward(name string, out, in int64) {
	if l.c.Bias {
		l.memory(name+" bias gradient", hw.ColumnSum, l.word*l.rows*out)
	}
	if l.c.FP8 {
		l.memory(name+" gradient to FP8", hw.CastTransposeFP8, (l.word+2)*l.rows*out)
	}
	l.product(Kernel{Name: name + " input gradient", M: l.perExpert(), N: in, K: out, Groups: l.local, FP8: l.c.FP8, Grad: true})
	l.weightGradient(Kernel{Name: name, M: out, N: in, K: l.perExpert(), Groups: l.local, FP8: l.c.FP8 && !l.e.BF16Wgrad})
}
