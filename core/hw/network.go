package hw

import "distopt/core/units"

// Network is what joins nodes, as one GPU sees it: its share of the node's network adapters.
type Network struct {
	ID   string
	Name string
	// PerGPU is the line rate of one direction, per GPU.
	PerGPU units.BytesPerSecond
	// Efficiency is the part of the line rate that collectives reach with large messages.
	Efficiency float64
	// Hop multiplies NCCL's own latencies of a step over InfiniBand (fabric.go), so that small
	// all-reduces over two nodes take what the network's table says.
	Hop float64
	// NoLL128: NCCL does without its protocol of that name, as on networks that are not InfiniBand.
	NoLL128 bool
	Sources []Source
}

const (
	hdrPort  = "https://github.com/NVIDIA/nccl-tests/issues/152"
	ndrRate  = "https://github.com/NVIDIA/nccl-tests/issues/290 (46 to 48 GB/s of 50)"
	awsTests = "github.com/aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md " +
		"at 7217859f67bc693c52ff175ccc6082c41dbd7a1b"
)

// Networks lists the kinds that are known, fastest first. PerGPU is that of nodes of 8 GPUs.
var Networks = []Network{
	{
		ID: "xdr", Name: "InfiniBand XDR, 800 Gb/s per GPU", PerGPU: 100 * gb, Efficiency: 0.94, Hop: 1,
		Sources: []Source{{"rate", stas}, {"efficiency", "that of NDR"}},
	},
	{
		ID: "ndr", Name: "InfiniBand NDR, 400 Gb/s per GPU", PerGPU: 50 * gb, Efficiency: 0.94, Hop: 1,
		Sources: []Source{{"rate", stas}, {"efficiency", ndrRate}},
	},
	{
		ID: "efa-p5", Name: "AWS p5 EFA, 32 x 100 Gb/s per node", PerGPU: 50 * gb, Efficiency: 0.94, Hop: 5, NoLL128: true,
		Sources: []Source{{"rate", stas}, {"step", awsTests + ": small all-reduces over 2 nodes take 69 us"}},
	},
	{
		ID: "hdr", Name: "InfiniBand HDR, 200 Gb/s per GPU", PerGPU: 25 * gb, Efficiency: 0.94, Hop: 1,
		Sources: []Source{{"rate", hdrPort}, {"efficiency", "https://github.com/NVIDIA/nccl/issues/1048 (24 of 25 GB/s)"}},
	},
	{
		ID: "tcpx-a3mega", Name: "Google A3 Mega, 8 x 200 Gb/s per node", PerGPU: 25 * gb, Efficiency: 0.94, Hop: 10, NoLL128: true,
		Sources: []Source{{"rate", stas}, {"efficiency, step", "all-reduce table of two A3 Mega nodes"}},
	},
	{
		ID: "hdr-4", Name: "InfiniBand HDR, 4 x 200 Gb/s per node", PerGPU: 12.5 * gb, Efficiency: 0.94, Hop: 1,
		Sources: []Source{{"rate", "https://github.com/NVIDIA/nccl/issues/652"}, {"efficiency", "that of HDR"}},
	},
	{
		ID: "efa-p4d", Name: "AWS p4d EFA, 4 x 100 Gb/s per node", PerGPU: 6.25 * gb, Efficiency: 0.94, Hop: 14, NoLL128: true,
		Sources: []Source{{"rate", stas}, {"efficiency, step", awsTests}},
	},
}

// LookupNetwork returns the network with that id, or nil.
func LookupNetwork(id string) *Network {
	for i := range Networks {
		if Networks[i].ID == id {
			return &Networks[i]
		}
	}
	return nil
}
