package scenario

import (
	"slices"
	"strconv"
)

// maxRounds bounds how often the edits of an error are completed by those of another that they
// would cause.
const maxRounds = 20

// Complete adds to the edits of e, which is wrong with s, what else must change so that they cause
// no error that is not among errs, those of s now. Edits that nothing completes stay as they are.
func (s *Scenario) Complete(e *FieldError, errs Errors, invalid ...string) {
	if len(e.Edits) == 0 {
		return
	}
	was := make(map[string]bool, len(errs))
	for _, x := range errs {
		was[x.Path] = true
	}
	if x, ok := s.nextSize(e, was, invalid); ok {
		e.Edits, e.Fix = []Edit{x}, setTo(x)
		return
	}
	edits := slices.Clone(e.Edits)
	for range maxRounds {
		caused, applies := s.caused(e.Path, edits, was, invalid)
		switch {
		case !applies, caused != nil && len(caused.Edits) == 0:
			return
		case caused == nil:
			edits = s.leastEdits(e.Path, edits, len(e.Edits), was, invalid)
			if !slices.Equal(edits, e.Edits) {
				e.Edits, e.Fix = edits, setTo(edits...)
			}
			return
		}
		for _, x := range caused.Edits {
			edits = with(edits, x)
		}
	}
}

// nextSize looks for a larger size where the one that mends e would cause an error: a size that FP8, TP and
// the heads divide needs no other edit.
func (s *Scenario) nextSize(e *FieldError, was map[string]bool, invalid []string) (Edit, bool) {
	x := e.Edits[0]
	n, err := strconv.Atoi(x.Value)
	if len(e.Edits) > 1 || err != nil || n < 1 || x.Path != e.Path || !s.Precision.FP8 {
		return x, false
	}
	if caused, applies := s.caused(e.Path, e.Edits, was, invalid); caused == nil || !applies {
		return x, false
	}
	steps := [...]int{fp8Multiple, fp8Multiple * max(s.Parallel.TP, 1), 0, 0}
	for i := range 2 {
		steps[2+i] = lcm(steps[i], max(s.Model.Heads, 1))
	}
	for _, step := range steps {
		y := edit(x.Path, (n+step-1)/step*step)
		if caused, applies := s.caused(e.Path, []Edit{y}, was, invalid); applies && caused == nil {
			return y, true
		}
	}
	return x, false
}

// with returns edits with one more, which replaces an earlier one of the same field.
func with(edits []Edit, x Edit) []Edit {
	for i := range edits {
		if edits[i].Path == x.Path {
			edits[i].Value = x.Value
			return edits
		}
	}
	return append(edits, x)
}

// leastEdits leaves out those edits behind the first ones that are not needed: a later one may
// have made an earlier one so.
func (s *Scenario) leastEdits(path string, edits []Edit, first int, was map[string]bool, invalid []string) []Edit {
	for i := len(edits) - 1; i >= first; i-- {
		fewer := slices.Delete(slices.Clone(edits), i, i+1)
		if e, applies := s.caused(path, fewer, was, invalid); applies && e == nil {
			edits = fewer
		}
	}
	return edits
}

// caused returns an error that s has with the edits made and that is at path or was not there
// before, nil if there is none. applies is false if a field cannot hold its value.
func (s *Scenario) caused(path string, edits []Edit, was map[string]bool, invalid []string) (e *FieldError, applies bool) {
	probe := *s
	left := slices.Clone(invalid)
	for _, x := range edits {
		f, ok := ByPath(x.Path)
		if !ok || f.Set(&probe, x.Value) != nil {
			return nil, false
		}
		left = slices.DeleteFunc(left, func(p string) bool { return p == x.Path })
	}
	errs, _ := probe.check(left, false)
	i := slices.IndexFunc(errs, func(e *FieldError) bool { return e.Path == path || !was[e.Path] })
	if slices.Contains(left, path) { // still not readable
		return nil, false
	}
	if i < 0 {
		return nil, true
	}
	return errs[i], true
}
