package step

// interleaved is 1F1B over virtual stages. Iteration k of the forward (and of the backward) order
// is microbatch micro(k) through chunk fwdChunk(k) (bwdChunk(k)). What a stage receives next is
// always the input of its next forward, the gradient of its next backward.
//
// With OverlapP2P the calls of the steady phase are started and waited for one pass later; the
// last forward's send is never waited for.
func (r *runner) interleaved() {
	chunks := len(r.chunks)
	total := r.micros * chunks
	warmup := min(2*(r.stages-r.stage-1)+(chunks-1)*r.cfg.group(r.stages), total)
	if !r.cfg.Megatron && r.micros == r.stages {
		warmup = total
	}
	allWarmup := warmup == total
	steady := total - warmup
	clear(r.synced)

	r.setNoSync(true)
	r.paramSync(0)
	r.paramSync(1)
	r.exchange(r.nextInput(0))

	var fwd, bwd requests
	for k := range warmup {
		r.wait(&fwd)
		r.forwardIteration(k, total)
		first := k == warmup-1 && !allWarmup // the first gradient is received with it
		switch {
		case first && r.cfg.OverlapP2P:
			r.start(&fwd, r.sentOutput(k), r.nextInput(k+1))
			r.start(&bwd, r.nextGradient(0))
		case first:
			r.exchangeAlways(r.nextInput(k+1), r.sentOutput(k), r.nextGradient(0))
		case r.cfg.OverlapP2P:
			r.start(&fwd, r.sentOutput(k), r.nextInput(k+1))
		default:
			r.exchangeAlways(r.nextInput(k+1), r.sentOutput(k))
		}
	}
	for k := range steady {
		f := warmup + k
		if r.cfg.OverlapP2P {
			r.wait(&fwd)
			r.forwardIteration(f, total)
			r.start(&fwd, r.sentOutput(f), r.nextInput(f+1))
			r.wait(&bwd)
			r.backwardIteration(k)
			r.start(&bwd, r.sentGradient(k), r.nextGradient(k+1))
		} else {
			r.forwardIteration(f, total)
			r.backwardIteration(k)
			r.exchangeAlways(r.sentGradient(k), r.nextInput(f+1), r.sentOutput(f), r.nextGradient(k+1))
		}
	}
	r.wait(&bwd)
	if allWarmup {
		r.exchange(r.nextGradient(0))
	}
	for k := steady; k < total; k++ {
		r.backwardIteration(k)
		r.exchangeAlways(r.sentGradient(k), r.nextGradient(k+1))
	}
	r.setNoSync(false)
	for c := range r.synced {
		if !r.synced[c] && !r.cfg.Unaligned {
			r.gradSync(c)
		}
	}
}

// forwardIteration gathers a later chunk's parameters when the first stage would first use the
// chunk before it, then runs forward k.
func (r *runner) forwardIteration(k, total int) {
	if j := k + r.stage; j < total && r.micro(j) == 0 {
		if c := r.fwdChunk(j) + 1; 1 < c && c < len(r.chunks) {
			r.paramSync(c)
		}
	}
	r.forward(r.micro(k), r.fwdChunk(k))
}

// backwardIteration runs backward k, then reduces the gradients of the chunk that the first
// stage's clock has just finished: all stages launch at about the same time. Unaligned, a chunk's
// last backward pass itself launches them.
func (r *runner) backwardIteration(k int) {
	if r.cfg.Unaligned {
		r.setNoSync(r.micro(k) != r.micros-1)
		r.backward(r.micro(k), r.bwdChunk(k))
		r.setNoSync(true)
		return
	}
	r.backward(r.micro(k), r.bwdChunk(k))
	if j := k - r.stage; j >= 0 && r.micro(j) == r.micros-1 {
		r.setNoSync(false)
		c := r.bwdChunk(j)
		r.gradSync(c)
		r.synced[c] = true
	}
	r.setNoSync(true)
}

// virtuals is the number of virtual stages.
func (r *runner) virtuals() int { return r.stages * len(r.chunks) }

func (r *runner) micro(k int) int    { return int(r.iterations[k].micro) }
func (r *runner) fwdChunk(k int) int { return int(r.iterations[k].chunk) }
func (r *runner) bwdChunk(k int) int { return len(r.chunks) - 1 - int(r.iterations[k].chunk) }

// iteration is what every stage does at a place of the interleaved order. A forward iteration of
// chunk c is a backward one of the chunk that is as far from the end.
type iteration struct {
	micro int32
	chunk int32
}

// iterations lists the interleaved order of a step; without virtual stages there is none.
func iterations(group, chunks, micros int) []iteration {
	if chunks == 1 {
		return nil
	}
	list := make([]iteration, 0, micros*chunks)
	for first := 0; first < micros; first += group {
		for c := range chunks {
			for i := range min(group, micros-first) {
				list = append(list, iteration{int32(first + i), int32(c)})
			}
		}
	}
	return list
}

// nextInput is what is received before forward iteration k, nextGradient before backward iteration k:
// what the neighbour has just made. To the first stage the last one hands on what it made stages-1
// iterations earlier, for the chunk after it; with the usual group that is the input of iteration k.
func (r *runner) nextInput(k int) message {
	chunk := 0
	if r.stage == 0 {
		k -= r.stages
		chunk = 1
	}
	if k < 0 || k >= r.micros*len(r.chunks) {
		return message{}
	}
	if chunk += r.fwdChunk(k); chunk >= len(r.chunks) {
		return message{}
	}
	return r.recvForward(r.micro(k), chunk)
}

func (r *runner) nextGradient(k int) message {
	chunk := 0
	if r.stage == r.stages-1 {
		k -= r.stages
		chunk = -1
	}
	if k < 0 || k >= r.micros*len(r.chunks) {
		return message{}
	}
	if chunk += r.bwdChunk(k); chunk < 0 {
		return message{}
	}
	return r.recvBackward(r.micro(k), chunk)
}

func (r *runner) sentOutput(k int) message   { return r.sendForward(r.micro(k), r.fwdChunk(k)) }
func (r *runner) sentGradient(k int) message { return r.sendBackward(r.micro(k), r.bwdChunk(k)) }
