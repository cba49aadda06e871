package lab

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// mlp predicts a character from the embeddings of the window before it.
type mlp struct {
	hidden, window, batch, vocab int

	widths  []int // of the input and of each layer
	inputs  [][]float32
	inside  [][]float32
	slopes  [][]float32
	logits  []float32
	targets []int
	tokens  []int // window of each row
	dx, dy  []float32
}

// Parameters of the mlp: the embedding, weight and bias of each layer, weight and bias of the output.
func mlpWeight(layer int) bucket.ParamID { return bucket.ParamID(1 + 2*layer) }

// mlpStage lays out its parameters. They are not those of a GPT: it has no norms and no tied weights.
func (c *Config) mlpStage(d dtype.DType, fp8 bool) (*model.Stage, error) {
	s := &model.Stage{Split: model.Split{TP: 1, PP: 1, VP: 1}}
	vocab := int64(len(alphabet))
	add := func(name string, layer int, gemm bool, shape ...int64) error {
		n, err := model.Numel(shape)
		s.Params = append(s.Params, model.Param{
			Name: name, Shape: shape, Numel: n, DType: d, Layer: layer, FP8: gemm && fp8, Bias: len(shape) == 1,
		})
		return err
	}
	err := add("embedding.weight", -1, false, vocab, int64(c.Hidden))
	in := int64(c.Window * c.Hidden)
	for l := range c.Layers {
		if err == nil {
			err = add(fmt.Sprintf("layers.%d.weight", l), l, true, int64(c.FFN), in)
		}
		if err == nil {
			err = add(fmt.Sprintf("layers.%d.bias", l), l, false, int64(c.FFN))
		}
		in = int64(c.FFN)
	}
	if err == nil {
		err = add("output.weight", -1, false, vocab, in)
	}
	if err == nil {
		err = add("output.bias", -1, false, vocab)
	}
	s.Chunks = []model.ChunkSpan{{Params: [2]int{0, len(s.Params)}, Layers: c.Layers, Pre: true, Post: true}}
	return s, err
}

func newMLP(c *Config) *mlp {
	m := &mlp{hidden: c.Hidden, window: c.Window, batch: c.Batch, vocab: len(alphabet)}
	rows := c.Batch * c.Window
	m.widths = []int{c.Window * c.Hidden}
	m.inputs = [][]float32{make([]float32, rows*c.Window*c.Hidden)}
	for range c.Layers {
		m.widths = append(m.widths, c.FFN)
		m.inputs = append(m.inputs, make([]float32, rows*c.FFN))
		m.inside = append(m.inside, make([]float32, rows*c.FFN))
		m.slopes = append(m.slopes, make([]float32, rows*c.FFN))
	}
	widest := rows * max(c.Window*c.Hidden, c.FFN)
	m.logits, m.dx, m.dy = make([]float32, rows*m.vocab), make([]float32, widest), make([]float32, widest)
	m.targets, m.tokens = make([]int, rows), make([]int, rows*c.Window)
	return m
}

func (m *mlp) length() int { return 2 * m.window }

func (m *mlp) pass(params, grads [][]float32, data [][]int, factor float32) float32 {
	h, layers := m.hidden, len(m.inside)
	for i, sequence := range data {
		for t := range m.window {
			row := i*m.window + t
			copy(m.tokens[row*m.window:], sequence[t:t+m.window])
			m.targets[row] = sequence[t+m.window]
		}
	}
	for i, token := range m.tokens {
		copy(m.inputs[0][i*h:], params[0][token*h:][:h])
	}
	for l := range layers {
		w := mlpWeight(l)
		linear(m.inside[l], m.inputs[l], params[w], params[w+1], m.widths[l], m.widths[l+1])
		gelu(m.inputs[l+1], m.slopes[l], m.inside[l])
	}
	w := mlpWeight(layers)
	linear(m.logits, m.inputs[layers], params[w], params[w+1], m.widths[layers], m.vocab)
	rows := len(m.targets)
	loss := crossEntropy(m.logits, m.targets, factor/float32(rows))

	dy, dx := m.logits, m.dx[:rows*m.widths[layers]]
	linearBack(dx, grads[w], grads[w+1], dy, m.inputs[layers], params[w], m.widths[layers], m.vocab)
	for l := layers - 1; l >= 0; l-- {
		dy = m.dy[:len(dx)]
		copy(dy, dx)
		for i, s := range m.slopes[l] {
			dy[i] *= s
		}
		w, dx = mlpWeight(l), m.dx[:rows*m.widths[l]]
		linearBack(dx, grads[w], grads[w+1], dy, m.inputs[l], params[w], m.widths[l], m.widths[l+1])
	}
	for i, token := range m.tokens {
		addRow(grads[0][token*h:][:h], 1, dx[i*h:][:h])
	}
	return float32(loss / float64(rows))
}

// elements counts the parameters of a stage.
func elements(s *model.Stage) (n units.Elems) {
	for p := range s.Params {
		n += s.Params[p].Numel
	}
	return n
}
