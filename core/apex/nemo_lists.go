package apex

import (
	"slices"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
)

// flag sets the attributes that NeMo gives to parameters before it builds bucket lists.
func (l *Layout) flag(s *model.Stage) {
	for p := range l.Params {
		q := &l.Params[p]
		q.FP32Grads = l.Options.State == dtype.FP32 && l.asksFP32Grads(s, q)
		q.NoOverlap = q.SequenceParallel || tiedAcrossStages(s, q)
	}
}

// asksFP32Grads reports whether NeMo wants the gradients of q in fp32: embeddings and the output
// layer. Without PR #8792 it looks among the registered parameters, and model chunks of virtual
// stages are a plain list in which nothing is registered; with it, an output layer that is not
// tied is no longer among them.
func (l *Layout) asksFP32Grads(s *model.Stage, q *model.Param) bool {
	switch q.Role {
	case model.WordEmbedding, model.PositionEmbedding:
		return l.Options.Later.FP32EmbeddingGrads || s.VP == 1
	case model.OutputLayer:
		if l.Options.Later.FP32EmbeddingGrads {
			return q.Shared
		}
		return s.VP == 1
	}
	return false
}

// tiedAcrossStages reports whether q is a copy of a weight that first and last stage share: their
// gradients are added before the data-parallel reduction, which must wait for that.
func tiedAcrossStages(s *model.Stage, q *model.Param) bool {
	if s.PP == 1 || !s.Config.Tied {
		return false
	}
	return q.Role == model.OutputLayer || q.Role == model.WordEmbedding
}

// bucketLists returns the parameters of every init_params_bucket call: a list for each unit, the
// last unit of the last chunk first, and what stands in no list.
func (l *Layout) bucketLists(s *model.Stage) [][]bucket.ParamID {
	var lists [][]bucket.ParamID
	for c := range s.Chunks {
		switch {
		case s.VP > 1 && l.Options.Later.StageBuckets:
			lists = append(lists, l.unit(s.Chunks[c].Params, true))
		case s.VP > 1 && !l.Options.NewNeMo:
			lists = append(lists, l.unit(s.Chunks[c].Params, false))
		default:
			for _, span := range layers(l.Params, s.Chunks[c].Params) {
				lists = append(lists, l.unit(span, false))
			}
		}
	}
	slices.Reverse(lists)

	listed := make([]bool, len(l.Params))
	for _, list := range lists {
		for _, p := range list {
			listed[p] = true
		}
	}
	var left []bucket.ParamID
	for p := range l.Params {
		if !listed[p] {
			left = append(left, bucket.ParamID(p))
		}
	}
	switch {
	case len(left) == 0:
	case l.Options.NewNeMo && len(lists) > 0:
		lists[len(lists)-1] = append(lists[len(lists)-1], left...)
	default:
		lists = append(lists, left)
	}
	return lists
}

// unit returns the parameters of span whose gradients may be synchronized during backward: those
// of layers, with outside also embeddings, final norm and output layer. After PR #8221 FP8
// tensors stand alone.
func (l *Layout) unit(span [2]int, outside bool) []bucket.ParamID {
	var list []bucket.ParamID
	fp8 := false
	for p := span[0]; p < span[1]; p++ {
		q := &l.Params[p]
		if q.NoOverlap || (q.Layer < 0 && !outside) {
			continue
		}
		list = append(list, bucket.ParamID(p))
		fp8 = fp8 || q.FP8
	}
	if fp8 && l.Options.NewNeMo {
		list = slices.DeleteFunc(list, func(p bucket.ParamID) bool { return !l.Params[p].FP8 })
	}
	return list
}

// layers splits a span of parameters into the spans of its layers.
func layers(params []model.Param, span [2]int) [][2]int {
	var spans [][2]int
	for p := span[0]; p < span[1]; p++ {
		if params[p].Layer < 0 {
			continue
		}
		if p == span[0] || params[p].Layer != params[p-1].Layer {
			spans = append(spans, [2]int{p, p})
		}
		spans[len(spans)-1][1] = p + 1
	}
	return spans
}
