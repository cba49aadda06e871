// Package hw is the hardware: GPUs, links and networks with the number and the source of each
// figure, and kernel times as measured on one H200, as curves that another GPU can be read off.
//
// Rates are in units of 1 byte/s and 1 FLOP/s, GB and TFLOP are powers of 1000; peaks are dense.
//
// Not modelled: clocks as such (a power limit is a factor, see Power), PCIe topology, NUMA, the
// memory hierarchy above HBM, and differences between single boards.
package hw
