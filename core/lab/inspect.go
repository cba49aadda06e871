package lab

// Question asks what a number is in every format. Exactly one of its fields is given.
type Question struct {
	// Number is decimal text ("0.1", "-3e-9", "inf", "nan") or fp32 bits ("0x3dcccccd").
	Number string `json:"number"`
	// Format names the format of hexadecimal bits: fp32 (the default), bf16, fp16, e4m3 or e5m2.
	Format string `json:"format,omitempty"`
}

// Inspection is the answer: the number as it was understood, and in each format.
type Inspection struct {
	Exact   Value        `json:"exact"` // nearest float64 of what was typed
	Formats []Appearance `json:"formats"`
}

// Appearance is a number in one format.
type Appearance struct {
	Format   string `json:"format"`
	Bits     string `json:"bits"` // hexadecimal
	Sign     string `json:"sign"` // its bits, as 0 and 1
	Exponent string `json:"exponent"`
	Mantissa string `json:"mantissa"`
	Value    Value  `json:"value"` // after rounding
	Error    Value  `json:"error"` // Value less the exact number
	Relative Value  `json:"relative"`
	ULP      Value  `json:"ulp"`   // distance between neighbours at this magnitude
	Below    Value  `json:"below"` // next smaller value of the format
	Above    Value  `json:"above"`
	Kind     string `json:"kind"`           // normal, subnormal, zero, infinite, NaN
	Note     string `json:"note,omitempty"` // saturated, flushed to zero, ...
}
