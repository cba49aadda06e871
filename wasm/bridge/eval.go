package bridge

import (
	"fmt"
	"strings"

	"distopt/core/importer"
	"distopt/core/report"
)

// step is the least progress that is worth a message.
const step = 0.02

// eval simulates a document that has no errors.
func (b *Bridge) eval(r Request, progress Progress) (any, *report.Spans, error) {
	reading := importer.Read(r.A)
	if !reading.OK() {
		return nil, nil, problems(reading)
	}
	if b.result != nil {
		b.simulator.TakeBack(b.result)
		b.result = nil
	}
	told := 0.0
	b.simulator.Progress = func(done float64) bool {
		if done-told >= step {
			told = done
			progress(done)
		}
		return true
	}
	result, err := b.simulator.Evaluate(&reading.Scenario)
	if err != nil {
		return nil, nil, err
	}
	b.result = result
	return result, &result.Spans, nil
}

// problems lists the errors of a document, one a line.
func problems(r *importer.Reading) error {
	var lines []string
	for _, d := range r.Diagnostics {
		if d.Severity == importer.Error {
			lines = append(lines, fmt.Sprintf("line %d, column %d: %s", d.Line, d.Col, d.Message))
		}
	}
	return fmt.Errorf("the document has errors:\n%s", strings.Join(lines, "\n"))
}
