package report

import (
	"slices"
	"strings"

	"distopt/core/cost"
	"distopt/core/model"
	"distopt/core/step"
	"distopt/core/units"
)

// whole is the length of a span in the fractions of Part.
const whole = 1 << 16

// reportWorks names every work, lays out its parts and finds how much tensor-parallel
// communication inside it is exposed: covered by none of its kernels.
func (m *maker) reportWorks() {
	works := m.in.Recording.Works
	m.works = make([]workTime, len(works))
	m.out.Works = make([]Work, len(works))
	parts := 0
	for i := range works {
		parts += len(m.in.Priced[i].Parts)
	}
	all := make([]Part, 0, parts)
	for i := range works {
		from := len(all)
		p := &m.in.Priced[i]
		for j := range p.Parts {
			all = append(all, partOf(&p.Parts[j], p.Total))
		}
		w := &m.out.Works[i]
		w.Name = workName(&works[i])
		if kinds[works[i].Kind].role == computes {
			w.Parts = all[from:len(all):len(all)]
			m.works[i].exposed = exposedParts(w.Parts)
		}
	}
}

func partOf(p *cost.Part, total units.Seconds) Part {
	lane := LaneCompute
	if p.Comm {
		lane = LaneTensor
	}
	fraction := func(t units.Seconds) uint32 {
		if total <= 0 {
			return 0
		}
		return uint32(min(max(float64(t)/float64(total), 0), 1)*whole + 0.5)
	}
	return Part{Name: p.Name, Lane: lane, Start: fraction(p.Start), End: fraction(p.Start + p.Length)}
}

// exposedParts returns how much of a work is communication that no kernel covers. Parts are in
// order of their start.
func exposedParts(parts []Part) int64 {
	var total int64
	for i := range parts {
		if parts[i].Lane != LaneTensor {
			continue
		}
		at := parts[i].Start
		for j := range parts {
			k := &parts[j]
			if k.Lane == LaneTensor || k.End <= at {
				continue
			}
			if k.Start >= parts[i].End {
				break
			}
			if k.Start > at {
				total += int64(k.Start - at)
			}
			at = k.End
		}
		if at < parts[i].End {
			total += int64(parts[i].End - at)
		}
	}
	return total
}

var moduleNames = [model.NumModuleKind]string{
	model.Embedding: "embedding", model.EmbeddingOut: "embedding output", model.QKV: "qkv", model.Attention: "attention",
	model.Proj: "projection", model.FC1: "fc1", model.FC2: "fc2", model.FinalNorm: "final norm",
	model.Output: "output layer", model.Loss: "loss", model.MLPNorm: "MLP norm", model.Router: "router",
	model.ExpertFC1: "experts fc1", model.ExpertFC2: "experts fc2", model.SharedFC1: "shared fc1", model.SharedFC2: "shared fc2",
}

// workName is the name of a kind; a pass through less than a layer names its modules.
func workName(w *step.Work) string {
	name := kinds[w.Kind].name
	var seen []string
	ends := 0
	for _, p := range w.Passes {
		switch p.Module {
		case model.QKV, model.FC2, model.ExpertFC2:
			ends++
		}
		if n := moduleNames[p.Module]; !slices.Contains(seen, n) {
			seen = append(seen, n)
		}
	}
	if len(seen) == 0 || ends == 2 {
		return name
	}
	return name + ", " + strings.Join(seen, ", ")
}
