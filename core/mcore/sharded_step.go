package mcore

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
	"distopt/core/units"
)

// member is one optimizer of the chain: that of the dense parameters of some chunks, or of the experts.
type member struct {
	chunks   []int
	expert   bool
	buckets  []bucket.ID
	update   []optim.AdamLaunch
	owned    optim.NormKernel // all tensors of this rank
	norm     []bucket.ParamID // that count in the gradient norm, in optimizer order
	quantize []optim.FP8Cast  // quantized weights of this rank
	amaxes   units.Elems      // of all quantized weights of the chain's member, on any rank
	copies   optim.Copy       // main parameters written back
	grads    optim.Copy       // gradients converted to fp32
}

// buildChain lists the optimizers: dense parameters, then experts; where chunk 0 is gathered while the
// rest is updated, its dense parameters come first.
func (s *Sharded) buildChain() {
	var all []int
	for c := range s.l.Chunks {
		all = append(all, c)
	}
	dense := [][]int{all}
	if s.l.Options.GatherWithStep && len(all) > 1 {
		dense = [][]int{all[:1], all[1:]}
	}
	for _, chunks := range dense {
		s.addMember(chunks, false)
	}
	s.addMember(all, true)
}

func (s *Sharded) addMember(chunks []int, expert bool) {
	m := member{chunks: chunks, expert: expert}
	for _, c := range chunks {
		for i := range s.l.Chunks[c].Buffers {
			b := &s.l.Chunks[c].Buffers[i]
			if b.Expert != expert {
				continue
			}
			for k := range b.Buckets {
				m.buckets = append(m.buckets, b.First+bucket.ID(k))
			}
		}
	}
	if len(m.buckets) == 0 {
		return
	}
	s.listOwned(&m)
	s.chain = append(s.chain, m)
}

// listOwned finds what of a chain's member this rank updates.
func (s *Sharded) listOwned(m *member) {
	position := 0
	if s.l.Options.DistributedOptimizer {
		position = s.l.Options.Position(s.c.Rank, m.expert)
	}
	m.owned.DType = dtype.FP32
	var launches []optim.AdamLaunch
	var counted [2][]bucket.ParamID
	for _, id := range m.buckets {
		b := &s.l.Buckets[id]
		base := b.Shard * units.Elems(position)
		for i := len(b.Fragments) - 1; i >= 0; i-- { // counts do not depend on the order
			f := &b.Fragments[i]
			q := &s.l.Params[f.Param]
			if q.Quant == FP8 || q.Quant == BlockFP8 || q.Quant == NVFP4 {
				m.amaxes += q.amaxes()
			}
			group := 0
			if !q.Decays() {
				group = 1
			}
			if s.countsInNorm(q) {
				counted[group] = append(counted[group], f.Param)
			}
			n := min(f.InBucket.End, base+b.Shard) - max(f.InBucket.Start, base)
			if n <= 0 || f.Dependency() {
				continue
			}
			m.owned.Tensors++
			m.owned.Elems += n
			launches = s.addLaunch(launches, group, b, n)
			switch {
			case q.Quant != Plain:
				m.quantize = append(m.quantize, optim.FP8Cast{Param: f.Param, Bucket: id, Elems: n})
			case b.StoresParams:
				m.copies.Tensors++
				m.copies.Bytes += units.Bytes(n) * b.DTypes.ParamSync.Size()
			}
			if b.DTypes.GradSync != dtype.FP32 && !s.c.States.readsGrads() {
				m.grads.Tensors++
				m.grads.Bytes += 4 * units.Bytes(n)
			}
		}
	}
	m.norm = append(counted[0], counted[1]...)
	m.update = launches
}

// addLaunch adds n elements to the kernel of their parameter group and formats.
func (s *Sharded) addLaunch(launches []optim.AdamLaunch, group int, b *bucket.Bucket, n units.Elems) []optim.AdamLaunch {
	k := s.l.Places[b.ID]
	operands := s.c.States.operands(s.l.Chunks[k.Chunk].Buffers[k.Buffer].Param, b.DTypes.GradSync)
	at := slices.IndexFunc(launches, func(l optim.AdamLaunch) bool {
		return l.Group == group && slices.Equal(l.Operands, operands)
	})
	if at < 0 {
		at = len(launches)
		launches = append(launches, optim.AdamLaunch{Group: group, Remainders: b.StoresRemainders, Operands: operands})
	}
	launches[at].Tensors++
	launches[at].Elems += n
	return launches
}

// Decays reports whether weight decay applies: not to biases and other vectors.
func (p *Param) Decays() bool { return len(p.Shape) > 1 && !p.Bias }

// countsInNorm leaves out second copies: a tied embedding's on the last stage and what other
// tensor-parallel ranks hold too.
func (s *Sharded) countsInNorm(q *Param) bool {
	return !q.Shared && (q.TensorParallel || q.Expert || s.c.TensorRank == 0)
}

// amaxes returns how many largest magnitudes a quantized weight has: one for each block of 128 by 128
// with block scaling.
func (p *Param) amaxes() units.Elems {
	if p.Quant != BlockFP8 || len(p.Shape) != 2 {
		return 1
	}
	const block = 128
	return units.Elems((p.Shape[0] + block - 1) / block * ((p.Shape[1] + block - 1) / block))
}

// ClipGradNorm does nothing: the step itself computes the norm.
func (s *Sharded) ClipGradNorm() {}

// Step is the chain's: gradients are looked at and clipped, every optimizer updates its shards and
// writes them back, and what is not gathered in the next forward pass is gathered now.
func (s *Sharded) Step() {
	if s.err != nil {
		return
	}
	o := &s.l.Options
	s.observe(optim.OpStepBegin)
	if !s.clip() {
		s.observe(optim.OpStepEnd)
		return
	}
	s.steps++
	gather := o.DistributedOptimizer && !o.OverlapParamGather
	for i := range s.chain {
		m := &s.chain[i]
		s.update(i, m)
		switch {
		case gather && !o.ReuseGradBuffer:
			s.gatherChunks(m.chunks) // all groups of these chunks, dense and expert ones
		case i == 0 && o.GatherWithStep:
			s.gatherChunk(0, false)
		}
	}
	if gather && o.ReuseGradBuffer {
		// Clearing a shared buffer must not meet another optimizer's values in it.
		s.gatherChunks(s.allChunks())
	}
	s.observe(optim.OpStepEnd)
}

func (s *Sharded) allChunks() []int {
	all := make([]int, len(s.l.Chunks))
	for c := range all {
		all[c] = c
	}
	return all
}

func (s *Sharded) gatherChunks(chunks []int) {
	for _, c := range chunks {
		s.gatherChunk(c, false)
	}
}

// update runs one optimizer on this rank's shards and writes the results back.
func (s *Sharded) update(i int, m *member) {
	o := &s.l.Options
	u := &s.w.update
	*u = optim.Update{Step: s.steps, Buckets: m.buckets, Launches: m.update, GradCopies: m.grads}
	s.observeAdam(i, m.owned.Tensors, m.owned.Elems)
	s.rt.Adam(u)
	if o.ReuseGradBuffer {
		if !o.OverlapParamGather {
			s.copyMain(m)
		}
		return
	}
	c := &s.w.cast
	*c = optim.Cast{Buckets: m.buckets, FP8: m.quantize, Copies: m.copies}
	if m.amaxes > 0 {
		elems := units.Elems(0)
		for _, q := range m.quantize {
			elems += q.Elems
		}
		s.observeKernel(optim.OpCastFP8, len(m.quantize), int64(elems))
	}
	s.rt.Cast(c)
	if m.amaxes > 0 {
		_, shards, _ := s.communicators(m.expert)
		r := s.scalar(shards, o.GroupSize(m.expert), optim.Max, dtype.FP32)
		r.Elems, r.Bytes = m.amaxes, 4*units.Bytes(m.amaxes)
		s.rt.UpdateScaleInv(r)
		s.observeReduction(optim.OpAllReduce, r, s.l.GroupName(m.expert))
		s.rt.AllReduceAmax(r)
	}
}

// copyMain writes the updated shards of a member into the parameter view of its gradient buffers.
func (s *Sharded) copyMain(m *member) {
	s.observe(optim.OpCopyMainToBuffer)
	c := &s.w.cast
	*c = optim.Cast{Buckets: m.buckets, Copies: m.copies}
	for _, q := range m.quantize {
		c.Copies.Tensors++
		c.Copies.Bytes += units.Bytes(q.Elems) * s.l.Buckets[q.Bucket].DTypes.ParamSync.Size()
	}
	s.rt.Cast(c)
}

// clip looks for infinite gradients, computes the norm over the ranks that hold one copy of the state
// and clips by it. It returns false if the step is skipped.
func (s *Sharded) clip() bool {
	group, size, name := s.normGroup()
	if s.c.GradScaler {
		r := s.scalar(group, size, optim.Max, dtype.FP32)
		s.observeReduction(optim.OpAllReduce, r, name)
		s.localNorm()
		s.rt.AllReduceNorm(r)
		if !s.rt.CheckFinite() {
			return false
		}
	}
	if !(s.c.MaxNorm > 0) {
		return true
	}
	if !s.c.GradScaler {
		s.localNorm()
	}
	r := s.scalar(group, size, optim.Sum, dtype.FP32)
	s.observeReduction(optim.OpAllReduce, r, name)
	s.rt.AllReduceNorm(r)
	if s.steps == 0 {
		// Whether some parameters have a norm group of their own is found out once.
		for range s.chain {
			s.observeReduction(optim.OpAllReduce, s.scalar(group, size, optim.Max, dtype.I32), name)
		}
	}
	s.rt.Clip(s.c.MaxNorm)
	return true
}

// normGroup returns the ranks over which the norm is added up: all that hold one copy of the state, or
// one copy of the model where nothing is sharded.
func (s *Sharded) normGroup() (group optim.Group, size int, name string) {
	o := &s.l.Options
	size = s.c.Tensor * o.Pipeline
	switch {
	case !o.DistributedOptimizer && s.c.Tensor == 1:
		return optim.Pipeline, size, "pp"
	case !o.DistributedOptimizer:
		return optim.Pipeline, size, "mp"
	case o.Instances > 1:
		return optim.Instance, size * o.World / o.Instances, "intra_dist_opt"
	}
	return optim.World, size * o.World, "intra_dist_opt"
}

// localNorm measures the gradients of this rank's parts of parameters: paddings do not count.
func (s *Sharded) localNorm() {
	n := &s.w.norm
	*n = optim.Norm{Params: s.w.normed[:0], Kernels: s.w.kernels[:]}
	total := optim.NormKernel{DType: dtype.FP32}
	for i := range s.chain {
		n.Params = append(n.Params, s.chain[i].norm...)
		total.Tensors += s.chain[i].owned.Tensors
		total.Elems += s.chain[i].owned.Elems
	}
	s.w.normed = n.Params
	s.w.kernels[0] = total
	s.rt.LocalNorm(n)
}
