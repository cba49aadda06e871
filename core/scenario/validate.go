package scenario

import (
	"sort"
	"strconv"
)

// Validate returns everything that is wrong with s, sorted by path, and remarks on what is not.
// Rules are left out that depend on a path in invalid: its value could not be read. The edits of an
// error mend it and cause no other.
func (s *Scenario) Validate(invalid ...string) (Errors, []Note) {
	errs, notes := s.check(invalid, true)
	for _, e := range errs {
		s.Complete(e, errs, invalid...)
	}
	return errs, notes
}

// check is Validate with the edits that each rule proposes by itself, and remarks only if asked for.
func (s *Scenario) check(invalid []string, remarks bool) (Errors, []Note) {
	c := checker{s: s, invalid: make(map[string]bool, len(invalid)), quiet: !remarks}
	for _, path := range invalid {
		c.invalid[path] = true
	}
	c.ranges()
	c.model()
	c.fp8()
	c.ranks()
	c.pipeline()
	c.batch()
	c.recompute()
	c.optimizer()
	c.plainOptimizer()
	c.mcore()
	c.torchDDP()
	c.experts()
	c.versions()
	c.limits()
	sort.Stable(errorsByPath(c.errs))
	sort.Stable(notesByPath(c.notes))
	return c.errs, c.notes
}

// checker collects what is wrong.
type checker struct {
	s       *Scenario
	invalid map[string]bool // fields that rules must not look at
	errs    Errors
	notes   []Note
	quiet   bool // no notes are wanted
}

// ranges checks every field by itself; a Scenario need not come from a document.
func (c *checker) ranges() {
	probe := *c.s
	for i := range Fields {
		f := &Fields[i]
		if f.holds(c.s) || c.invalid[f.Path] {
			continue
		}
		text := f.Get(c.s)
		if err := f.Set(&probe, text); err != nil {
			c.errs = append(c.errs, err)
			c.invalid[f.Path] = true
		}
	}
}

// usable reports whether none of the fields is wrong by itself.
func (c *checker) usable(paths ...string) bool {
	for _, p := range paths {
		if c.invalid[p] {
			return false
		}
	}
	return true
}

// fail reports the value at path. Edits mend it.
func (c *checker) fail(path, want string, edits ...Edit) {
	c.failAs(path, want, setTo(edits...), edits...)
}

// failAs is fail with the way out in other words than the edits.
func (c *checker) failAs(path, want, fix string, edits ...Edit) {
	f, ok := ByPath(path)
	if !ok {
		panic("scenario: no field " + path)
	}
	c.errs = append(c.errs, &FieldError{Path: path, Got: Quote(f.Get(c.s)), Want: want, Fix: fix, Edits: edits})
}

func (c *checker) note(path, text string) { c.remark(Note{Path: path, Text: text}) }

func (c *checker) warn(path, text string, edits ...Edit) {
	c.remark(Note{Path: path, Text: text, Warning: true, Edits: edits})
}

func (c *checker) remark(n Note) {
	if !c.quiet {
		c.notes = append(c.notes, n)
	}
}

func edit(path string, value int) Edit { return Edit{path, strconv.Itoa(value)} }

// multiples describes the multiples of step around n: "set PATH to 16 or 24", with the nearer
// one (the lower of two equally near) as the edit.
func multiples(path string, n, step, limit int) (fix string, e Edit) {
	low, high := n/step*step, (n/step+1)*step
	switch {
	case low == 0:
		e = edit(path, high)
		return setTo(e), e
	case high > limit:
		e = edit(path, low)
		return setTo(e), e
	}
	near := low
	if high-n < n-low {
		near = high
	}
	return "set " + path + " to " + strconv.Itoa(low) + " or " + strconv.Itoa(high), edit(path, near)
}

// nearestFit returns the number nearest to n, the lower of two, for which ok holds. It looks
// from 1 to limit; ok(1) must hold.
func nearestFit(n, limit int, ok func(int) bool) int {
	for d := 0; ; d++ {
		if low := n - d; low >= 1 && low <= limit && ok(low) {
			return low
		}
		if high := n + d; high >= 1 && high <= limit && ok(high) {
			return high
		}
		if n-d < 1 && n+d > limit {
			return 1
		}
	}
}

// nearestSplit returns the size nearest to n and at most limit for which ok holds; one with which
// the ranks divide into copies of the model if there is one, where others is what the model is
// split by besides. ok(1) must hold.
func (c *checker) nearestSplit(n, limit, others int, ok func(int) bool) int {
	n = min(n, limit)
	if c.usable(pathNodes, pathDevices, pathTP, pathPP, pathCP) {
		world := c.s.World()
		fits := func(k int) bool { return ok(k) && world%(others*k) == 0 }
		if near := nearestFit(n, min(limit, world), fits); fits(near) {
			return near
		}
	}
	return nearestFit(n, limit, ok)
}
