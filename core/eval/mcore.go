package eval

import (
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/parallel"
	"distopt/core/report"
	"distopt/core/scenario"
)

// mcoreStage lays out a stage for Megatron-Core's optimizer.
func mcoreStage(s *scenario.Scenario, g parallel.Grid, st *model.Stage) (laidOut, error) {
	o := s.MCoreOptions(st.Index)
	if s.Experts() == 0 {
		o.Expert, o.ExpertWorld = 1, 0
	}
	l, err := mcore.Build(o, mcore.Params(st, s.Quant()))
	if err != nil {
		return laidOut{}, err
	}
	c := mcore.Config{
		Tensor: s.Parallel.TP, MaxNorm: s.Optim.ClipNorm,
		GradScaler: s.Precision.Trainer == scenario.FP16, FusedWgrad: s.GradFusion(), States: states(s),
	}
	if s.Model.Tied {
		c.EmbeddingSize = g.Group(parallel.Embedding, g.Representative(st.Index)).Size
	}
	return laidOut{
		stage: st, mcore: l,
		construct: func(rt optim.Runtime, ob optim.Observer) (optim.Sharded, error) {
			c := c
			c.Runtime, c.Observer = rt, ob
			return mcore.NewSharded(l, c)
		},
		holds: func() report.StageInput { return mcoreHolds(st, l) },
	}, nil
}

// states returns the formats of the optimizer's state.
func states(s *scenario.Scenario) mcore.States {
	m := &s.Optim.MCore
	return mcore.States{
		PrecisionAware: m.PrecisionAware,
		Main:           stateDType(m.MainParams), ExpAvg: stateDType(m.ExpAvg), ExpAvgSq: stateDType(m.ExpAvgSq),
		NoRemainders: !m.StoreRemainders,
		FP8:          s.Precision.FP8, Delayed: m.FP8Recipe == scenario.Delayed,
	}
}

// stateDType reads a format of the state, of which fp8 is kept as bytes.
func stateDType(text string) dtype.DType {
	if d, ok := dtype.Parse(text); ok {
		return d
	}
	if text == "fp8" {
		return dtype.U8
	}
	return dtype.FP32
}

// mcoreHolds describes a stage for the report.
func mcoreHolds(st *model.Stage, l *mcore.Layout) report.StageInput {
	in := report.StageInput{Model: st, Buckets: l.Buckets, Sets: l.Sets()}
	in.Params = make([]model.Param, len(l.Params))
	for i := range l.Params {
		in.Params[i] = l.Params[i].Param
	}
	for c := range l.Chunks {
		in.Bucketing = append(in.Bucketing, report.Rule{Text: l.Chunks[c].Bucketing.String()})
		for i := range l.Chunks[c].Buffers {
			b := &l.Chunks[c].Buffers[i]
			key := b.Key.Param.String() + ", " + b.Grad.String()
			if b.Expert {
				key += ", experts"
			}
			in.GradBuffers = append(in.GradBuffers, report.Buffer{Key: key, Length: int64(b.Numel)})
			if b.ParamData.Elems > 0 {
				in.ParamBuffers = append(in.ParamBuffers, report.Buffer{Key: key, Length: int64(b.ParamData.Elems)})
			}
		}
	}
	return in
}
