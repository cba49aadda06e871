package memory

import (
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/units"
)

// Memory that libraries take whatever the model is. Measured: on an H200 with PyTorch 2.11, CUDA 13.0, one
// process and one GPU (docs/memory.md has the readings).
const (
	// context is CUDA's context with the kernels of a training step loaded: 527 MiB for itself, 765 after
	// products, attention, norms and an update, forward and backward. Measured.
	context = 765 * units.MiB
	// firstComm is the first NCCL communicator with NCCL's own kernels, moreComm each other one. Measured,
	// of groups of one rank.
	firstComm = 558 * units.MiB
	moreComm  = 390 * units.MiB

	// reserved is what the caching allocator holds beside the most that is in use at once, in thousandths:
	// the median of 11 layouts of Megatron-LM that print both (SimuMax B200 release, 4dcaae51; 28 to 93).
	reserved = 47

	// engineWorkspace is Transformer Engine's for cuBLAS from Hopper on, oldEngineWorkspace before:
	// get_cublas_workspace_size_bytes in transformer_engine/pytorch/module/base.py.
	engineWorkspace    = 32 * units.MiB
	oldEngineWorkspace = 4 * units.MiB
	// overlapStreams are the streams that each have one with user buffers (_NUM_MAX_UB_STREAMS there).
	overlapStreams = 3

	// PyTorch gives each handle of cuBLAS a workspace for each stream, and the thread of the backward pass
	// has a handle of its own: aten/src/ATen/cuda/CublasHandlePool.cpp.
	blasHandles = 2
	// blasHopper is its default on Hopper, blasOther elsewhere, blasFixed with
	// CUBLAS_WORKSPACE_CONFIG=:4096:8, which deterministic algorithms need.
	blasHopper = 32 * units.MiB
	blasOther  = 8320 * units.KiB
	blasFixed  = 32 * units.MiB

	// messages that a rank between stages holds at any time: an input or output, and a gradient.
	messages = 2
)

// userBuffers are the tensors of a whole activation that tensor-parallel overlap registers: ten names in
// initialize_ub of transformer_engine/pytorch/module/base.py, of which six are FP8 with FP8 products.
const (
	userBuffers    = 10
	userBuffersFP8 = 6
)

// workspace is what libraries hold inside the allocator.
func (in *Input) workspace(g *hw.GPU) units.Bytes {
	blas := blasOther
	switch {
	case in.Deterministic:
		blas = blasFixed
	case g.Arch == hw.Hopper:
		blas = blasHopper
	}
	n := blasHandles * blas
	if !in.Storage.Local {
		engine := engineWorkspace
		if g.Arch < hw.Hopper {
			engine = oldEngineWorkspace
		}
		if in.Execution.TPOverlap {
			engine *= overlapStreams
		}
		n += engine
	} else if in.Storage.PlainAttention { // the input of baddbmm, one for all layers
		n += in.Model.Scores(&in.Execution)
	}
	return n
}

// outside is what CUDA and NCCL take beside the allocator.
func (in *Input) outside() units.Bytes {
	if in.Communicators == 0 {
		return context
	}
	return context + firstComm + moreComm*units.Bytes(in.Communicators-1)
}

// gathered is the memory of gathered inputs.
func (in *Input) gathered(st *model.Stage) units.Bytes {
	whole := in.Model.Gathered(&in.Execution)
	n := units.Bytes(0)
	if in.Storage.Local || st.Index == st.PP-1 { // the output layer is Megatron's own
		n = whole
	}
	if in.Execution.TPOverlap {
		each := whole * (userBuffers - userBuffersFP8)
		if in.Model.FP8 {
			each += whole / in.Model.DType.Size() * userBuffersFP8
		} else {
			each += whole * userBuffersFP8
		}
		n += each
	}
	return n
}

// dummies is the memory of the placeholders of weight gradients: one for each shape that a product adds to
// main_grad.
func (in *Input) dummies(st *model.Stage) (n units.Bytes) {
	if !in.Storage.KeptDummies || !in.Execution.GradFusion {
		return 0
	}
	seen := map[[2]int64]bool{}
	count := func(shape []int64) {
		if len(shape) != 2 || seen[[2]int64(shape)] {
			return
		}
		seen[[2]int64(shape)] = true
		n += units.Bytes(shape[0]*shape[1]) * in.Model.DType.Size()
	}
	for p := range st.Params {
		switch st.Params[p].Role {
		case model.ProjWeight, model.QKVWeight, model.FC1Weight, model.FC2Weight, model.OutputLayer,
			model.ExpertFC1Weight, model.ExpertFC2Weight, model.SharedFC1Weight, model.SharedFC2Weight:
			count(st.Params[p].Shape)
		case model.WordEmbedding:
			if st.PP == 1 && st.Config.Tied { // it is the output layer's weight
				count(st.Params[p].Shape)
			}
		}
	}
	return n
}
