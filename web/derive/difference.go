package derive

import (
	"math"

	"distopt/core/report"
)

// Differences is the table of Compare.
type Differences struct {
	A, B string // names
	Rows []DifferenceRow
	Text string // the outcome in a sentence
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

// differences compares two results figure by figure.
func differences(a, b *report.Result) *Differences {
	d := &Differences{A: "A, " + a.Name, B: "B, " + b.Name, Text: outcome(a, b)}
	fa, fb := &a.Figures, &b.Figures
	var widest float64
	var shares []float64
	add := func(name, unit string, indent bool, x, y, scale float64, decimals, good int, points bool) {
		row := DifferenceRow{Name: name, Unit: unit, Indent: indent, A: fixed(x*scale, decimals), B: fixed(y*scale, decimals)}
		row.Delta = signed((y-x)*scale, decimals)
		if x == y {
			row.Delta = "0"
		}
		row.Change, row.Better = change(x, y, points, good)
		d.Rows = append(d.Rows, row)
		share := 0.0
		switch {
		case points:
			share = y - x
		case x != 0:
			share = (y - x) / x
		case y != 0:
			share = 1
		}
		shares = append(shares, share)
		widest = max(widest, math.Abs(share))
	}
	time := func(name string, indent bool, x, y int64) {
		add(name, "ms", indent, float64(x), float64(y), 1e-6, 2, -1, false)
	}
	time("Step time", false, int64(fa.StepTime), int64(fb.StepTime))
	time("Exposed communication", false, int64(fa.Exposed), int64(fb.Exposed))
	for _, kind := range kinds(fa, fb) {
		time(kind, true, exposedBy(fa, kind), exposedBy(fb, kind))
	}
	add("Overlap efficiency", "%", false, fa.Overlap, fb.Overlap, 100, 1, 1, true)
	add("Tokens/s/GPU", "", false, fa.TokensPerGPU, fb.TokensPerGPU, 1, 0, 1, false)
	add("MFU", "%", false, fa.MFU, fb.MFU, 100, 1, 1, true)
	add("Amax reductions", "", false, float64(fa.AmaxReductions), float64(fb.AmaxReductions), 1, 0, -1, false)
	add("Buckets", "", false, float64(fa.Buckets), float64(fb.Buckets), 1, 0, -1, false)
	add("Bucket utilisation", "%", false, fa.Utilisation, fb.Utilisation, 100, 1, 1, true)
	add("Padding moved per step", "MiB", false, float64(fa.WastedBytes), float64(fb.WastedBytes), 1.0/(1<<20), 0, -1, false)
	for _, k := range [...]string{"Bubble"} {
		if fa.Bubble > 0 || fb.Bubble > 0 {
			time(k, false, int64(fa.Bubble), int64(fb.Bubble))
		}
	}
	for i := range d.Rows {
		if shares[i] == 0 {
			continue
		}
		width := max(math.Abs(shares[i])/widest*50, 1)
		left := 50.0
		if shares[i] < 0 {
			left -= width
		}
		d.Rows[i].Bar = "left:" + fixed(left, 1) + "%;width:" + fixed(width, 1) + "%"
	}
	return d
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
		return "B takes " + Milliseconds(d) + " more per step (" + signed(share*100, 1) + thin + "%)."
	}
	return "B takes " + Milliseconds(-d) + " less per step (" + signed(share*100, 1) + thin + "%)."
}

// whyOther is the inspector of Compare: exposed time by kind.
func whyOther(a, b *report.Result) *Inspector {
	title := "Why B is slower"
	switch d := b.Figures.StepTime - a.Figures.StepTime; {
	case d == 0:
		title = "A and B compared"
	case d < 0:
		title = "Why B is faster"
	}
	in := &Inspector{Title: title, Zoom: -1, Intro: outcome(a, b)}
	fa, fb := &a.Figures, &b.Figures
	var sum int64
	for _, kind := range kinds(fa, fb) {
		x, y := exposedBy(fa, kind), exposedBy(fb, kind)
		sum += y - x
		in.Rows = append(in.Rows, DifferenceRow{Name: "Exposed, " + kind, A: fixed(float64(x)/1e6, 1), B: fixed(float64(y)/1e6, 1), Delta: signed(float64(y-x)/1e6, 1)})
	}
	rest := int64(fb.StepTime-fa.StepTime) - sum
	in.Rows = append(in.Rows, DifferenceRow{Name: "Compute, optimizer, bubble", Delta: signed(float64(rest)/1e6, 1)})
	in.Why = moved(a, b)
	return in
}

// moved lists the collectives of B that are exposed and whose namesakes in A are not, or less,
// and the other way round, worst first.
func moved(a, b *report.Result) (out []Reason) {
	find := func(r, other *report.Result, name, rest string) {
		for n := 0; n < 2; {
			best, gain := -1, int64(100_000)
			for i := range r.Collectives {
				c := &r.Collectives[i]
				if len(c.Buckets) == 0 {
					continue
				}
				if g := int64(c.Exposed) - namesakeExposed(other, c); g > gain && !told(out, name+Name(r, c.Span)) {
					best, gain = i, g
				}
			}
			if best < 0 {
				return
			}
			c := &r.Collectives[best]
			text := name + Name(r, c.Span) + " is exposed for " + Milliseconds(int64(c.Exposed))
			if c.Cause != "" {
				text += ": " + c.Cause
			} else {
				text += rest
			}
			out = append(out, Reason{Binding: name == "B: ", Text: Sentence{{Text: text, Span: -1}}})
			n++
		}
	}
	find(b, a, "B: ", ".")
	find(a, b, "A: ", ".")
	return out
}

func told(out []Reason, start string) bool {
	for _, r := range out {
		if len(r.Text[0].Text) >= len(start) && r.Text[0].Text[:len(start)] == start {
			return true
		}
	}
	return false
}

// namesakeExposed is the exposed time of the collective of the same kind and first bucket.
func namesakeExposed(r *report.Result, c *report.Collective) int64 {
	for i := range r.Collectives {
		o := &r.Collectives[i]
		if o.Stage == c.Stage && o.Kind == c.Kind && len(o.Buckets) > 0 && o.Buckets[0] == c.Buckets[0] {
			return int64(o.Exposed)
		}
	}
	return 0
}
