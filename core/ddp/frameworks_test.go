package ddp_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/ddp"
	"distopt/core/dtype"
	"distopt/core/mcore"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

var update = flag.Bool("update", false, "rewrite the table of docs/frameworks.md")

const (
	docs       = "../../docs/frameworks.md"
	tableBegin = "<!-- written by go test ./core/ddp -update; do not edit -->\n"
	tableEnd   = "<!-- end -->\n"
	ranks      = 8
)

// TestFrameworksTable keeps the table of docs/frameworks.md in step with runs of all control flows.
func TestFrameworksTable(t *testing.T) {
	whole, err := os.ReadFile(docs)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(whole), tableBegin)
	require.True(t, ok, "the table begins")
	want, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "the table ends")
	got := table(t)
	if *update {
		require.NoError(t, os.WriteFile(docs, []byte(before+tableBegin+got+tableEnd+after), 0o644))
		return
	}
	require.Equal(t, want, got, "go test ./core/ddp -update rewrites it")
}

// side is a framework at work on the model of the table.
type side struct {
	name    string
	stage   *model.Stage
	buckets func() []bucket.Bucket
	flow    optim.Sharded
	watch   *watch
	memory  [3]units.Bytes // parameters; gradients; main parameters and moments
}

// small is a GPT of four layers in bf16.
func small(t *testing.T) *model.Stage {
	s, err := model.BuildStage(model.Config{
		Layers: 4, Hidden: 250, FFN: 1000, Heads: 5, Groups: 5, KVChannels: 50, Vocab: 8192, Seq: 512,
		LearnedPositions: true, Bias: true, DType: dtype.BF16,
	}, model.Split{TP: 1, PP: 1, VP: 1})
	require.NoError(t, err)
	return s
}

func apexSide(t *testing.T) *side {
	stage := small(t)
	o := apex.DefaultOptions(ranks)
	o.GradSync, o.BucketCapMB, o.OverlapParamSync = dtype.BF16, 2, true
	o.ContiguousGradBuffer, o.ContiguousParamBuffer, o.O2 = true, true, true
	o.NewNeMo = true
	o.SetNeMo(dtype.BF16, false)
	l, err := apex.BuildNeMo(o, stage)
	require.NoError(t, err)
	w := &watch{}
	flow, err := apex.NewSharded(l, apex.Config{Runtime: w, MaxNorm: 1, FusedWgrad: true})
	require.NoError(t, err)
	f := &side{name: "Apex, NeMo", stage: stage, buckets: func() []bucket.Bucket { return l.Buckets }, flow: flow, watch: w}
	for i := range l.Buckets {
		b := &l.Buckets[i]
		f.memory[0] += units.Bytes(b.Size) * b.DTypes.ParamSync.Size()
		f.memory[1] += units.Bytes(b.Size) * b.DTypes.GradSync.Size()
		f.memory[2] += units.Bytes(b.Shard) * 2 * b.DTypes.State.Size()
		if b.StoresRemainders {
			f.memory[2] += units.Bytes(b.Shard) * dtype.I16.Size()
		}
		require.False(t, b.StoresParams)
	}
	return f
}

func mcoreSide(t *testing.T) *side {
	stage := small(t)
	params := mcore.Params(stage, mcore.Plain)
	l, err := mcore.Build(mcore.Options{
		World: ranks, DistributedOptimizer: true, OverlapGradReduce: true, OverlapParamGather: true,
		GradReduceInFP32: true, BucketSize: 1 << 20,
	}, params)
	require.NoError(t, err)
	w := &watch{}
	flow, err := mcore.NewSharded(l, mcore.Config{Runtime: w, MaxNorm: 1, FusedWgrad: true})
	require.NoError(t, err)
	m := l.Memory(mcore.States{}, 0)
	require.Equal(t, m.Params+m.Grads+m.Main+m.Moments, m.Total())
	return &side{
		name: "Megatron-Core", stage: stage, buckets: func() []bucket.Bucket { return l.Buckets }, flow: flow, watch: w,
		memory: [3]units.Bytes{m.Params, m.Grads, m.Main + m.Moments},
	}
}

func ddpSide(t *testing.T) *side {
	stage := small(t)
	l, err := ddp.Build(ddp.Options{World: ranks, CapMB: 2, MainParams: true}, stage.Params, ddp.StageArrival(stage))
	require.NoError(t, err)
	w := &watch{}
	flow, err := ddp.NewSharded(l, ddp.Config{Runtime: w, MaxNorm: 1})
	require.NoError(t, err)
	m := l.Memory()
	return &side{
		name: "PyTorch DDP", stage: stage, buckets: func() []bucket.Bucket { return l.Buckets }, flow: flow, watch: w,
		memory: [3]units.Bytes{m.Params, m.Buckets + m.Grads + m.MainGrads, m.Main + m.Moments},
	}
}

// step trains one step of two microbatches and returns what it launched, up to the first forward pass
// of the next step, so that gathers there belong to it.
func (f *side) step(t *testing.T) []launch {
	w, opt := f.watch, f.flow
	begin := len(w.launches)
	forward := func() {
		for i := range f.stage.Modules {
			for _, p := range f.stage.Modules[i].Params {
				w.next = f.stage.Params[p].Name
				if opt.PendingForward(p) {
					opt.PreForward(p)
				}
			}
			w.next = "forward"
		}
	}
	order := ddp.StageArrival(f.stage)
	for m := range 2 {
		w.phase = inForward
		if m > 0 {
			forward()
		}
		w.phase = inBackward
		opt.NoSync(m == 0)
		for i, p := range order {
			w.left = len(order) - 1 - i
			opt.PostBackward(p)
		}
	}
	w.phase = afterBackward
	opt.AfterBackward()
	opt.ClipGradNorm()
	w.phase = inStep
	opt.Step()
	w.phase = inForward
	opt.ZeroGrad()
	forward()
	require.NoError(t, opt.Err())
	return slices.Clone(w.launches[begin:])
}

// When something is launched.
const (
	inForward = iota
	inBackward
	afterBackward
	inStep
)

// launch is a collective.
type launch struct {
	op     string
	group  string
	dtypes []string
	bytes  units.Bytes
	parts  int
	phase  int
	left   int         // gradients still to come
	next   string      // parameter that is needed, or "forward"
	adam   units.Elems // updated before
}

// watch is a runtime that writes down collectives and what the update is.
type watch struct {
	launches []launch
	phase    int
	left     int
	next     string
	adam     units.Elems // of one step
}

func (w *watch) collective(op string, c *optim.Collective) {
	if len(c.Members) == 0 {
		return
	}
	l := launch{op: op, group: fmt.Sprintf("%d ranks", c.Size), bytes: c.Bytes, parts: len(c.Members), phase: w.phase, left: w.left, next: w.next, adam: w.adam}
	for _, m := range c.Members {
		if d := m.DType.String(); !slices.Contains(l.dtypes, d) {
			l.dtypes = append(l.dtypes, d)
		}
	}
	w.launches = append(w.launches, l)
}

func (w *watch) Wait(_, _ optim.Stream)              {}
func (w *watch) WaitCall(_, _ optim.Stream, _ int)   {}
func (w *watch) ZeroGrad(*optim.Zero)                { w.adam = 0 }
func (w *watch) AccumulateGrad(*optim.Accumulation)  {}
func (w *watch) ReduceScatter(c *optim.Collective)   { w.collective("reduce-scatter", c) }
func (w *watch) AllReduceShards(c *optim.Collective) { w.collective("all-reduce", c) }
func (w *watch) AllGather(c *optim.Collective)       { w.collective("all-gather", c) }
func (w *watch) KeepShards(*optim.Kept)              {}
func (w *watch) AllReduceGrads(*optim.GradReduction) {}
func (w *watch) ScaleGrads(*optim.GradScaling)       {}
func (w *watch) LocalNorm(*optim.Norm)               {}
func (w *watch) Clip(float64)                        {}
func (w *watch) CheckFinite() bool                   { return true }
func (w *watch) Cast(*optim.Cast)                    {}
func (w *watch) UpdateScaleInv(*optim.Reduction)     {}
func (w *watch) AllReduceAmax(*optim.Reduction)      {}
func (w *watch) UseParams(*optim.ParamUse)           {}

func (w *watch) AllReduceNorm(r *optim.Reduction) {
	if r.Size > 1 {
		w.launches = append(w.launches, launch{op: "norm", group: fmt.Sprintf("%d ranks", r.Size), phase: w.phase})
	}
}

func (w *watch) Adam(u *optim.Update) {
	for _, l := range u.Launches {
		w.adam += l.Elems
	}
}

// table runs every framework for three steps and compares the first and the third.
func table(t *testing.T) string {
	sides := []*side{apexSide(t), mcoreSide(t), ddpSide(t)}
	rows := [][]string{{""}}
	row := func(name string, cells ...string) { rows = append(rows, append([]string{name}, cells...)) }
	var first, steady [][]launch
	var adam []units.Elems
	for _, f := range sides {
		rows[0] = append(rows[0], f.name)
		f.flow.ZeroGrad()
		first = append(first, f.step(t))
		f.step(t)
		begin := len(f.watch.launches)
		updated := f.updated(t)
		steady = append(steady, f.watch.launches[begin:])
		adam = append(adam, updated)
	}
	each := func(name string, cell func(i int, f *side) string) {
		var cells []string
		for i, f := range sides {
			cells = append(cells, cell(i, f))
		}
		row(name, cells...)
	}
	numel := units.Elems(0)
	for _, p := range sides[0].stage.Params {
		numel += p.Numel
	}
	each("Limit of a bucket", func(i int, _ *side) string {
		return []string{"`bucket_cap_mb: 2`", "`ddp-bucket-size 1048576`", "`bucket_cap_mb=2`"}[i]
	})
	each("Buckets", func(_ int, f *side) string { return fmt.Sprint(len(f.buckets())) })
	each("Their elements", func(_ int, f *side) string { return sizes(f.buckets()) })
	each("Parameters in more than one", func(_ int, f *side) string { return fmt.Sprint(split(f.buckets(), len(f.stage.Params))) })
	each("Elements beside parameters", func(_ int, f *side) string {
		all := units.Elems(0)
		for _, b := range f.buckets() {
			all += b.Size
		}
		return fmt.Sprintf("%s (%.2f %%)", grouped(int64(all-numel)), 100*float64(all-numel)/float64(all))
	})
	each("Gradients", func(i int, _ *side) string { return summary(steady[i], "reduce-scatter", "all-reduce") })
	each("Reductions before the last gradient", func(i int, _ *side) string { return early(steady[i]) })
	each("In the first step", func(i int, _ *side) string { return early(first[i]) })
	each("Parameters", func(i int, _ *side) string { return summary(steady[i], "all-gather") })
	each("The first gather starts", func(i int, _ *side) string { return firstGather(steady[i], adam[i]) })
	each("Gathers that start in the step, in forward", func(i int, _ *side) string { return gatherPhases(steady[i]) })
	each("All-reduces of the norm", func(i int, _ *side) string {
		n, group := 0, ""
		for _, l := range steady[i] {
			if l.op == "norm" {
				n++
				group = ", " + l.group
			}
		}
		return fmt.Sprint(n, group)
	})
	each("Elements that the first rank updates", func(i int, _ *side) string { return grouped(int64(adam[i])) })
	for k, name := range []string{"Bytes of parameters", "Bytes of gradients", "Bytes of main parameters and moments"} {
		each(name, func(_ int, f *side) string { return grouped(int64(f.memory[k])) })
	}
	var b strings.Builder
	for i, cells := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(cells)) + "\n")
		}
	}
	return b.String()
}

// updated runs one more step and returns how many elements its update has.
func (f *side) updated(t *testing.T) units.Elems {
	total := units.Elems(0)
	before := f.flow
	f.flow = &afterStep{before, func() { total = f.watch.adam }}
	f.step(t)
	f.flow = before
	return total
}

// afterStep looks at an optimizer once its step has ended.
type afterStep struct {
	optim.Sharded
	look func()
}

func (a *afterStep) Step() {
	a.Sharded.Step()
	a.look()
}

// sizes lists equal neighbours once.
func sizes(buckets []bucket.Bucket) string {
	var words []string
	for i := 0; i < len(buckets); {
		n := i
		for n < len(buckets) && buckets[n].Size == buckets[i].Size {
			n++
		}
		word := grouped(int64(buckets[i].Size))
		if n > i+1 {
			word = fmt.Sprintf("%d × %s", n-i, word)
		}
		words = append(words, word)
		i = n
	}
	if len(words) > 5 {
		buckets = slices.Clone(buckets)
		slices.SortFunc(buckets, func(a, b bucket.Bucket) int { return int(a.Size - b.Size) })
		return grouped(int64(buckets[0].Size)) + " to " + grouped(int64(buckets[len(buckets)-1].Size))
	}
	return strings.Join(words, ", ")
}

// split counts the parameters that lie in several buckets.
func split(buckets []bucket.Bucket, params int) (n int) {
	parts := make([]int, params)
	for _, b := range buckets {
		for _, f := range b.Fragments {
			if !f.Dependency() {
				if parts[f.Param]++; parts[f.Param] == 2 {
					n++
				}
			}
		}
	}
	return n
}

// summary says how many calls there are of some operations, of how many buckets and bytes.
func summary(launches []launch, ops ...string) string {
	calls, parts := 0, 0
	bytes, name := units.Bytes(0), ""
	var formats []string
	for _, l := range launches {
		if slices.Contains(ops, l.op) {
			calls++
			parts += l.parts
			bytes += l.bytes
			name = l.op
			formats = append(formats, l.dtypes...)
		}
	}
	if calls == 0 {
		return "none"
	}
	plural := "s"
	if calls == 1 {
		plural = ""
	}
	slices.Sort(formats)
	return fmt.Sprintf("%d %s%s of %d buckets, %s, %s bytes", calls, name, plural, parts, strings.Join(slices.Compact(formats), " and "), grouped(int64(bytes)))
}

// early counts reductions that start while gradients are still to come.
func early(launches []launch) string {
	all, n := 0, 0
	for _, l := range launches {
		if l.op == "reduce-scatter" || l.op == "all-reduce" {
			all++
			if l.phase == inBackward && l.left > 0 {
				n++
			}
		}
	}
	return fmt.Sprintf("%d of %d", n, all)
}

func firstGather(launches []launch, all units.Elems) string {
	for _, l := range launches {
		switch {
		case l.op != "all-gather":
		case l.phase == inStep:
			return fmt.Sprintf("in the step, at %d %% of the update", 100*l.adam/all)
		default:
			return "in the next forward, at `" + l.next + "`"
		}
	}
	return "never"
}

func gatherPhases(launches []launch) string {
	var n [inStep + 1]int
	for _, l := range launches {
		if l.op == "all-gather" {
			n[l.phase]++
		}
	}
	return fmt.Sprintf("%d, %d", n[inStep], n[inForward])
}

func grouped(n int64) string { return units.Count(n) }
