package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"distopt/core/dtype"
)

// castColumns are the digits of each code on a line of the list of conversions: fp32 input, bf16, fp16,
// then E4M3 and E5M2, each saturating, not saturating and as PyTorch converts.
var castColumns = [...]int{8, 4, 4, 2, 2, 2, 2, 2, 2}

// isCasts recognises the list of conversions by its first line of codes, or by the heading that
// names its columns.
func isCasts(data []byte) bool {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		switch {
		case bytes.HasPrefix(line, []byte("# fp32 ")) && bytes.Contains(line, []byte("e4m3")):
			return true
		case len(bytes.TrimSpace(line)) == 0 || line[0] == '#':
		default:
			_, err := castCodes(line)
			return err == nil
		}
	}
	return false
}

// castCodes reads one line.
func castCodes(line []byte) (codes [len(castColumns)]uint32, err error) {
	fields := bytes.Fields(line)
	if len(fields) != len(codes) {
		return codes, fmt.Errorf("got %d codes, want %d", len(fields), len(codes))
	}
	for i, field := range fields {
		n, err := strconv.ParseUint(string(field), 16, 32)
		if err != nil || len(field) != castColumns[i] {
			return codes, fmt.Errorf("code %d: got %q, want %d hexadecimal digits", i, field, castColumns[i])
		}
		codes[i] = uint32(n)
	}
	return codes, nil
}

// CheckCasts compares every conversion of every line.
func CheckCasts(data []byte) error {
	lines := 0
	for at := 1; len(data) > 0; at++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		want, err := castCodes(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		got := convert(want[0])
		for i := range want {
			if got[i] != want[i] {
				return fmt.Errorf("line %d, column %d of %08x: got %0*x, want %0*x", at, i, want[0], castColumns[i], got[i], castColumns[i], want[i])
			}
		}
		lines++
	}
	if lines == 0 {
		return errors.New("got no line of codes, want one for each input")
	}
	return nil
}

// convert returns the codes of an fp32 input, itself first.
func convert(bits uint32) [len(castColumns)]uint32 {
	x := math.Float32frombits(bits)
	codes := [len(castColumns)]uint32{bits, uint32(dtype.EncodeBF16(x)), uint32(dtype.EncodeFP16(x))}
	at := 3
	for _, f := range []dtype.FP8{dtype.E4M3, dtype.E5M2} {
		codes[at] = uint32(f.Encode(x))
		codes[at+1] = uint32(f.EncodeAs(x, dtype.NoSaturate))
		codes[at+2] = uint32(f.EncodeAs(x, dtype.Torch))
		at += 3
	}
	return codes
}

// CheckFP8Decode compares the value of each of the 256 codes of both FP8 formats.
func CheckFP8Decode(data []byte) error {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for _, f := range []struct {
		key    string
		format dtype.FP8
	}{{"decode_e4m3fn_fp32", dtype.E4M3}, {"decode_e5m2_fp32", dtype.E5M2}} {
		raw, ok := in[f.key]
		if !ok {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
		want, err := decodeTensor(dtype.FP32, text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
		if want.Len() != 256 {
			return fmt.Errorf("%s: got 256 codes, want %d", f.key, want.Len())
		}
		for code := range 256 {
			if got := math.Float32bits(f.format.Decode(uint8(code))); got != want.Bits(code) {
				return fmt.Errorf("%s[%d]: got %08x, want %08x", f.key, code, got, want.Bits(code))
			}
		}
	}
	return nil
}
