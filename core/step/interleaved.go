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
	allWarmup := r.micros == r.stages
	warmup := total
	if !allWarmup {
		warmup = min(2*(r.stages-r.stage-1)+(chunks-1)*r.stages, total)
	}
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
			r.backwardIteration(k, total)
			r.start(&bwd, r.sentGradient(k), r.nextGradient(k+1))
		} else {
			r.forwardIteration(f, total)
			r.backwardIteration(k, total)
			r.exchangeAlways(r.sentGradient(k), r.nextInput(f+1), r.sentOutput(f), r.nextGradient(k+1))
		}
	}
	r.wait(&bwd)
	if allWarmup {
		r.exchange(r.nextGradient(0))
	}
	for k := steady; k < total; k++ {
		r.backwardIteration(k, total)
		r.exchangeAlways(r.sentGradient(k), r.nextGradient(k+1))
	}
	r.setNoSync(false)
	for c := range r.synced {
		if !r.synced[c] {
			r.gradSync(c)
		}
	}
}

// forwardIteration gathers a later chunk's parameters when the first stage would first use the
// chunk before it, then runs forward k.
func (r *runner) forwardIteration(k, total int) {
	if j := k + r.stage; j < total && r.firstOfChunk(j) {
		if c := r.fwdChunk(j) + 1; 1 < c && c < len(r.chunks) {
			r.paramSync(c)
		}
	}
	r.forward(r.micro(k), r.fwdChunk(k))
}

// backwardIteration runs backward k, then reduces the gradients of the chunk that the first
// stage's clock has just finished: all stages launch at about the same time.
func (r *runner) backwardIteration(k, total int) {
	r.backward(r.micro(k), r.bwdChunk(k))
	if j := k - r.stage; j >= 0 && r.lastOfChunk(j, total) {
		r.setNoSync(false)
		c := r.bwdChunk(j)
		r.gradSync(c)
		r.synced[c] = true
	}
	r.setNoSync(true)
}

// group is the number of iterations in which stages microbatches pass all chunks.
func (r *runner) group() int { return r.stages * len(r.chunks) }

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
func iterations(stages, chunks, micros int) []iteration {
	if chunks == 1 {
		return nil
	}
	list := make([]iteration, 0, micros*chunks)
	for first := 0; first < micros; first += stages {
		for c := range chunks {
			for i := range stages {
				list = append(list, iteration{int32(first + i), int32(c)})
			}
		}
	}
	return list
}

// firstOfChunk reports whether iteration k is the first one of its chunk.
func (r *runner) firstOfChunk(k int) bool { return k < r.group() && k%r.stages == 0 }

// lastOfChunk reports whether iteration k is the last one of its chunk.
func (r *runner) lastOfChunk(k, total int) bool {
	return k >= total-r.group() && k%r.stages == r.stages-1
}

// nextInput and nextGradient receive for forward or backward iteration k, sentOutput and
// sentGradient send what it made.
func (r *runner) nextInput(k int) message {
	if k >= r.micros*len(r.chunks) {
		return message{}
	}
	return r.recvForward(r.micro(k), r.fwdChunk(k))
}

func (r *runner) nextGradient(k int) message {
	if k >= r.micros*len(r.chunks) {
		return message{}
	}
	return r.recvBackward(r.micro(k), r.bwdChunk(k))
}

func (r *runner) sentOutput(k int) message   { return r.sendForward(r.micro(k), r.fwdChunk(k)) }
func (r *runner) sentGradient(k int) message { return r.sendBackward(r.micro(k), r.bwdChunk(k)) }
