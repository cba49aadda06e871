package derive

import (
	"math"

	"distopt/core/report"
)

// Differences is the table of Compare.
type Differences struct {
	A, B  string // names
	Rows  []DifferenceRow
	Moved [][3]string // what, in A, in B
	Text  string      // the outcome in a sentence
}

// DifferenceRow is one figure of both.
type DifferenceRow struct {
	Name, Unit    string
	Indent        bool
	A, B          string
	Delta, Change string
	Better        int
	Bar           string // CSS of its bar, "" when equal
}

// differences writes out report.Compare.
func differences(a, b *report.Result) *Differences {
	c := report.Compare(a, b)
	d := &Differences{A: "A, " + a.Name, B: "B, " + b.Name, Text: outcome(a, b)}
	shares := make([]float64, len(c.Rows))
	widest := 0.0
	for i, x := range c.Rows {
		row := DifferenceRow{Name: upper(x.Name), Indent: x.Part, Better: x.Better}
		scale, decimals := 1.0, 0
		switch x.Unit {
		case report.Nanoseconds:
			row.Unit, scale, decimals = "ms", 1e-6, 2
		case report.Fraction:
			row.Unit, scale, decimals = "%", 100, 1
		case report.InBytes:
			row.Unit, scale = "MiB", 1.0/(1<<20)
		}
		row.A, row.B, row.Delta = fixed(x.A*scale, decimals), fixed(x.B*scale, decimals), "0"
		row.Change = "equal"
		if x.A != x.B {
			row.Delta = signed((x.B-x.A)*scale, decimals)
			row.Change, _ = change(x.A, x.B, x.Unit == report.Fraction, 1)
		}
		shares[i] = share(&x)
		if math.Abs(shares[i]) < negligible {
			row.Better, shares[i] = 0, 0
		}
		d.Rows = append(d.Rows, row)
		widest = max(widest, math.Abs(shares[i]))
	}
	for i := range d.Rows {
		d.Rows[i].Bar = bar(shares[i], widest)
	}
	for _, m := range c.Moved {
		d.Moved = append(d.Moved, [3]string{m.What, m.A, m.B})
	}
	return d
}

// negligible is a change that would read 0.0 %.
const negligible = 0.0005

// share is the difference of a row as a part of A; of a ratio, in points.
func share(x *report.Difference) float64 {
	switch {
	case x.Unit == report.Fraction:
		return x.B - x.A
	case x.A != 0:
		return (x.B - x.A) / x.A
	case x.B != 0:
		return 1
	}
	return 0
}

// bar places a bar left or right of the middle.
func bar(share, widest float64) string {
	if share == 0 {
		return ""
	}
	width := max(math.Abs(share)/widest*50, 1)
	left := 50.0
	if share < 0 {
		left -= width
	}
	return "left:" + fixed(left, 1) + "%;width:" + fixed(width, 1) + "%"
}

func kinds(fa, fb *report.Figures) (out []string) {
	seen := map[string]bool{}
	for _, f := range [...]*report.Figures{fa, fb} {
		for _, e := range f.ExposedBy {
			if !seen[e.Kind] {
				seen[e.Kind] = true
				out = append(out, e.Kind)
			}
		}
	}
	return out
}

func exposedBy(f *report.Figures, kind string) int64 {
	for _, e := range f.ExposedBy {
		if e.Kind == kind {
			return int64(e.Time)
		}
	}
	return 0
}

// outcome says in a sentence what B costs or saves. A gain too small to matter is called so.
func outcome(a, b *report.Result) string {
	d := int64(b.Figures.StepTime - a.Figures.StepTime)
	share := ratio(float64(d), float64(a.Figures.StepTime))
	switch {
	case d == 0:
		return "A and B take the same time per step."
	case math.Abs(share) < 0.001:
		return "B differs by " + Difference(d) + " per step: less than 0.1" + thin + "%, too little to matter."
	case d > 0:
		return "B takes " + Milliseconds(d) + " more per step (" + growth(float64(a.Figures.StepTime), float64(b.Figures.StepTime)) + ")."
	}
	return "B takes " + Milliseconds(-d) + " less per step (" + signed(share*100, 1) + thin + "%)."
}

// whyOther is the inspector of Compare: where both steps go, each on its worst stage. The differences add up to
// that of the step times.
func whyOther(a, b *report.Result) *Inspector {
	title := "Why B is slower"
	switch d := b.Figures.StepTime - a.Figures.StepTime; {
	case math.Abs(ratio(float64(d), float64(a.Figures.StepTime))) < 2*negligible:
		title = "A and B compared"
	case d < 0:
		title = "Why B is faster"
	}
	in := &Inspector{Title: title, Zoom: -1, Intro: outcome(a, b)}
	fa, fb := &a.Figures, &b.Figures
	row := func(name string, x, y int64) {
		if max(x, y) >= 50_000 { // else both would read 0.0
			in.Rows = append(in.Rows, DifferenceRow{Name: name, A: fixed(float64(x)/1e6, 1), B: fixed(float64(y)/1e6, 1), Delta: signed(float64(y-x)/1e6, 1)})
		}
	}
	of := func(r *report.Result, name string) int64 {
		if r.Figures.WorstStage < len(r.Stages) {
			for _, s := range r.Stages[r.Figures.WorstStage].Shares {
				if s.Name == name {
					return int64(s.Time)
				}
			}
		}
		return 0
	}
	for _, name := range [...]string{"Forward", "Backward", "Optimizer", "Bubble", "Idle"} {
		row(name, of(a, name), of(b, name))
	}
	for _, kind := range kinds(fa, fb) {
		row("Exposed, "+kind, exposedBy(fa, kind), exposedBy(fb, kind))
	}
	row("Step time", int64(fa.StepTime), int64(fb.StepTime))
	for i, m := range report.Compare(a, b).Moved {
		if i == 4 {
			break
		}
		in.Why = append(in.Why, Reason{Binding: true, Text: Sentence{{Text: m.What + ": A " + m.A + "; B " + m.B + ".", Span: -1}}})
	}
	return in
}
