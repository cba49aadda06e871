package importer

import (
	"fmt"
	"strconv"

	"distopt/core/units"
)

// world chooses a number of ranks, which flags do not tell: the fewest whole nodes of 8 over which
// the model, its experts and the batch divide, else the fewest ranks. What torchrun or a variable
// tells of it stays.
func (t *translation) world() {
	const node, most = 8, 4096 // ranks of a node; model copies that are tried
	d := &t.doc
	tp, cp := d.number(tpPath, 1), d.number(cpPath, 1)
	model := tp * cp * d.number("model.pipeline_model_parallel_size", 1)
	experts := d.number("model.expert_model_parallel_size", 1) * d.number("model.expert_tensor_parallel_size", tp)
	micro, global := d.number("model.micro_batch_size", 1), d.number(batchPath, 0)
	nodes, devices := d.number(nodesPath, 0), d.number(devicesPath, 0)
	if max(tp, cp, experts, model) > 1<<20 {
		return // far more than any job has
	}
	if nodes == 0 || devices == 0 {
		per, step := node, max(nodes, 1)
		if devices > 0 {
			per = devices
		}
		least := experts / gcd(experts, tp*cp) // copies of the model
		copies := least
		for k := 1; k <= most; k++ {
			if n := least * k; model*n%per == 0 && model*n/per%step == 0 && (global == 0 || global%(micro*n) == 0) {
				copies = n
				break
			}
		}
		ranks := model * copies
		if nodes == 0 {
			nodes = max(ranks/gcd(ranks, per), 1)
		}
		if devices == 0 {
			devices = max(ranks/nodes, 1)
		}
		t.without(nodesPath, strconv.Itoa(nodes), assumed)
		t.without(devicesPath, strconv.Itoa(devices), assumed)
		t.report(Warning, t.first, nodesPath, fmt.Sprintf("Flags do not tell the number of GPUs: %s are assumed (%s %d × %s %d), the fewest nodes over which the model and the batch divide.",
			units.Count(int64(nodes*devices)), nodesPath, nodes, devicesPath, devices))
		t.out.Diagnostics[len(t.out.Diagnostics)-1].Fix = "set " + nodesPath + " and " + devicesPath
	}
	if global == 0 && !t.faulty(batchPath) {
		d.set(batchPath, strconv.Itoa(micro*max(nodes*devices/model, 1)), nil, "Megatron-LM's default: one microbatch")
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
