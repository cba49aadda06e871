package oracle

import (
	"distopt/core/model"
	"distopt/core/optim"
)

// EventDocument writes an event of an optimizer as the reference traces do, without where in the
// step it happened. Parameters go by name.
func EventDocument(e *optim.Event, params []model.Param) map[string]any {
	d := map[string]any{"op": string(e.Op)}
	switch e.Op {
	case optim.OpStartGradSync, optim.OpFinishGradSync, optim.OpStartParamSync, optim.OpFinishParamSync,
		optim.OpLocalStep, optim.OpCheckDTypes:
		d["b"] = idList(e)
	case optim.OpStepEnd:
		d["params_buckets_left"] = idList(e)
	case optim.OpReduceScatter, optim.OpAllGather, optim.OpAllReduce:
		d["dt"], d["n"], d["by"] = e.DTypes[0], e.N, e.Bytes
		d["gr"], d["gs"] = e.Group, e.GroupSize
		if e.Reduce != "" {
			d["rop"] = e.Reduce
		}
		if len(e.Buckets) == 1 {
			d["b"] = e.Buckets[0]
		}
	case optim.OpAdam:
		d["k"], d["nt"], d["n"], d["dt"] = e.Kind, e.Tensors, e.N, e.DTypes
	case optim.OpL2Norm:
		d["nt"], d["n"], d["dt"] = e.Tensors, e.N, e.DTypes[0]
	case optim.OpCopy:
		d["nt"], d["by"] = e.Tensors, e.Bytes
	case optim.OpCastFP8, optim.OpTransposeFP8:
		d["n"] = e.N
	case optim.OpBroadcast:
		d["n"], d["by"] = e.N, e.Bytes
	case optim.OpParamCopy:
		rows := make([][3]any, len(e.Copies))
		for i, c := range e.Copies {
			rows[i] = [3]any{c.Bucket, params[c.Param].Name, c.N}
		}
		d["f"] = rows
	}
	if e.Coalesced > 0 {
		d["co"] = e.Coalesced
	}
	if e.Param >= 0 {
		d["p"] = params[e.Param].Name
	}
	return d
}

// idList copies the buckets of an event; an empty list is written as one.
func idList(e *optim.Event) []int32 {
	ids := make([]int32, len(e.Buckets))
	for i, id := range e.Buckets {
		ids[i] = int32(id)
	}
	return ids
}
