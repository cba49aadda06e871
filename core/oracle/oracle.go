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
	"strings"
)

// Kind is a kind of reference case.
type Kind struct {
	Name string
	// Recognise says whether a JSON object of these top-level fields is such a case.
	Recognise func(fields map[string]json.RawMessage) bool
	// Keys are the top-level fields of every case, Optional those that some have. An object with half
	// of Keys is a damaged case of this kind unless it is a case of another one.
	Keys, Optional keys
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
	{
		"layout", isLayout,
		words(`name case alignment default_shard_size distributed_size redundant_size group_num_params params buckets
			param_fragment_buckets grad_buffers param_buffers local`),
		words("optimizer_args param_buffer_views note"), plain(CheckLayout),
	},
	{
		"trace", isTrace,
		words("name case params opt_param_order buckets events"), words("flags param_fragment_buckets note"), plain(CheckTrace),
	},
	{
		"pipeline", isPipeline,
		words("name case params flags opt_param_order buckets param_fragment_buckets events"), words("note"), plain(CheckPipeline),
	},
	{
		"numerics", isNumerics,
		words("name case layout init_params_fp32 grads_fp32 reduced_grads initial ieee_nofma fast_math"), words("nvcc_fma note"), CheckNumerics,
	},
	{"fp8 decode", has("decode_e4m3fn_fp32"), words("decode_e4m3fn_fp32 decode_e5m2_fp32"), words("note"), plain(CheckFP8Decode)},
	{
		"megatron-core layout", has("case", "chunks", "resolved_bucket_size"),
		words("case resolved_bucket_size chunks"), words("name note"), plain(CheckMegatronLayout),
	},
	{
		"megatron-core trace", has("case", "bucket_groups", "events"),
		words("case params buckets bucket_groups events"), words("name note"), plain(CheckMegatronTrace),
	},
	{"pytorch ddp", has("assignments", "ddp_runs"), words("params assignments ddp_runs"), words("name case note"), plain(CheckDDP)},
	{"profile analysis", has("trace", "independent", "hta"), nil, nil, nil},
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
	if !has("case")(fields) && strings.Contains(string(fields["note"]), NotCase) {
		return Result{Status: Skipped}
	}
	for i := range Kinds {
		k := &Kinds[i]
		if !k.Recognise(fields) {
			continue
		}
		if k.Check == nil {
			return Result{Kind: k.Name, Status: Skipped}
		}
		return k.run(data, fields)
	}
	if k := likest(fields); k != nil {
		return k.run(data, fields)
	}
	if _, err := (keys{}).in("case", fields["case"]); err == nil {
		return Result{Kind: Unreadable, Status: Failed, Err: errors.New("case: got one of no kind that is known here, want that of a layout, trace, pipeline or numerics")}
	}
	return Result{Status: Skipped}
}

// run checks a file of this kind.
func (k *Kind) run(data []byte, fields map[string]json.RawMessage) Result {
	if key := k.Keys.missing(fields); key != "" {
		return Result{Kind: k.Name, Status: Failed, Err: fmt.Errorf("%s: got nothing in the case, want it", key)}
	}
	note, err := k.Check(data)
	if err != nil {
		return Result{Kind: k.Name, Status: Failed, Err: err}
	}
	if more := k.Keys.beside(fields, k.Optional); more != "" {
		note = strings.TrimPrefix(note+"; "+more, "; ")
	}
	return Result{Kind: k.Name, Status: Passed, Note: note}
}

// likest returns the kind of which a file has most fields, and at least half.
func likest(fields map[string]json.RawMessage) (best *Kind) {
	part := 0.5
	for i := range Kinds {
		k := &Kinds[i]
		n := k.Keys.present(fields)
		if p := float64(n) / float64(max(len(k.Keys), 1)); n > 0 && (p > part || p == part && best == nil) {
			best, part = k, p
		}
	}
	return best
}

// NotCase is the note of a layout that is written like a case and is none: it does not say what was
// run. (A case without that is damaged.)
const NotCase = "no reference case"

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

// hasKind reports whether there is a case.kind, as those of Apex and NeMo have it. What it may be is
// for the check to say.
func hasKind(fields map[string]json.RawMessage) bool {
	_, err := words("kind").in("case", fields["case"])
	return err == nil
}

func isLayout(fields map[string]json.RawMessage) bool {
	return hasKind(fields) && !has("events")(fields) && (has("buckets")(fields) || has("local")(fields))
}

func isTrace(fields map[string]json.RawMessage) bool {
	return hasKind(fields) && has("events")(fields) && !staged(fields)
}

func isPipeline(fields map[string]json.RawMessage) bool {
	return hasKind(fields) && has("events")(fields) && staged(fields)
}

// staged reports whether a recorded case ran under a pipeline schedule.
func staged(fields map[string]json.RawMessage) bool {
	_, err := words("schedule").in("case", fields["case"])
	return err == nil || has("flags", "param_fragment_buckets")(fields)
}

// isNumerics recognises a numerics case, also one that lacks a part.
func isNumerics(fields map[string]json.RawMessage) bool {
	return has("case")(fields) && (has("init_params_fp32")(fields) || has("grads_fp32")(fields) || has(ieeeBuild)(fields))
}
