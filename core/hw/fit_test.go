package hw

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

// measurement is testdata/h200.json.gz, times in ms unless the name says us.
type measurement struct {
	Gemm      [][]any
	Attention []struct {
		Batch, Heads, Seq, HeadDim                     int64
		FlashFwdMs, FlashBwdMs, CudnnFwdMs, CudnnBwdMs float64
	}
	CopyD2d   []struct{ Bytes, CopyMs, ZeroMs float64 }
	Pointwise []map[string]float64
	Loss      []map[string]float64
	Elements  []map[string]float64
	L2norm    []struct {
		Elements int64
		Dtype    string
		Ms       float64
	}
	Adam []struct {
		Kind            string
		Elements        int64
		Tensors         int
		BytesPerElement int64
		Ms              float64
	}
}

var measured = sync.OnceValue(func() *measurement {
	f, err := os.Open("testdata/h200.json.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	raw := map[string]json.RawMessage{}
	if err := json.NewDecoder(z).Decode(&raw); err != nil {
		panic(err)
	}
	get := func(key string, to any) {
		if err := json.Unmarshal(camel(raw[key]), to); err != nil {
			panic(key + ": " + err.Error())
		}
	}
	m := &measurement{}
	get("gemm", &m.Gemm)
	get("attention", &m.Attention)
	get("copy_d2d", &m.CopyD2d)
	get("l2norm", &m.L2norm)
	get("adam", &m.Adam)
	for key, to := range map[string]any{"pointwise": &m.Pointwise, "loss_embedding": &m.Loss, "elementwise": &m.Elements} {
		if err := json.Unmarshal(raw[key], to); err != nil {
			panic(key + ": " + err.Error())
		}
	}
	return m
})

// camel removes the underscores inside object keys so that they match field names.
func camel(b []byte) []byte {
	out := make([]byte, 0, len(b))
	quoted := false
	for i, c := range b {
		if c == '"' {
			quoted = !quoted
		}
		if c == '_' && quoted && key(b[i:]) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// key reports whether the string that b lies in is an object's key.
func key(b []byte) bool {
	end := slices.Index(b, '"')
	return end+1 < len(b) && b[end+1] == ':'
}

// eventPair is what an empty pair of events reads: it is in every measured time (launch.
// nothing_event_to_event_us), and not in a stream.
const eventPair = 1.28e-6

// sample is one measured time and the time that a curve gives for it.
type sample struct {
	seconds float64
	price   func(curve []float64) units.Seconds
}

// loss is the sum of absolute log errors.
func loss(samples []sample, curve []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += math.Abs(math.Log(float64(s.price(curve)) / s.seconds))
	}
	return sum
}

// meanError returns the mean and the largest relative error.
func meanError(samples []sample, curve []float64) (mean, worst float64) {
	for _, s := range samples {
		e := math.Abs(float64(s.price(curve))/s.seconds - 1)
		mean += e / float64(len(samples))
		worst = max(worst, e)
	}
	return mean, worst
}

// fit is a curve whose parameters were fitted to samples.
type fit struct {
	name    string
	samples []sample
	start   []float64
	current func() []float64 // what h200.go holds
	bound   float64          // mean error that must be reached
}

// minimize is the simplex method of Nelder and Mead; every parameter stays positive.
func minimize(f func([]float64) float64, start []float64, rounds int) []float64 {
	n := len(start)
	points, values := make([][]float64, n+1), make([]float64, n+1)
	at := func(x []float64) float64 {
		for _, v := range x {
			if v < 0 {
				return math.Inf(1)
			}
		}
		return f(x)
	}
	for i := range points {
		points[i] = slices.Clone(start)
		if i > 0 {
			points[i][i-1] *= 1.15
		}
		values[i] = at(points[i])
	}
	for range rounds {
		order := make([]int, n+1)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if values[a] < values[b] {
				return -1
			}
			if values[a] > values[b] {
				return 1
			}
			return 0
		})
		best, second, worst := order[0], order[n-1], order[n]
		centre := make([]float64, n)
		for _, i := range order[:n] {
			for j := range centre {
				centre[j] += points[i][j] / float64(n)
			}
		}
		move := func(by float64) ([]float64, float64) {
			x := make([]float64, n)
			for j := range x {
				x[j] = centre[j] + by*(points[worst][j]-centre[j])
			}
			return x, at(x)
		}
		x, v := move(-1)
		switch {
		case v < values[best]:
			if far, w := move(-2); w < v {
				x, v = far, w
			}
			points[worst], values[worst] = x, v
		case v < values[second]:
			points[worst], values[worst] = x, v
		default:
			if near, w := move(0.5); w < values[worst] {
				points[worst], values[worst] = near, w
				continue
			}
			for i := range points {
				if i != best {
					for j := range points[i] {
						points[i][j] = (points[i][j] + points[best][j]) / 2
					}
					values[i] = at(points[i])
				}
			}
		}
	}
	best := 0
	for i := range values {
		if values[i] < values[best] {
			best = i
		}
	}
	return points[best]
}

// check fits again from scratch: that is at most 2 % better, and the mean error of the embedded
// curve is within its bound.
func (f *fit) check(t *testing.T) {
	objective := func(x []float64) float64 { return loss(f.samples, x) }
	best := minimize(objective, f.start, 300)
	best = minimize(objective, best, 300)
	mean, worst := meanError(f.samples, f.current())
	t.Logf("%d samples, mean error %.1f %%, worst %.1f %%; fit %.4g", len(f.samples), 100*mean, 100*worst, best)
	require.LessOrEqual(t, objective(f.current()), objective(best)*1.02+0.01, "embedded %.4g", f.current())
	require.Less(t, mean, f.bound)
}

func TestCurvesFollowFromMeasurements(t *testing.T) {
	for _, f := range fits() {
		t.Run(f.name, func(t *testing.T) { f.check(t) })
	}
}
