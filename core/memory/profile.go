package memory

import (
	"distopt/core/model"
	"distopt/core/units"
)

// profile is what passes through a stage's modules keep and need, by index of the module.
type profile struct {
	modules []moduleMemory
	// acts and logits are sums of what the modules before an index keep; again is what they compute again.
	acts, logits, again []units.Bytes
	first               []int32 // of each module: where its group of layers that is recomputed together begins
	chunks              []chunkMemory
}

type moduleMemory struct {
	kept, again, forward, backward units.Bytes
	logits                         bool // kept, forward and backward are logits
}

// surge is memory that exists only inside a run of modules, beside what was kept before a forward pass
// and its own run keeps, or what was kept when a backward pass began.
type surge struct{ temps, logits units.Bytes }

func (s surge) total() units.Bytes { return s.temps + s.logits }

// chunkMemory is a pass through a whole model chunk.
type chunkMemory struct {
	acts, logits      units.Bytes // kept
	forward, backward rise
}

// rise is the highest point of a pass, relative to where it began.
type rise struct {
	acts, logits units.Bytes // kept so far: negative in a backward pass
	surge        surge
}

func (r *rise) total() units.Bytes { return r.acts + r.logits + r.surge.total() }

// newProfile asks for the footprint of every module.
func (in *Input) newProfile(st *model.Stage) *profile {
	n := len(st.Modules)
	p := &profile{
		modules: make([]moduleMemory, n), acts: make([]units.Bytes, n+1), logits: make([]units.Bytes, n+1),
		again: make([]units.Bytes, n+1), first: make([]int32, n),
	}
	group := max(in.Storage.RecomputeGroup, 1)
	for i := range st.Modules {
		m := &st.Modules[i]
		// Layers are alike, and differ only by whether they are recomputed.
		f := in.Model.Footprint(&in.Execution, &in.Storage, model.Pass{Module: m.Kind, Layer: m.Layer})
		logits := m.Kind == model.Output || m.Kind == model.Loss
		k := moduleMemory{kept: f.Kept - f.Again, again: f.Again, forward: f.Forward, backward: f.Backward, logits: logits}
		p.modules[i] = k
		p.acts[i+1], p.logits[i+1], p.again[i+1] = p.acts[i], p.logits[i], p.again[i]+k.again
		if logits && m.Kind == model.Loss {
			p.logits[i+1] += k.kept
		} else {
			p.acts[i+1] += k.kept
		}
		p.first[i] = int32(i)
		if k.again > 0 && in.Execution.Recompute == model.FullLayers && i > 0 {
			before := &st.Modules[i-1]
			if before.Layer == m.Layer || before.Layer >= 0 && before.Chunk == m.Chunk && m.Layer%group != 0 {
				p.first[i] = p.first[i-1]
			}
		}
	}
	for c := range st.Chunks {
		p.chunks = append(p.chunks, p.chunk(st, c))
	}
	return p
}

// forward returns the surge of a forward pass through a run of modules, beside what all of it keeps. What is
// going to be computed again exists for a moment, too.
func (p *profile) forward(first, last int) (s surge) {
	for i := first; i < last; i++ {
		m := &p.modules[i]
		// What the rest of the run keeps does not exist yet.
		s = s.higher(m.again+m.forward, p.acts[last]-p.acts[i+1]+p.logits[last]-p.logits[i+1], m.logits)
	}
	return s
}

// backward returns the surge of a backward pass through a run of modules, beside what is kept at its start.
func (p *profile) backward(first, last int) (s surge) {
	for i := last - 1; i >= first; i-- {
		m := &p.modules[i]
		again := p.again[i+1] - p.again[p.first[i]]
		s = s.higher(again+m.backward, p.acts[last]-p.acts[i+1]+p.logits[last]-p.logits[i+1], m.logits)
	}
	return s
}

// higher returns the larger of s and bytes, from which what is missing of the run's memory is taken off.
func (s surge) higher(bytes, missing units.Bytes, logits bool) surge {
	bytes -= missing
	switch {
	case bytes <= s.total():
		return s
	case logits:
		return surge{logits: bytes}
	}
	return surge{temps: bytes}
}

// chunk walks both passes layer by layer, as tasks do.
func (p *profile) chunk(st *model.Stage, c int) (k chunkMemory) {
	span := st.Chunks[c].Modules
	k.acts = p.acts[span[1]] - p.acts[span[0]]
	k.logits = p.logits[span[1]] - p.logits[span[0]]
	for i := span[0]; i < span[1]; {
		end := i + 1
		for end < span[1] && st.Modules[end].Layer == st.Modules[i].Layer {
			end++
		}
		up := rise{p.acts[end] - p.acts[span[0]], p.logits[end] - p.logits[span[0]], p.forward(i, end)}
		if up.total() > k.forward.total() {
			k.forward = up
		}
		down := rise{p.acts[end] - p.acts[span[1]], p.logits[end] - p.logits[span[1]], p.backward(i, end)}
		if down.total() > k.backward.total() {
			k.backward = down
		}
		i = end
	}
	return k
}
