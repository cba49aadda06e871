package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Value is a number of a result. JSON has no NaN and no infinities: those are the strings "NaN",
// "+Inf" and "-Inf" there.
type Value float64

// Finite reports whether v is neither NaN nor infinite.
func (v Value) Finite() bool { return v-v == 0 }

// MarshalJSON writes a number, or a string where there is none.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v != v:
		return []byte(`"NaN"`), nil
	case math.IsInf(float64(v), 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(float64(v), -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*v = Value(math.NaN())
		return nil
	case `"+Inf"`:
		*v = Value(math.Inf(1))
		return nil
	case `"-Inf"`:
		*v = Value(math.Inf(-1))
		return nil
	}
	x, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return fmt.Errorf("value: got %s, want a number, \"NaN\", \"+Inf\" or \"-Inf\"", data)
	}
	*v = Value(x)
	return nil
}
