// Package oracle checks this model against reference cases: results of the real optimizer code,
// one file each. A check takes the bytes of a case and says where the first difference is.
//
// A file's kind is told from its content, never from its name. Kinds that are known but not
// implemented yet have no check and count as skipped.
package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind is a kind of reference case.
type Kind struct {
	Name string
	// Recognise says whether a JSON object of these top-level fields is such a case.
	Recognise func(fields map[string]json.RawMessage) bool
	// Check compares the case with what this model computes; nil: not implemented. The note says how
	// a case agrees where there is more to say than that it does.
	Check func(data []byte) (note string, err error)
}

// plain is a check without a note.
func plain(check func(data []byte) error) func(data []byte) (string, error) {
	return func(data []byte) (string, error) { return "", check(data) }
}

// Kinds are all kinds of JSON cases; the first that recognises a file is its kind.
var Kinds = []Kind{
	{"layout", isLayout, plain(CheckLayout)},
	{"trace", isTrace, plain(CheckTrace)},
	{"pipeline", isPipeline, plain(CheckPipeline)},
	{"numerics", isNumerics, CheckNumerics},
	{"fp8 decode", has("decode_e4m3fn_fp32"), plain(CheckFP8Decode)},
	{"megatron-core layout", has("case", "chunks", "resolved_bucket_size"), plain(CheckMegatronLayout)},
	{"megatron-core trace", has("case", "bucket_groups", "events"), plain(CheckMegatronTrace)},
	{"pytorch ddp", has("assignments", "ddp_runs"), plain(CheckDDP)},
	{"profile analysis", has("trace", "independent", "hta"), nil},
}

// Names of the kinds that are no JSON objects.
const (
	Casts      = "casts"      // text: one fp32 input and its conversions on each line
	Unreadable = "unreadable" // a case that is cut off or damaged
)

// Status is the outcome of one file.
type Status uint8

// The outcomes.
const (
	Passed Status = iota
	Failed
	Skipped // of another kind, or of a kind without a check
)

// Result is the outcome of one file. Kind is empty if the file is no case.
type Result struct {
	Kind   string
	Status Status
	Err    error  // of a failed case: the first difference
	Note   string // of a passed case: how it agrees, if there is more to say
}

// Run finds the kind of a file and checks it.
func Run(data []byte) Result {
	fields, err := topLevel(data)
	if err != nil {
		if errors.Is(err, errNotCase) {
			if isCasts(data) {
				if err := CheckCasts(data); err != nil {
					return Result{Kind: Casts, Status: Failed, Err: err}
				}
				return Result{Kind: Casts, Status: Passed}
			}
			return Result{Status: Skipped}
		}
		return Result{Kind: Unreadable, Status: Failed, Err: err}
	}
	for _, k := range Kinds {
		if !k.Recognise(fields) {
			continue
		}
		if k.Check == nil {
			return Result{Kind: k.Name, Status: Skipped}
		}
		note, err := k.Check(data)
		if err != nil {
			return Result{Kind: k.Name, Status: Failed, Err: err}
		}
		return Result{Kind: k.Name, Status: Passed, Note: note}
	}
	if kindOf(fields) != "" {
		return Result{Kind: Unreadable, Status: Failed, Err: errors.New("case without events and buckets")}
	}
	return Result{Status: Skipped}
}

// errNotCase says that a file does not look like a case, whether it is whole or not.
var errNotCase = errors.New("not a reference case")

// caseKeys are the fields with which the cases begin. A broken file that has shown others first is
// something else.
var caseKeys = []string{"name", "case", "note"}

// topLevel splits a JSON object into its fields. A file that breaks off is an unreadable case if
// all that can be read of it could begin one.
func topLevel(data []byte) (map[string]json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errNotCase
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return nil, errNotCase
	}
	fields := map[string]json.RawMessage{}
	broken := func(err error) error {
		if _, ok := fields["case"]; !ok {
			for key := range fields {
				if !slices.Contains(caseKeys, key) {
					return errNotCase
				}
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("the case breaks off at byte %d", len(data))
		}
		return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, broken(err)
		}
		var value json.RawMessage
		err = d.Decode(&value)
		name, _ := key.(string)
		fields[name] = value
		if err != nil {
			return nil, broken(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, broken(err)
	}
	return fields, nil
}

// has recognises a file by fields that no other kind has together.
func has(keys ...string) func(map[string]json.RawMessage) bool {
	return func(fields map[string]json.RawMessage) bool {
		for _, key := range keys {
			if _, ok := fields[key]; !ok {
				return false
			}
		}
		return true
	}
}

// kindOf returns case.kind, "apex" or "nemo", else "".
func kindOf(fields map[string]json.RawMessage) string {
	var head struct {
		Kind string `json:"kind"`
	}
	// A case that is no object has no kind.
	_ = json.Unmarshal(fields["case"], &head)
	if head.Kind == "apex" || head.Kind == "nemo" {
		return head.Kind
	}
	return ""
}

func isLayout(fields map[string]json.RawMessage) bool {
	return kindOf(fields) != "" && !has("events")(fields) && (has("buckets")(fields) || has("local")(fields))
}

func isTrace(fields map[string]json.RawMessage) bool {
	return kindOf(fields) != "" && has("events")(fields) && !staged(fields)
}

func isPipeline(fields map[string]json.RawMessage) bool {
	return kindOf(fields) != "" && has("events")(fields) && staged(fields)
}

// staged reports whether a recorded case ran under a pipeline schedule.
func staged(fields map[string]json.RawMessage) bool {
	var head struct {
		Schedule *string `json:"schedule"`
	}
	_ = json.Unmarshal(fields["case"], &head)
	return head.Schedule != nil
}

// isNumerics recognises a numerics case, also one that lacks a part.
func isNumerics(fields map[string]json.RawMessage) bool {
	return has("case")(fields) && (has("init_params_fp32")(fields) || has("grads_fp32")(fields) || has(ieeeBuild)(fields))
}
