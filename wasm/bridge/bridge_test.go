package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
)

func TestPing(t *testing.T) {
	head, spans, err := new(Bridge).Handle([]byte(`{"op":"ping"}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `"pong"`, string(head))
	require.Empty(t, spans)
}

func TestRefuses(t *testing.T) {
	for request, want := range map[string]string{
		"":                                "request: EOF",
		"null":                            `op: got "", want one of`,
		"[1]":                             "request: json: cannot unmarshal array",
		`{"op":"ping","c":1}`:             `request: json: unknown field "c"`,
		`{"op":1}`:                        "request: json: cannot unmarshal number",
		`{"op":"ping"} {}`:                "request: want one JSON object and nothing after it",
		`{"op":"eval`:                     "request: unexpected EOF",
		`{"op":"nonsense"}`:               `op: got "nonsense", want one of`,
		strings.Repeat(" ", MaxRequest+1): "request: got 13631489 bytes, want at most 13631488",
	} {
		_, _, err := new(Bridge).Handle([]byte(request), nil)
		require.ErrorContains(t, err, want)
		require.Empty(t, Report(err), "the request is at fault, not the program")
	}
}

func TestPanicBecomesAReport(t *testing.T) {
	ops["panic"] = func(_ *Bridge, r Request, _ Progress) (any, *report.Spans, error) {
		return r.A[len(r.A):][0], nil, nil
	}
	defer delete(ops, "panic")
	head, spans, err := new(Bridge).Handle([]byte(`{"op":"panic","a":"hidden_size: 7"}`), nil)
	require.Nil(t, head)
	require.Nil(t, spans)
	require.EqualError(t, err, "internal error: runtime error: index out of range [0] with length 0")
	require.Contains(t, Report(err), "hidden_size: 7", "the document that did it")
	require.Contains(t, Report(err), "bridge_test.go", "the place where it happened")
}

func TestLongRequestIsCutInTheReport(t *testing.T) {
	long := make([]byte, 1<<20)
	require.Less(t, len(brief(long)), 9<<10)
	require.Contains(t, string(brief(long)), "1048576 bytes in all")
}

// FuzzHandle wants an answer or an error for whatever comes, and never a panic.
func FuzzHandle(f *testing.F) {
	f.Add([]byte(`{"op":"ping"}`))
	f.Add([]byte(`{"op":"eval","a":"model:\n  hidden_size: 512\n"}`))
	f.Add([]byte(`{"op":"eval","a":"a: &a [*a]"}`))
	f.Add([]byte(`{"op":{}}`))
	f.Fuzz(func(t *testing.T, request []byte) {
		head, _, err := new(Bridge).Handle(request, func(float64) {})
		if err != nil {
			require.Empty(t, Report(err))
			return
		}
		require.True(t, json.Valid(head))
	})
}
