// Package core is the map of the library: pure Go that turns a training scenario into buckets, a
// timeline and numbers. It has no code of its own.
//
// Imports run one way: a package may import those that stand above it in this list, and nothing
// else of ours. A test holds it so, and reads the list here.
//
//	units         bytes, elements, FLOPs, seconds, rates, and how they are written
//	sched         discrete-event engine: tasks, streams, dependencies, contention; knows no training
//	dtype         number formats: names, sizes, exact conversions
//	bucket        the words that every sharded optimizer shares: bucket, fragment, shard
//	hw            GPUs, links, nodes, measured kernel curves: each number with its source
//	model         architecture: ordered parameters, modules and kernels of a stage
//	parallel      rank grid, process groups and how they lie on nodes
//	optim         what every sharded optimizer shares: its effects, events, statuses and arithmetic
//	optim/arrays  the effects on real numbers, for all ranks of a group
//	apex          Apex and NeMo: layout and control flow
//	mcore         Megatron-Core: layout and control flow
//	ddp           PyTorch's DistributedDataParallel: buckets and control flow
//	step          one training step of every stage as tasks
//	oracle        checks against reference cases of the real code
//	cost          lengths of tasks: roofline, collectives, host
//	memory        bytes of a rank over time
//	report        step time, exposed time and its cause, comparison
//	scenario      the one config struct and its field table
//	lab           a small training run on the real optimizer, for the page's numerics
//	finding       rules that name what a configuration pays for
//	importer      other tools' files to scenarios
//	share         scenarios to links and back
//	trace         timelines for other viewers
//	eval          one scenario to one result: wires everything together
//	tune          search over scenarios
//	cmd/distopt   the command line: the only place that touches files, arguments and goroutines
//
// The data flow: scenario, model, apex (layout), step with apex (control flow) recorded as tasks,
// cost, sched, report. Nothing here looks at a clock or at a random number, and no result depends
// on the order of a map, so the same scenario gives the same bytes on every machine.
package core
