package report

import (
	"distopt/core/model"
	"distopt/core/step"
)

// reportStages fills in what each stage holds, and its part of the step.
func (m *maker) reportStages() {
	m.out.Stages = make([]Stage, len(m.stages))
	for s := range m.stages {
		st, in, out := &m.stages[s], &m.in.Stages[s], &m.out.Stages[s]
		out.Params = reportParams(in.params())
		out.Buckets = reportBuckets(in)
		out.GradBuffers, out.ParamBuffers = in.GradBuffers, in.ParamBuffers
		out.Bucketing = in.Bucketing
		for i, t := range st.shares {
			if t > 0 {
				out.Shares = append(out.Shares, Share{shareNames[i], t})
			}
		}
		for i, t := range st.exposed {
			if t > 0 {
				out.ExposedBy = append(out.ExposedBy, ExposedBy{familyNames[i], t})
			}
		}
		out.Exposed, out.Bubble, out.ExposedInBubble = st.shares[exposed], st.shares[bubble], st.inBubble
		for i := range st.comms {
			c := &st.comms[i]
			if f := kinds[m.labels[c.task].Kind].family; f == gradSync || f == paramSync {
				out.SyncTotal += m.clip(c.start, c.end)
				out.Hidden += c.hidden
			}
		}
		out.AmaxReductions = st.amaxes
		if m.in.GroupSizes[step.Distributed] > 1 {
			for i := range in.Buckets {
				b := &in.Buckets[i]
				out.WastedBytes += int64(b.Size-b.Filled) * int64(b.DTypes.GradSync.Size()+b.DTypes.ParamSync.Size())
			}
		}
	}
}

func reportParams(params []model.Param) []Param {
	out := make([]Param, len(params))
	for i := range params {
		p := &params[i]
		out[i] = Param{
			Name: p.Name, Shape: p.Shape, Numel: int64(p.Numel), DType: p.DType.String(),
			Chunk: p.Chunk, Layer: p.Layer, Group: groupOf(p.Role),
		}
		if p.FP8 {
			out[i].DType = "fp8"
		}
	}
	return out
}

// groupOf returns the colour group of a parameter: weights by the part of the layer that they
// belong to, biases and norms apart.
func groupOf(r model.Role) string {
	switch r {
	case model.WordEmbedding, model.PositionEmbedding, model.OutputLayer:
		return "embedding"
	case model.ProjWeight, model.QKVWeight:
		return "attention"
	case model.FC1Weight, model.FC2Weight, model.ExpertFC1Weight, model.ExpertFC2Weight, model.SharedFC1Weight, model.SharedFC2Weight:
		return "mlp"
	}
	return "other"
}

// reportBuckets lists the buckets of a stage.
func reportBuckets(in *StageInput) []Bucket {
	out := make([]Bucket, len(in.Buckets))
	fragments := 0
	for i := range in.Buckets {
		fragments += len(in.Buckets[i].Fragments)
	}
	all := make([]Fragment, 0, fragments)
	for i := range in.Buckets {
		b := &in.Buckets[i]
		from := len(all)
		for _, f := range b.Fragments {
			all = append(all, Fragment{
				Param: int32(f.Param), InParam: [2]int64{int64(f.InParam.Start), int64(f.InParam.End)},
				InBucket: [2]int64{int64(f.InBucket.Start), int64(f.InBucket.End)},
			})
		}
		out[i] = Bucket{
			ID: int32(b.ID), Size: int64(b.Size), Shard: int64(b.Shard), Filled: int64(b.Filled),
			State: b.DTypes.State.String(), Grad: b.DTypes.GradSync.String(), Sync: b.DTypes.ParamSync.String(),
			Offset: int64(b.Offset), Set: i, Fragments: all[from:len(all):len(all)],
		}
		if in.Sets != nil {
			out[i].Set = in.Sets[i]
		}
	}
	return out
}
