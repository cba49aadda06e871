package apex

import (
	"slices"

	"distopt/core/bucket"
)

// Sets numbers the buckets that complete together, because they hold or wait for the same
// parameters. Numbers follow the first bucket of each set.
func (l *Layout) Sets() []int {
	sets := make([]int, len(l.Buckets))
	known := map[string]int{}
	var params []bucket.ParamID
	var key []byte
	for i := range l.Buckets {
		params, key = params[:0], key[:0]
		for _, f := range l.Buckets[i].Fragments {
			params = append(params, f.Param)
		}
		slices.Sort(params)
		for _, p := range params {
			key = append(key, byte(p), byte(p>>8), byte(p>>16), byte(p>>24))
		}
		n, ok := known[string(key)]
		if !ok {
			n = len(known)
			known[string(key)] = n
		}
		sets[i] = n
	}
	return sets
}
