package lab

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/dtype"
)

var update = flag.Bool("update", false, "rewrite golden files")

// finish takes all steps of a run.
func finish(t testing.TB, c Config) (*Session, *Frame) {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	for !s.Done() {
		require.NoError(t, s.Step())
	}
	f, err := s.Frame(0, Watch{}, nil)
	require.NoError(t, err)
	_, err = json.Marshal(f)
	require.NoError(t, err)
	return s, f
}

func withVariants(c Config, ids ...string) Config {
	c.Variants = nil
	for _, id := range ids {
		for _, v := range Variants() {
			if v.ID == id {
				c.Variants = append(c.Variants, v)
			}
		}
	}
	return c
}

// What is promised of the default run: every variant learns, ranks agree, and so do both versions of
// the optimizer.
func TestDefaultRunLearns(t *testing.T) {
	for _, c := range []Config{Default(Transformer), Default(MLP), withVariants(Default(Transformer), "fp16", "bf16-scaled", "bf16-state")} {
		_, f := finish(t, c)
		require.Equal(t, c.Steps, f.Step)
		for _, v := range f.Variants {
			require.Equal(t, Healthy, v.Health, "%s %s: %s", c.Model, v.ID, v.Note)
			require.LessOrEqual(t, float64(v.Last), 0.8*float64(v.First), "%s %s", c.Model, v.ID)
			require.Equal(t, Check{Checked: true}, v.Agree)
			require.Zero(t, v.Before.Different, "%s %s: %s", c.Model, v.ID, v.Before.First)
			require.Equal(t, v.Before.Reason == "", v.Before.Checked)
		}
	}
}

// The same seed gives the same bytes on every machine: CI runs this on amd64, with fused
// multiply-adds and as WebAssembly.
func TestGolden(t *testing.T) {
	var out bytes.Buffer
	for _, m := range []string{Transformer, MLP} {
		for i := 0; i < len(Variants()); i += MaxVariants {
			c := Default(m)
			c.Steps, c.Variants = 12, Variants()[i:min(i+MaxVariants, len(Variants()))]
			_, f := finish(t, c)
			for v := range c.Variants {
				fmt.Fprintf(&out, "%s %s\n", m, c.Variants[v].ID)
				for _, s := range f.Steps {
					x := s.Variants[v]
					fmt.Fprintf(&out, "%d %08x %016x", s.Step, math.Float32bits(dtype.Canonical(float32(x.Loss))), math.Float64bits(float64(x.GradNorm)))
					if len(x.Tensors) > 3 {
						fmt.Fprintf(&out, " %08x %v", math.Float32bits(float32(x.Tensors[3].Amax)), x.Tensors[3].Scale)
					}
					fmt.Fprintf(&out, " %s\n", x.Event)
				}
			}
		}
	}
	const name = "testdata/losses.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(name, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r", ""), out.String())
}

// Buckets do not change a bit, nor do the variants that run beside.
func TestLayoutDoesNotMatter(t *testing.T) {
	c := withVariants(Default(Transformer), "fp32", "bf16", "fp8", "fp16")
	c.Steps, c.Ranks = 6, 3
	_, want := finish(t, c)
	c.BucketCapMB = 100
	_, whole := finish(t, c)
	same := func(got []StepRecord) {
		for i := range got {
			for v := range got[i].Variants {
				require.True(t, reflect.DeepEqual(want.Steps[i].Variants[v], got[i].Variants[v]), "step %d of variant %d", i+1, v)
			}
		}
	}
	same(whole.Steps)
	c.BucketCapMB = 0.0005
	_, split := finish(t, c)
	same(split.Steps)
	require.Greater(t, split.Variants[0].Buckets, want.Variants[0].Buckets)
	c.Variants = c.Variants[2:3]
	_, alone := finish(t, c)
	for i, s := range alone.Steps {
		require.True(t, reflect.DeepEqual(want.Steps[i].Variants[2], s.Variants[0]), "step %d", i+1)
	}
}

// The way of an element ends at what the arrays hold.
func TestJourneys(t *testing.T) {
	for _, m := range []string{Transformer, MLP} {
		for _, v := range Variants() {
			c := withVariants(Default(m), v.ID)
			c.Steps, c.LossScale = 4, 256
			s, _ := finish(t, c)
			r := s.runs[0]
			for p := range r.params {
				for _, i := range []int{0, len(r.params[p]) / 2, len(r.params[p]) - 1} {
					j := r.journey(bucket.ParamID(p), i)
					stops := map[string]Stop{}
					for _, stop := range j.Stops {
						stops[stop.Name] = stop
					}
					require.Contains(t, stops, fmt.Sprintf("gradient on rank %d", c.Ranks-1))
					require.Empty(t, j.Text)
					if r.stopped > 0 {
						continue
					}
					x := []float32{0}
					r.is.Params[p].Param.Slice(i, i+1).Load(x)
					require.Equal(t, Value(x[0]), stops["main parameter"].Value)
					before, step := stops["main parameter before"].Value, stops["step"].Value
					if r.formats.state == dtype.FP32 {
						require.Equal(t, x[0], float32(before)-float32(step), "%s %s %s", v.ID, r.stage.Params[p].Name, stops)
						r.is.Params[p].ExpAvg.Slice(i, i+1).Load(x)
						require.Equal(t, Value(x[0]), stops["exp_avg"].Value)
						r.is.Params[p].ExpAvgSq.Slice(i, i+1).Load(x)
						require.Equal(t, Value(x[0]), stops["exp_avg_sq"].Value)
					} else if !v.Scaled {
						require.Equal(t, Value(r.formats.state.Round(float32(stops["exp_avg"].Value))), stops["exp_avg stored"].Value)
						require.Equal(t, Value(r.formats.state.Round(float32(stops["exp_avg_sq"].Value))), stops["exp_avg_sq stored"].Value)
					}
					t1 := r.after.ranks.Param(0, bucket.ParamID(p))
					if r.stage.Params[p].FP8 {
						require.Equal(t, fmt.Sprintf("0x%02x", t1.Bytes[i]), stops["cast"].Bits)
						if r.formats.state == dtype.FP32 {
							scaled := float32(float32(stops["main parameter"].Value) * r.after.ranks.FP8Meta(0, bucket.ParamID(p)).Scale)
							require.Equal(t, dtype.E4M3.Encode(scaled), t1.Bytes[i])
						}
					}
					r.after.ranks.ParamValues(c.Ranks-1, bucket.ParamID(p), r.params[p])
					require.Equal(t, Value(r.params[p][i]), stops["gathered"].Value)
				}
			}
		}
	}
}

// What is clipped is counted once and the same wherever it is told.
func TestSaturationHasOneMeaning(t *testing.T) {
	for _, margin := range []int{0, -1, -4, -100} {
		c := withVariants(Default(Transformer), "fp8", "fp16")
		c.Margin, c.Steps, c.LR = margin, 3, 0.02
		if margin == -4 {
			c.LR = 5e4 // fp16 overflows too
		}
		s, last := finish(t, c)
		some := 0
		for p, tensor := range s.tensors {
			f, err := s.Frame(0, Watch{bucket.ParamID(p), Param}, nil)
			require.NoError(t, err)
			for v := range f.Variants {
				if f.Variants[v].Stopped == 0 || f.Variants[v].Stopped == c.Steps {
					h, tensors := f.Histograms[v], last.Steps[len(last.Steps)-1].Variants[v].Tensors
					require.InDelta(t, tensors[p].Saturated*float64(tensor.Numel), h.Saturated, 1e-6, "%s, margin %d", tensor.Name, margin)
					some += h.Saturated
				}
			}
		}
		if margin < -1 {
			require.Positive(t, some)
		}
	}
}

// Histograms count every element once.
func TestHistograms(t *testing.T) {
	for _, v := range Variants() {
		c := withVariants(Default(MLP), v.ID)
		c.Steps = 3
		s, _ := finish(t, c)
		for p, tensor := range s.tensors {
			for _, part := range Parts {
				f, err := s.Frame(0, Watch{bucket.ParamID(p), part}, nil)
				require.NoError(t, err)
				h := f.Histograms[0]
				n := h.Zero + h.Infinite + h.NaN
				for i, b := range h.Bins {
					n += b.Count
					require.True(t, b.Low <= b.High && (i == 0 || h.Bins[i-1].High < b.Low), "%+v", h)
				}
				require.Equal(t, h.Total, n)
				want := tensor.Numel
				if part == Grad {
					want *= c.Ranks
				}
				require.Equal(t, want, h.Total)
			}
		}
	}
}

// The stated bound holds.
func TestMemory(t *testing.T) {
	for _, m := range []string{Transformer, MLP} {
		for _, ranks := range []int{1, 4, 16} {
			c := Default(m)
			c.Ranks, c.Hidden, c.Steps = ranks, 32, 3
			c.Variants = Variants()[1:5]
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s, f := finish(t, c)
			runtime.GC()
			runtime.ReadMemStats(&after)
			used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			require.LessOrEqual(t, used, int64(f.Memory)+1<<20, "%s on %d ranks", m, ranks)
			require.Positive(t, used)
			runtime.KeepAlive(s)
		}
	}
}
