// Package lab trains a small model with the real optimizer: a character-level transformer, or an
// MLP, whose data is split over ranks and whose parameters core/apex lays out in buckets and
// core/optim/arrays updates, in up to four precisions side by side.
//
// A Session takes one step at a time and tells after each what became of the numbers: losses, FP8
// scales and amaxes, shares of values that saturated or were flushed to zero, whether all ranks
// agree, and whether the optimizer before the seed change would have come to the same parameters.
//
// A run is a function of its Config to the byte, on every machine: forward and backward pass are
// fp32 in a fixed order, no product fuses with a sum, and exp, log and tanh are the package's own,
// since the standard library's differ between targets.
//
// Activations are fp32 in every variant: what differs is how parameters, gradients and optimizer
// state are stored and sent. Not modelled: dropout, tensor and pipeline parallelism, microbatches.
package lab
