package apex

import (
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
)

// Build returns the layout of a stage before its first step: complete for NeMo, for plain Apex
// without buckets, since its hooks place parameters as gradients come. Plain Apex has one group.
func Build(o Options, s *model.Stage) (*Layout, error) {
	if o.NeMo {
		return BuildNeMo(o, s)
	}
	return NewLayout(o, s.Params, s.OptimizerGroups(true))
}

// BuildNeMo lays out a stage as NeMo's configure_optimizers does: it sets the optimizer's flags,
// makes one bucket list per unit (a layer, or all layers of a model chunk, by version), newest
// unit first, and initialises whatever is left.
func BuildNeMo(o Options, s *model.Stage) (*Layout, error) {
	o.NeMo = true
	l, err := NewLayout(o, s.Params, s.OptimizerGroups(o.NormDecay))
	if err != nil {
		return nil, err
	}
	l.flag(s)
	if !o.NewNeMo {
		if err := l.initFP32Grads(); err != nil {
			return nil, err
		}
	}
	lists := l.bucketLists(s)
	if err := l.checkLinks(lists...); err != nil {
		return nil, err
	}
	for _, list := range lists {
		if err := l.InitParamsBucket(list); err != nil {
			return nil, err
		}
	}
	all := make([]bucket.ParamID, len(l.Params))
	for p := range all {
		all[p] = bucket.ParamID(p)
	}
	if err := l.InitParamsBucket(all); err != nil {
		return nil, err
	}
	if n := len(l.Buckets); n > MaxBuckets {
		return nil, tooManyBuckets(o, int64(n))
	}
	return l, nil
}

// fp32Grads is the triple of parameters that ask for fp32 gradients.
func (l *Layout) fp32Grads(bucket.ParamID) bucket.DTypes {
	return bucket.DTypes{State: l.Options.State, GradSync: dtype.FP32, ParamSync: l.Options.ParamSync}
}

// initFP32Grads is what the constructor before PR #8221 did: parameters with fp32 gradients get
// the first buckets, unless everything is fp32 anyway.
func (l *Layout) initFP32Grads() error {
	if l.Options.State == dtype.FP32 && l.Options.GradSync == dtype.FP32 {
		return nil
	}
	var list []bucket.ParamID
	for _, p := range l.OptimizerOrder() {
		if l.Params[p].FP32Grads {
			list = append(list, p)
		}
	}
	_, err := l.initBucketAs(list, l.fp32Grads)
	return err
}

// initBucketBefore is init_params_bucket before PR #8221: beside FP8 tensors the others are left
// for later, and their gradients are no longer synchronized during backward.
func (l *Layout) initBucketBefore(list []bucket.ParamID) error {
	list = l.unplacedOf(list)
	var fp8, others []bucket.ParamID
	for _, p := range list {
		if l.Params[p].FP8 {
			fp8 = append(fp8, p)
		} else {
			others = append(others, p)
		}
	}
	if len(fp8) > 0 {
		for _, p := range others {
			l.Params[p].NoOverlap = true
		}
		list = fp8
	}
	_, err := l.initBucketAs(list, l.DTypes)
	return err
}

// initLinkedBuckets is init_params_bucket after PR #8221: parameters with fp32 gradients, FP8
// tensors and the rest get buckets of their own triple, and all of these wait for all of list.
func (l *Layout) initLinkedBuckets(list []bucket.ParamID) error {
	list = l.unplacedOf(list)
	var fp32, fp8, rest []bucket.ParamID
	for _, p := range list {
		switch {
		case l.Params[p].FP32Grads:
			fp32 = append(fp32, p)
		case l.Params[p].FP8:
			fp8 = append(fp8, p)
		default:
			rest = append(rest, p)
		}
	}
	var ids [3]idRange
	var err error
	lists := [3][]bucket.ParamID{fp32, fp8, rest}
	for k, part := range lists {
		triple := l.DTypes
		if k == 0 {
			triple = l.fp32Grads
		}
		if ids[k], err = l.initBucketAs(part, triple); err != nil {
			return err
		}
	}
	for k := range lists {
		for id := ids[k].Start; id < ids[k].End; id++ {
			for other, part := range lists {
				if other == k {
					continue
				}
				for _, p := range part {
					l.depend(id, p)
				}
			}
		}
	}
	return nil
}
