package scenario

import "fmt"

// experts checks a mixture of experts and how its ranks share it.
func (c *checker) experts() {
	s, x := c.s, &c.s.Model.Experts
	if !c.usable(pathName, pathExperts) {
		return
	}
	if s.MCore() || s.DDP() {
		c.expertNotes()
	} else if x.Count > 0 {
		fix := Edit{pathExperts, Null}
		if simulated[FamilyMCore] {
			fix = Edit{pathName, MCoreAdam}
		}
		c.fail(pathExperts, fmt.Sprintf("null with %s: experts need %s or %s", s.Optim.Name, MCoreAdam, TorchDDP), fix)
		return
	}
	if x.Count == 0 {
		return
	}
	if c.usable(pathTopK) && x.TopK > x.Count {
		c.fail(pathTopK, fmt.Sprintf("at most num_moe_experts (%d)", x.Count), edit(pathTopK, x.Count))
	}
	if c.usable(pathSP, pathTP) && s.Parallel.TP > 1 && !s.Parallel.SequenceParallel && !s.DDP() {
		c.fail(pathSP, "true with experts and tensor parallelism", Edit{pathSP, "true"})
	}
	if c.usable(pathEP) && x.Count%s.Parallel.EP != 0 {
		near := nearestFit(min(s.Parallel.EP, x.Count), x.Count, func(n int) bool { return x.Count%n == 0 && c.expertRanks(n, s.ExpertTP()) })
		c.fail(pathEP, fmt.Sprintf("a divisor of num_moe_experts (%d)", x.Count), edit(pathEP, near))
	} else {
		c.expertSplit()
	}
	c.expertFP8()
}

// expertSplit checks that the ranks of a stage divide into copies of the experts, and that expert
// tensor parallelism divides what it cuts.
func (c *checker) expertSplit() {
	s, tp := c.s, c.s.ExpertTP()
	if !c.usable(pathEP, pathETP, pathTP, pathCP, pathPP, pathNodes, pathDevices) {
		return
	}
	if s.Process() > 0 && s.ExpertProcess() == 0 {
		want := fmt.Sprintf("expert tensor × expert parallel ranks (%d × %d) to divide the %d ranks of a stage", tp, s.Parallel.EP, s.Parallel.TP*s.Process())
		near := nearestFit(s.Parallel.EP, s.Parallel.EP, func(n int) bool {
			return s.Model.Experts.Count%n == 0 && c.expertRanks(n, tp)
		})
		edits := []Edit{edit(pathEP, near)}
		if !c.expertRanks(near, tp) {
			edits = append(edits, Edit{pathETP, Null})
		}
		c.fail(pathEP, want, edits...)
	}
	for _, w := range []struct {
		path string
		n    int
		own  bool
	}{{pathExpertFFN, s.ExpertFFN(), s.Model.Experts.FFN > 0}, {pathSharedFFN, s.Model.Experts.SharedFFN, true}} {
		by, name := tp, "expert tensor parallel ranks"
		if w.path == pathSharedFFN {
			by, name = s.Parallel.TP, "tensor_model_parallel_size"
		}
		if !w.own || !c.usable(w.path) || w.n%by == 0 {
			continue
		}
		fix, e := multiples(w.path, w.n, by, maxFFN)
		c.failAs(w.path, fmt.Sprintf("a multiple of %s (%d)", name, by), fix, e)
	}
	if s.Model.Experts.FFN == 0 && s.Parallel.ETP > 0 && c.usable(pathFFN, pathHidden) && s.FFN()%tp != 0 {
		c.fail(pathETP, fmt.Sprintf("a divisor of ffn_hidden_size (%d)", s.FFN()), Edit{pathETP, Null})
	}
}

// expertRanks reports whether the ranks of a stage divide by so many expert ranks.
func (c *checker) expertRanks(ep, tp int) bool {
	return c.s.Parallel.TP*c.s.Process()%max(ep*tp, 1) == 0
}

// expertFP8 checks that the products of experts can be FP8.
func (c *checker) expertFP8() {
	s := c.s
	if !c.usable(pathFP8, pathFP8Params, pathExpertFFN, pathSharedFFN, pathTP, pathETP) || !s.Precision.FP8 {
		return
	}
	for _, w := range []struct {
		path string
		n    int
		by   int
	}{{pathExpertFFN, s.Model.Experts.FFN, s.ExpertTP()}, {pathSharedFFN, s.Model.Experts.SharedFFN, s.Parallel.TP}} {
		if w.n > 0 && w.n%w.by == 0 && w.n/w.by%fp8Multiple != 0 {
			c.failAs(w.path, fmt.Sprintf("a size for each rank that is a multiple of %d in FP8, not %d", fp8Multiple, w.n/w.by),
				setTo(edit(w.path, (w.n/w.by/fp8Multiple+1)*fp8Multiple*w.by)), edit(w.path, (w.n/w.by/fp8Multiple+1)*fp8Multiple*w.by))
		}
	}
}

// expertNotes remarks on settings of experts where there are none.
func (c *checker) expertNotes() {
	s, x := c.s, &c.s.Model.Experts
	if x.Count > 0 {
		return
	}
	if c.usable(pathEP) && s.Parallel.EP > 1 {
		c.fail(pathEP, "1 without num_moe_experts", edit(pathEP, 1))
	}
	for _, path := range [...]string{pathTopK, pathExpertFFN, pathSharedFFN, pathGroupedGEMM, pathDispatcher, pathETP, pathLayerFreq, pathRouterDType} {
		if f, _ := ByPath(path); f.Applies(s) && c.usable(path) && f.Get(s) != f.Default {
			c.note(path, "No effect without num_moe_experts.")
		}
	}
}
