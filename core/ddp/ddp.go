// Package ddp is PyTorch's DistributedDataParallel: how it assigns gradients to buckets (the list of the
// first backward pass, and the one that is rebuilt from the order in which gradients arrived), when it
// all-reduces them, and the update that every rank then does by itself.
//
// Sizes of Bucket are bytes. Source: torch/csrc/distributed/c10d/reducer.cpp and torch/nn/parallel of
// 2.11 and 2.14; the reference data records the lists, not the control flow. Not modelled: sparse
// gradients, several devices in one module, lists of caps, buffers, communication hooks, the broadcast
// of parameters and of the rebuilt list.
package ddp

import (
	"fmt"
	"slices"
	"strings"

	"distopt/core/units"
)

// Param is one parameter in registration order.
type Param struct {
	Name   string
	Dims   int    // of its shape
	Format string // dtype and device: only gradients of one format share a bucket
	Bytes  units.Bytes
}

// Bucket is a list of gradients that are all-reduced together.
type Bucket struct {
	Params []int // in order of being added
	Bytes  units.Bytes
	Limit  units.Bytes // that closed it, or would have
}

// The limits that PyTorch starts from.
const (
	FirstBucket units.Bytes = 1 << 20                        // _DEFAULT_FIRST_BUCKET_BYTES
	DefaultCap              = 25 * (1 << 20)                 // bucket_cap_mb left at its default
	NoLimit                 = units.Bytes(1<<63 - 1)         // one bucket for each format
	maxParams               = 1 << 20                        // of a model
	maxBytes                = units.Bytes(1<<62) / maxParams // of one parameter
)

// Limits returns the limits of a rebuilt list for bucket_cap_mb; 0: left at its default. Since
// PyTorch 2.4 a given cap holds for the first bucket too.
func Limits(capMB float64) []units.Bytes {
	if capMB == 0 {
		return []units.Bytes{FirstBucket, DefaultCap}
	}
	c := max(units.Bytes(capMB*(1<<20)), 1) // a tensor of any size closes its bucket
	return []units.Bytes{c, c}
}

// Assign adds the parameters in the given order to the open bucket of their format. A bucket closes
// when it has reached its limit, and its format steps to the next limit, of which the last one repeats.
// Buckets are in order of closing. What is left open at the end follows, the format that came last
// first: that is the order of the hash map of the real code, where no two of a few formats collide.
func Assign(params []Param, order []int, limits []units.Bytes) ([]Bucket, error) {
	if len(limits) == 0 || slices.ContainsFunc(limits, func(n units.Bytes) bool { return n < 1 }) {
		return nil, fmt.Errorf("bucket limits: got %v, want at least one, each above 0", limits)
	}
	if len(params) > maxParams {
		return nil, fmt.Errorf("parameters: got %d, want at most %d", len(params), maxParams)
	}
	type open struct {
		format string
		bucket Bucket
		limit  int
	}
	var formats []open
	var buckets []Bucket
	for _, i := range order {
		if i < 0 || i >= len(params) {
			return nil, fmt.Errorf("order: got parameter %d, want 0 to %d", i, len(params)-1)
		}
		p := &params[i]
		if p.Bytes < 0 || p.Bytes > maxBytes {
			return nil, fmt.Errorf("%s: got %d bytes, want 0 to %d", p.Name, p.Bytes, maxBytes)
		}
		at := slices.IndexFunc(formats, func(o open) bool { return o.format == p.Format })
		if at < 0 {
			at = len(formats)
			formats = append(formats, open{format: p.Format})
		}
		o := &formats[at]
		o.bucket.Params = append(o.bucket.Params, i)
		o.bucket.Bytes += p.Bytes
		o.bucket.Limit = limits[o.limit]
		if o.bucket.Bytes >= o.bucket.Limit {
			buckets = append(buckets, o.bucket)
			o.bucket = Bucket{}
			o.limit = min(o.limit+1, len(limits)-1)
		}
	}
	for i := len(formats) - 1; i >= 0; i-- {
		if b := formats[i].bucket; len(b.Params) > 0 {
			buckets = append(buckets, b)
		}
	}
	return buckets, nil
}

// AssignSorted is Assign in registration order, buckets sorted by their smallest parameter: what the
// real code does when it is given no ids.
func AssignSorted(params []Param, limits []units.Bytes) ([]Bucket, error) {
	buckets, err := Assign(params, registration(params), limits)
	slices.SortStableFunc(buckets, func(a, b Bucket) int { return slices.Min(a.Params) - slices.Min(b.Params) })
	return buckets, err
}

// First returns the buckets of the first backward pass. Unless unused parameters are looked for (or
// the graph is static) there is one for each format, since the list will be rebuilt; else limits hold.
// The list is reversed: the small first bucket ends up last.
func First(params []Param, capMB float64, findUnused bool) ([]Bucket, error) {
	limits := []units.Bytes{NoLimit}
	if findUnused {
		limits = Limits(capMB)
	}
	buckets, err := AssignSorted(params, limits)
	slices.Reverse(buckets)
	return buckets, err
}

// Rebuilt returns the buckets of all later passes from the order in which gradients arrived in the
// first one. They are all-reduced strictly in this order.
func Rebuilt(params []Param, arrival []int, capMB float64) ([]Bucket, error) {
	return Assign(params, arrival, Limits(capMB))
}

// Arrival returns the order in which the gradients of a chain of modules arrive: last module first;
// the bias of a linear layer before its weight, since the product adds it last, others as registered.
func Arrival(params []Param) []int {
	var order []int
	for end := len(params); end > 0; {
		start := end - 1
		for start > 0 && module(params[start-1].Name) == module(params[end-1].Name) {
			start--
		}
		if end-start == 2 && params[start].Dims == 2 && params[start+1].Dims == 1 {
			order = append(order, start+1, start)
		} else {
			for i := start; i < end; i++ {
				order = append(order, i)
			}
		}
		end = start
	}
	return order
}

// module returns the path of the module that holds a parameter.
func module(name string) string {
	return name[:max(strings.LastIndexByte(name, '.'), 0)]
}

func registration(params []Param) []int {
	order := make([]int, len(params))
	for i := range order {
		order[i] = i
	}
	return order
}
