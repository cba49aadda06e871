package hw

import "distopt/core/units"

// h200 is measured on one H200 (testdata/README.md). TestCurvesFollowFromMeasurements fits the
// numbers again and says how far a curve is from its samples.
var h200 = Curves{
	SMs:      132,
	L2:       60 * units.MiB,
	BF16:     gemm(873.8, 111.4, 0.529, 3.845, 4.0, 8.96, 3.5),
	FP8Fast:  gemm(1617, 210.4, 0.107, 1.209, 4.15, 6.81, 0.26),
	FP8Split: gemm(1550, 183.9, 0.85, 0.442, 4.44, 5.39, 4.6),
	Attention: [NumBackend]Attention{
		FlashAttention2: {
			Forward:  [2]FlashCurve{flash(64, 292.1, 432.3, 1.18, 0), flash(128, 332.4, 341, 1.044, 0)},
			Backward: [2]FlashCurve{flash(64, 293.6, 951.6, 1.018, 0.72), flash(128, 325.5, 809.9, 0.8895, 19.4)},
		},
		CuDNN: {
			Forward:  [2]FlashCurve{flash(64, 504.5, 504.9, 1.358, 1.3), flash(128, 697.2, 402.4, 1.209, 4.78)},
			Backward: [2]FlashCurve{flash(64, 488.7, 997.8, 0.9976, 0), flash(128, 625.7, 842.9, 0.9564, 11.05)},
		},
	},
	Streams: [NumPattern]StreamCurve{
		Elementwise:      stream(2.285, 4.393, 4.306),
		Fill:             stream(2.184, 3.32, 3.415),
		Upcast:           stream(4.648, 2.214, 2.173),
		NormForward:      stream(4.272, 2.29, 2.439),
		RMSNormForward:   stream(2.513, 3.713, 2.315),
		NormBackward:     stream(7.967, 1.679, 1.585),
		Activation:       stream(2.35, 3.948, 4.213),
		Dropout:          stream(2.942, 1.919, 1.977),
		ColumnSum:        stream(8.06, 2.913, 4.821),
		CastFP8:          stream(2.059, 3.687, 3.833),
		CastTransposeFP8: stream(2.586, 3.319, 3.371),
		TransposeFP8:     stream(2.465, 5.142, 3.09),
		Softmax:          stream(3.841, 3.148, 2.118),
		Scatter:          stream(30, 0.105, 0.105),
	},
	Power: powers[Hopper],
	Multi: [NumMultiTensor]ChunkCurve{
		AdamUpdate:  chunk(2.929, 19.38, 3.755, 1.126),
		SquaredNorm: chunk(6.569, 5.53, 4.644, 1.914),
		ConvertCopy: chunk(2.736, 7.183, 3.23, 0.935),
	},
}

func gemm(rate, prologue, waveLoss, side, floor, bandwidth, split float64) GEMMCurve {
	return GEMMCurve{
		Rate: units.FLOPsPerSecond(rate * tflop), Prologue: prologue, WaveLoss: waveLoss, TileSide: side,
		Floor: units.Seconds(floor * 1e-6), Bandwidth: units.BytesPerSecond(bandwidth * 1e12), Split: units.Seconds(split * 1e-6),
	}
}

func flash(dim, rate, half, tail, floor float64) FlashCurve {
	return FlashCurve{Dim: dim, Rate: units.FLOPsPerSecond(rate * tflop), Half: half, Tail: tail, Floor: units.Seconds(floor * 1e-6)}
}

func stream(floor, near, bandwidth float64) StreamCurve {
	return StreamCurve{units.Seconds(floor * 1e-6), units.BytesPerSecond(near * 1e12), units.BytesPerSecond(bandwidth * 1e12)}
}

func chunk(floor, latency, bandwidth, elements float64) ChunkCurve {
	return ChunkCurve{
		units.Seconds(floor * 1e-6), units.Seconds(latency * 1e-6), units.BytesPerSecond(bandwidth * 1e12), elements * 1e12,
	}
}
