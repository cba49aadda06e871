package model

import "distopt/core/units"

// Storage is what decides which tensors lie in memory and when, beside Execution: choices that this
// package's kernels do not tell apart.
type Storage struct {
	PlainAttention   bool // scores lie in memory; else they never do (flash, cuDNN)
	AttentionDropout bool // attention_dropout is not 0: plain attention keeps a mask, too
	Loss             LossKernel
	// CPAllToAll: context parallelism exchanges heads for sequences (cp_comm_type a2a); else keys and
	// values go round.
	CPAllToAll bool
	// KeptDummies: weight gradients that a GEMM adds to main_grad leave autograd a placeholder that is
	// made once for each shape and kept (Transformer Engine from 2.3 on, get_dummy_wgrad). Off: it is
	// made anew each time, as a gradient without fusion is.
	KeptDummies bool
	Local       bool // Megatron's own layers (transformer_impl local) instead of Transformer Engine's
	// EagerNorm and EagerGate: PyTorch's own operations one by one, each of which keeps what it reads: a
	// norm its input in fp32 and its result before the weight, a gated activation the activated half.
	EagerNorm, EagerGate bool
	KeptGathers          bool // inputs of products are kept as sequence parallelism gathered them
	// RecomputeGroup is how many layers are computed again together, from one kept input (uniform
	// method); 0: one.
	RecomputeGroup int
}

// LossKernel says how cross entropy treats the logits. Each makes them fp32 first.
type LossKernel uint8

// The ways. Bytes are of one logit of 16 bits at the worst moment.
const (
	LossInPlace  LossKernel = iota // Megatron's vocab-parallel cross entropy: 6, of which 4 are kept
	LossCompiled                   // the same, compiled (cross_entropy_loss_fusion, native): 10
	LossTE                         // Transformer Engine's, in the memory of the logits: 2
	// LossTorch is torch.nn.functional.cross_entropy, of logits that are gathered first if the vocabulary
	// is cut: 14 of the whole vocabulary, of which 4 are kept, and 2 of the rank's own.
	LossTorch
)

// Footprint is the memory that one microbatch's passes through a module take, on one rank.
type Footprint struct {
	Kept     units.Bytes // from its forward to its backward pass, if nothing is computed again
	Again    units.Bytes // the part of Kept that is not kept but computed again in the backward pass
	Forward  units.Bytes // most beside Kept, inside the forward pass
	Backward units.Bytes // most beside Kept, inside the backward pass
}

// Footprint returns the memory of the passes that p is one of. Tensors that two modules share count once:
// a layer's input at its first norm, the output of attention at the projection that reads it, logits at the
// loss. In passes that recompute, the first module of a layer keeps the input of the whole layer.
//
// Not modelled: random states, index tensors of a few bytes a token beside those named, tensors that a
// library holds longer than autograd needs them.
func (c *Config) Footprint(e *Execution, s *Storage, p Pass) Footprint {
	l := storing{newLister(c, e), s}
	f := l.passes(p.Module)
	p.Backward = true
	if e.Recomputes(p) {
		f.Again = f.Kept
		switch {
		case e.Recompute == CoreAttention:
			f.Again = units.Bytes(l.attentionCore())
		case p.Module == QKV && (s.RecomputeGroup < 2 || p.Layer%s.RecomputeGroup == 0):
			f.Again -= units.Bytes(l.hidden())
		}
	}
	return f
}

// Gathered returns the buffer that Megatron's own column-parallel layers gather a sequence-parallel input
// into: one for all of them, kept (GlobalMemoryBuffer). 0: there is none.
func (c *Config) Gathered(e *Execution) units.Bytes {
	l := newLister(c, e)
	if !l.sp {
		return 0
	}
	return units.Bytes(l.word * l.tokens * c.Hidden)
}

// Scores returns the bytes of one score matrix of all heads and sequences of a microbatch.
func (c *Config) Scores(e *Execution) units.Bytes {
	l := newLister(c, e)
	return units.Bytes(l.word * l.scores())
}

// storing lists bytes.
type storing struct {
	*lister
	s *Storage
}

// hidden is the residual stream, as it lies outside of products.
func (l storing) hidden() int64 { return l.word * l.own * l.c.Hidden }

// whole is the same of all tokens.
func (l storing) whole() int64 { return l.word * l.tokens * l.c.Hidden }

// regathered is a product's input of so many bytes an element that sequence parallelism gathers again.
func (l storing) regathered(each int64) int64 {
	if !l.sp || l.s.KeptGathers {
		return 0
	}
	return each * l.tokens * l.c.Hidden
}

// operand is the bytes of an element that a weight gradient reads.
func (l storing) operand() int64 {
	if l.c.FP8 {
		return 1
	}
	return l.word
}

func (l storing) mask() int64 {
	if l.e.Dropout {
		return l.own * l.c.Hidden
	}
	return 0
}

// normalized is what a norm keeps: its input, its result as the product reads it, and fp32 statistics.
func (l storing) normalized(result int64) int64 {
	stats := int64(8)
	if l.c.RMSNorm {
		stats = 4
	}
	rows := l.own
	if l.s.KeptGathers {
		rows = l.tokens
	}
	kept := l.hidden() + result*rows*l.c.Hidden + stats*l.own
	if l.s.EagerNorm {
		kept += 4 * l.own * l.c.Hidden
	}
	return kept
}

// gradient is what autograd is given of a weight of so many elements, outside of main_grad.
func (l storing) gradient(elems int64) int64 {
	if l.e.GradFusion && l.s.KeptDummies {
		return 0
	}
	return l.word * elems
}

func (l *lister) heads() int64 { return l.c.Heads / l.tp }

func (l *lister) scores() int64 { return l.heads() * l.tokens * l.c.Seq }

// attentionCore is what attention keeps between queries, keys and values and its output: logarithms of
// sums of exponentials, or the softmax and, with dropout, its mask and the dropped softmax.
func (l storing) attentionCore() int64 {
	switch {
	case !l.s.PlainAttention:
		return 4 * l.heads() * l.tokens
	case l.s.AttentionDropout:
		return (2*l.word + 1) * l.scores()
	}
	return l.word * l.scores()
}

func (l storing) passes(m ModuleKind) Footprint {
	h := l.c.Hidden
	var kept, forward, backward int64
	switch m {
	case Embedding: // ids; the gradient of the table is dense
		kept = 8 * l.tokens
		forward = l.whole()
		backward = l.whole() + l.word*l.vocab*h
	case EmbeddingOut:
		kept = l.mask()
		forward = l.whole() + l.hidden()
		backward = forward
	case QKV:
		qkv := l.word * l.tokens * (l.query + 2*l.kv)
		kept = l.normalized(l.norm)
		forward = l.regathered(l.norm) + qkv
		backward = qkv + l.whole() + l.regathered(l.norm) + l.hidden() + l.gradient((l.query+2*l.kv)*h)
	case Attention:
		kept, forward, backward = l.attention()
	case Proj:
		kept = l.word*l.tokens*l.query + l.mask()
		if l.c.FP8 { // attention needs its output in 16 bits
			kept += l.tokens * l.query
		}
		forward = l.whole() + l.hidden()
		backward = l.hidden() + l.regathered(l.operand()) + l.word*l.tokens*l.query + l.gradient(h*l.query)
	case FC1:
		kept = l.normalized(l.norm) + l.word*l.tokens*l.fc1
		if l.s.EagerGate && l.c.Gated {
			kept += l.word * l.tokens * l.ffn
		}
		forward = l.regathered(l.norm)
		backward = l.columnBackwardBytes(l.tokens, l.ffn, l.fc1, l.regathered(l.norm))
	case FC2:
		kept = l.operand()*l.tokens*l.ffn + l.mask()
		forward = l.whole() + l.hidden()
		backward = l.hidden() + l.regathered(l.operand()) + l.word*l.tokens*l.ffn + l.gradient(h*l.ffn)
	case FinalNorm:
		kept = l.normalized(0)
		forward = l.hidden()
		backward = 2 * l.hidden()
	case Output:
		kept = l.hidden()
		n := l.tokens * l.vocab
		if l.s.Loss == LossTorch && l.tp > 1 {
			n += l.tokens * l.c.Vocab
		}
		forward = l.word * n
		backward = l.word*n + l.whole() + l.gradient(l.vocab*h)
	case Loss:
		kept, forward, backward = l.loss()
	default:
		kept, forward, backward = l.experts(m)
	}
	return Footprint{Kept: units.Bytes(kept), Forward: units.Bytes(forward), Backward: units.Bytes(backward)}
}

// attention keeps queries, keys and values, its core, and with norms of heads what those read. Its
// backward pass has gradients of all these, of its output, and in fp32 the sum for the queries.
func (l storing) attention() (kept, forward, backward int64) {
	qkv, out := l.word*l.tokens*(l.query+2*l.kv), l.word*l.tokens*l.query
	kept = qkv + l.attentionCore()
	forward, backward = out, qkv+out
	if l.c.QKNorm {
		kept += l.word*l.tokens*(l.query+l.kv) + 4*l.tokens*(l.heads()+l.c.Groups/l.tp)
	}
	if l.s.CPAllToAll && l.e.CP > 1 { // the output before it is exchanged, too
		kept += out
	}
	if l.s.PlainAttention {
		forward += l.word * l.scores()
		backward += 2 * l.word * l.scores()
	} else {
		backward += 4 * l.tokens * l.query
	}
	return kept, forward, backward
}

// columnBackwardBytes is the backward pass of activation and first projection: gradients of both, then
// with the kept input of the activation gone that of the projection's input and of its weight.
func (l storing) columnBackwardBytes(rows, ffn, wide, gathered int64) int64 {
	activation := l.word * rows * (ffn + wide)
	product := l.word*rows*l.c.Hidden + gathered + l.gradient(wide*l.c.Hidden)
	return l.hidden() + max(activation, product)
}

func (l storing) loss() (kept, forward, backward int64) {
	n := l.tokens * l.vocab
	switch {
	case l.s.Loss == LossTE:
		return l.word * n, 0, 0
	case l.s.Loss == LossCompiled:
		return 4 * n, (l.word + 4) * n, (l.word + 4) * n
	case l.s.Loss == LossTorch: // fp32 logits, their softmax, its gradient and theirs
		all := l.tokens * l.c.Vocab
		made := l.word * all
		if l.tp > 1 {
			made += l.word * n
		}
		return 4 * all, made + 4*all, made + 8*all
	case l.word == 4: // in the memory of the logits themselves
		return 4 * n, 0, 0
	}
	return 4 * n, l.word * n, l.word * n
}

// experts keep what they were sent, as it is sorted by expert.
func (l storing) experts(m ModuleKind) (kept, forward, backward int64) {
	h := l.c.Hidden
	wide, shared := l.c.wide(l.expert), l.c.wide(l.sharedWidth)
	switch m {
	case MLPNorm:
		return l.normalized(l.word), 0, 2 * l.hidden()
	case Router: // logits, probabilities, the map of choices
		each := l.word
		if l.c.FP32Router {
			each = 4
		}
		n := l.own * l.c.Experts
		return (each + 5) * n, 4 * n, 8*n + l.hidden() + l.gradient(l.c.Experts*h)
	case ExpertFC1:
		kept = l.operand()*l.rows*h + l.word*l.rows*wide + 8*l.routed
		forward = l.word * (l.routed + l.sent) * h
		return kept, forward, l.columnBackwardBytes(l.rows, l.expert, wide, 0) + l.gradient((l.local-1)*wide*h)
	case ExpertFC2:
		kept = l.operand()*l.rows*l.expert + 4*l.rows
		forward = l.word * (l.rows + l.routed + l.own) * h
		backward = l.word*l.rows*(h+l.expert) + l.gradient(l.local*l.expert*h)
		if l.c.SharedFFN == 0 {
			kept += l.mask()
		}
		return kept, forward, backward
	case SharedFC1:
		kept = l.word * l.tokens * shared
		if l.c.FP8 {
			kept += l.own * h
		}
		return kept, l.regathered(l.norm), l.columnBackwardBytes(l.tokens, l.sharedWidth, shared, l.regathered(l.norm))
	default:
		kept = l.operand()*l.tokens*l.sharedWidth + l.mask()
		forward = l.whole() + l.hidden()
		return kept, forward, l.hidden() + l.regathered(l.operand()) + l.word*l.tokens*l.sharedWidth + l.gradient(l.sharedWidth*h)
	}
}
