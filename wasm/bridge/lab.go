package bridge

import (
	"errors"

	"distopt/core/lab"
	"distopt/core/report"
)

// lab takes a run some steps further. The page asks again for the steps after those: that is how it
// streams, pauses (it asks no more) and resumes. A worker that is new to a run does its known steps
// again, with the same result, so an answer depends on its request alone.
func (b *Bridge) lab(r Request, progress Progress) (any, *report.Spans, error) {
	if r.Lab == nil {
		return nil, nil, errors.New("lab: got nothing, want a request; set lab to one")
	}
	session, frame, err := lab.Answer(b.session, *r.Lab, progress)
	b.session = session
	return frame, nil, err
}

func (b *Bridge) inspect(r Request, _ Progress) (any, *report.Spans, error) {
	if r.Inspect == nil {
		return nil, nil, errors.New("inspect: got nothing, want a question; set inspect to one")
	}
	answer, err := lab.Inspect(*r.Inspect)
	return answer, nil, err
}
