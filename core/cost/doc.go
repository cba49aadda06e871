// Package cost prices a recorded step: how long each kernel, collective and message takes when it
// runs alone, what the host needs to issue it, and how much tasks slow each other down.
//
// Kernels follow curves measured on one H200 and carried to other GPUs (core/hw); collectives
// follow nccl-tests tables inside a node and NCCL's own latencies between nodes. What slows
// kernels beside collectives was measured with copies that take as many SMs. docs/cost-model.md
// names every constant, its source, and the errors that the tests of this package print.
//
// Times are units.Seconds until Price rounds each task once to nanoseconds. Nothing depends on
// map order or on a function that differs between machines: arithmetic and square roots only.
//
// Not modelled: stragglers, a network shared with other groups, CUDA graphs, jitter.
package cost
