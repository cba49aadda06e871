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
	t := &Table{
		Name: "numerics", Caption: "Steps of the run; tensor " + l.Frame.Tensors[tensor].Name,
		Columns: []Column{
			{Title: "Variant"}, {Title: "Step", Number: true}, {Title: "Loss", Number: true}, {Title: "Gradient norm", Number: true}, {Title: "Loss scale", Number: true},
			{Title: "Amax", Number: true}, {Title: "Largest of its history", Number: true}, {Title: "Scale", Number: true},
			{Title: "Saturated", Number: true}, {Title: "Flushed to zero", Number: true}, {Title: "Gradient to zero", Number: true},
			{Title: "exp_avg to zero", Number: true}, {Title: "exp_avg_sq to zero", Number: true},
			{Title: "Ranks differ", Number: true}, {Title: "BEFORE differs", Number: true}, {Title: "Cause"},
		},
	}
	marks := labMarks(l.Config.Variants)
	var keys [][]float64
	for i := range l.Records {
		r := &l.Records[i]
		for k := range r.Variants {
			v := &r.Variants[k]
			x := lab.TensorRun{}
			if tensor < len(v.Tensors) {
				x = v.Tensors[tensor]
			}
			differs, before := Count(int64(v.Differs)), Count(int64(v.Before))
			if !l.Frame.Variants[k].Before.Checked {
				before = "–"
			}
			number := []float64{0, float64(r.Step), float64(v.Loss), float64(v.GradNorm), float64(v.LossScale), float64(x.Amax), float64(x.AmaxMax), float64(x.Scale),
				x.Saturated, x.Flushed, x.GradFlushed, x.MFlushed, x.VFlushed, float64(v.Differs), float64(v.Before), 0}
			keys = append(keys, number)
			cells := []string{
				marks[k].name, Count(int64(r.Step)), numeral(number[2], 6), numeral(number[3], 4), numeral(number[4], 6),
				numeral(number[5], 6), numeral(number[6], 6), numeral(number[7], 6),
				Percent(x.Saturated), Percent(x.Flushed), Percent(x.GradFlushed), Percent(x.MFlushed), Percent(x.VFlushed),
				differs, before, v.Event,
			}
			if tensor >= len(v.Tensors) { // it has stopped
				for c := 2; c < len(cells)-1; c++ {
					cells[c] = "–"
				}
			}
			t.Rows = append(t.Rows, TableRow{Span: -1, Bucket: -1, Colour: marks[k].colour, Cells: cells})
		}
	}
	sortTable(t, keys, sort)
	return t
}
