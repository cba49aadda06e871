package lab

import (
	"distopt/core/bucket"
	"distopt/core/model"
)

// transformer is GPT as core/model lays out its parameters: pre-norm layers, the rows of the fused
// query-key-value projection head by head, output by the word embedding.
type transformer struct {
	hidden, heads, ffn, window, batch, vocab int

	outside roles
	layers  []layer

	x       []float32 // residual stream, after the last layer at the end
	final   normed
	logits  []float32
	targets []int
	tokens  []int

	dx, dy, dwide, dqkv, work []float32 // gradients
}

type roles = [model.OutputLayer + 1]bucket.ParamID

// normed is what a norm leaves.
type normed struct{ out, unit, inverse []float32 }

// layer holds a layer's parameters and what its backward pass needs of the forward pass.
type layer struct {
	at                       roles
	norm1, norm2             normed
	qkv, attended, weights   []float32
	inside, activated, slope []float32
}

func newTransformer(c *Config, s *model.Stage) *transformer {
	t := &transformer{
		hidden: c.Hidden, heads: c.Heads, ffn: c.FFN, window: c.Window, batch: c.Batch, vocab: len(alphabet),
		outside: places(s, -1), layers: make([]layer, c.Layers),
	}
	rows := c.Batch * c.Window
	norm := func() normed {
		return normed{make([]float32, rows*c.Hidden), make([]float32, rows*c.Hidden), make([]float32, rows)}
	}
	for i := range t.layers {
		t.layers[i] = layer{
			at: places(s, i), norm1: norm(), norm2: norm(),
			qkv: make([]float32, rows*3*c.Hidden), attended: make([]float32, rows*c.Hidden),
			weights: make([]float32, c.Heads*rows*c.Window),
			inside:  make([]float32, rows*c.FFN), activated: make([]float32, rows*c.FFN), slope: make([]float32, rows*c.FFN),
		}
	}
	t.x, t.final, t.logits = make([]float32, rows*c.Hidden), norm(), make([]float32, rows*t.vocab)
	t.targets, t.tokens = make([]int, rows), make([]int, rows)
	t.dx, t.dy, t.work = make([]float32, rows*c.Hidden), make([]float32, rows*c.Hidden), make([]float32, c.Window)
	t.dwide, t.dqkv = make([]float32, rows*c.FFN), make([]float32, rows*3*c.Hidden)
	return t
}

func (t *transformer) length() int { return t.window + 1 }

func (t *transformer) pass(params, grads [][]float32, data [][]int, factor float32) float32 {
	for i, sequence := range data {
		copy(t.tokens[i*t.window:], sequence[:t.window])
		copy(t.targets[i*t.window:], sequence[1:])
	}
	h := t.hidden
	words, positions := t.outside[model.WordEmbedding], t.outside[model.PositionEmbedding]
	for r, token := range t.tokens {
		row := t.x[r*h:][:h]
		word, position := params[words][token*h:][:h], params[positions][r%t.window*h:][:h]
		for i := range row {
			row[i] = word[i] + position[i]
		}
	}
	for i := range t.layers {
		t.forward(&t.layers[i], params)
	}
	weight, bias := t.outside[model.FinalNormWeight], t.outside[model.FinalNormBias]
	layerNorm(t.final.out, t.final.unit, t.final.inverse, t.x, params[weight], params[bias])
	linear(t.logits, t.final.out, params[words], nil, h, t.vocab)
	rows := len(t.tokens)
	loss := crossEntropy(t.logits, t.targets, factor/float32(rows))

	linearBack(t.dy, grads[words], nil, t.logits, t.final.out, params[words], h, t.vocab)
	clear(t.dx)
	layerNormBack(t.dx, grads[weight], grads[bias], t.dy, t.final.unit, t.final.inverse, params[weight])
	for i := len(t.layers) - 1; i >= 0; i-- {
		t.backward(&t.layers[i], params, grads)
	}
	for r, token := range t.tokens {
		addRow(grads[words][token*h:][:h], 1, t.dx[r*h:][:h])
		addRow(grads[positions][r%t.window*h:][:h], 1, t.dx[r*h:][:h])
	}
	return float32(loss / float64(rows))
}

// forward adds a layer's two branches to the residual stream.
func (t *transformer) forward(l *layer, params [][]float32) {
	h, at := t.hidden, &l.at
	layerNorm(l.norm1.out, l.norm1.unit, l.norm1.inverse, t.x, params[at[model.QKVNormWeight]], params[at[model.QKVNormBias]])
	linear(l.qkv, l.norm1.out, params[at[model.QKVWeight]], params[at[model.QKVBias]], h, 3*h)
	t.eachHead(func(qkv, out, weights int) {
		n := h / t.heads
		attention(l.attended[out:], l.weights[weights:], l.qkv[qkv:], l.qkv[qkv+n:], l.qkv[qkv+2*n:], t.window, n, 3*h, h)
	})
	linear(t.dy, l.attended, params[at[model.ProjWeight]], params[at[model.ProjBias]], h, h)
	add(t.x, t.dy)

	layerNorm(l.norm2.out, l.norm2.unit, l.norm2.inverse, t.x, params[at[model.FC1NormWeight]], params[at[model.FC1NormBias]])
	linear(l.inside, l.norm2.out, params[at[model.FC1Weight]], params[at[model.FC1Bias]], h, t.ffn)
	gelu(l.activated, l.slope, l.inside)
	linear(t.dy, l.activated, params[at[model.FC2Weight]], params[at[model.FC2Bias]], t.ffn, h)
	add(t.x, t.dy)
}

// backward takes the gradient of the residual stream, dx, through a layer.
func (t *transformer) backward(l *layer, params, grads [][]float32) {
	h, at := t.hidden, &l.at
	w, b := at[model.FC2Weight], at[model.FC2Bias]
	linearBack(t.dwide, grads[w], grads[b], t.dx, l.activated, params[w], t.ffn, h)
	for i, s := range l.slope {
		t.dwide[i] *= s
	}
	w, b = at[model.FC1Weight], at[model.FC1Bias]
	linearBack(t.dy, grads[w], grads[b], t.dwide, l.norm2.out, params[w], h, t.ffn)
	w, b = at[model.FC1NormWeight], at[model.FC1NormBias]
	layerNormBack(t.dx, grads[w], grads[b], t.dy, l.norm2.unit, l.norm2.inverse, params[w])

	w, b = at[model.ProjWeight], at[model.ProjBias]
	linearBack(t.dy, grads[w], grads[b], t.dx, l.attended, params[w], h, h)
	clear(t.dqkv)
	t.eachHead(func(qkv, out, weights int) {
		n := h / t.heads
		attentionBack(t.dqkv[qkv:], t.dqkv[qkv+n:], t.dqkv[qkv+2*n:], t.dy[out:], l.weights[weights:],
			l.qkv[qkv:], l.qkv[qkv+n:], l.qkv[qkv+2*n:], t.work, t.window, n, 3*h, h)
	})
	w, b = at[model.QKVWeight], at[model.QKVBias]
	linearBack(t.dy, grads[w], grads[b], t.dqkv, l.norm1.out, params[w], h, 3*h)
	w, b = at[model.QKVNormWeight], at[model.QKVNormBias]
	layerNormBack(t.dx, grads[w], grads[b], t.dy, l.norm1.unit, l.norm1.inverse, params[w])
}

// eachHead visits every head of every sequence: where its query, its output and its weights begin.
func (t *transformer) eachHead(visit func(qkv, out, weights int)) {
	n := t.hidden / t.heads
	for sequence := range t.batch {
		row := sequence * t.window
		for head := range t.heads {
			visit(row*3*t.hidden+head*3*n, row*t.hidden+head*n, (sequence*t.heads+head)*t.window*t.window)
		}
	}
}

func add(to, x []float32) {
	x = x[:len(to)]
	for i := range to {
		to[i] += x[i]
	}
}
