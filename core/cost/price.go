package cost

import (
	"distopt/core/dtype"
	"distopt/core/hw"
	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// Priced is the price of one work, alone on its device.
type Priced struct {
	Total  units.Seconds
	Launch units.Seconds // host time to issue it
	Parts  []Part        // kernels in order of their start
	Class  sched.Class
}

// Part is a kernel of a work.
type Part struct {
	Name          string
	Start, Length units.Seconds
	Comm          bool // communication; it may lie beside a kernel
}

// Price fills in the lengths, launch times and classes of a recording's tasks, the lengths of its
// messages and the table of rates, and returns the price of each work.
//
// The clock under the power limit follows from the mix of all kernels of the step, so the price of
// one work depends a little on the others. Time in which the GPU waits does not cool it.
func Price(rec *step.Recording, m Machine) []Priced {
	p := newPricer(m)
	uses := make([]int, len(rec.Works))
	for i := range rec.Labels {
		uses[rec.Labels[i].Work]++
	}
	lists := make([][]timed, len(rec.Works))
	var load load
	for i := range rec.Works {
		lists[i] = p.kernels(&rec.Works[i])
		load.add(lists[i], uses[i])
	}
	slow := hw.Slowdown(load.clocked, load.clockedDraw, load.steady, load.steadyDraw)

	priced := make([]Priced, len(rec.Works))
	var layers mix
	for i := range rec.Works {
		w := &rec.Works[i]
		priced[i] = p.work(w, lists[i], slow)
		priced[i].Class = p.class(w)
		if priced[i].Class == classLayers {
			layers.add(lists[i], slow, uses[i])
		}
	}
	p.fill(rec, priced, layers)
	return priced
}

// fill rounds the prices into the program.
func (p *pricer) fill(rec *step.Recording, priced []Priced, layers mix) {
	type rounded struct{ work, launch sched.Time }
	times := make([]rounded, len(priced))
	for i := range priced {
		times[i] = rounded{sched.Time(priced[i].Total.Nanoseconds()), sched.Time(priced[i].Launch.Nanoseconds())}
	}
	program := &rec.Program
	for i := range program.Tasks {
		t, w := &program.Tasks[i], rec.Labels[i].Work
		t.Work, t.Launch, t.Class = times[w].work, times[w].launch, priced[w].Class
	}
	for i := range program.Messages {
		program.Messages[i].Work = times[rec.MessageWork[i]].work
	}
	program.Latency = sched.Time(p.m.Host.Latency.Nanoseconds())
	program.Rates = p.rates(layers)
}

// pricer prices the works of one recording.
type pricer struct {
	m      *Machine
	curves *hw.Curves
	fabric *hw.Fabric
	passes map[model.Pass][]timed
}

func newPricer(m Machine) *pricer {
	return &pricer{m: &m, curves: m.GPU.Curves(), fabric: hw.NewFabric(m.GPU, m.Network), passes: map[model.Pass][]timed{}}
}

// timed is a kernel and its time, all repetitions together, at full clock.
type timed struct {
	kernel  *model.Kernel
	time    units.Seconds
	draw    float64
	clocked bool // follows the clock
}

// load adds up what decides the clock.
type load struct{ clocked, clockedDraw, steady, steadyDraw units.Seconds }

func (l *load) add(list []timed, uses int) {
	for i := range list {
		k := &list[i]
		t := units.Seconds(float64(k.time) * float64(uses))
		drawn := units.Seconds(float64(t) * k.draw)
		if k.clocked {
			l.clocked += t
			l.clockedDraw += drawn
		} else {
			l.steady += t
			l.steadyDraw += drawn
		}
	}
}

func (m *mix) add(list []timed, slow float64, uses int) {
	for i := range list {
		k := &list[i]
		t := units.Seconds(float64(k.time) * float64(uses))
		switch {
		case k.clocked:
			m.product += units.Seconds(float64(t) * slow)
		case k.kernel.Kind == model.TensorComm:
			m.comm += t
		default:
			m.memory += t
		}
	}
}

// kernels prices what a work computes.
func (p *pricer) kernels(w *step.Work) []timed {
	n := len(w.Kernels)
	for _, pass := range w.Passes {
		n += len(p.pass(pass))
	}
	if n == 0 {
		return nil
	}
	list := make([]timed, 0, n)
	for _, pass := range w.Passes {
		list = append(list, p.pass(pass)...)
	}
	for i := range w.Kernels {
		k := classify(w.Kind, w.Kernels[i])
		list = append(list, p.kernel(&k))
	}
	return list
}

func (p *pricer) pass(pass model.Pass) []timed {
	if list, ok := p.passes[pass]; ok {
		return list
	}
	kernels := p.m.Model.Kernels(&p.m.Execution, pass)
	list := make([]timed, len(kernels))
	for i := range kernels {
		list[i] = p.kernel(&kernels[i])
	}
	p.passes[pass] = list
	return list
}

func (p *pricer) kernel(k *model.Kernel) timed {
	var t units.Seconds
	if k.Kind == model.TensorComm {
		t = p.moduleComm(k)
	} else {
		t = kernelTime(p.curves, k)
	}
	if k.Repeat > 1 {
		t = units.Seconds(float64(t) * float64(k.Repeat))
	}
	part, clocked := draw(&p.curves.Power, k)
	return timed{k, t, part, clocked}
}

// work lays a work's kernels out in time and adds its communication.
func (p *pricer) work(w *step.Work, list []timed, slow float64) Priced {
	out := Priced{Launch: p.launch(w, list)}
	if len(list) > 0 {
		out.Parts = make([]Part, 0, len(list)+1)
	}
	at := units.Seconds(0)
	for i := 0; i < len(list); i++ {
		k := &list[i]
		length := p.length(k, slow)
		if k.kernel.Kind == model.TensorComm && k.kernel.Beside && i+1 < len(list) {
			i++
			beside := p.beside(p.length(&list[i], slow), length)
			out.Parts = append(out.Parts,
				Part{k.kernel.Name, at, length, true}, Part{list[i].kernel.Name, at, beside, false})
			at += max(length, beside)
			continue
		}
		out.Parts = append(out.Parts, Part{k.kernel.Name, at, length, k.kernel.Kind == model.TensorComm})
		at += length
	}
	if w.Memory > 0 {
		name, pattern := "copy", hw.Elementwise
		if w.Kind == step.ZeroGrad {
			name, pattern = "clear", hw.Fill
		}
		t := p.curves.Streams[pattern].Time(w.Memory, p.curves.L2)
		out.Parts = append(out.Parts, Part{name, at, t, false})
		at += t
	}
	if w.Op != step.NoCollective {
		t := p.collective(w)
		out.Parts = append(out.Parts, Part{operationNames[w.Op], at, t, true})
		at += t
	}
	if w.Kind == step.HostSync {
		at = p.m.Host.Sync
	}
	out.Total = at
	return out
}

var operationNames = [...]string{
	step.OpReduceScatter: "reduce-scatter", step.OpAllGather: "all-gather", step.OpAllReduce: "all-reduce", step.OpSend: "send",
	step.OpAllToAll: "all-to-all",
}

// length is the time of a kernel at the settled clock.
func (p *pricer) length(k *timed, slow float64) units.Seconds {
	t := k.time
	if k.clocked {
		t = units.Seconds(float64(t) * slow)
	}
	return p.ring(k.kernel, t)
}

// beside is the time of a kernel beside a collective of length comm that takes SMs from it.
func (p *pricer) beside(kernel, comm units.Seconds) units.Seconds {
	slow, _ := hw.Taken(p.ctas(nodeCTAs), p.curves.SMs)
	if slowed := units.Seconds(float64(kernel) * slow); slowed <= comm {
		return slowed
	}
	return kernel + comm - units.Seconds(float64(comm)/slow)
}

// launch is the host's time: modules as a whole, recomputed ones once more, the rest kernel by kernel.
func (p *pricer) launch(w *step.Work, list []timed) units.Seconds {
	h := &p.m.Host
	t := units.Seconds(0)
	for _, pass := range w.Passes {
		if pass.Backward {
			t += h.Backward
			if p.m.Execution.Recomputes(pass) {
				t += h.Forward
			}
		} else {
			t += h.Forward
		}
	}
	for i := range list { // a grouped product is launched expert by expert
		if n := list[i].kernel.Groups; n > 1 {
			t += units.Seconds(float64(n-1) * float64(h.Launch))
		}
	}
	own := list[len(list)-min(len(list), len(w.Kernels)):]
	for i := range own {
		k := own[i].kernel
		t += h.Call + units.Seconds(float64(launches(p.curves, k)-1)*float64(h.Launch))
		if w.Kind == step.Adam {
			t += units.Seconds(float64(k.Tensors) * float64(h.Tensor))
		}
	}
	if w.Memory > 0 {
		t += units.Seconds(float64(max(w.Count, 1)) * float64(h.Call))
	}
	if w.Op != step.NoCollective {
		t += h.Collective
	}
	return t
}

// classify names the pattern of an optimizer's kernel by what its task is for.
func classify(kind step.Kind, k model.Kernel) model.Kernel {
	switch {
	case k.Kind == model.MultiTensor && kind == step.GradNorm:
		k.Multi = hw.SquaredNorm
	case k.Kind == model.MultiTensor && (kind != step.Adam || k.Elems == 0):
		k.Multi = hw.ConvertCopy
	case k.Kind == model.MemoryBound && kind == step.Cast && k.DType == dtype.U8:
		k.Pattern = hw.CastFP8
	case k.Kind == model.MemoryBound && kind == step.ParamCopy && k.DType == dtype.U8:
		k.Pattern = hw.TransposeFP8
	}
	if k.Kind == model.MultiTensor && k.Elems == 0 {
		k.Elems = units.Elems(k.Bytes / 4) // two 16-bit accesses
	}
	return k
}
