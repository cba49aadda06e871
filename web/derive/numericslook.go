package derive

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"distopt/core/lab"
	"distopt/core/scenario"
	"distopt/web/state"
)

// Journey is an element's way through one step.
type Journey struct {
	Title string
	Text  string
	Stops []Stop
}

// Stop is a number on its way.
type Stop struct{ Name, Format, Bits, Value, Note string }

// NumberView is a number in every format.
type NumberView struct {
	Text   string
	Format string
	Error  string
	Exact  string
	Rows   []NumberRow
}

// NumberRow is a number in one format.
type NumberRow struct {
	Format, Bits, Sign, Exponent, Mantissa    string
	Value, Error, Relative, Below, Above, ULP string
	Kind, Note                                string
	Colour                                    string
}

// look places what is said about one tensor of one variant.
func (n *Numerics) look(l *state.Lab) {
	f, view, tensor := l.Frame, labView(l), labTensor(l)
	for i, t := range f.Tensors {
		n.Tensors = append(n.Tensors, Option{itoa(i), Short(t.Name) + shape(t.Shape), i == tensor})
	}
	for i := range l.Config.Variants {
		n.Views = append(n.Views, Option{itoa(i), upper(l.Config.Variants[i].Name), i == view})
	}
	part := l.Watch.Part
	if part == "" {
		part = lab.Param
	}
	for _, p := range lab.Parts {
		n.Parts = append(n.Parts, Option{string(p), heading(partNames[p]), p == part})
	}
	if view < len(f.Histograms) {
		seen := l.Seen.Watch
		if seen.Part == "" {
			seen.Part = lab.Param
		}
		name := ""
		if int(seen.Tensor) < len(f.Tensors) {
			name = " of " + Short(f.Tensors[seen.Tensor].Name)
		}
		n.Bins = histogram(&f.Histograms[view], partNames[seen.Part]+name)
	}
	numel := f.Tensors[tensor].Numel
	if i, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(l.Element), ",", "")); err != nil || i < 0 || i >= numel {
		n.Wrongly = "got " + strconv.Quote(clip(l.Element)) + ", want 0 to " + Count(int64(numel-1))
	}
	if view < len(f.Journeys) {
		n.Journey = journey(&f.Journeys[view], f)
	}
}

// heading begins a name with a capital, unless it is an identifier or a formula.
func heading(name string) string {
	if strings.ContainsAny(name, "_(") && !strings.Contains(name, " of ") || strings.HasPrefix(name, "exp_") {
		return name
	}
	return upper(name)
}

func clip(text string) string {
	if r := []rune(text); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return text
}

func shape(dims []int64) string {
	text := ""
	for i, d := range dims {
		if i == 0 {
			text = " "
		} else {
			text += "×"
		}
		text += Plain(int(d))
	}
	return text
}

func journey(j *lab.Journey, f *lab.Frame) *Journey {
	out := &Journey{Text: upper(j.Text)}
	if int(j.Tensor) < len(f.Tensors) {
		out.Title = Short(f.Tensors[j.Tensor].Name) + "[" + itoa(j.Element) + "] in step " + itoa(j.Step) + ": bucket " + itoa(j.Bucket) + ", owned by rank " + itoa(j.Owner)
	}
	for _, s := range j.Stops {
		out.Stops = append(out.Stops, Stop{heading(s.Name), s.Format, s.Bits, numeral(float64(s.Value), 7), s.Note})
	}
	return out
}

// numberView looks at a number in every format.
func numberView(text, format string) *NumberView {
	v := &NumberView{Text: text, Format: format}
	a, err := lab.Inspect(lab.Question{Number: strings.ReplaceAll(text, minus, "-"), Format: format})
	if err != nil {
		v.Error = err.Error()
		var field *scenario.FieldError
		if errors.As(err, &field) {
			v.Error = field.Problem() + "; " + field.Fix
		}
		return v
	}
	v.Exact = signedNumeral(a.Exact, 17)
	for _, x := range a.Formats {
		r := NumberRow{
			Format: strings.ToUpper(x.Format), Bits: x.Bits, Sign: x.Sign, Exponent: x.Exponent, Mantissa: x.Mantissa,
			Value: signedNumeral(x.Value, 9), Error: numeral(float64(x.Error), 3), Relative: numeral(100*float64(x.Relative), 3) + thin + "%",
			Below: neighbour(x.Below), Above: neighbour(x.Above), ULP: numeral(float64(x.ULP), 4),
			Kind: x.Kind, Note: x.Note, Colour: x.Format,
		}
		if !x.Relative.Finite() {
			r.Relative = "–"
		}
		if x.Format == "e4m3" || x.Format == "e5m2" {
			r.Colour = "fp8"
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

// neighbour writes a finite number, and a dash where a format has none.
func neighbour(x lab.Value) string {
	if !x.Finite() {
		return "–"
	}
	return signedNumeral(x, 9)
}

// signedNumeral is numeral for a number whose sign matters even if it is 0.
func signedNumeral(x lab.Value, digits int) string {
	if x == 0 && math.Signbit(float64(x)) {
		return minus + "0"
	}
	return numeral(float64(x), digits)
}
