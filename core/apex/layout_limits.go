package apex

import (
	"fmt"
	"math"
	"strconv"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/units"
)

// MaxBuckets bounds the buckets of a stage, MaxFragments its fragments: linked buckets hold a
// dependency for every parameter of their list, so a list of many parameters over many buckets
// grows as their product.
const (
	MaxBuckets   = 100_000
	MaxFragments = 2_000_000
)

// CountBuckets returns the fewest buckets that can hold params: the bound that is known before
// any of them is made. Lists and alignment gaps add a few per list.
func CountBuckets(o Options, params []model.Param) (int64, error) {
	size, _, err := o.BucketSize()
	if err != nil {
		return 0, err
	}
	var total units.Elems
	for i := range params {
		if params[i].Numel < 0 || params[i].Numel > maxParams {
			return 0, fmt.Errorf("%s: got %d elements, want 0 to %d; use a smaller model", params[i].Name, params[i].Numel, int64(maxParams))
		}
		total += params[i].Numel
		if total > maxParams {
			return 0, fmt.Errorf("model: got more than %d elements on one stage, want at most that; use a smaller model", int64(maxParams))
		}
	}
	return int64((total + size - 1) / size), nil
}

// maxParams bounds the elements of a stage: far beyond any model, far inside int64.
const maxParams = 1 << 50

// checkBucketCount refuses a layout of more than MaxBuckets before anything is allocated.
func checkBucketCount(o Options, params []model.Param) error {
	n, err := CountBuckets(o, params)
	if err != nil {
		return err
	}
	if n > MaxBuckets {
		return tooManyBuckets(o, n)
	}
	return nil
}

func tooManyBuckets(o Options, n int64) error {
	return fmt.Errorf("bucket_cap_mb: got %v, which makes %d buckets on one stage, want at most %d; set it to %s or more",
		o.BucketCapMB, n, MaxBuckets, largerCap(o, float64(n)/MaxBuckets))
}

// checkLinks refuses bucket lists whose buckets would wait for so many parameters that they had
// more than MaxFragments. Nothing of lists is placed yet.
func (l *Layout) checkLinks(lists ...[]bucket.ParamID) error {
	links := int64(l.fragments)
	for _, list := range lists {
		elems, waiting := l.linked(list)
		buckets := int64((elems+l.BucketSize-1)/l.BucketSize) + 2
		links += buckets * int64(waiting)
	}
	if links > MaxFragments {
		return fmt.Errorf("bucket_cap_mb: got %v, which makes %d links of buckets to parameters on one stage, want at most %d; set it to %s or more",
			l.Options.BucketCapMB, links, MaxFragments, largerCap(l.Options, float64(links)/MaxFragments))
	}
	return nil
}

// linked returns what init_params_bucket puts into linked buckets of list: its elements with their
// gaps, and how many parameters each bucket waits for.
func (l *Layout) linked(list []bucket.ParamID) (elems units.Elems, waiting int) {
	var fp8 units.Elems
	fp8s := 0
	for _, p := range list {
		n := roundUp(l.Params[p].Numel, l.Alignment)
		elems += n
		if l.Params[p].FP8 {
			fp8 += n
			fp8s++
		}
	}
	if l.Options.NeMo && !l.Options.NewNeMo && fp8s > 0 {
		return fp8, fp8s
	}
	return elems, len(list)
}

// largerCap writes the cap that makes buckets larger by a factor, with a fifth to spare for what
// is rounded, in figures that one would type.
func largerCap(o Options, factor float64) string {
	size, _, err := o.BucketSize()
	if err != nil {
		return "100"
	}
	mb := float64(size) * float64(o.GradSync.Size()) * factor * 1.2 / 1048576
	if mb >= 10 {
		return strconv.FormatFloat(math.Ceil(mb), 'f', 0, 64)
	}
	return strconv.FormatFloat(mb, 'g', 2, 64)
}
