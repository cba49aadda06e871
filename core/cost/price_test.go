package cost

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/parallel"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

var update = flag.Bool("update", false, "rewrite testdata")

// preset is GPT-3 5B in FP8 on one node of 8 H100.
func preset(t testing.TB, tp int) Machine {
	c := model.Config{
		Layers: 24, Hidden: 4096, FFN: 16384, Heads: 32, Groups: 32, KVChannels: 128, Vocab: 50304, Seq: 2048,
		LearnedPositions: true, Bias: true, Tied: true, FP8: true, FP8Params: true, DType: dtype.BF16,
	}
	e := model.Execution{
		Micro: 1, Microbatches: 2, TP: int64(tp), SP: tp > 1, CP: 1, GradDType: dtype.BF16, GradFusion: true,
		Dropout: true, Attention: hw.CuDNN,
	}
	grid, err := parallel.NewGrid(8*tp, tp, 1, 1, 1, 8)
	require.NoError(t, err)
	return NewMachine(hw.Lookup("h100"), hw.LookupNetwork("ndr"), c, e, grid)
}

// works are one of each kind of work, as a step of the preset has them.
func works() []step.Work {
	layer := func(kind step.Kind, back bool, modules ...model.ModuleKind) step.Work {
		w := step.Work{Kind: kind}
		for _, m := range modules {
			w.Passes = append(w.Passes, model.Pass{Module: m, Backward: back})
		}
		return w
	}
	kernels := func(kind step.Kind, k ...model.Kernel) step.Work { return step.Work{Kind: kind, Kernels: k} }
	return []step.Work{
		layer(step.Forward, false, model.Embedding, model.EmbeddingOut),
		layer(step.Forward, false, model.QKV, model.Attention, model.Proj, model.FC1, model.FC2),
		layer(step.Forward, false, model.FinalNorm, model.Output, model.Loss),
		layer(step.Backward, true, model.Loss, model.Output, model.FinalNorm),
		layer(step.Backward, true, model.FC2, model.FC1, model.Proj, model.Attention, model.QKV),
		layer(step.Backward, true, model.EmbeddingOut, model.Embedding),
		{Kind: step.ZeroGrad, Memory: 1 << 30, Count: 2},
		{Kind: step.GradCopy, Memory: 3 << 26, Count: 1},
		{Kind: step.ReduceScatter, Op: step.OpReduceScatter, Bytes: 400 << 20, Count: 3, Group: step.Distributed, DType: dtype.BF16},
		{Kind: step.AllGather, Op: step.OpAllGather, Bytes: 200 << 20, Count: 3, Group: step.Distributed, DType: dtype.U8},
		kernels(step.GradNorm, model.Kernel{Kind: model.MultiTensor, Tensors: 30, Elems: 1 << 26, Bytes: 2 << 26, DType: dtype.BF16}),
		{Kind: step.NormAllReduce, Op: step.OpAllReduce, Bytes: 4, Count: 1, Group: step.World, DType: dtype.FP32},
		kernels(step.Adam, model.Kernel{Kind: model.MultiTensor, Tensors: 30, Elems: 1 << 26, Bytes: 26 << 26}),
		kernels(step.Cast,
			model.Kernel{Kind: model.MemoryBound, DType: dtype.U8, Elems: 1 << 22, Bytes: 5 << 22},
			model.Kernel{Kind: model.MultiTensor, Tensors: 9, Bytes: 1 << 20}),
		{Kind: step.AmaxAllReduce, Op: step.OpAllReduce, Bytes: 4 * 96, Count: 1, Group: step.Distributed, DType: dtype.FP32},
		kernels(step.ParamCopy, model.Kernel{Kind: model.MemoryBound, DType: dtype.U8, Elems: 1 << 24, Bytes: 2 << 24}),
		{Kind: step.HostSync},
		{Kind: step.Exchange, Op: step.OpSend, Bytes: 16 << 20, Count: 1, Group: step.Pipeline, DType: dtype.BF16},
	}
}

// recording has one task of each work, and one message.
func recording(list []step.Work) *step.Recording {
	rec := &step.Recording{Works: list}
	for i := range list {
		rec.Labels = append(rec.Labels, step.Label{Kind: list[i].Kind, Work: step.WorkID(i)})
		rec.Program.Tasks = append(rec.Program.Tasks, sched.Task{})
	}
	rec.Program.Messages = make([]sched.Message, 1)
	rec.MessageWork = []step.WorkID{step.WorkID(len(list) - 1)}
	return rec
}

// Every price is written down in nanoseconds: another machine must print the same.
func TestPricesGolden(t *testing.T) {
	var out strings.Builder
	for _, tp := range []int{1, 4} {
		rec := recording(works())
		priced := Price(rec, preset(t, tp))
		fmt.Fprintf(&out, "GPT-3 5B, FP8, H100, TP %d, DP 8: work, launch in ns, class, parts\n", tp)
		for i := range priced {
			task := &rec.Program.Tasks[i]
			fmt.Fprintf(&out, "%2d kind %2d %9d %8d %d\n", i, rec.Works[i].Kind, task.Work, task.Launch, task.Class)
			for _, p := range priced[i].Parts {
				fmt.Fprintf(&out, "      %9d %9d %v %s\n", p.Start.Nanoseconds(), p.Length.Nanoseconds(), p.Comm, p.Name)
			}
		}
		fmt.Fprintf(&out, "message %d, latency %d, rates beside one class:", rec.Program.Messages[0].Work, rec.Program.Latency)
		for class := range numClasses {
			for other := range numClasses {
				fmt.Fprintf(&out, " %d", rec.Program.Rates[class][1<<other])
			}
		}
		out.WriteString("\n\n")
	}
	const name = "testdata/prices.golden"
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// Parts lie one after the other inside their work, but for communication beside a kernel.
func TestPartsFillTheWork(t *testing.T) {
	for _, tp := range []int{1, 2, 8} {
		list := works()
		for i, p := range Price(recording(list), preset(t, tp)) {
			if list[i].Kind == step.HostSync {
				require.Empty(t, p.Parts)
				require.Positive(t, float64(p.Total))
				continue
			}
			end, start := units.Seconds(0), units.Seconds(-1)
			for _, part := range p.Parts {
				require.GreaterOrEqual(t, part.Start, start)
				require.GreaterOrEqual(t, part.Length, units.Seconds(0))
				require.LessOrEqual(t, float64(part.Start), float64(end)*(1+1e-12), "no gap before %s", part.Name)
				start = part.Start
				end = max(end, part.Start+part.Length)
			}
			require.InEpsilon(t, float64(end), float64(p.Total), 1e-12)
			require.Positive(t, float64(p.Launch))
		}
	}
}

// Faster hardware, fewer bytes, more ranks of a tensor-parallel group: each price moves the right way.
func TestPricesMove(t *testing.T) {
	base := preset(t, 1)
	total := func(m Machine) (layers, sync units.Seconds) {
		p := Price(recording(works()), m)
		return p[1].Total + p[4].Total, p[8].Total
	}
	layers, sync := total(base)

	slower := base
	slower.GPU = hw.Lookup("a100-80gb")
	l, s := total(slower)
	require.Greater(t, l, 2*layers)
	require.Greater(t, s, sync)

	full := base
	full.Execution.Recompute = model.FullLayers
	l, _ = total(full)
	require.InDelta(t, 1.3, float64(l/layers), 0.1)

	launch := func(m Machine) units.Seconds { return Price(recording(works()), m)[4].Launch }
	require.Equal(t, launch(base)+5*base.Host.Forward, launch(full), "the host issues recomputed modules too")
	selective := base
	selective.Execution.Recompute = model.CoreAttention
	require.Equal(t, launch(base)+base.Host.Forward, launch(selective))
	s4, _ := total(selective)
	require.InDelta(t, 1.04, float64(s4/layers), 0.03)

	plain := base
	plain.Model.FP8, plain.Model.FP8Params = false, false
	l, _ = total(plain)
	require.Greater(t, l, layers)

	grid, err := parallel.NewGrid(64, 1, 1, 1, 1, 8)
	require.NoError(t, err)
	wide := NewMachine(base.GPU, base.Network, base.Model, base.Execution, grid)
	_, s = total(wide)
	require.Greater(t, s, sync)
	slow := wide
	slow.Network = hw.LookupNetwork("efa-p4d")
	_, even := total(slow)
	require.Greater(t, even, 4*s)
}

// With user buffers the collectives of sequence parallelism lie beside products, and cost less.
func TestTensorParallelOverlap(t *testing.T) {
	m := preset(t, 8)
	alone := Price(recording(works()), m)
	m.Execution.TPOverlap = true
	overlapped := Price(recording(works()), m)
	for _, i := range []int{1, 4} {
		require.Less(t, overlapped[i].Total, alone[i].Total)
		comm := units.Seconds(0)
		for _, p := range alone[i].Parts {
			if p.Comm {
				comm += p.Length
			}
		}
		require.Greater(t, overlapped[i].Total, alone[i].Total-comm, "taken SMs slow the products")
	}
}

// A ring of context parallelism shows only what attention does not hide.
func TestRing(t *testing.T) {
	m := preset(t, 1)
	m.Context = parallel.Placement{Ranks: 4, Nodes: 1, PerNode: 4}
	p := newPricer(m)
	k := model.Kernel{Kind: model.FlashForward, Ring: 4, Bytes: 1 << 10}
	require.InDelta(t, 100e-6, float64(p.ring(&k, 100e-6)), 1e-9)
	k.Bytes = units.GiB
	require.Greater(t, p.ring(&k, 100e-6), 3*p.fabric.Send(true, units.GiB))
	k.Ring = 1
	require.Equal(t, units.Seconds(100e-6), p.ring(&k, 100e-6))
}

// What is beside a class never makes it faster, and nothing stops.
func TestRates(t *testing.T) {
	for _, tp := range []int{1, 8} {
		rec := recording(works())
		Price(rec, preset(t, tp))
		r := rec.Program.Rates
		for class := range numClasses {
			require.Equal(t, uint32(sched.FullSpeed), r[class][0])
			for mask := range 1 << numClasses {
				require.Positive(t, r[class][mask])
				for other := range numClasses {
					require.LessOrEqual(t, r[class][mask|1<<other], r[class][mask])
				}
			}
		}
		require.Less(t, r[classLayers][1<<classNVLink], r[classLayers][1<<classSend])
		require.Less(t, r[classLayers][1<<classNVLink], r[classMemory][1<<classNVLink])
	}
	bounded := preset(t, 1)
	bounded.CTAs = 4
	few, many := recording(works()), recording(works())
	Price(few, bounded)
	Price(many, preset(t, 1))
	require.Greater(t, few.Program.Rates[classLayers][1<<classNVLink], many.Program.Rates[classLayers][1<<classNVLink])
}

// One node needs no network.
func TestNoNetworkInsideANode(t *testing.T) {
	m := preset(t, 1)
	m.Network = nil
	for i, p := range Price(recording(works()), m) {
		require.Positive(t, float64(p.Total), "work %d", i)
	}
}

// The share of SMs that a copy takes, and what that costs, follow from the measured series.
func TestTakenFollowsFromMeasurements(t *testing.T) {
	ratios, copies := map[int][]float64{}, []float64{}
	alone := map[int]float64{}
	for _, r := range measuredH200().CopyAlone {
		alone[r.Blocks] = r.GBs
	}
	for _, r := range measuredH200().UnderCopy {
		ratios[r.CopyBlocks] = append(ratios[r.CopyBlocks], r.GemmMs/r.BaseMs)
		if r.CopyBlocks == 16 || r.CopyBlocks == 24 {
			copies = append(copies, r.CopyGBs/alone[r.CopyBlocks])
		}
	}
	for _, pool := range [][]int{{1, 2}, {4, 8}, {16}, {24}, {32}} {
		mean := 0.0
		for _, blocks := range pool {
			mean += middle(ratios[blocks]) / float64(len(pool))
		}
		for _, blocks := range pool {
			product, _ := hw.Taken(blocks, hw.Reference.SMs)
			require.InDelta(t, mean, product, 0.001, "%d taken", blocks)
		}
	}
	for _, r := range measuredH200().AddUnderCopy {
		_, memory := hw.Taken(r.CopyBlocks, hw.Reference.SMs)
		require.InDelta(t, r.Ms/r.BaseMs, memory, 0.003, "%d taken", r.CopyBlocks)
	}
	require.InDelta(t, middle(copies), hw.CopyUnderProduct, 0.01)
}

func BenchmarkPrice(b *testing.B) {
	m := preset(b, 4)
	for b.Loop() {
		Price(recording(works()), m)
	}
}
