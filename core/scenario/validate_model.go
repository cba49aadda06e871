package scenario

import "fmt"

// model checks the architecture and how tensor parallelism cuts it.
func (c *checker) model() {
	s, m := c.s, &c.s.Model
	if c.usable(pathHidden, pathHeads, pathKV) && m.KVChannels == 0 && m.Hidden%m.Heads != 0 {
		if per := m.Hidden / m.Heads; per > 0 {
			e := edit(pathKV, per)
			c.failAs(pathHidden, fmt.Sprintf("a multiple of num_attention_heads (%d), or kv_channels", m.Heads), setTo(e), e)
		} else {
			c.fail(pathHidden, fmt.Sprintf("at least num_attention_heads (%d)", m.Heads), edit(pathHidden, m.Heads))
		}
	}
	if c.usable(pathHeads, pathGroups) && m.QueryGroups > 0 && m.Heads%m.QueryGroups != 0 {
		near := nearestFit(m.QueryGroups, m.Heads, func(n int) bool { return m.Heads%n == 0 })
		c.fail(pathGroups, fmt.Sprintf("a divisor of num_attention_heads (%d)", m.Heads), edit(pathGroups, near))
	}
	if c.usable(pathGroups, pathHeads, pathMCore) && !m.MCore && s.QueryGroups() != m.Heads {
		c.fail(pathMCore, "true with grouped-query attention", Edit{pathMCore, "true"})
	}
	if c.usable(pathMCore) && !m.MCore {
		c.warn(pathMCore, "NeMo's own GPT (mcore_gpt false) is simulated as Megatron-core's, whose layers register the output projection before qkv; buckets differ.",
			Edit{pathMCore, "true"})
	}
	if c.usable(pathRopeFusion, pathPosition) && m.RopeFusion && m.Position != Rope {
		c.note(pathRopeFusion, "No effect: learned positions are added, not turned.")
	}
	c.tensorParallel()
	c.sequence()
}

// tensorParallel checks that TP divides what it cuts.
func (c *checker) tensorParallel() {
	s, tp := c.s, c.s.Parallel.TP
	if !c.usable(pathTP) {
		return
	}
	type cut struct {
		path string
		n    int
	}
	var cuts []cut
	for _, x := range []cut{{pathHeads, s.Model.Heads}, {pathGroups, s.QueryGroups()}, {pathFFN, s.FFN()}} {
		if c.usable(x.path, pathHidden) && !(x.path == pathGroups && s.Model.QueryGroups == 0) {
			cuts = append(cuts, x)
		}
	}
	if c.usable(pathOverride) && s.Model.OverrideVocab > 0 {
		cuts = append(cuts, cut{pathOverride, s.Model.OverrideVocab})
	}
	shared := 0 // what every size that fits divides
	for _, x := range cuts {
		shared = gcd(x.n, shared)
	}
	near := c.nearestSplit(tp, max(shared, 1), s.Parallel.PP*s.Parallel.CP, func(t int) bool { return shared%t == 0 })
	for _, x := range cuts {
		if x.n%tp == 0 {
			continue
		}
		want := fmt.Sprintf("a multiple of tensor_model_parallel_size (%d)", tp)
		c.fail(x.path, want, edit(pathTP, near))
	}
}

// sequence checks how context and sequence parallelism cut a sequence.
func (c *checker) sequence() {
	s := c.s
	if !c.usable(pathSeq, pathCP, pathTP, pathSP) {
		return
	}
	if step, why := s.sequenceStep(); s.Model.SeqLength%step != 0 {
		c.failSequence("a multiple of " + why)
	}
	if c.usable(pathTPOverlap) && s.Parallel.TPOverlap && !s.SequenceParallel() {
		c.note(pathTPOverlap, "No effect without sequence parallelism over at least two ranks.")
	}
	if s.Parallel.SequenceParallel && s.Parallel.TP == 1 {
		c.note(pathSP, "No effect: tensor_model_parallel_size is 1.")
	}
}

// sequenceStep returns what a sequence must be a multiple of, in numbers and in words.
func (s *Scenario) sequenceStep() (step int, why string) {
	tp, cp := s.Parallel.TP, s.Parallel.CP
	switch {
	case s.SequenceParallel() && cp > 1:
		return cp * lcm(2, tp), fmt.Sprintf("context_parallel_size (%d) × lcm(2, tensor_model_parallel_size (%d))", cp, tp)
	case s.SequenceParallel():
		return tp, fmt.Sprintf("tensor_model_parallel_size (%d), with sequence parallelism", tp)
	case cp > 1:
		return 2 * cp, fmt.Sprintf("2 × context_parallel_size (%d)", cp)
	default:
		return 1, ""
	}
}

// failSequence reports the length of sequences. Its edit heeds what FP8 asks, too.
func (c *checker) failSequence(want string) {
	s := c.s
	step, _ := s.sequenceStep()
	if c.usable(pathFP8, pathMicro) && s.Precision.FP8 {
		step = lcm(step, s.Parallel.CP*(fp8Multiple/gcd(fp8Multiple, s.Batch.Micro)))
	}
	if step > maxSeq {
		c.fail(pathSeq, want, edit(pathCP, 1), edit(pathTP, 1))
		return
	}
	fix, e := multiples(pathSeq, s.Model.SeqLength, step, maxSeq)
	c.failAs(pathSeq, want, fix, e)
}

// fp8Multiple divides both sizes of every product in FP8.
const fp8Multiple = 16

// fp8 checks what Transformer Engine asks of FP8 products.
func (c *checker) fp8() {
	s, p := c.s, &c.s.Precision
	if !c.usable(pathFP8) {
		return
	}
	if c.usable(pathFP8Params) && p.FP8Params && !p.FP8 {
		e := Edit{pathFP8, "true"}
		on := *s
		on.Precision.FP8 = true
		probe := checker{s: &on, invalid: c.invalid}
		if probe.fp8(); len(probe.errs) > 0 {
			e = Edit{pathFP8Params, "false"}
		}
		c.warn(pathFP8Params, "fp8_params does nothing without fp8, except that main parameters are stored.", e)
	}
	if !p.FP8 {
		return
	}
	if c.usable(pathFP8E4M3, pathFP8Hybrid) && !p.FP8E4M3 && !p.FP8Hybrid {
		c.fail(pathFP8Hybrid, "true, or fp8_e4m3 true, with fp8", Edit{pathFP8Hybrid, "true"})
	}
	if c.usable(pathGPU) && !gpuHasFP8(s.Hardware.GPU) {
		c.fail(pathGPU, "a GPU with FP8 units, with fp8", Edit{pathGPU, DefaultGPU})
	}
	if !c.usable(pathTP, pathHidden, pathFFN, pathHeads, pathGroups, pathKV, pathSeq, pathMicro, pathCP) {
		return
	}
	tp := s.Parallel.TP
	off := []Edit{{pathFP8, "false"}}
	if p.FP8Params && c.usable(pathFP8Params) {
		off = append(off, Edit{pathFP8Params, "false"})
	}
	want := func(what string, width int) string {
		return fmt.Sprintf("%s to be a multiple of %d in FP8, not %d", what, fp8Multiple, width)
	}
	check := func(path string, width int, what string) {
		if width%fp8Multiple != 0 {
			c.failAs(path, want(what, width), setTo(off...)+", or change "+path, off...)
		}
	}
	check(pathHidden, s.Model.Hidden, "hidden_size")
	if s.FFN()%tp == 0 {
		check(pathFFN, s.FFN()/tp, "ffn_hidden_size / TP")
	}
	if s.Model.Heads%tp == 0 && s.QueryGroups()%tp == 0 {
		kv := s.KVChannels()
		query, qkv := kv*(s.Model.Heads/tp), kv*(s.Model.Heads/tp+2*(s.QueryGroups()/tp))
		switch {
		case query%fp8Multiple != 0:
			check(pathHeads, query, "num_attention_heads × channels / TP")
		case qkv%fp8Multiple != 0:
			check(pathGroups, qkv, "the rows of qkv on one rank")
		}
	}
	if tokens := s.Batch.Micro * s.Model.SeqLength; tokens%s.Parallel.CP == 0 && tokens/s.Parallel.CP%fp8Multiple != 0 {
		c.failSequence(want("micro_batch_size × encoder_seq_length / CP", tokens/s.Parallel.CP))
	}
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
