package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/units"
)

func TestBucketSize(t *testing.T) {
	// The examples of the specification's layout chapter.
	for _, c := range []struct {
		cap           float64
		dp            int
		dtype         string
		shard, bucket units.Elems
	}{
		{100, 8, "bf16", 6553600, 52428800},
		{125, 16, "bf16", 4096000, 65536000},
		{220, 6, "bf16", 19223872, 115343232},
		{100, 3, "fp32", 8738112, 26214336},
		{100, 7, "bf16", 7489792, 52428544},
		{0.0001, 4, "bf16", 64, 256},
	} {
		s := Default(NeMoAdam)
		s.Hardware.Devices, s.Optim.BucketCapMB, s.Optim.GradSync = c.dp, c.cap, c.dtype
		bucket, shard := s.BucketSize()
		require.Equal(t, c.shard, shard)
		require.Equal(t, c.bucket, bucket)
	}
}

// What NeMo passes, as recorded with the reference layouts (optimizer_args of NeMo's cases).
func TestNeMoOptimizer(t *testing.T) {
	for _, c := range []struct {
		fp8         bool
		state, grad string
		want        OptimizerArgs
	}{
		{true, "", "bf16", OptimizerArgs{dtype.FP32, dtype.BF16, dtype.BF16, true, false}},
		{true, "", "fp32", OptimizerArgs{dtype.FP32, dtype.FP32, dtype.BF16, true, false}},
		{false, "", "bf16", OptimizerArgs{dtype.FP32, dtype.BF16, dtype.BF16, false, true}},
		{false, "", "fp32", OptimizerArgs{dtype.FP32, dtype.FP32, dtype.BF16, false, true}},
		{false, "bf16", "bf16", OptimizerArgs{dtype.BF16, dtype.BF16, dtype.BF16, false, false}},
		{false, "fp16", "", OptimizerArgs{dtype.FP16, dtype.FP16, dtype.BF16, true, false}}, // the rule's last line
	} {
		s := good()
		s.Precision.FP8Params = c.fp8
		if c.state != "" {
			s.Optim.State = c.state
		}
		s.Optim.GradSync = c.grad
		require.Equal(t, c.want, s.NeMoOptimizer())
		require.Equal(t, c.want, s.Optimizer())
	}
}

func TestModelDType(t *testing.T) {
	s := good()
	require.Equal(t, dtype.BF16, s.ModelDType())
	s.Precision.Trainer = FP16
	require.Equal(t, dtype.FP16, s.ModelDType())
	s.Precision.O2 = false
	require.Equal(t, dtype.FP32, s.ModelDType())
}
