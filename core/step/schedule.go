package step

// The schedules of Megatron-core at the version that NeMo pins (core/pipeline_parallel/
// schedules.py), seen from one stage: which microbatch runs when, where the callbacks are made.

// schedule runs the microbatches of one step, as get_forward_backward_func chooses.
func (r *runner) schedule() {
	switch {
	case r.stages == 1:
		r.noPipelining()
	case len(r.chunks) == 1:
		r.oneForwardOneBackward()
	default:
		r.interleaved()
	}
}

// noPipelining leaves no_sync before the last microbatch, whose backward launches grad syncs.
func (r *runner) noPipelining() {
	m := r.micros
	r.setNoSync(true)
	for i := range m - 1 {
		r.forward(i, 0)
		r.backward(i, 0)
	}
	r.setNoSync(false)
	r.forward(m-1, 0)
	r.backward(m-1, 0)
}

// oneForwardOneBackward: the first stage leaves no_sync before its last backward, the others
// after it and then launch all at once (all of them before it, if unaligned). A call without messages is not made.
func (r *runner) oneForwardOneBackward() {
	m := r.micros
	warmup := min(r.stages-r.stage-1, m)
	steady := m - warmup
	r.setNoSync(true)
	for i := range warmup {
		r.exchange(r.recvForward(i, 0))
		r.forward(i, 0)
		r.exchange(r.sendForward(i, 0))
	}
	if steady > 0 {
		r.exchange(r.recvForward(warmup, 0))
	}
	for i := range steady {
		r.forward(warmup+i, 0)
		r.exchange(r.sendForward(warmup+i, 0), r.recvBackward(i, 0))
		if i == m-1 && r.cfg.Unaligned {
			r.setNoSync(false)
		}
		r.backward(i, 0)
		if i == steady-1 {
			r.exchange(r.sendBackward(i, 0))
		} else {
			r.exchange(r.sendBackward(i, 0), r.recvForward(warmup+i+1, 0))
		}
	}
	for i := steady; i < m; i++ {
		if i == m-1 && (r.stage == 0 || r.cfg.Unaligned) {
			r.setNoSync(false)
		}
		r.exchange(r.recvBackward(i, 0))
		r.backward(i, 0)
		r.exchange(r.sendBackward(i, 0))
	}
	if r.noSync {
		r.setNoSync(false)
		r.gradSync(0)
	}
}
