package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"distopt/core/sched"
	"distopt/core/step"
)

// Move is a decision that came out differently: what happens to a collective in A and in B.
type Move struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Cost is B's exposed time less A's; of kernels, their time. Rows that share a collective repeat it.
	Cost sched.Time `json:"cost_ns"`
}

// noticeable is the part of a step below which a change is not worth a row.
const noticeable = 1000

// moves lists what moved on the stage where A is worst, first the amax reductions and the first
// all-gather after the update, then what happens to each part of the model and the optimizer's kernels,
// dearest first.
func moves(a, b *Result) []Move {
	stage := a.Figures.WorstStage
	if stage >= len(a.Stages) || stage >= len(b.Stages) {
		return nil
	}
	var out []Move
	add := func(what string, x, y fate) {
		if x.text != y.text {
			out = append(out, Move{what, x.text, y.text, y.exposed - x.exposed})
		}
	}
	add("FP8 amax all-reduce", amaxFate(a, stage), amaxFate(b, stage))
	add("First all-gather after the update", firstGather(a, stage), firstGather(b, stage))

	threshold := a.Figures.StepTime / noticeable
	first := len(out)
	works, others := a.kernels(stage), b.kernels(stage)
	for k := range kinds {
		if x, y := &works[k], &others[k]; abs(y.exposed-x.exposed) >= max(threshold, 1) {
			add(kinds[k].name, *x, *y)
		}
	}
	for _, kind := range [...]step.Kind{step.ReduceScatter, step.AllGather} {
		name := kinds[kind].name
		x, y := fates(a, stage, name), fates(b, stage, name)
		var last *Move
		var layers [2]int
		for _, part := range parts(a, b, stage) {
			f, g := x[part], y[part]
			if f.text == "" {
				f.text = "none"
			}
			if g.text == "" {
				g.text = "none"
			}
			if d := g.exposed - f.exposed; -threshold < d && d < threshold || f.text == g.text {
				last = nil
				continue
			}
			// Neighbouring layers that share their fate share a row.
			if n, ok := layerOf(part); ok && last != nil && layers[1] == n-1 && last.A == f.text && last.B == g.text {
				layers[1] = n
				last.What = name + " of layers " + strconv.Itoa(layers[0]) + "–" + strconv.Itoa(n)
				continue
			}
			out = append(out, Move{name + " of " + part, f.text, g.text, g.exposed - f.exposed})
			last = nil
			if n, ok := layerOf(part); ok {
				last, layers = &out[len(out)-1], [2]int{n, n}
			}
		}
	}
	slices.SortStableFunc(out[first:], func(x, y Move) int { return cmp.Compare(abs(y.Cost), abs(x.Cost)) })
	return out
}

func abs(t sched.Time) sched.Time { return max(t, -t) }

// fate is what happens to one or several collectives.
type fate struct {
	text                      string
	buckets                   []int32
	exposed, inBubble, hidden sched.Time
}

// add counts c in.
func (f *fate) add(c *Collective) {
	for _, id := range c.Buckets {
		if !slices.Contains(f.buckets, id) {
			f.buckets = append(f.buckets, id)
		}
	}
	f.exposed += c.Exposed
	f.inBubble += c.InBubble
	f.hidden += c.Hidden
}

// tell puts f into words.
func (f *fate) tell() {
	switch {
	case f.exposed == 0 && f.inBubble > 0:
		f.text = length(f.inBubble) + " in a bubble"
	case f.exposed == 0:
		f.text = "hidden, " + length(f.hidden)
	case f.hidden > 0:
		f.text = length(f.exposed) + " exposed, " + length(f.hidden) + " hidden"
	default:
		f.text = length(f.exposed) + " exposed"
	}
	if len(f.buckets) > 0 {
		f.text = BucketNames(f.buckets) + ": " + f.text
	}
}

// at is when a collective begins, counted in the step in which it is issued: one that crosses the
// begin of the drawn step is the same as the one that crosses its end.
func (r *Result) at(c *Collective) sched.Time {
	if c.Start < 0 {
		return c.Start + r.Figures.StepTime
	}
	return c.Start
}

// update is when the first Adam kernel of a stage begins, -1 if there is none.
func (r *Result) update(stage int) sched.Time {
	lane := stage*int(NumLanes) + int(LaneOptimizer)
	if lane+1 >= len(r.Spans.First) {
		return -1
	}
	for i := r.Spans.First[lane]; i < r.Spans.First[lane+1]; i++ {
		if r.Spans.Kind[i] == uint8(step.Adam) && r.Spans.Start[i] >= 0 {
			return sched.Time(r.Spans.Start[i])
		}
	}
	return -1
}

// gatherAfter returns the first all-gather that begins after t, nil if there is none.
func (r *Result) gatherAfter(stage int, t sched.Time) *Collective {
	var first *Collective
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if c.Stage == stage && c.Kind == kinds[step.AllGather].name && t >= 0 && r.at(c) >= t && (first == nil || r.at(c) < r.at(first)) {
			first = c
		}
	}
	return first
}

func firstGather(r *Result, stage int) fate {
	c := r.gatherAfter(stage, r.update(stage))
	if c == nil {
		return fate{text: "none"}
	}
	var f fate
	f.add(c)
	f.tell()
	if beside := r.beside(c); beside != "" {
		f.text += " beside " + beside
	}
	return f
}

// beside names the two kinds of compute that hide most of c, of those that hide a tenth of it.
func (r *Result) beside(c *Collective) string {
	var hides [step.NumKinds]int64
	from, to := int64(c.Start), int64(c.Start+c.Length)
	for _, l := range [...]Lane{LaneCompute, LaneOptimizer} {
		lane := c.Stage*int(NumLanes) + int(l)
		for i := r.Spans.First[lane]; i < r.Spans.First[lane+1]; i++ {
			if k := r.Spans.Kind[i]; int(k) < len(hides) {
				hides[k] += max(0, min(r.Spans.End[i], to)-max(r.Spans.Start[i], from))
			}
		}
	}
	var names []string
	for range 2 {
		k := 0
		for i := range hides {
			if hides[i] > hides[k] {
				k = i
			}
		}
		if hides[k] == 0 || hides[k] < int64(c.Length)/10 {
			break
		}
		names, hides[k] = append(names, lower(kinds[k].name)), 0
	}
	return strings.Replace(strings.Join(names, ", "), "adam", "Adam", 1)
}

// amaxFate says how often amaxes are reduced, and whether the first all-gather waits for it.
func amaxFate(r *Result, stage int) fate {
	var f fate
	n, before := 0, false
	gather := r.gatherAfter(stage, r.update(stage))
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if c.Stage == stage && c.Kind == kinds[step.AmaxAllReduce].name {
			n++
			f.exposed += c.Exposed
			before = before || gather != nil && r.at(c) < r.at(gather)
		}
	}
	switch n {
	case 0:
		f.text = "none"
		return f
	case 1:
		f.text = "once"
	case 2:
		f.text = "twice"
	default:
		f.text = strconv.Itoa(n) + " times"
	}
	switch {
	case before && n > 1:
		f.text += ", the first before the first all-gather"
	case before:
		f.text += ", before the first all-gather"
	default:
		f.text += ", after the first all-gather was started"
	}
	return f
}

// fates says what happens to each part of the model in the collectives of a kind.
func fates(r *Result, stage int, kind string) map[string]fate {
	st := &r.Stages[stage]
	out := map[string]fate{}
	var done []string
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if c.Stage != stage || c.Kind != kind {
			continue
		}
		done = done[:0]
		for _, id := range c.Buckets {
			if int(id) >= len(st.Buckets) {
				continue
			}
			for _, fr := range st.Buckets[id].Fragments {
				part := partName(&st.Params[fr.Param])
				if fr.InParam[0] < fr.InParam[1] && !slices.Contains(done, part) {
					done = append(done, part)
					f := out[part]
					f.add(c)
					out[part] = f
				}
			}
		}
	}
	for part, f := range out {
		f.tell()
		out[part] = f
	}
	return out
}

// partName names the part of the model to which a parameter belongs.
func partName(p *Param) string {
	switch {
	case p.Group == "embedding":
		return "the embeddings"
	case p.Layer < 0 || p.Group == "other":
		return "biases and norms"
	case p.Chunk > 0:
		return "layer " + strconv.Itoa(p.Layer) + " of chunk " + strconv.Itoa(p.Chunk)
	}
	return layerPrefix + strconv.Itoa(p.Layer)
}

const layerPrefix = "layer "

// layerOf returns the number of a part that is a layer of chunk 0.
func layerOf(part string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(part, layerPrefix))
	return n, err == nil && strings.HasPrefix(part, layerPrefix)
}

// kernels adds up the kernels of the optimizer on a stage by kind: fate's exposed is their time, which delays
// what follows as exposed communication does.
func (r *Result) kernels(stage int) (sum [step.NumKinds]fate) {
	var count [step.NumKinds]int
	for _, l := range [...]Lane{LaneCompute, LaneOptimizer} {
		lane := stage*int(NumLanes) + int(l)
		if lane+1 >= len(r.Spans.First) {
			continue
		}
		for i := r.Spans.First[lane]; i < r.Spans.First[lane+1]; i++ {
			if k := r.Spans.Kind[i]; int(k) < len(kinds) && kinds[k].role == computes && kinds[k].share == optimizer {
				sum[k].exposed += sched.Time(r.Spans.End[i] - r.Spans.Start[i])
				count[k]++
			}
		}
	}
	for k, n := range count {
		switch n {
		case 0:
			sum[k].text = "none"
		case 1:
			sum[k].text = length(sum[k].exposed) + " in 1 kernel"
		default:
			sum[k].text = length(sum[k].exposed) + " in " + strconv.Itoa(n) + " kernels"
		}
	}
	return sum
}

// parts lists the parts of the model on a stage of either result, in order of first parameter.
func parts(a, b *Result, stage int) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range [...]*Result{a, b} {
		for i := range r.Stages[stage].Params {
			if p := partName(&r.Stages[stage].Params[i]); !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}
