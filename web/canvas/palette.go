// Package canvas paints the timeline and the buckets. A frame is built as a display list in
// pure Go, which is tested natively; the browser twin hands it to web/static/paint.js.
//
// Lengths are CSS pixels unless a name says device pixels.
package canvas

import "distopt/web/derive"

// Token is a colour of the style sheet (tokens.css), resolved by the browser at run time.
type Token uint8

// The tokens, in the order of tokenNames.
const (
	Surface Token = iota
	Surface2
	Surface3
	Text
	Text2
	Text3
	Line
	Line2
	Accent
	AccentInk
	AccentWash
	Exposed
	ExposedInk
	ExposedWash
	Warn
	Forward
	ForwardInk
	ForwardSoft
	Backward
	BackwardInk
	BackwardSoft
	Optimizer
	OptimizerInk
	Grad
	GradInk
	Param
	ParamInk
	Tensor
	TensorInk
	Pipeline
	PipelineInk
	Bubble
	Host
	FP32
	BF16
	FP16
	FP8
	Attn
	AttnEdge
	MLP
	MLPEdge
	Embed
	EmbedEdge
	Small
	SmallEdge
	Padding
	Shard
	numTokens
)

var tokenNames = [numTokens]string{
	"surface", "surface-2", "surface-3", "text", "text-2", "text-3", "line", "line-2",
	"accent", "accent-ink", "accent-wash", "exposed", "exposed-ink", "exposed-wash", "warn",
	"lane-fwd", "lane-fwd-ink", "lane-fwd-soft", "lane-bwd", "lane-bwd-ink", "lane-bwd-soft",
	"lane-optimizer", "lane-optimizer-ink", "lane-grad", "lane-grad-ink", "lane-param", "lane-param-ink",
	"lane-tp", "lane-tp-ink", "lane-p2p", "lane-p2p-ink", "lane-bubble", "lane-host",
	"dtype-fp32", "dtype-bf16", "dtype-fp16", "dtype-fp8",
	"param-attn", "param-attn-edge", "param-mlp", "param-mlp-edge", "param-embed", "param-embed-edge",
	"param-small", "param-small-edge", "padding", "shard",
}

// Palette holds the tokens as pixels, red in the lowest byte.
type Palette [numTokens]uint32

// fills and inks give the fill of a class and the colour of a label on it.
var fills = [derive.NumClasses]Token{
	derive.ClassForward: Forward, derive.ClassBackward: Backward,
	derive.ClassForwardLayer: ForwardSoft, derive.ClassBackwardLayer: BackwardSoft,
	derive.ClassOptimizer: Optimizer, derive.ClassGradSync: Grad, derive.ClassParamSync: Param,
	derive.ClassTensor: Tensor, derive.ClassPipeline: Pipeline, derive.ClassHost: Host,
	derive.ClassExposed: Exposed, derive.ClassExposedBubble: Exposed, derive.ClassBubble: Bubble,
}

var inks = [derive.NumClasses]Token{
	derive.ClassForward: ForwardInk, derive.ClassBackward: BackwardInk,
	derive.ClassForwardLayer: Text, derive.ClassBackwardLayer: Text,
	derive.ClassOptimizer: OptimizerInk, derive.ClassGradSync: GradInk, derive.ClassParamSync: ParamInk,
	derive.ClassTensor: TensorInk, derive.ClassPipeline: PipelineInk, derive.ClassHost: Surface,
	derive.ClassExposed: ExposedInk, derive.ClassExposedBubble: Text, derive.ClassBubble: Text,
}

// colours gives each class its pixel. Hatched classes are drawn over in the second pass; in
// the raster they are the mean of hatch and ground.
func (p *Palette) colours() (c [derive.NumClasses]uint32) {
	for i := range c {
		c[i] = p[fills[i]]
	}
	c[derive.ClassExposedBubble] = mix(p[Exposed], p[ExposedWash], 110)
	c[derive.ClassBubble] = mix(p[Bubble], p[Surface], 90)
	return c
}

// mix blends a over b; share is a's in 1/256.
func mix(a, b, share uint32) uint32 {
	channel := func(shift uint) uint32 {
		x, y := a>>shift&255, b>>shift&255
		return (x*share + y*(256-share)) >> 8 << shift
	}
	return channel(0) | channel(8) | channel(16) | 255<<24
}
