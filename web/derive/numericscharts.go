package derive

import (
	"math"
	"strings"

	"distopt/core/lab"
	"distopt/web/state"
)

// charts draws what the steps so far have shown.
func (n *Numerics) charts(l *state.Lab, marks []mark) {
	tensor := labTensor(l)
	name := Short(l.Frame.Tensors[tensor].Name)
	of := func(pick func(t *lab.TensorRun) lab.Value) func(v *lab.VariantRun) lab.Value {
		return func(v *lab.VariantRun) lab.Value {
			if tensor >= len(v.Tensors) { // the variant has stopped
				return lab.Value(math.NaN())
			}
			return pick(&v.Tensors[tensor])
		}
	}
	n.Loss = compared(l, "Loss", marks, false, func(v *lab.VariantRun) lab.Value { return v.Loss })
	n.Amax = compared(l, "Amax of "+name, marks, true, of(func(t *lab.TensorRun) lab.Value { return t.Amax }))
	n.Scale = compared(l, "Scale of "+name, marks, true, of(func(t *lab.TensorRun) lab.Value { return t.Scale }))
	view := labView(l)
	c := &Chart{Title: "Lost of " + name + ", " + marks[view].name + ", % of elements"}
	for i, s := range [...]struct {
		name, colour string
		pick         func(t *lab.TensorRun) float64
	}{
		{"saturated", "fp8", func(t *lab.TensorRun) float64 { return t.Saturated }},
		{"flushed to zero", "bf16", func(t *lab.TensorRun) float64 { return t.Flushed }},
		{"gradient to zero", "fp32", func(t *lab.TensorRun) float64 { return t.GradFlushed }},
		{"exp_avg to zero", "grad", func(t *lab.TensorRun) float64 { return t.MFlushed }},
		{"exp_avg_sq to zero", "optimizer", func(t *lab.TensorRun) float64 { return t.VFlushed }},
	} {
		pick := of(func(t *lab.TensorRun) lab.Value { return lab.Value(100 * s.pick(t)) })
		line := Series{Name: s.name, Colour: s.colour, Mark: i, Y: make([]float64, len(l.Records))}
		for k := range l.Records {
			line.Y[k] = float64(pick(&l.Records[k].Variants[view]))
		}
		c.Series = append(c.Series, line)
	}
	c.scale(l.Config.Steps, true)
	c.describe(Percent)
	n.Lost = c
}

// labTensor is the tensor that is looked at.
func labTensor(l *state.Lab) int {
	if t := int(l.Watch.Tensor); t < len(l.Frame.Tensors) {
		return t
	}
	return 0
}

// labView is the variant whose tensor is looked at.
func labView(l *state.Lab) int { return min(max(l.Variant, 0), len(l.Config.Variants)-1) }

// compared is a chart with a line for each variant.
func compared(l *state.Lab, title string, marks []mark, log bool, pick func(v *lab.VariantRun) lab.Value) *Chart {
	c := &Chart{Title: title, Log: log}
	for i, m := range marks {
		line := Series{Name: m.name, Colour: m.colour, Mark: m.shape, Y: make([]float64, len(l.Records))}
		for k := range l.Records {
			line.Y[k] = float64(pick(&l.Records[k].Variants[i]))
		}
		c.Series = append(c.Series, line)
	}
	c.scale(l.Config.Steps, false)
	c.describe(nil)
	return c
}

// describe says in words what the lines do.
func (c *Chart) describe(percent func(float64) string) {
	parts := make([]string, 0, len(c.Series))
	for _, s := range c.Series {
		if len(s.Y) == 0 {
			continue
		}
		first, last := s.Y[0], s.Y[len(s.Y)-1]
		if percent != nil {
			parts = append(parts, s.Name+" "+percent(last/100))
			continue
		}
		parts = append(parts, s.Name+" from "+numeral(first, 4)+" to "+numeral(last, 4))
	}
	c.Label = c.Title
	if len(parts) > 0 {
		c.Label += ", " + plural(len(c.Series[0].Y), "step") + ". " + strings.Join(parts, "; ") + "."
	}
}

var partNames = map[lab.Part]string{
	lab.Param: "parameter", lab.Main: "main parameter", lab.Grad: "gradient", lab.ExpAvg: "exp_avg", lab.ExpAvgSq: "exp_avg_sq",
}

// histogram is the watched numbers on the grid of their format.
func histogram(h *lab.Histogram, of string) *Histogram {
	out := &Histogram{Title: heading(of) + " on the grid of " + strings.ToUpper(h.Format)}
	zeroAt := 0
	for i := range h.Bins {
		if h.Bins[i].Low < 0 {
			zeroAt = i + 1
		}
	}
	add := func(b Bar) {
		out.Bars = append(out.Bars, b)
		if !b.Zero {
			out.Highest = max(out.Highest, b.Count)
		}
	}
	zero := Bar{Text: "0", Range: "0", Count: h.Zero, Zero: true, Tick: 2}
	for i := range h.Bins {
		if i == zeroAt {
			add(zero)
		}
		b := &h.Bins[i]
		bar := Bar{Count: b.Count, Text: numeral(float64(b.Low), 3), Range: numeral(float64(b.Low), 5)}
		if b.High != b.Low {
			bar.Range += " to " + numeral(float64(b.High), 5)
			if b.Low < 0 {
				bar.Text = numeral(float64(b.High), 3)
			}
		}
		if f, _ := math.Frexp(math.Abs(float64(b.Low))); f == 0.5 || b.High != b.Low {
			bar.Tick = 1
		}
		bar.Edge = h.Saturated > 0 && (i == 0 || i == len(h.Bins)-1) && h.Format == "e4m3"
		add(bar)
	}
	if zeroAt == len(h.Bins) {
		add(zero)
	}
	if out.Highest == 0 {
		out.Highest = max(h.Zero, 1)
	}
	scale := "none"
	switch {
	case h.Scale == 0:
		scale = "one a fragment"
	case h.Scale != 1:
		scale = numeral(float64(h.Scale), 5)
	}
	out.Facts = []Fact{
		{Name: "values", Value: Count(int64(h.Total))}, {Name: "scale", Value: scale},
		{Name: "zero", Value: portion(h.Zero, h.Total)}, {Name: "saturated", Value: portion(h.Saturated, h.Total)},
		{Name: "infinite", Value: portion(h.Infinite, h.Total)}, {Name: "NaN", Value: portion(h.NaN, h.Total)},
	}
	out.Label = out.Title + "."
	for _, f := range out.Facts {
		out.Label += " " + upper(f.Name) + " " + f.Value + "."
	}
	return out
}

func portion(n, total int) string {
	if n == 0 {
		return "0"
	}
	return Count(int64(n)) + " (" + Percent(ratio(float64(n), float64(total))) + ")"
}

// labTable is the twin of the charts: a row for each step of each variant.
func labTable(l *state.Lab, sort state.Sort) *Table {
	tensor := labTensor(l)
	marks := labMarks(l.Config.Variants)
	type run struct {
		step, mark int
		*lab.VariantRun
		x       lab.TensorRun
		stopped bool
	}
	var runs []run
	for i := range l.Records {
		r := &l.Records[i]
		for k := range r.Variants {
			v := &r.Variants[k]
			x := run{step: r.Step, mark: k, VariantRun: v, stopped: tensor >= len(v.Tensors)}
			if !x.stopped {
				x.x = v.Tensors[tensor]
			}
			runs = append(runs, x)
		}
	}
	number := func(title, csv string, of func(r *run) float64) field {
		return field{title, csv, func(i int) float64 {
			if runs[i].stopped {
				return missing
			}
			return of(&runs[i])
		}, nil}
	}
	share := func(title string, of func(r *run) float64) field { return number(title, title+" (fraction)", of) }
	fields := []field{
		{title: "Variant", csv: "Variant", text: func(i int) string { return marks[runs[i].mark].name }},
		whole("Step", "Step", func(i int) int { return runs[i].step }),
		number("Loss", "Loss", func(r *run) float64 { return float64(r.Loss) }),
		number("Gradient norm", "Gradient norm", func(r *run) float64 { return float64(r.GradNorm) }),
		number("Loss scale", "Loss scale", func(r *run) float64 { return float64(r.LossScale) }),
		number("Amax", "Amax", func(r *run) float64 { return float64(r.x.Amax) }),
		number("Largest of its history", "Largest of its history", func(r *run) float64 { return float64(r.x.AmaxMax) }),
		number("Scale", "Scale", func(r *run) float64 { return float64(r.x.Scale) }),
		share("Saturated", func(r *run) float64 { return r.x.Saturated }),
		share("Flushed to zero", func(r *run) float64 { return r.x.Flushed }),
		share("Gradient to zero", func(r *run) float64 { return r.x.GradFlushed }),
		share("exp_avg to zero", func(r *run) float64 { return r.x.MFlushed }),
		share("exp_avg_sq to zero", func(r *run) float64 { return r.x.VFlushed }),
		number("Ranks differ", "Ranks differ (elements)", func(r *run) float64 { return float64(r.Differs) }),
		number("BEFORE differs", "BEFORE differs (elements)", func(r *run) float64 {
			if !l.Frame.Variants[r.mark].Before.Checked {
				return missing
			}
			return float64(r.Before)
		}),
		{title: "Cause", csv: "Cause", text: func(i int) string { return runs[i].Event }},
	}
	figures := [...]int{2: 6, 3: 4, 4: 6, 5: 6, 6: 6, 7: 6}
	return newTable("numerics", "Steps of the run; tensor "+l.Frame.Tensors[tensor].Name, len(runs), fields, sort, func(i int) TableRow {
		cells := make([]string, len(fields))
		for c := range cells {
			f := &fields[c]
			if f.number == nil {
				cells[c] = f.text(i)
				continue
			}
			switch x := f.number(i); {
			case isMissing(x):
				cells[c] = "–"
			case strings.HasSuffix(f.csv, "(fraction)"):
				cells[c] = Percent(x)
			case c < len(figures) && figures[c] > 0:
				cells[c] = numeral(x, figures[c])
			default:
				cells[c] = Count(int64(x))
			}
		}
		return TableRow{Span: -1, Bucket: -1, Colour: marks[runs[i].mark].colour, Cells: cells}
	})
}
