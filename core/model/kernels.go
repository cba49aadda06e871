package model

import (
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/units"
)

// Kernels returns the kernels of one pass in order, as Megatron-core with the Transformer Engine
// layer spec launches them: fused norm and projection, FP8 casts with their transposes, flash
// attention, JIT-fused bias, GELU and dropout. Sizes are those of one rank.
//
// Not modelled: the few kernels of FP8 scale updates, position ids and masks; dropout inside attention costs nothing.
func (c *Config) Kernels(e *Execution, p Pass) []Kernel {
	l := newLister(c, e)
	if !p.Backward {
		l.forward(p.Module)
		return l.list
	}
	if e.Recomputes(p) {
		l.again(p.Module)
	}
	l.backward(p.Module)
	return l.list
}

// again is what the backward pass of a module computes before its gradients.
func (l *lister) again(m ModuleKind) {
	l.prefix = "recomputed "
	if l.e.Recompute == CoreAttention {
		l.flash("attention", FlashForward)
	} else {
		l.forward(m)
	}
	l.prefix = ""
}

// overlap reports whether user buffers hide the collectives of sequence parallelism.
func (l *lister) overlap() bool { return l.e.TPOverlap && l.sp }

func layered(m ModuleKind) bool {
	switch m {
	case QKV, Attention, Proj, FC1, FC2:
		return true
	}
	return m > Loss
}

// lister appends kernels to a list. Sizes are in elements of one rank. Its small methods have a hundred
// callers and stay out of line: inlined they weigh 20 KB of the compressed page.
type lister struct {
	c      *Config
	e      *Execution
	list   []Kernel
	prefix string // of names; not empty while a forward pass is computed again

	tokens   int64 // rows of every product
	own      int64 // rows of norms, dropout and residuals: a part of tokens with SP
	tp       int64
	sp       bool
	word     int64 // bytes of an activation
	norm     int64 // bytes of a norm's result: FP8 when the product that reads it is
	query    int64 // width of the query heads
	kv       int64 // width of the keys
	ffn, fc1 int64
	vocab    int64

	routed      int64 // copies of this rank's own tokens that go to experts
	sent        int64 // rows that this takes
	rows        int64 // rows that this rank's experts get
	local       int64 // experts of this rank
	expert      int64 // width of one expert
	etp, ranks  int64 // ranks of one expert, and of all
	sharedWidth int64
}

func newLister(c *Config, e *Execution) *lister {
	tp := max(e.TP, 1)
	query, _ := c.heads()
	l := &lister{
		c: c, e: e, tokens: e.tokens(c), tp: tp, sp: e.SP && tp > 1, word: int64(c.DType.Size()),
		query: query / tp, kv: c.KVChannels * c.Groups / tp, ffn: c.FFN / tp, fc1: c.fc1() / tp, vocab: c.Vocab / tp,
	}
	l.own, l.norm = l.tokens, l.word
	if l.sp {
		l.own = (l.tokens + tp - 1) / tp
	}
	if c.FP8 {
		l.norm = 1
	}
	if c.Experts > 0 {
		l.setExperts()
	}
	return l
}

func (l *lister) forward(m ModuleKind) {
	h := l.c.Hidden
	switch m {
	case Embedding:
		l.memory("embedding lookup", hw.Elementwise, 2*l.word*l.tokens*h)
		if l.tp > 1 {
			l.memory("mask foreign tokens", hw.Elementwise, 2*l.word*l.tokens*h)
			l.comm("embedding", l.word*l.tokens*h, reduce)
		}
	case EmbeddingOut:
		if l.c.LearnedPositions {
			l.memory("add positions", hw.Elementwise, 3*l.word*l.tokens*h)
		}
		l.memory("sequence first", hw.Elementwise, 2*l.word*l.tokens*h)
		if l.e.Dropout {
			l.memory("dropout", hw.Dropout, (2*l.word+1)*l.own*h)
		}
	case QKV:
		l.normForward()
		l.gather("qkv input", l.norm*l.tokens*h).Beside = l.overlap()
		l.linearForward("qkv", l.query+2*l.kv, h)
	case Attention:
		l.headNorm("query and key norms", 2)
		l.rope("rotary")
		l.flash("attention", FlashForward)
	case Proj:
		l.rowForward("projection", l.query)
	case FC1:
		l.normForward()
		l.gather("fc1 input", l.norm*l.tokens*h).Beside = l.overlap()
		l.linearForward("fc1", l.fc1, h)
		l.activation(l.tokens, l.ffn)
	case FC2:
		l.rowForward("fc2", l.ffn)
	case FinalNorm:
		l.memory("final norm", l.normPattern(), 2*l.word*l.own*h)
	case Output:
		l.gather("logits input", l.word*l.tokens*h)
		l.autocast("logits", l.vocab, h)
		l.product(Kernel{Name: "logits", M: l.tokens, N: l.vocab, K: h})
	case Loss:
		l.lossForward()
	default:
		l.expertsForward(m)
	}
}

func (l *lister) backward(m ModuleKind) {
	h := l.c.Hidden
	switch m {
	case Embedding: // the gradient is dense: cleared, then rows are added
		l.memory("clear embedding gradient", hw.Fill, l.word*l.vocab*h)
		l.memory("embedding gradient", hw.Scatter, l.word*l.tokens*h)
	case EmbeddingOut:
		if l.e.Dropout {
			l.memory("dropout backward", hw.Elementwise, (2*l.word+1)*l.own*h)
		}
		l.gather("embedding gradient", l.word*l.tokens*h)
		l.memory("batch first", hw.Elementwise, 2*l.word*l.tokens*h)
		if l.c.LearnedPositions {
			l.memory("position gradient", hw.ColumnSum, l.word*l.tokens*h)
		}
	case QKV:
		l.columnBackward("qkv", l.query+2*l.kv, false)
	case Attention:
		l.flash("attention backward", FlashBackward)
		l.rope("rotary backward")
		l.headNorm("query and key norms backward", 3)
	case Proj:
		l.rowBackward("projection", l.query)
	case FC1:
		l.activationBackward(l.tokens, l.ffn)
		l.columnBackward("fc1", l.fc1, l.c.Bias)
	case FC2:
		l.rowBackward("fc2", l.ffn)
	case FinalNorm:
		l.memory("final norm backward", hw.NormBackward, 3*l.word*l.own*h)
	case Output:
		l.gather("logits input", l.word*l.tokens*h).Beside = l.sp
		l.product(Kernel{Name: "logits input gradient", M: l.tokens, N: h, K: l.vocab, Grad: true})
		if l.tp > 1 {
			l.comm("logits input gradient", l.word*l.tokens*h, reduce).Beside = true
		}
		l.wgrad("logits", l.vocab, h, false)
	case Loss:
		n := l.tokens * l.vocab
		l.memory("softmax gradient", hw.Elementwise, 8*n)
		l.memory("gradient to model dtype", hw.Elementwise, (4+l.word)*n)
	default:
		l.expertsBackward(m)
	}
}

// lossForward is Megatron's vocab-parallel cross entropy on fp32 logits: each pass of its Python
// code is a kernel over all logits.
func (l *lister) lossForward() {
	n := l.tokens * l.vocab
	if l.word < 4 {
		l.memory("logits to fp32", hw.Upcast, (4+l.word)*n)
	}
	l.memory("maximum", hw.Elementwise, 4*n)
	l.tinyReduce("maximum")
	l.memory("subtract maximum", hw.Elementwise, 8*n)
	l.memory("exponential", hw.Elementwise, 8*n)
	l.memory("sum", hw.Elementwise, 4*n)
	l.tinyReduce("target logits")
	l.tinyReduce("sum")
	l.memory("divide", hw.Elementwise, 8*n)
}

func (l *lister) tinyReduce(name string) {
	if l.tp > 1 {
		l.add(Kernel{Name: name + " all-reduce", Kind: TensorComm, DType: dtype.FP32, Bytes: units.Bytes(4 * l.tokens)})
	}
}

func (l *lister) normPattern() hw.Pattern {
	if l.c.RMSNorm {
		return hw.RMSNormForward
	}
	return hw.NormForward
}

// normForward is a norm fused with the cast of its result.
func (l *lister) normForward() {
	l.memory("norm", l.normPattern(), (l.word+l.norm)*l.own*l.c.Hidden)
}

// activation is the activation of rows rows of ffn elements.
func (l *lister) activation(rows, ffn int64) {
	l.memory("activation", hw.Activation, l.word*rows*(l.c.wide(ffn)+ffn))
}

func (l *lister) activationBackward(rows, ffn int64) {
	l.memory("activation backward", hw.Activation, l.word*rows*(2*l.c.wide(ffn)+ffn))
}

// headNorm normalizes each query and key head: two kernels, so many accesses of each element.
func (l *lister) headNorm(name string, accesses int64) {
	if !l.c.QKNorm {
		return
	}
	pattern := l.normPattern()
	if accesses > 2 {
		pattern = hw.NormBackward
	}
	l.memory(name, pattern, accesses*l.word*l.tokens*l.query)
	l.memory(name, pattern, accesses*l.word*l.tokens*l.kv)
}

// rope turns queries and keys. Unfused it is a product, a rotation, another product, a sum and a
// concatenation: eleven accesses of each element instead of two.
func (l *lister) rope(name string) {
	if l.c.LearnedPositions {
		return
	}
	accesses := int64(11)
	if l.e.FusedRope {
		accesses = 2
	}
	l.memory(name, hw.Elementwise, accesses*l.word*l.tokens*(l.query+l.kv))
}

// flash is causal attention. With context parallelism each rank has an equal part of the scores,
// while keys and values (backward: their gradients too) go round a ring.
func (l *lister) flash(name string, kind KernelKind) {
	c, cp := l.c, max(l.e.CP, 1)
	heads := l.e.Micro * c.Heads / l.tp
	k := Kernel{Name: l.prefix + name, Kind: kind, M: heads, N: max(c.Seq/cp, 1), K: c.KVChannels, DType: c.DType, Backend: l.e.Attention}
	k.FLOPs = hw.FlashFLOPs(heads, c.Seq, c.KVChannels, kind == FlashBackward) / units.FLOPs(cp)
	if cp > 1 {
		k.Ring = int(cp)
		k.Bytes = units.Bytes(2 * l.word * l.tokens * l.kv)
		if kind == FlashBackward {
			k.Bytes *= 2
		}
	}
	l.add(k)
}

//go:noinline
func (l *lister) product(k Kernel) {
	k.Name, k.Kind, k.TF32 = l.prefix+k.Name, GEMM, l.c.DType == dtype.FP32 && !k.FP8
	if !k.Wgrad {
		k.DType = l.c.DType
	}
	k.FLOPs = units.FLOPs(2 * float64(k.M) * float64(k.N) * float64(k.K) * float64(max(k.Groups, 1)))
	l.list = append(l.list, k)
}

//go:noinline
func (l *lister) memory(name string, p hw.Pattern, bytes int64) {
	l.add(Kernel{Name: l.prefix + name, Kind: MemoryBound, Pattern: p, Bytes: units.Bytes(bytes), DType: l.c.DType})
}

// collective is how a tensor-parallel collective combines.
type collective uint8

const (
	reduce collective = iota
	reduceScatter
)

// sum is how partial results become one: whole on every rank, or with SP a part on each.
func (l *lister) sum() collective {
	if l.sp {
		return reduceScatter
	}
	return reduce
}

//go:noinline
func (l *lister) comm(name string, bytes int64, how collective) *Kernel {
	k := Kernel{Name: l.prefix + name + " all-reduce", Kind: TensorComm, Bytes: units.Bytes(bytes), DType: l.c.DType}
	if how == reduceScatter {
		k.Name, k.Scatter = l.prefix+name+" reduce-scatter", true
	}
	return l.add(k)
}

// gather collects what sequence parallelism has cut; without it there is nothing to do, and the
// result is a kernel that is in no list.
//
//go:noinline
func (l *lister) gather(name string, bytes int64) *Kernel {
	if !l.sp {
		return &Kernel{}
	}
	return l.add(Kernel{Name: l.prefix + name + " all-gather", Kind: TensorComm, Bytes: units.Bytes(bytes), DType: l.c.DType, Gather: true})
}

//go:noinline
func (l *lister) add(k Kernel) *Kernel {
	l.list = append(l.list, k)
	return &l.list[len(l.list)-1]
}
