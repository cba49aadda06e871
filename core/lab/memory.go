package lab

import (
	"distopt/core/model"
	"distopt/core/units"
)

// memory bounds the bytes of a run's arrays from above.
//
// Of each parameter element a rank holds, in fp32 at most: the parameter and its gradient twice
// (for the optimizer and for the one before the seed change), the gradient's bucket twice, the
// gradient as it was computed, and the parameter decoded. Once for all ranks there are state,
// reduced gradients, updated and gathered values, twice too, and snapshots of the state before and
// after the step.
func (c *Config) memory(s *model.Stage) units.Bytes {
	const (
		perRank = 4 * (2*3 + 2)
		once    = 4 * (2*(3+1+2+3) + 2*3 + 4)
	)
	n := units.Bytes(elements(s))
	arrays := n * units.Bytes(len(c.Variants)) * units.Bytes(c.Ranks*perRank+once)
	activations := 4 * units.Bytes(c.floats())
	records := units.Bytes(c.Steps*len(c.Variants)) * units.Bytes(len(s.Params)*recordBytes+runBytes)
	return arrays + activations + records
}

// Bytes of a TensorRun and of a VariantRun with room for an event.
const (
	recordBytes = 72
	runBytes    = 512
)

// floats returns the size of a network's activations without making them.
func (c *Config) floats() int {
	rows := c.Batch * c.Window
	if c.Model == MLP {
		n := 2*max(c.Window*c.Hidden, c.FFN) + c.Window*c.Hidden + 3*c.Layers*c.FFN
		return rows * (n + len(alphabet) + 2*c.Window)
	}
	layer := rows*(8*c.Hidden+2+3*c.FFN) + c.Heads*rows*c.Window
	return c.Layers*layer + rows*(9*c.Hidden+len(alphabet)+c.FFN+5)
}
