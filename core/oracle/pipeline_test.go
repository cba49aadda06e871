package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A case in which an event of any kind is missing or changed in any field fails. (Some of all changes
// are tried.)
func TestEveryPipelineEventCounts(t *testing.T) {
	tested, n := map[string]bool{}, 0
	for _, name := range []string{"pp2_first_after_bf16_tp2_sp_m2", "pp2_last_after_fp8_tied_m4", "pp4_vp3_second_after_fp8_overlap_p2p_m8"} {
		var whole map[string]any
		require.NoError(t, json.Unmarshal(unpack(t, "testdata/pipeline/"+name+".json.gz"), &whole))
		events := whole["events"].([]any)
		check := func(what string, changed []any) {
			whole["events"] = changed
			data, err := json.Marshal(whole)
			require.NoError(t, err)
			require.Error(t, CheckPipeline(data), "%s: %s goes unseen", name, what)
		}
		seen := map[string]int{}
		for i, event := range events {
			fields := event.(map[string]any)
			op := text(fields["op"])
			// The third of its kind if there are so many: the first step differs from the others.
			if seen[op]++; tested[op] || seen[op] != 3 && op != "send_loss" {
				continue
			}
			tested[op] = true
			if n++; n%part(2) == 0 {
				check(show(fields)+" missing", slices.Delete(slices.Clone(events), i, i+1))
			}
			walk(fields, func(change func() (undo func())) {
				if n++; n%part(7) != 0 {
					return
				}
				undo := change()
				check(show(fields), events)
				undo()
			})
		}
	}
	require.Greater(t, len(tested), 30)
}

func TestPipelineInput(t *testing.T) {
	data := unpack(t, "testdata/pipeline/pp3_middle_after_bf16_m5.json.gz")
	for _, tt := range []struct{ from, to, want string }{
		{`"microbatches":5`, `"microbatches":1000000000`, "case.microbatches"},
		{`"microbatches":5`, `"microbatches":0`, "microbatches: got 0"},
		{`"microbatches":5`, `"microbatches":4`, "events["},
		{`"pp":3`, `"pp":2000`, "want at least one"},
		{`"pp_rank":1`, `"pp_rank":3`, "pipeline stage"},
		{`"vp":null`, `"vp":2`, "got"},
		{`"op":"send_forward"`, `"op":7`, "events["},
	} {
		require.Contains(t, string(data), tt.from)
		require.ErrorContains(t, CheckPipeline([]byte(strings.Replace(string(data), tt.from, tt.to, 1))), tt.want)
	}
}
