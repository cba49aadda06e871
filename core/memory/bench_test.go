package memory

import "testing"

// GPT-3 175B over 8 stages of 4 chunks, 1T over 64 stages.
var benchmarks = []struct {
	name string
	p    published
}{
	{"175B", published{
		Layers: 96, Hidden: 12288, FFN: 49152, Heads: 96, TP: 4, PP: 8, VP: 4, DP: 16, Micros: 32, Recompute: "none",
	}},
	{"1T", published{
		Layers: 128, Hidden: 25600, FFN: 102400, Heads: 160, TP: 8, PP: 64, VP: 1, DP: 6, Micros: 512, Recompute: "full",
	}},
}

func BenchmarkStatic(b *testing.B) {
	for _, bb := range benchmarks {
		p := bb.p
		p.GPU, p.KV, p.Vocab, p.Seq, p.CP, p.Micro, p.Precision = "H100", p.Heads, 51200, 2048, 1, 1, "bf16"
		p.SP, p.Distributed, p.Fusion, p.Learned, p.Bias = true, true, true, true, true
		in := p.input(b)
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := Static(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOf(b *testing.B) {
	j := job{pp: 8, vp: 4, dp: 8, micros: 32, layers: 96, contiguous: true, overlap: true}
	in, layouts := j.input(b)
	rec, spans := j.simulate(b, in, layouts)
	in.Points = 512
	b.ReportAllocs()
	for range b.N {
		if _, err := Of(in, rec, spans); err != nil {
			b.Fatal(err)
		}
	}
}
