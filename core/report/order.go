package report

import "slices"

// order sorts a list that nearly is, as the tasks of a stage are by time: each of its streams is in
// order. less is a total order. What turns out to be far from sorted is sorted as usual.
func order[T any](list []T, less func(a, b *T) bool) {
	moves := 0
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && less(&list[j], &list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
			moves++
		}
		if moves > 16*len(list) {
			slices.SortFunc(list, func(a, b T) int {
				switch {
				case less(&a, &b):
					return -1
				case less(&b, &a):
					return 1
				}
				return 0
			})
			return
		}
	}
}
