package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// CheckDDP assigns the gradients of a case of PyTorch's DistributedDataParallel to buckets, for every
// list of limits and order that it holds and for every run.
func CheckDDP(data []byte) error {
	var in struct {
		Params      []ParamRow `json:"params"`
		Assignments []struct {
			Limits []units.Bytes `json:"limits"`
			Order  string        `json:"order"`
		} `json:"assignments"`
		Runs []struct {
			CapMB *float64 `json:"bucket_cap_mb"`
		} `json:"ddp_runs"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	params, err := ddpParams(in.Params)
	if err != nil {
		return err
	}
	out := struct {
		Assignments []ddpAssignment `json:"assignments"`
		Runs        []ddpRun        `json:"ddp_runs"`
	}{[]ddpAssignment{}, []ddpRun{}}
	// Every list of limits is tried in every order.
	if n := len(in.Assignments); n == 0 || n%len(ddpOrders) != 0 {
		return fmt.Errorf("assignments: got %d, want each list of limits in %d orders", n, len(ddpOrders))
	}
	for i, a := range in.Assignments {
		if want := ddpOrders[i%len(ddpOrders)]; a.Order != want {
			return fmt.Errorf("assignments[%d].order: got %q, want %q", i, a.Order, want)
		}
		var buckets []ddp.Bucket
		switch order := every(len(params), 0, 1); a.Order {
		case "registration", "reverse":
			list := make([]int, len(order))
			for k, p := range order {
				list[k] = int(p)
			}
			if a.Order == "reverse" {
				slices.Reverse(list)
			}
			buckets, err = ddp.Assign(params, list, a.Limits)
		case "registration_no_ids":
			buckets, err = ddp.AssignSorted(params, a.Limits)
		}
		if err != nil {
			return fmt.Errorf("assignments[%d]: %w", i, err)
		}
		d := ddpAssignment{Limits: a.Limits, Order: a.Order, ddpBuckets: describeDDP(buckets)}
		for _, b := range buckets {
			d.Limit = append(d.Limit, b.Limit)
		}
		out.Assignments = append(out.Assignments, d)
	}
	for i, run := range in.Runs {
		megabytes := 0.0
		if run.CapMB != nil {
			megabytes = *run.CapMB
		}
		first, err := ddp.First(params, megabytes, false)
		if err != nil {
			return fmt.Errorf("ddp_runs[%d]: %w", i, err)
		}
		later, err := ddp.Rebuilt(params, ddp.Arrival(params), megabytes)
		if err != nil {
			return fmt.Errorf("ddp_runs[%d]: %w", i, err)
		}
		out.Runs = append(out.Runs, ddpRun{run.CapMB, describeDDP(first), describeDDP(later)})
	}
	return compare(data, out, append(caseKeys, "params")...)
}

// ddpOrders are the orders in which the cases assign parameters.
var ddpOrders = words("registration reverse registration_no_ids")

type ddpBuckets struct {
	Buckets [][]int       `json:"buckets"`
	Bytes   []units.Bytes `json:"bytes"`
}

type ddpAssignment struct {
	Limits []units.Bytes `json:"limits"`
	Order  string        `json:"order"`
	ddpBuckets
	Limit []units.Bytes `json:"limit_of_bucket"`
}

type ddpRun struct {
	CapMB *float64   `json:"bucket_cap_mb"`
	First ddpBuckets `json:"first_iteration"`
	Later ddpBuckets `json:"later_iterations"`
}

func describeDDP(buckets []ddp.Bucket) ddpBuckets {
	var d ddpBuckets
	for _, b := range buckets {
		d.Buckets = append(d.Buckets, b.Params)
		d.Bytes = append(d.Bytes, b.Bytes)
	}
	return d
}

func ddpParams(rows []ParamRow) ([]ddp.Param, error) {
	params := make([]ddp.Param, len(rows))
	for i, row := range rows {
		n, err := model.Numel(row.Shape)
		if err != nil {
			return nil, fmt.Errorf("params[%d]: %w", i, err)
		}
		size := units.Bytes(8) // fp64, which nothing else here knows
		if d, ok := dtype.Parse(row.DType); ok {
			size = d.Size()
		} else if row.DType != "fp64" {
			return nil, fmt.Errorf("params[%d]: got dtype %q, want fp64, fp32, fp16 or bf16", i, row.DType)
		}
		params[i] = ddp.Param{Name: row.Name, Dims: len(row.Shape), Format: row.DType, Bytes: units.Bytes(n) * size}
	}
	return params, nil
}
