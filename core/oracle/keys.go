package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// keys are the fields that every object of some sort has. Where others may stand beside them is said
// by who checks them.
type keys []string

// words makes keys of a list in one string.
func words(s string) keys { return strings.Fields(s) }

// missing returns the first key that is not there, else nothing.
func (k keys) missing(fields map[string]json.RawMessage) string {
	for _, key := range k {
		if _, ok := fields[key]; !ok {
			return key
		}
	}
	return ""
}

// present counts those that are there.
func (k keys) present(fields map[string]json.RawMessage) (n int) {
	for _, key := range k {
		if _, ok := fields[key]; ok {
			n++
		}
	}
	return n
}

// in demands that an object has all of the keys, and returns its fields.
func (k keys) in(path string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%s: got %s, want an object", path, brief(raw))
	}
	if key := k.missing(fields); key != "" {
		return nil, fmt.Errorf("%s.%s: got nothing in the case, want it", path, key)
	}
	return fields, nil
}

// beside names the fields beside the keys and others, which nothing compares.
func (k keys) beside(fields map[string]json.RawMessage, others keys) string {
	var more []string
	for _, key := range sortedKeys(fields) {
		if !slices.Contains(k, key) && !slices.Contains(others, key) {
			more = append(more, key)
		}
	}
	if more == nil {
		return ""
	}
	return "not compared: " + strings.Join(more, ", ")
}

// brief prints the beginning of a JSON value.
func brief(raw json.RawMessage) string {
	switch {
	case len(raw) == 0:
		return "nothing"
	case len(raw) > 80:
		return string(raw[:80]) + "..."
	}
	return string(raw)
}

// The fields of cases of Apex and NeMo.
var (
	modelKeys  = words("layers hidden ffn heads groups kv_channels vocab seq pos norm bias glu share tp sp pp pp_rank vp fp8 dtype")
	apexCase   = words("name kind apex world optim")
	layoutCase = map[string]keys{"apex": words("init"), "nemo": words("nemo model")}
	traceCase  = words("microbatches model")
	// A pipeline is NeMo's.
	pipelineCase = words("nemo rank microbatches clip model global_world global_rank schedule")
	p2pKeys      = words("overlap_p2p_comm batch_p2p_comm")
)

// checkCase demands what every case of Apex and NeMo says of itself: its name again, what ran in which
// version, and besides that the given keys.
func checkCase(data []byte, more func(kind string) keys) error {
	var in struct {
		Name string          `json:"name"`
		Case json.RawMessage `json:"case"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	fields, err := apexCase.in("case", in.Case)
	if err != nil {
		return err
	}
	kind, err := oneOf(fields, "kind", "apex", "nemo")
	if err != nil {
		return err
	}
	if _, err := oneOf(fields, "apex", "new", "old"); err != nil {
		return err
	}
	if _, err := oneOf(fields, "name", in.Name); err != nil {
		return err
	}
	if _, ok := fields["nemo"]; ok || kind == "nemo" {
		if _, err := oneOf(fields, "nemo", "before", "after"); err != nil {
			return err
		}
	}
	if _, err := more(kind).in("case", in.Case); err != nil {
		return err
	}
	for key, want := range map[string]keys{"model": modelKeys, "p2p": p2pKeys} {
		if raw, ok := fields[key]; ok {
			if _, err := want.in("case."+key, raw); err != nil {
				return err
			}
		}
	}
	optim := map[string]json.RawMessage{}
	if err := json.Unmarshal(fields["optim"], &optim); err != nil {
		return fmt.Errorf("case.optim: %w", err)
	}
	if err := checkBetas(optim["betas"]); err != nil {
		return fmt.Errorf("case.optim.%w", err)
	}
	return nil
}

// oneOf reads a word of the case.
func oneOf(fields map[string]json.RawMessage, key string, want ...string) (string, error) {
	var got string
	if err := json.Unmarshal(fields[key], &got); err != nil || !slices.Contains(want, got) {
		return "", fmt.Errorf("case.%s: got %s, want %s", key, brief(fields[key]), strings.Join(want, " or "))
	}
	return got, nil
}

// checkBetas demands two of them, if there are any.
func checkBetas(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var betas []float64
	if err := json.Unmarshal(raw, &betas); err != nil || len(betas) != 2 {
		return fmt.Errorf("betas: got %s, want 2 numbers", brief(raw))
	}
	return nil
}

// always returns the same keys for every kind.
func always(k keys) func(string) keys { return func(string) keys { return k } }

// The fields of cases of Megatron-Core.
var (
	megatronCase  = words("model dp ddp")
	megatronShape = words("layers hidden heads vocab")
	megatronDDP   = keys{} // what is missing has its default
	megatronMoE   = words("moe_ffn")
)

// checkMegatronCase demands what every case of Megatron-Core says of itself, and that what it says
// twice agrees.
func checkMegatronCase(data []byte) error {
	var in struct {
		Case json.RawMessage `json:"case"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	fields, err := megatronCase.in("case", in.Case)
	if err != nil {
		return err
	}
	ddp, err := megatronDDP.in("case.ddp", fields["ddp"])
	if err != nil {
		return err
	}
	shape, err := megatronShape.in("case.model", fields["model"])
	if err != nil {
		return err
	}
	if _, ok := shape["experts"]; ok {
		if _, err := megatronMoE.in("case.model", fields["model"]); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		key     string
		missing int
		again   string
		raw     json.RawMessage
	}{
		{"ep", 1, "model.ep", shape["ep"]}, {"pp", 1, "model.pp", shape["pp"]}, {"pp_rank", 0, "model.pp_rank", shape["pp_rank"]},
		{"instances", 1, "ddp." + instancesKey, ddp[instancesKey]},
	} {
		got, want := f.missing, f.missing
		if raw, ok := fields[f.key]; ok {
			if err := json.Unmarshal(raw, &got); err != nil {
				return fmt.Errorf("case.%s: %w", f.key, err)
			}
		}
		if len(f.raw) > 0 {
			if err := json.Unmarshal(f.raw, &want); err != nil {
				return fmt.Errorf("case.%s: %w", f.again, err)
			}
		}
		if got != want {
			return fmt.Errorf("case.%s: got %d, want %d as in case.%s", f.key, got, want, f.again)
		}
	}
	return nil
}

const instancesKey = "num_distributed_optimizer_instances"
