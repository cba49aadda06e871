package hw

import "distopt/core/units"

// GPU is one kind of accelerator in the nodes in which it is sold.
type GPU struct {
	ID     string // key in configurations
	Name   string // for the reader
	Arch   Arch
	SMs    int
	Memory units.Bytes // capacity, as it is sold
	Usable units.Bytes // what a process can have of it (total of cudaMemGetInfo)
	L2     units.Bytes

	Bandwidth units.BytesPerSecond // of its memory, peak
	BF16, FP8 units.FLOPsPerSecond // peak, dense tensor cores; FP8 0: none

	// NVLink is the peak of one direction; 0: GPUs of a node talk over PCIe.
	NVLink  units.BytesPerSecond
	PerNode int // GPUs on one node
	// Domain is the number of GPUs that NVLink joins, if that is more than a node.
	Domain int

	// MatmulBF16 and MatmulFP8 are the fastest products that were measured in short runs.
	MatmulBF16, MatmulFP8 units.FLOPsPerSecond
	// Prefill is the rate of a causal attention kernel (16 bit, head dimension 128) at the
	// longest sequence and largest batch (8 x 16,384 tokens) of one series of measurements; 0:
	// none. github.com/ai-dynamo/aiconfigurator, attention/trtllm/context_attention_perf at
	// 095f58a51c4ca8e61b66ec108d86f223f8d559ce.
	Prefill units.FLOPsPerSecond

	Sources []Source
}

// Arch is a generation of GPUs.
type Arch uint8

// The generations.
const (
	Ampere Arch = iota
	Ada
	Hopper
	Blackwell
	NumArch
)

var archNames = [NumArch]string{"Ampere", "Ada", "Hopper", "Blackwell"}

// String returns the name.
func (a Arch) String() string { return archNames[a] }

// Source says where a figure was read.
type Source struct {
	Of   string // which figures
	From string // URL, or repository, path and commit
}

// Sources that several entries share.
const (
	stas = "github.com/stas00/ml-engineering compute/accelerator/README.md, network/README.md " +
		"at 744d01e18b79512572f64a6bbd8b5f4a725203a7"
	klockwood = "https://glennklockwood.com/garden/processors/" // transcribes NVIDIA's datasheets
)

const (
	gb     = 1e9
	tflop  = 1e12
	vendor = 1_000_000_000 // the byte of a capacity on the box: 80 GB
)

// Reference is the GPU on which the kernel curves were measured.
var Reference = &GPUs[3]

// GPUs lists the kinds that are known, oldest first.
var GPUs = []GPU{
	{
		ID: "a100-40gb", Name: "A100 SXM 40 GB", Arch: Ampere, SMs: 108, Memory: 40 * vendor, Usable: 40448 * units.MiB, L2: 40 * units.MiB,
		Bandwidth: 1555 * gb, BF16: 312 * tflop,
		NVLink: 300 * gb, PerNode: 8, MatmulBF16: 271.2 * tflop, Prefill: 148.1 * tflop,
		Sources: []Source{
			{"peaks, SMs, L2", klockwood + "A100"}, {"NVLink, measured product", stas},
			{"usable memory", "39.50 GiB in the allocator's message of github.com/TianheWu/CoSeR issue 10"},
		},
	},
	{
		ID: "a100-80gb", Name: "A100 SXM 80 GB", Arch: Ampere, SMs: 108, Memory: 80 * vendor, Usable: 81152 * units.MiB, L2: 40 * units.MiB,
		Bandwidth: 2039 * gb, BF16: 312 * tflop,
		NVLink: 300 * gb, PerNode: 8, MatmulBF16: 271.2 * tflop, Prefill: 148.1 * tflop,
		Sources: []Source{
			{"usable memory", "79.25 GiB in the allocator's message of github.com/wbfwonderful/Vad-R1 issue 11"},
			{"peaks, SMs, L2", klockwood + "A100"}, {"NVLink, measured product", stas},
			{"bandwidth", "https://www.thundercompute.com/blog/nvidia-a100-specs-full-guide"},
		},
	},
	{
		ID: "h100", Name: "H100 SXM 80 GB", Arch: Hopper, SMs: 132, Memory: 80 * vendor, Usable: 81008 * units.MiB, L2: 50 * units.MiB,
		Bandwidth: 3350 * gb, BF16: 989.4 * tflop, FP8: 1978.9 * tflop,
		NVLink: 450 * gb, PerNode: 8, MatmulBF16: 794.5 * tflop, MatmulFP8: 1402.6 * tflop,
		Prefill: 532.4 * tflop,
		Sources: []Source{
			{"peaks, SMs, L2", klockwood + "h100"}, {"NVLink, measured products", stas},
			{"usable memory", "79.11 GiB in the allocator's message of github.com/vllm-project/vllm issue 27508"},
		},
	},
	{
		ID: "h200", Name: "H200 SXM 141 GB", Arch: Hopper, SMs: 132, Memory: 141 * vendor, Usable: 143156 * units.MiB, L2: 60 * units.MiB,
		Bandwidth: 4800 * gb, BF16: 989 * tflop, FP8: 1979 * tflop,
		NVLink: 450 * gb, PerNode: 8, MatmulBF16: 794.5 * tflop, MatmulFP8: 1453.4 * tflop,
		Prefill: 534.5 * tflop,
		Sources: []Source{
			{"all but SMs", stas}, {"SMs, L2", "read from the device, h200.json"},
			{"usable memory", "143,156 MiB, cudaMemGetInfo on the device (docs/memory.md)"},
		},
	},
	{
		ID: "b200", Name: "B200 SXM 180 GB", Arch: Blackwell, SMs: 148, Memory: 180 * vendor, Usable: 182630 * units.MiB, L2: 126 * units.MiB,
		Bandwidth: 8000 * gb, BF16: 2250 * tflop, FP8: 4500 * tflop,
		NVLink: 900 * gb, PerNode: 8, MatmulBF16: 1745 * tflop, MatmulFP8: 3432.5 * tflop,
		Prefill: 1093.5 * tflop,
		Sources: []Source{
			{"usable memory", "178.35 GiB, as PyTorch's out-of-memory messages of this GPU say"},
			{"peaks", klockwood + "B200"}, {"NVLink, measured products", stas},
			{"SMs", "https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut"}, {"L2", "that of the GB200"},
			{"capacity", "system names of MLPerf Training submissions; 192 GB is the nominal size"},
		},
	},
	{
		ID: "gb200", Name: "GB200 NVL72 186 GB", Arch: Blackwell, SMs: 148, Memory: 186 * vendor, Usable: 188733 * units.MiB, L2: 126 * units.MiB,
		Bandwidth: 8000 * gb, BF16: 2500 * tflop, FP8: 5000 * tflop,
		NVLink: 900 * gb, PerNode: 4, Domain: 72, MatmulBF16: 1822 * tflop, MatmulFP8: 3615.6 * tflop,
		Sources: []Source{
			{"usable memory", "184.31 GiB, as PyTorch's out-of-memory messages of this GPU say"},
			{"peaks", klockwood + "B200"}, {"NVLink, measured products", stas},
			{"SMs", "the same chip as the B200"}, {"L2", stas},
		},
	},
	{
		ID: "l40s", Name: "L40S 48 GB", Arch: Ada, SMs: 142, Memory: 48 * vendor, Usable: 45486 * units.MiB, L2: 96 * units.MiB,
		Bandwidth: 864 * gb, BF16: 362.05 * tflop, FP8: 733 * tflop,
		PerNode: 4, MatmulBF16: 199.7 * tflop, MatmulFP8: 357.8 * tflop,
		Sources: []Source{
			{"usable memory", "44.42 GiB in the allocator's message of github.com/stepfun-ai/Step-Video-T2V issue 8"},
			{"peaks, bandwidth, cores", "https://www.mullet.se/product.html?product_id=355414 (18,176 cores at 128 per SM)"},
			{"GPUs per node", "systems of MLPerf Training submissions"},
			{"measured products", "github.com/ai-dynamo/aiconfigurator l40s/gemm/trtllm/1.3.0rc20 " +
				"at 095f58a51c4ca8e61b66ec108d86f223f8d559ce, largest shape"},
		},
	},
}

// Lookup returns the GPU with that id, or nil.
func Lookup(id string) *GPU {
	for i := range GPUs {
		if GPUs[i].ID == id {
			return &GPUs[i]
		}
	}
	return nil
}

// Peak returns the dense peak of products of FP8 or 16-bit operands. A GPU without FP8 units
// multiplies in 16 bits.
func (g *GPU) Peak(fp8 bool) units.FLOPsPerSecond {
	if fp8 && g.FP8 > 0 {
		return g.FP8
	}
	return g.BF16
}

// NVLinkDomain returns how many GPUs reach each other without the network.
func (g *GPU) NVLinkDomain() int { return max(g.Domain, g.PerNode) }
