package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"distopt/core/dtype"
	"distopt/core/scenario"
)

// Question asks what a number is in every format.
type Question struct {
	// Number is decimal text ("0.1", "-3e-9", "inf", "nan") or the bits of Format ("0x3dcccccd").
	Number string `json:"number"`
	Format string `json:"format,omitempty"` // fp32 (also where it is empty), bf16, fp16, e4m3 or e5m2
}

// Inspection is the answer: the number as it was understood, and in each format.
type Inspection struct {
	Exact   Value        `json:"exact"`   // nearest float64 of what was typed
	Formats []Appearance `json:"formats"` // the widest first
}

// Appearance is a number in one format. Conversions start from fp32, as all casts of the optimizer do.
type Appearance struct {
	Format   string `json:"format"`
	Bits     string `json:"bits"` // hexadecimal
	Sign     string `json:"sign"` // its bits, as 0 and 1
	Exponent string `json:"exponent"`
	Mantissa string `json:"mantissa"`
	Value    Value  `json:"value"`          // after rounding
	Error    Value  `json:"error"`          // Value less the exact number
	Relative Value  `json:"relative"`       // of the exact number; NaN if that is infinite
	ULP      Value  `json:"ulp"`            // distance between the format's values at this magnitude
	Below    Value  `json:"below"`          // finite values of the format on both sides of the exact number, infinite
	Above    Value  `json:"above"`          // where there is none
	Kind     string `json:"kind"`           // normal, subnormal, zero, infinite or NaN
	Note     string `json:"note,omitempty"` // what the conversion did: saturated, flushed to zero, a tie
}

// maxNumber bounds the text of a number.
const maxNumber = 80

// Inspect answers a Question.
func Inspect(q Question) (*Inspection, error) {
	exact, err := q.parse()
	if err != nil {
		return nil, err
	}
	x := dtype.Canonical(float32(exact))
	a := &Inspection{Exact: Value(exact)}
	for _, f := range dtype.Formats {
		a.Formats = append(a.Formats, appearance(f, x, exact))
	}
	return a, nil
}

func (q Question) parse() (float64, error) {
	text := strings.TrimSpace(q.Number)
	fail := func(want string) error {
		return &scenario.FieldError{Path: "number", Got: strconv.Quote(brief(text)), Want: want, Fix: "type 0.1 or 0x3dcccccd"}
	}
	if text == "" || len(text) > maxNumber {
		return 0, fail(fmt.Sprintf("a number of at most %d characters", maxNumber))
	}
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	if !hex || strings.Contains(digits, "p") {
		x, err := strconv.ParseFloat(text, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "p")
		if !hex {
			mantissa, _, _ = strings.Cut(mantissa, "e")
		}
		switch {
		case err != nil && math.IsInf(x, 0), x == 0 && strings.ContainsAny(strings.TrimPrefix(mantissa, "0x"), "123456789abcdef"):
			return 0, fail("a number of a size between 4.9e−324 and 1.8e308, 0, inf or nan")
		case err != nil:
			return 0, fail("a decimal number or hexadecimal bits")
		}
		return x, nil
	}
	name := q.Format
	if name == "" {
		name = dtype.FP32.String()
	}
	f := formatOf(name)
	if f.Name != name {
		return 0, &scenario.FieldError{Path: "format", Got: strconv.Quote(brief(name)), Want: "fp32, bf16, fp16, e4m3 or e5m2", Fix: "set format to fp32"}
	}
	code, err := strconv.ParseUint(digits, 16, f.Bits())
	if err != nil {
		return 0, fail(fmt.Sprintf("%d hexadecimal digits for %s", f.Bits()/4, name))
	}
	return float64(f.Decode(uint32(code))), nil
}

func brief(text string) string {
	if len(text) > maxNumber {
		return text[:maxNumber] + "…"
	}
	return text
}

// appearance describes the fp32 number x, which was typed as exact, in a format.
func appearance(f dtype.Format, x float32, exact float64) Appearance {
	code := f.Encode(x)
	v := float64(f.Decode(code))
	bits := fmt.Sprintf("%0*b", f.Bits(), code)
	below, above := f.Neighbours(exact)
	a := Appearance{
		Format: f.Name, Bits: fmt.Sprintf("0x%0*x", f.Bits()/4, code),
		Sign: bits[:1], Exponent: bits[1 : 1+f.Exponent], Mantissa: bits[1+f.Exponent:],
		Value: Value(v), Error: Value(v - exact), Below: Value(below), Above: Value(above),
	}
	if v == exact { // infinities too
		a.Error = 0
	}
	if exact != 0 && a.Error != 0 {
		a.Relative = a.Error / Value(math.Abs(exact))
	}
	least := 2 - 1<<(f.Exponent-1) // exponent of the smallest normal value
	switch magnitude := math.Abs(v); {
	case v != v:
		a.Kind, a.ULP = "NaN", Value(v)
		a.Note = "every NaN becomes this one"
		return a
	case math.IsInf(v, 0):
		a.Kind, a.ULP = "infinite", Value(math.Inf(1))
	case v == 0:
		a.Kind, a.ULP = "zero", Value(math.Ldexp(1, least-f.Mantissa))
	default:
		a.Kind = "normal"
		_, e := math.Frexp(magnitude)
		if e-1 < least {
			a.Kind = "subnormal"
		}
		a.ULP = Value(math.Ldexp(1, max(e-1, least)-f.Mantissa))
	}
	from := float64(x)
	if f.Name == dtype.FP32.String() {
		from = exact
	}
	low, high := f.Neighbours(from)
	switch limit := float64(f.Max()); {
	case math.IsInf(v, 0) && !math.IsInf(exact, 0):
		a.Note = "overflow: the largest finite value is " + show(f.Max())
	case math.Abs(v) == limit && f.Overflows(x):
		a.Note = "saturated"
	case v == 0 && exact != 0:
		a.Note = "flushed to zero"
	case from != v && from-low == high-from:
		a.Note = "a tie between two values: the even code"
	case v == exact:
		a.Note = "exact"
	}
	return a
}
