package apex

import (
	"fmt"

	"distopt/core/bucket"
)

// InitParams places each parameter of list that has no fragments yet and stands in a parameter
// group; nil means all parameters in optimizer order. No bucket is closed. NeMo places the FP8
// tensors of the list first.
func (l *Layout) InitParams(list []bucket.ParamID) {
	if list == nil {
		list = l.OptimizerOrder()
	}
	l.placeList(list, func(p bucket.ParamID) bucket.DTypes { return l.DTypes(p) })
}

// InitParamsAs is InitParams with a triple for every parameter that it places.
func (l *Layout) InitParamsAs(list []bucket.ParamID, d bucket.DTypes) {
	if list == nil {
		list = l.OptimizerOrder()
	}
	l.placeList(list, func(bucket.ParamID) bucket.DTypes { return d })
}

// OptimizerOrder returns all parameters of the optimizer: group 0, then group 1, ...
func (l *Layout) OptimizerOrder() []bucket.ParamID {
	order := make([]bucket.ParamID, 0, len(l.Params))
	for _, group := range l.Groups {
		order = append(order, group...)
	}
	return order
}

// placeList places those of list that are in a group: in NeMo the FP8 tensors first.
func (l *Layout) placeList(list []bucket.ParamID, triple func(bucket.ParamID) bucket.DTypes) {
	if l.Options.NeMo {
		for _, p := range list {
			if l.Params[p].FP8 && l.Group[p].Group >= 0 {
				l.PlaceAs(p, triple(p))
			}
		}
	}
	for _, p := range list {
		if l.Group[p].Group >= 0 {
			l.PlaceAs(p, triple(p))
		}
	}
}

// InitParamsBucket places the unplaced parameters of list in buckets of their own and makes each
// of these buckets wait for all of them, so that they are complete and needed together. NeMo
// before PR #8221 leaves out parameters beside FP8 tensors; after it, several triples are linked.
func (l *Layout) InitParamsBucket(list []bucket.ParamID) error {
	switch {
	case !l.Options.NeMo:
		list = l.unplacedOf(list)
		if err := l.checkLinks(list); err != nil {
			return err
		}
		_, err := l.initBucketAs(list, l.DTypes)
		return err
	case l.Options.NewNeMo:
		return l.initLinkedBuckets(list)
	default:
		return l.initBucketBefore(list)
	}
}

// idRange is a half-open range of buckets.
type idRange struct{ Start, End bucket.ID }

// initBucketAs closes all buckets, places list (nothing of it is placed yet) in new ones and makes
// each of those wait for all of list. An empty list closes nothing.
func (l *Layout) initBucketAs(list []bucket.ParamID, triple func(bucket.ParamID) bucket.DTypes) (idRange, error) {
	first := bucket.ID(len(l.Buckets))
	if len(list) == 0 {
		return idRange{first, first}, nil
	}
	for _, p := range list {
		if l.Group[p].Group < 0 {
			return idRange{}, fmt.Errorf("init_params_bucket: %s is in no parameter group; add it to one", l.Params[p].Name)
		}
	}
	for i := range l.Buckets {
		l.Buckets[i].Open = false
	}
	l.placeList(list, triple)

	// A parameter's own fragments lie in ascending buckets: one cursor each finds the others.
	own := make([]int, len(list))
	cursor := make([]int, len(list))
	for i, p := range list {
		own[i] = len(l.Fragments[p])
	}
	end := bucket.ID(len(l.Buckets))
	for id := first; id < end; id++ {
		l.Buckets[id].Open = false
		for i, p := range list {
			if c := cursor[i]; c < own[i] && l.Fragments[p][c].Bucket == id {
				cursor[i]++
				continue
			}
			l.depend(id, p)
		}
	}
	return idRange{first, end}, nil
}

// unplacedOf returns the members of list that have no fragments yet, each once.
func (l *Layout) unplacedOf(list []bucket.ParamID) []bucket.ParamID {
	var left []bucket.ParamID
	for _, p := range list {
		if !l.placed[p] {
			left = append(left, p)
		}
	}
	return left
}
