package lab

import "slices"

// text is what the model learns to write.
const text = `a bucket is filled from the last layer to the first. when a bucket is full its ` +
	`gradients are reduced and each rank keeps its own shard. then the optimizer updates the ` +
	`shard and the parameters are gathered again. the first layer waits for the first bucket, ` +
	`and the last layer waits for the last bucket. what is hidden behind the backward pass costs ` +
	`nothing, and what is exposed costs time. a small bucket is sent early and a large bucket is ` +
	`sent well. a scale keeps small numbers away from zero and large numbers away from the end of ` +
	`the format. the largest number of a tensor is its amax, and the scale of the next step ` +
	`follows the amax of the last steps. all ranks hold the same parameters after each step. ` +
	`if the ranks do not agree then the training is lost. the state is split over the ranks, and ` +
	`so each rank needs less memory. a rank that owns nothing waits for the others. `

// alphabet holds the characters of the text in ascending order; a character's number is its place.
var alphabet = func() []byte {
	a := []byte(text)
	slices.Sort(a)
	return slices.Compact(a)
}()

// encoded is the text as numbers.
var encoded = func() []int {
	list := make([]int, len(text))
	for i := range list {
		list[i], _ = slices.BinarySearch(alphabet, text[i])
	}
	return list
}()

// sequence returns n characters of the text from a random place on; past its end it begins again.
func sequence(r *random, n int) []int {
	start := r.below(len(encoded))
	s := make([]int, n)
	for i := range s {
		s[i] = encoded[(start+i)%len(encoded)]
	}
	return s
}
