// Package sample makes small results for the tests of the page: shaped like a real one, with
// round numbers.
package sample

import (
	"slices"

	"distopt/core/report"
	"distopt/core/sched"
	"distopt/core/step"
)

const ms = 1_000_000

type span struct {
	stage      int
	lane       report.Lane
	kind       step.Kind
	start, end int64
	work       int32
	micro      int32
	layer      int16
	group      int32
	state      report.State
	by         int32
	cause      sched.Cause
}

// Result returns one step of layers layers on stages stages with two microbatches: gradient
// reduction hidden but for the last group, parameters gathered beside the first forward.
func Result(stages, layers int) *report.Result {
	r := &report.Result{ModelVersion: "1.0", Name: "Sample"}
	r.Works = []report.Work{
		{Name: "Forward", Parts: []report.Part{{Name: "qkv GEMM", Lane: report.LaneCompute, Start: 0, End: 20000}, {Name: "attention", Lane: report.LaneCompute, Start: 20000, End: 34000}, {Name: "proj GEMM", Lane: report.LaneCompute, Start: 34000, End: 42000}, {Name: "MLP GEMMs", Lane: report.LaneCompute, Start: 42000, End: 65536}}},
		{Name: "Backward", Parts: []report.Part{{Name: "dgrad", Lane: report.LaneCompute, Start: 0, End: 32000}, {Name: "wgrad", Lane: report.LaneCompute, Start: 32000, End: 65536}}},
		{Name: "Reduce-scatter"}, {Name: "All-gather"}, {Name: "Gradient norm"}, {Name: "Adam"},
	}
	var spans []span
	for st := range stages {
		spans = append(spans, stage(r, st, layers)...)
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.stage != b.stage {
			return a.stage - b.stage
		}
		if a.lane != b.lane {
			return int(a.lane) - int(b.lane)
		}
		return int(a.start/1000 - b.start/1000)
	})
	pack(r, spans, stages)
	f := &r.Figures
	f.StepTime, f.TokensPerGPU, f.TokensPerSecond, f.MFU = 196*ms, 20887, 167098, 0.345
	f.ModelFLOPs, f.PeakFLOPs, f.PeakName = 134e12, 1979e12, "FP8 dense, H100 SXM"
	f.Exposed, f.ExposedBy = 6*ms, []report.ExposedBy{{Kind: "grad sync", Time: 6 * ms}}
	f.Overlap, f.Hidden, f.SyncTotal = 0.864, 38*ms, 44*ms
	f.Utilisation, f.Buckets, f.BucketSize, f.WastedBytes = 0.891, len(r.Stages[0].Buckets), 200<<20, 1<<30
	f.AmaxReductions, f.Parameters, f.Tasks, f.Spans = 1, 5_050_000_000, len(spans), len(spans)
	r.Grid = report.Grid{World: 8 * stages, TP: 1, CP: 1, PP: stages, VP: 1, DP: 8, Distributed: 8, Redundant: 1, Micro: 2}
	return r
}

// stage adds the buckets and spans of one stage.
func stage(r *report.Result, st, layers int) (spans []span) {
	out := report.Stage{Exposed: 6 * ms, Hidden: 38 * ms, SyncTotal: 44 * ms, ExposedBy: []report.ExposedBy{{Kind: "grad sync", Time: 6 * ms}}}
	out.Shares = []report.Share{{Name: "Forward", Time: 60 * ms}, {Name: "Backward", Time: 122 * ms}, {Name: "Optimizer", Time: 8 * ms}, {Name: "Exposed", Time: 6 * ms}}
	size := int64(200 << 20)
	for i := range layers + 2 {
		p := int32(len(out.Params))
		b := report.Bucket{ID: int32(i), Size: size, Shard: size / 8, State: "fp32", Grad: "bf16", Sync: "uint8", Offset: int64(i) * size, Set: i}
		switch {
		case i < layers:
			out.Params = append(out.Params,
				report.Param{Name: "layers.0.self_attention.linear_qkv.weight", Numel: 67108864, Group: "attention", Layer: i},
				report.Param{Name: "layers.0.mlp.linear_fc1.weight", Numel: 134217728, Group: "mlp", Layer: i})
			b.Filled = 201326592
			b.Fragments = []report.Fragment{{Param: p, InParam: [2]int64{0, 67108864}, InBucket: [2]int64{0, 67108864}}, {Param: p + 1, InParam: [2]int64{0, 134217728}, InBucket: [2]int64{67108864, 201326592}}}
		case i == layers:
			out.Params = append(out.Params, report.Param{Name: "embedding.word_embeddings.weight", Numel: size, Group: "embedding", Layer: -1})
			b.Filled, b.Grad, b.Sync, b.Set, b.Offset = size, "fp32", "bf16", layers, size
			b.Fragments = []report.Fragment{{Param: p, InParam: [2]int64{0, size}, InBucket: [2]int64{0, size}}}
		default:
			out.Params = append(out.Params, report.Param{Name: "embedding.position_embeddings.weight", Numel: 8388608, Group: "embedding", Layer: -1})
			b.Filled, b.Grad, b.Sync, b.Set, b.Offset = 4718592, "fp32", "bf16", layers, 2*size
			b.Fragments = []report.Fragment{{Param: p, InParam: [2]int64{3670016, 8388608}, InBucket: [2]int64{0, 4718592}}, {Param: 0, InParam: [2]int64{67108864, 67108864}, InBucket: [2]int64{size, size}}}
		}
		out.Buckets = append(out.Buckets, b)
	}
	out.GradBuffers = []report.Buffer{{Key: "fp32/bf16/uint8", Length: int64(layers) * size}, {Key: "fp32/fp32/bf16", Length: 3 * size}}
	out.ParamBuffers = out.GradBuffers
	r.Stages = append(r.Stages, out)
	add := func(s span) { s.stage = st; spans = append(spans, s) }
	collective := func(kind string, k step.Kind, lane report.Lane, work int32, ids []int32, a, b int64, exposed int64) {
		g := int32(len(r.Collectives))
		r.Collectives = append(r.Collectives, report.Collective{Stage: st, Kind: kind, Buckets: ids, Bytes: int64(len(ids)) * 400 << 20, Group: "data parallel", Ranks: 8, Start: sched.Time(a), Length: sched.Time(b - a), Exposed: sched.Time(exposed), Hidden: sched.Time(b - a - exposed), AlgBW: 417e9, BusBW: 365e9})
		add(span{lane: lane, kind: k, start: a, end: b, work: work, micro: -1, layer: -1, group: g, by: -1, cause: sched.ByData})
		if exposed > 0 {
			r.Collectives[g].Cause = "nothing is left to compute behind it"
			add(span{lane: report.LaneExposed, kind: k, start: b - exposed, end: b, work: -1, micro: -1, layer: -1, group: g, by: -1})
		}
		if exposed < b-a {
			add(span{lane: report.LaneHidden, kind: k, start: a, end: b - exposed, work: -1, micro: -1, layer: -1, group: g, by: -1})
		}
	}
	t := int64(0)
	for m := range int32(2) {
		for pass, length := range [2]int64{30 * ms, 61 * ms} {
			kind := []step.Kind{step.Forward, step.Backward}[pass]
			add(span{lane: report.LanePhase, kind: kind, start: t, end: t + length, work: -1, micro: m, layer: -1, group: -1, by: -1})
			each := length / int64(layers)
			for l := range layers {
				layer := int16(l)
				if pass == 1 {
					layer = int16(layers - 1 - l)
				}
				add(span{lane: report.LaneCompute, kind: kind, start: t + int64(l)*each, end: t + int64(l+1)*each, work: int32(pass), micro: m, layer: layer, group: -1, by: -1, cause: sched.ByStream})
				if m == 0 && pass == 0 {
					collective("all-gather", step.AllGather, report.LaneParamSync, 3, []int32{int32(l)}, t+int64(l)*each, t+int64(l)*each+each*7/10, 0)
				}
				if m == 1 && pass == 1 && l > 0 {
					collective("reduce-scatter", step.ReduceScatter, report.LaneGradSync, 2, []int32{int32(layers - l)}, t+int64(l)*each, t+int64(l)*each+each*8/10, 0)
				}
			}
			t += length
		}
	}
	collective("reduce-scatter", step.ReduceScatter, report.LaneGradSync, 2, []int32{0, int32(layers), int32(layers + 1)}, t, t+6*ms, 6*ms)
	add(span{lane: report.LaneOptimizer, kind: step.GradNorm, start: t + 6*ms, end: t + 7*ms, work: 4, micro: -1, layer: -1, group: -1, by: -1})
	add(span{lane: report.LaneOptimizer, kind: step.Adam, start: t + 7*ms, end: t + 14*ms, work: 5, micro: -1, layer: -1, group: -1, by: -1})
	return spans
}

func pack(r *report.Result, spans []span, stages int) {
	s := &r.Spans
	s.First = make([]int32, stages*int(report.NumLanes)+1)
	for i, x := range spans {
		s.Start = append(s.Start, x.start)
		s.End = append(s.End, x.end)
		s.By = append(s.By, x.by)
		s.Work = append(s.Work, x.work)
		s.Micro = append(s.Micro, x.micro)
		s.Group = append(s.Group, x.group)
		s.Stage = append(s.Stage, uint16(x.stage))
		s.Layer = append(s.Layer, x.layer)
		s.Lane = append(s.Lane, x.lane)
		s.Kind = append(s.Kind, uint8(x.kind))
		s.Cause = append(s.Cause, uint8(x.cause))
		s.State = append(s.State, x.state)
		s.Chunk = append(s.Chunk, 0)
		if x.group >= 0 && x.lane != report.LaneExposed && x.lane != report.LaneHidden {
			r.Collectives[x.group].Span = int32(i)
		}
		for k := x.stage*int(report.NumLanes) + int(x.lane) + 1; k < len(s.First); k++ {
			s.First[k] = int32(i + 1)
		}
	}
}
