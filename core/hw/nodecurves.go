package hw

import "distopt/core/units"

// nodeCurves returns the curves of the links inside a node of g.
func nodeCurves(g *GPU) *[NumCollective][len(nodeRanks)]NodeCurve {
	switch {
	case g.NVLink == 0:
		return &pcieNode
	case g.Arch == Ampere:
		return &nvlink3Node
	case g.Arch == Blackwell:
		return &nvlink5Node
	}
	return &nvlink4Node
}

func link(smallUS, smallGB, largeUS, largeGB float64) NodeCurve {
	return NodeCurve{
		Small: Line{units.Seconds(smallUS * 1e-6), units.BytesPerSecond(smallGB * gb)},
		Large: Line{units.Seconds(largeUS * 1e-6), units.BytesPerSecond(largeGB * gb)},
	}
}

// The curves of 2, 4 and 8 GPUs, fitted to nccl-tests tables (names aic_... in
// testdata/collectives.json.gz; aiconfigurator at 095f58a51c); TestNodeCurvesFollowFromTables
// fits them again. All-reduces of 8 GPUs include NVLink SHARP where NCCL chooses it.
var (
	nvlink3Node = [NumCollective][len(nodeRanks)]NodeCurve{
		AllReduce:     {link(10.64, 56.78, 40.43, 191.2), link(14.56, 103.3, 52, 213.3), link(22.3, 116.9, 66.23, 222)},
		AllGather:     {link(10.1, 37.72, 30.62, 144.1), link(10.99, 40.22, 44.1, 189.5), link(15.64, 82.3, 34.39, 187.6)},
		ReduceScatter: {link(9.784, 41.8, 28.65, 166.4), link(11.16, 62.03, 41.13, 202.3), link(15.24, 99.76, 53.13, 214.2)},
		AllToAll:      {link(12.35, 64.46, 33.5, 162.8), link(12.5, 62.07, 27.62, 184.4), link(13.43, 73, 45.7, 203.9)},
	}
	nvlink4Node = [NumCollective][len(nodeRanks)]NodeCurve{
		AllReduce:     {link(6.707, 130.5, 27.3, 305.8), link(9.971, 177.8, 25.55, 342.6), link(15.99, 212.7, 62.54, 455)},
		AllGather:     {link(5.798, 97.07, 22.21, 248.3), link(7.51, 121.7, 25.62, 310), link(11.07, 151.3, 21.82, 316.5)},
		ReduceScatter: {link(5.957, 111.2, 14.51, 225.9), link(7.319, 151.2, 17.75, 303.1), link(10.56, 220.7, 26.2, 337.7)},
		AllToAll:      {link(7.89, 137.4, 22.17, 284), link(8.613, 113.2, 17.6, 290), link(8.901, 136.8, 17.29, 304.9)},
	}
	nvlink5Node = [NumCollective][len(nodeRanks)]NodeCurve{
		AllReduce:     {link(10.26, 242.9, 24.06, 547.2), link(15.06, 25.32, 16.91, 610.5), link(25.54, 32, 27.72, 633.7)},
		AllGather:     {link(9.301, 150.8, 20.35, 449.7), link(11.06, 14.84, 15.59, 558.8), link(18.01, 280.5, 55.43, 695.6)},
		ReduceScatter: {link(9.107, 162.4, 17.57, 412), link(11.8, 62.48, 12.83, 531.6), link(16.8, 186.9, 21.27, 619.2)},
		AllToAll:      {link(9.134, 7.387, 15.42, 331.1), link(10.09, 18.34, 17.52, 472.2), link(11.94, 41.53, 18.72, 539)},
	}
	pcieNode = [NumCollective][len(nodeRanks)]NodeCurve{
		AllReduce:     {link(6.076, 10.66, 22.68, 20.13), link(11.66, 5.125, 336.8, 5.161), link(18.84, 0.8024, 117.6, 1.487)},
		AllGather:     {link(6.591, 11.18, 18.35, 19.62), link(8.492, 3.939, 16.38, 4.784), link(12.49, 0.811, 104.6, 1.203)},
		ReduceScatter: {link(5.435, 9.236, 19.94, 19.04), link(8.215, 3.444, 25.15, 4.896), link(11.64, 0.7387, 304.6, 1.655)},
		AllToAll:      {link(8.941, 7.936, 15.37, 22.23), link(8.853, 2.532, 25.69, 4.66), link(8.204, 0.5992, 234.1, 1.462)},
	}
)
