package oracle

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Among the recorded runs is every combination of versions.
func TestVersionsOfTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/trace/*.json.gz")
	require.NoError(t, err)
	require.Len(t, files, 23)
	versions := map[string]int{}
	for _, file := range files {
		var in struct{ Case Case }
		require.NoError(t, json.Unmarshal(unpack(t, file), &in))
		versions[fmt.Sprintf("%s %s %s", in.Case.Kind, in.Case.NeMo, in.Case.Apex)]++
	}
	for _, v := range []string{"apex  new", "nemo before old", "nemo before new", "nemo after old", "nemo after new"} {
		require.NotZero(t, versions[v], v)
	}
}

// stimulus are the events that a replay takes as given, but for where they stand.
var stimulus = []string{"fwd", "bwd"}

// A trace in which any single field of an answer is changed fails.
func TestEveryEventFieldCounts(t *testing.T) {
	for _, name := range []string{"nemo_after_fp8", "apex_scaled_states", "nemo_before_fp8_apex_old", "random_nemo_r09"} {
		whole, events := traceEvents(t, name)
		leaves := 0
		for _, event := range events {
			fields := event.(map[string]any)
			if slices.Contains(stimulus, text(fields["op"])) {
				continue
			}
			walk(fields, func(change func() (undo func())) {
				if leaves++; leaves%part(307) != 0 { // a part of them keeps the test short
					return
				}
				undo := change()
				at := show(fields)
				changed, err := json.Marshal(whole)
				undo()
				require.NoError(t, err)
				require.Error(t, CheckTrace(changed), "%s: the change to %s goes unseen", name, at)
			})
		}
		require.Greater(t, leaves, 1000, name)
	}
}

// A trace from which an answer is missing, or which has one twice, or two in the wrong order, fails.
func TestEveryEventCounts(t *testing.T) {
	whole, events := traceEvents(t, "nemo_after_fp8_no_overlap")
	check := func(what string, changed []any) {
		whole["events"] = changed
		data, err := json.Marshal(whole)
		require.NoError(t, err)
		require.Error(t, CheckTrace(data), what)
	}
	for i := 3; i < len(events); i += part(59) {
		if slices.Contains(stimulus, text(events[i].(map[string]any)["op"])) {
			continue
		}
		without := slices.Delete(slices.Clone(events), i, i+1)
		check(fmt.Sprintf("without event %d", i), without)
		check(fmt.Sprintf("with event %d twice", i), slices.Insert(slices.Clone(events), i, events[i]))
		if i+1 < len(events) && show(events[i]) != show(events[i+1]) {
			swapped := slices.Clone(events)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			check(fmt.Sprintf("with event %d late", i), swapped)
		}
	}
	check("cut off", events[:len(events)-1])
}

func TestTraceInput(t *testing.T) {
	whole, _ := traceEvents(t, "apex_scaled_states")
	base := whole["case"].(map[string]any)
	for _, tt := range []struct {
		key  string
		to   any
		want string
	}{
		{"microbatches", 0, "case.microbatches: got 0"},
		{"microbatches", 1 << 30, "case.microbatches"},
		{"rank", -1, "rank: got -1"},
		{"world", 0, "case.world: got 0"},
		{"init", "nowhere", `case.init: got "nowhere"`},
	} {
		old := base[tt.key]
		base[tt.key] = tt.to
		data, err := json.Marshal(whole)
		require.NoError(t, err)
		require.ErrorContains(t, CheckTrace(data), tt.want)
		if base[tt.key] = old; old == nil {
			delete(base, tt.key)
		}
	}
	events := whole["events"].([]any)
	for i, event := range events {
		if fields := event.(map[string]any); fields["op"] == "grad_ready" {
			fields["p"] = "nobody"
			data, err := json.Marshal(whole)
			require.NoError(t, err)
			require.ErrorContains(t, CheckTrace(data), fmt.Sprintf("events[%d].p: got \"nobody\"", i))
			break
		}
	}
}

// traceEvents decodes a reference trace.
func traceEvents(t *testing.T, name string) (whole map[string]any, events []any) {
	require.NoError(t, json.Unmarshal(unpack(t, "testdata/trace/"+name+".json.gz"), &whole))
	return whole, whole["events"].([]any)
}
