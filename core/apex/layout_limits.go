package apex

import (
	"fmt"

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
	// The cap that would do, rounded up to a number that one would type.
	fit := float64(o.BucketCapMB*float64(n)) / MaxBuckets * 2
	return fmt.Errorf("bucket_cap_mb: got %v, which makes %d buckets on one stage, want at most %d; set it to %.3g or more",
		o.BucketCapMB, n, MaxBuckets, fit)
}

// checkLinks refuses to link the buckets that list will need to waiting parameters each, if that
// would make more than MaxFragments.
func (l *Layout) checkLinks(list []bucket.ParamID, waiting int) error {
	var total units.Elems
	for _, p := range list {
		total += roundUp(l.Params[p].Numel, l.Alignment)
	}
	buckets := int64((total+l.BucketSize-1)/l.BucketSize) + 2
	if int64(l.fragments)+buckets*int64(waiting) > MaxFragments {
		return fmt.Errorf("bucket_cap_mb: got %v, which links %d buckets to %d parameters, want at most %d links on one stage; set it to %.3g or more",
			l.Options.BucketCapMB, buckets, waiting, MaxFragments, float64(l.Options.BucketCapMB*10))
	}
	return nil
}
