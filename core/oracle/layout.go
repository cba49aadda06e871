package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
)

// CheckLayout builds the layout of a layout case and compares every field, for every rank of which
// the case holds the local shards.
func CheckLayout(data []byte) error {
	var in struct {
		Case   Case                       `json:"case"`
		Params []ParamRow                 `json:"params"`
		Local  map[string]json.RawMessage `json:"local"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkCase(data, func(kind string) keys { return layoutCase[kind] }); err != nil {
		return err
	}
	l, _, err := in.Case.NewLayout(in.Params)
	if err != nil {
		return err
	}
	if in.Case.Kind == "apex" {
		if err := initialise(l, in.Case.Init); err != nil {
			return err
		}
	}
	ranks, err := ranksOf(in.Local, in.Case.World)
	if err != nil {
		return err
	}
	// Which ranks a layout shows.
	for _, rank := range []int{0, 1, in.Case.World / 2, in.Case.World - 1} {
		if rank < in.Case.World && !slices.Contains(ranks, rank) {
			return fmt.Errorf("local.%d: got nothing in the case, want the shards of that rank", rank)
		}
	}
	doc := DescribeLayout(l, ranks)
	if in.Case.Kind == "nemo" {
		if doc.OptimizerArgs, err = nemoArgs(&in.Case, l.Options); err != nil {
			return err
		}
	}
	return compare(data, doc, caseKeys...)
}

func ranksOf(local map[string]json.RawMessage, world int) ([]int, error) {
	ranks := make([]int, 0, len(local))
	for key := range local {
		rank, err := strconv.Atoi(key)
		if err != nil || rank < 0 || rank >= world {
			return nil, fmt.Errorf("local: got rank %q, want 0 to %d", key, world-1)
		}
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	return ranks, nil
}

// initialise places the parameters of a plain Apex case in the way that init names.
func initialise(l *apex.Layout, init json.RawMessage) error {
	n := len(l.Params)
	forward := every(n, 0, 1)
	backward := slices.Clone(forward)
	slices.Reverse(backward)

	var way string
	if json.Unmarshal(init, &way) != nil {
		var lists struct {
			Buckets [][]bucket.ParamID `json:"buckets"`
		}
		if err := json.Unmarshal(init, &lists); err != nil || lists.Buckets == nil {
			return fmt.Errorf("case.init: got %s, want a word or lists of buckets", init)
		}
		for _, list := range lists.Buckets {
			for _, p := range list {
				if p < 0 || int(p) >= n {
					return fmt.Errorf("case.init.buckets: got parameter %d, want 0 to %d", p, n-1)
				}
			}
			if err := l.InitParamsBucket(list); err != nil {
				return err
			}
		}
		l.InitParams(backward)
		return nil
	}
	plain := bucket.DTypes{State: l.Options.State, GradSync: l.Options.GradSync, ParamSync: l.Options.ParamSync}
	grads, params := plain, plain
	grads.GradSync = dtype.BF16
	params.ParamSync = dtype.BF16
	switch way {
	case "lazy_backward":
		lazily(l, backward)
	case "lazy_forward_order":
		lazily(l, forward)
	case "zero_grad_then_lazy":
		if l.Options.ContiguousGradBuffer {
			l.InitParams(nil)
		}
		lazily(l, backward)
	case "init_params":
		l.InitParams(nil)
	case "init_params_reversed":
		l.InitParams(backward)
	case "two_stage":
		l.InitParams(every(n, 0, 2))
		l.InitParams(every(n, 1, 2))
	case "multi_dtype":
		l.InitParamsAs(every(n, 0, 3), grads)
		l.InitParamsAs(every(n, 1, 3), params)
		l.InitParams(nil)
	case "multi_dtype_plain_first":
		l.InitParams(every(n, 0, 3))
		l.InitParamsAs(every(n, 1, 3), grads)
		l.InitParamsAs(every(n, 2, 3), params)
	default:
		return fmt.Errorf("case.init: got %q, want one of the ways that this model knows", way)
	}
	return nil
}

// lazily fires post-backward hooks in order: each places its parameter, and with a contiguous
// gradient buffer the first gradient that is copied there makes all others be placed.
func lazily(l *apex.Layout, hooks []bucket.ParamID) {
	for _, p := range hooks {
		l.Place(p)
		if l.Options.ContiguousGradBuffer && len(l.Fragments[p]) > 0 {
			l.InitParams(nil)
		}
	}
}

// notPassed are keys of the optim section that NeMo keeps for itself.
var notPassed = []string{"name", "cls", "sched"}

// nemoArgs are the arguments with which NeMo calls the constructor: the optim section without what
// is for NeMo itself, and its overrides.
func nemoArgs(c *Case, o apex.Options) (map[string]any, error) {
	args := map[string]any{"dtype": o.State.String(), "contiguous_grad_buffer": o.ContiguousGradBuffer}
	for key, raw := range c.Optim {
		if !slices.Contains(notPassed, key) {
			args[key] = raw
		}
	}
	args["param_sync_dtype"] = o.ParamSync.String()
	args["store_params"] = o.StoreParams
	if o.StoreParamRemainders {
		args["store_param_remainders"] = true
	} else {
		delete(args, "store_param_remainders")
	}
	return args, nil
}
