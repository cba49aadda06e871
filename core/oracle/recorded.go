package oracle

import (
	"encoding/json"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/units"
)

// recordedBucket is a bucket as cases with events write it: fragments begin with a name, and what
// only a layout case tells is left out.
type recordedBucket struct {
	Size      units.Elems `json:"bucket_size"`
	Shard     units.Elems `json:"shard_size"`
	Filled    units.Elems `json:"filled_size"`
	State     string      `json:"dtype"`
	GradSync  string      `json:"grad_sync_dtype"`
	ParamSync string      `json:"param_sync_dtype"`
	Offset    units.Elems `json:"contiguous_buffer_offset"`
	Fragments [][5]any    `json:"fragments"`
}

// compareRecorded compares parameters, their order and flags, buckets and fragments of a case with
// events with l, the layout at its end. A trace may lack flags and the buckets of parameters.
func compareRecorded(data []byte, l *apex.Layout) error {
	var reference map[string]json.RawMessage
	if err := json.Unmarshal(data, &reference); err != nil {
		return err
	}
	params := make([][4]any, len(l.Params))
	fragments := make(map[string][]bucket.ID, len(l.Params))
	flags := map[string][]string{"no_overlap": {}, "fp32_grads": {}, "sequence_parallel": {}, "shared": {}}
	for p := range l.Params {
		q := &l.Params[p]
		params[p] = [4]any{q.Name, q.Shape, q.DType.String(), bit(q.FP8)}
		ids := make([]bucket.ID, len(l.Fragments[p]))
		for i, ref := range l.Fragments[p] {
			ids[i] = ref.Bucket
		}
		fragments[q.Name] = ids
		for flag, set := range map[string]bool{
			"no_overlap": q.NoOverlap, "fp32_grads": q.FP32Grads, "sequence_parallel": q.SequenceParallel, "shared": q.Shared,
		} {
			if set {
				flags[flag] = append(flags[flag], q.Name)
			}
		}
	}
	order := make([]string, 0, len(l.Params))
	for _, p := range l.OptimizerOrder() {
		order = append(order, l.Params[p].Name)
	}
	buckets := make([]recordedBucket, len(l.Buckets))
	for i := range l.Buckets {
		d := describeBucket(&l.Buckets[i])
		rows := make([][5]any, len(d.Fragments))
		for j, f := range d.Fragments {
			rows[j] = [5]any{l.Params[f[0]].Name, f[1], f[2], f[3], f[4]}
		}
		buckets[i] = recordedBucket{d.Size, d.Shard, d.Filled, d.State, d.GradSync, d.ParamSync, d.Offset, rows}
	}
	computed := map[string]any{
		"params": params, "opt_param_order": order, "buckets": buckets, "flags": flags, "param_fragment_buckets": fragments,
	}
	for key := range computed {
		if _, ok := reference[key]; !ok {
			delete(computed, key)
		}
	}
	for key := range reference {
		if _, ok := computed[key]; !ok {
			delete(reference, key)
		}
	}
	described, err := json.Marshal(reference)
	if err != nil {
		return err
	}
	return compare(described, computed)
}
