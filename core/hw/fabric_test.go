package hw

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

// ncclTable is one table of testdata/collectives.json.gz.
type ncclTable struct {
	ID, Collective, GPU string
	Ranks, Nodes        int
	Inter               string
	Points              [][3]float64 // bytes, us, bus bandwidth in GB/s
}

var ncclTables = sync.OnceValue(func() []ncclTable {
	f, err := os.Open("testdata/collectives.json.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	var d struct{ Tables []ncclTable }
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		panic(err)
	}
	return d.Tables
})

var collectiveNames = [NumCollective]string{"all_reduce", "all_gather", "reduce_scatter", "alltoall"}

func operation(name string) (Collective, bool) {
	i := slices.Index(collectiveNames[:], name)
	return Collective(i), i >= 0
}

func nodeFits() []fit {
	var all []fit
	for _, g := range []struct {
		prefix string
		curves *[NumCollective][len(nodeRanks)]NodeCurve
	}{
		{"aic_a100_sxm", &nvlink3Node}, {"aic_h100_sxm", &nvlink4Node}, {"aic_b200_sxm", &nvlink5Node}, {"aic_l40s", &pcieNode},
	} {
		for op := range NumCollective {
			for i, n := range nodeRanks {
				id := fmt.Sprintf("%s_%s_n%d", g.prefix, collectiveNames[op], n)
				at := slices.IndexFunc(ncclTables(), func(t ncclTable) bool { return t.ID == id })
				if at < 0 {
					panic("no table " + id)
				}
				f := fit{name: id, start: []float64{10, 100, 25, 300}, bound: 0.2, current: func() []float64 {
					c := &g.curves[op][i]
					return []float64{
						float64(c.Small.Latency) * 1e6, float64(c.Small.Bandwidth) / gb,
						float64(c.Large.Latency) * 1e6, float64(c.Large.Bandwidth) / gb,
					}
				}}
				if g.curves == &pcieNode {
					f.start = []float64{10, 5, 30, 10}
				}
				for _, p := range ncclTables()[at].Points {
					sent := p[0] * op.BusFactor(n)
					f.samples = append(f.samples, sample{p[1] * 1e-6, func(x []float64) units.Seconds {
						if x[0] > x[2] || x[1] > x[3] {
							return units.Seconds(math.Inf(1)) // the two protocols keep their places
						}
						c := link(x[0], x[1], x[2], x[3])
						return c.time(sent)
					}})
				}
				all = append(all, f)
			}
		}
	}
	return all
}

func TestNodeCurvesFollowFromTables(t *testing.T) {
	for _, f := range nodeFits() {
		t.Run(f.name, func(t *testing.T) { f.check(t) })
	}
}

// What the tables say that no curve was fitted to: other machines, H200, B300, several nodes.
// Sizes from 64 KiB on; the tables with points that contradict each other are left out.
func TestCollectivesAgainstOtherTables(t *testing.T) {
	networks := map[string]string{
		"EFA 4x100 Gb/s per node": "efa-p4d", "EFA 32x100 Gb/s per node": "efa-p5",
		"8x200 Gb/s Ethernet per node (GPUDirect-TCPXO)": "tcpx-a3mega", "8x NDR per node, SHARP": "ndr",
		"EFA v4 8x400 Gb/s per node": "efa-p5", "4x200 Gb/s HDR per node": "hdr-4",
	}
	gpus := map[string]string{
		"A100-SXM4-80GB": "a100-80gb", "A100-SXM4": "a100-80gb", "H100-SXM5-80GB": "h100", "H200-SXM-141GB": "h200",
		"B200-SXM-180GB": "b200", "B300-SXM-288GB": "b200", "GB200-NVL72": "gb200", "GB300-NVL72": "gb200", "L40S-PCIe-48GB": "l40s",
	}
	fitted := map[string]bool{}
	for _, f := range nodeFits() {
		fitted[f.name] = true
	}
	var one, many []float64
	for _, table := range ncclTables() {
		op, ok := operation(table.Collective)
		g := Lookup(gpus[table.GPU])
		if !ok || g == nil || fitted[table.ID] || strings.Contains(table.ID, "_ring_") {
			continue
		}
		f := NewFabric(g, LookupNetwork(networks[table.Inter]))
		if table.Nodes > 1 && f.Network == nil && g.Domain == 0 || table.ID == "b200x16_ag_gke" {
			t.Logf("%-28s skipped: network %q", table.ID, table.Inter)
			continue
		}
		if g.Domain > 0 && table.Ranks > g.Domain {
			t.Logf("%-28s skipped: several NVLink domains, network not stated", table.ID)
			continue
		}
		var errs []float64
		signed := 0.0
		for _, p := range table.Points {
			if p[0] >= 64<<10 {
				e := float64(f.Time(op, Place{table.Ranks, table.Nodes, table.Ranks / table.Nodes}, units.Bytes(p[0])))*1e6/p[1] - 1
				errs = append(errs, math.Abs(e))
				signed += e
			}
		}
		if len(errs) == 0 {
			continue
		}
		t.Logf("%-28s %3d points, median error %4.1f %%, mean %+5.1f %%", table.ID, len(errs), 100*median(errs), 100*signed/float64(len(errs)))
		if table.Nodes > 1 && g.Domain == 0 {
			many = append(many, errs...)
		} else {
			one = append(one, errs...)
		}
	}
	t.Logf("one node: median error %.1f %% of %d points; several: %.1f %% of %d", 100*median(one), len(one), 100*median(many), len(many))
	require.Less(t, median(one), 0.1)
	require.Less(t, median(many), 0.25)
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// More data, more ranks and more nodes never take less time.
func TestCollectivesGrow(t *testing.T) {
	for i := range GPUs {
		f := NewFabric(&GPUs[i], LookupNetwork("ndr"))
		for op := range NumCollective {
			last := units.Seconds(0)
			for size := units.Bytes(1); size < 1<<36; size *= 2 {
				now := f.Time(op, Place{64, 8, 8}, size)
				require.GreaterOrEqual(t, now, last)
				last = now
			}
			last = 0
			for nodes := 2; nodes < 1024; nodes *= 2 {
				now := f.Time(op, Place{8 * nodes, nodes, 8}, 1<<28)
				require.GreaterOrEqual(t, float64(now), 0.95*float64(last), "%s %d", GPUs[i].ID, nodes)
				last = now
			}
			require.Zero(t, f.Time(op, Place{1, 1, 1}, 1<<30))
		}
	}
}
