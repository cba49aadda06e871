package lab

import "math"

// Layers of the networks, forward and backward, on rows of fp32 numbers. Sums run in the order in
// which they are written, products are rounded before they are added. Gradients of parameters are
// added to what is there; those of activations are set.

// linear sets y to x wᵀ + bias: rows of in and out numbers. bias may be nil.
func linear(y, x, w, bias []float32, in, out int) {
	for len(x) >= in && len(y) >= out && in > 0 {
		row, to := x[:in], y[:out]
		x, y = x[in:], y[out:]
		o := 0
		for ; o+4 <= out; o += 4 {
			w0, w1, w2, w3 := w[o*in:][:in], w[(o+1)*in:][:in], w[(o+2)*in:][:in], w[(o+3)*in:][:in]
			var s0, s1, s2, s3 float32
			for i, v := range row {
				s0 += float32(v * w0[i])
				s1 += float32(v * w1[i])
				s2 += float32(v * w2[i])
				s3 += float32(v * w3[i])
			}
			to[o], to[o+1], to[o+2], to[o+3] = s0, s1, s2, s3
		}
		for ; o < out; o++ {
			var s float32
			for i, v := range row {
				s += float32(v * w[o*in+i])
			}
			to[o] = s
		}
		for i, b := range bias {
			to[i] += b
		}
	}
}

// linearBack is its backward pass. dbias may be nil.
func linearBack(dx, dw, dbias, dy, x, w []float32, in, out int) {
	rows := len(x) / in
	for r := range rows {
		to, from := dx[r*in:][:in], dy[r*out:][:out]
		clear(to)
		o := 0
		for ; o+4 <= out; o += 4 {
			d0, d1, d2, d3 := from[o], from[o+1], from[o+2], from[o+3]
			addRows(to, d0, d1, d2, d3, w[o*in:][:in], w[(o+1)*in:][:in], w[(o+2)*in:][:in], w[(o+3)*in:][:in])
		}
		for ; o < out; o++ {
			addRow(to, from[o], w[o*in:][:in])
		}
		for i := range dbias {
			dbias[i] += from[i]
		}
	}
	for o := range out {
		to := dw[o*in:][:in]
		r := 0
		for ; r+4 <= rows; r += 4 {
			addRows(to, dy[r*out+o], dy[(r+1)*out+o], dy[(r+2)*out+o], dy[(r+3)*out+o],
				x[r*in:][:in], x[(r+1)*in:][:in], x[(r+2)*in:][:in], x[(r+3)*in:][:in])
		}
		for ; r < rows; r++ {
			addRow(to, dy[r*out+o], x[r*in:][:in])
		}
	}
}

// addRows adds four multiples of rows to to, one after the other.
func addRows(to []float32, a, b, c, d float32, x, y, z, u []float32) {
	// WebAssembly pays more for the turn of a loop than for an element.
	for len(to) >= 8 && len(x) >= 8 && len(y) >= 8 && len(z) >= 8 && len(u) >= 8 {
		t, x8, y8, z8, u8 := (*[8]float32)(to), (*[8]float32)(x), (*[8]float32)(y), (*[8]float32)(z), (*[8]float32)(u)
		t[0] = (((t[0] + float32(a*x8[0])) + float32(b*y8[0])) + float32(c*z8[0])) + float32(d*u8[0])
		t[1] = (((t[1] + float32(a*x8[1])) + float32(b*y8[1])) + float32(c*z8[1])) + float32(d*u8[1])
		t[2] = (((t[2] + float32(a*x8[2])) + float32(b*y8[2])) + float32(c*z8[2])) + float32(d*u8[2])
		t[3] = (((t[3] + float32(a*x8[3])) + float32(b*y8[3])) + float32(c*z8[3])) + float32(d*u8[3])
		t[4] = (((t[4] + float32(a*x8[4])) + float32(b*y8[4])) + float32(c*z8[4])) + float32(d*u8[4])
		t[5] = (((t[5] + float32(a*x8[5])) + float32(b*y8[5])) + float32(c*z8[5])) + float32(d*u8[5])
		t[6] = (((t[6] + float32(a*x8[6])) + float32(b*y8[6])) + float32(c*z8[6])) + float32(d*u8[6])
		t[7] = (((t[7] + float32(a*x8[7])) + float32(b*y8[7])) + float32(c*z8[7])) + float32(d*u8[7])
		to, x, y, z, u = to[8:], x[8:], y[8:], z[8:], u[8:]
	}
	for i := range to {
		to[i] = (((to[i] + float32(a*x[i])) + float32(b*y[i])) + float32(c*z[i])) + float32(d*u[i])
	}
}

func addRow(to []float32, a float32, x []float32) {
	x = x[:len(to)]
	for i := range to {
		to[i] += float32(a * x[i])
	}
}

func dot(a, b []float32) (sum float32) {
	b = b[:len(a)]
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

const normEps = 1e-5

// layerNorm sets y to (x - mean)/deviation * w + b, and keeps the normalised rows in unit and the
// inverse deviations in inverse.
func layerNorm(y, unit, inverse, x, w, b []float32) {
	n := len(w)
	for r := range inverse {
		row, u, to := x[r*n:][:n], unit[r*n:][:n], y[r*n:][:n]
		var sum, squares float32
		for _, v := range row {
			sum += v
		}
		mean := sum / float32(n)
		for i, v := range row {
			u[i] = v - mean
			squares += float32(u[i] * u[i])
		}
		inverse[r] = 1 / sqrt(squares/float32(n)+normEps)
		for i := range u {
			u[i] *= inverse[r]
			to[i] = float32(u[i]*w[i]) + b[i]
		}
	}
}

// layerNormBack adds the gradient of x to dx.
func layerNormBack(dx, dw, db, dy, unit, inverse, w []float32) {
	n := len(w)
	for r, inv := range inverse {
		u, from, to := unit[r*n:][:n], dy[r*n:][:n], dx[r*n:][:n]
		var sum, along float32
		for i, d := range from {
			dw[i] += float32(d * u[i])
			db[i] += d
			g := float32(d * w[i])
			sum += g
			along += float32(g * u[i])
		}
		sum, along = sum/float32(n), along/float32(n)
		for i, d := range from {
			to[i] += float32(inv * (float32(d*w[i]) - sum - float32(u[i]*along)))
		}
	}
}

// The tanh form of GELU, as Megatron's fused kernel has it: x/2 (1 + tanh(c (x + k x³))).
const (
	geluC = 0.79788456
	geluK = 0.044715
)

// gelu sets y to GELU of x and slope to its derivative.
func gelu(y, slope, x []float32) {
	for i, v := range x {
		square := float32(v * v)
		inner := float32(geluC * float32(v*(1+float32(geluK*square))))
		t := tanh(inner)
		y[i] = float32(float32(0.5*v) * (1 + t))
		rise := float32(geluC * (1 + float32(3*geluK*square)))
		slope[i] = float32(0.5*(1+t)) + float32(float32(float32(0.5*v)*(1-float32(t*t)))*rise)
	}
}

// crossEntropy returns the sum of the losses of rows of logits, which it replaces by the losses'
// gradients times factor.
func crossEntropy(logits []float32, targets []int, factor float32) float64 {
	n := len(logits) / len(targets)
	total := 0.0
	for r, target := range targets {
		row := logits[r*n:][:n]
		largest := row[0]
		for _, v := range row {
			if v > largest || v != v {
				largest = v
			}
		}
		score := row[target]
		var sum float32
		for i, v := range row {
			row[i] = exp(v - largest)
			sum += row[i]
		}
		total += float64(log(sum) + largest - score)
		for i := range row {
			row[i] = float32(float32(row[i]/sum) * factor)
		}
		row[target] -= factor
	}
	return total
}

// attention is one causal head on one sequence: q, k and v are rows of n numbers in a matrix of the
// given stride, out in one of another. weights keeps the softmax, length × length.
func attention(out, weights, q, k, v []float32, length, n, stride, outStride int) {
	factor := 1 / sqrt(float32(n))
	for t := range length {
		w := weights[t*length:][:t+1]
		query := q[t*stride:][:n]
		largest := float32(math.Inf(-1))
		for s := range w {
			w[s] = float32(factor * dot(query, k[s*stride:][:n]))
			if w[s] > largest || w[s] != w[s] {
				largest = w[s]
			}
		}
		var sum float32
		for s := range w {
			w[s] = exp(w[s] - largest)
			sum += w[s]
		}
		to := out[t*outStride:][:n]
		clear(to)
		for s := range w {
			w[s] /= sum
			addRow(to, w[s], v[s*stride:][:n])
		}
	}
}

// attentionBack adds the gradients of q, k and v to dq, dk and dv. work has length numbers.
func attentionBack(dq, dk, dv, dout, weights, q, k, v, work []float32, length, n, stride, outStride int) {
	factor := 1 / sqrt(float32(n))
	for t := range length {
		w := weights[t*length:][:t+1]
		from := dout[t*outStride:][:n]
		var mean float32
		for s := range w {
			addRow(dv[s*stride:][:n], w[s], from)
			work[s] = dot(from, v[s*stride:][:n])
			mean += float32(work[s] * w[s])
		}
		query, to := q[t*stride:][:n], dq[t*stride:][:n]
		for s := range w {
			d := float32(float32(w[s]*(work[s]-mean)) * factor)
			addRow(to, d, k[s*stride:][:n])
			addRow(dk[s*stride:][:n], d, query)
		}
	}
}
