package scenario

import "fmt"

// recompute checks what Megatron-core asks of activation checkpointing.
func (c *checker) recompute() {
	r := &c.s.Recompute
	if !c.usable(pathRecompute, pathRecomputeMethod, pathRecomputeLayers) {
		return
	}
	switch r.Granularity {
	case Full:
		c.recomputeFull()
		return
	case Selective:
		if r.Method != "" {
			c.note(pathRecomputeMethod, "No effect: selective recompute covers every layer.")
		}
		if r.Layers > 0 {
			c.fail(pathRecomputeLayers, "null with activations_checkpoint_granularity selective, which covers every layer", Edit{pathRecomputeLayers, Null})
		}
		return
	}
	const without = "No effect without activations_checkpoint_granularity."
	if r.Method != "" {
		c.note(pathRecomputeMethod, without)
	}
	if r.Layers > 0 {
		c.note(pathRecomputeLayers, without)
	}
}

// recomputeFull checks method and layers of full recompute, which has defaults for neither.
func (c *checker) recomputeFull() {
	s, r := c.s, &c.s.Recompute
	if r.Method == "" {
		c.fail(pathRecomputeMethod, "uniform or block with activations_checkpoint_granularity full", Edit{pathRecomputeMethod, Uniform})
	}
	if r.Layers == 0 {
		c.fail(pathRecomputeLayers, "at least 1 with activations_checkpoint_granularity full", edit(pathRecomputeLayers, 1))
		return
	}
	layers := 0
	if c.usable(pathLayers, pathPP, pathVP) {
		layers = s.ChunkLayers()
	}
	switch {
	case layers == 0:
	case r.Method == Uniform && layers%r.Layers != 0:
		near := nearestFit(r.Layers, layers, func(n int) bool { return layers%n == 0 })
		c.fail(pathRecomputeLayers, fmt.Sprintf("a divisor of the %d layers of a model chunk with uniform", layers), edit(pathRecomputeLayers, near))
	case r.Method == Block && r.Layers > layers:
		c.note(pathRecomputeLayers, fmt.Sprintf("A model chunk has %d layers: all of them are recomputed.", layers))
	}
}
