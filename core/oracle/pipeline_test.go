package oracle

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/apex"
	"distopt/core/optim"
	"distopt/core/step"
)

// A run of a stage gives what the traces hold, without being told when a module starts, a gradient
// arrives or a parameter is read: their stimulus up to the order inside a module, and then the
// optimizer's answers too.
func TestStepGivesTheTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/trace/*.json.gz")
	require.NoError(t, err)
	require.Len(t, files, 23)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			require.NoError(t, checkTraceByStep(unpack(t, file)))
		})
	}
}

// traceByStep compares those events of a stage that a trace holds too. Traces know no model
// chunks and no pipeline; their last forward pass has no microbatch number.
type traceByStep struct{ pipeline }

var notTraced = []optim.Op{"forward_step", "forward_step_end", "backward_step", "backward_step_end", "no_sync"}

func (p *traceByStep) Event(at step.At, e *optim.Event) {
	if p.err != nil || slices.Contains(notTraced, e.Op) || at.Step == wholeSteps && p.at == len(p.want) {
		return
	}
	e.Chunk = -1
	if at.Step == wholeSteps {
		e.Micro = -1
	}
	p.match(p.document(at, e), e.Op)
}

func (p *traceByStep) orderOf(at step.At, backward bool, items []step.Item) []step.Item {
	at.Chunk = -1
	if at.Step == wholeSteps {
		at.Micro = -1
	}
	return p.order(at, backward, items)
}

func checkTraceByStep(data []byte) error {
	var in caseFile
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	c := &in.Case
	l, stage, err := c.NewLayout(in.Params)
	if err != nil {
		return err
	}
	if len(c.Init) > 0 {
		if err := initialise(l, c.Init); err != nil {
			return err
		}
	}
	p := &traceByStep{pipeline{stage: stage}}
	p.params = l.Params
	if err := p.read(in.Events); err != nil {
		return err
	}
	cfg, err := stepConfig(c, stage)
	if err != nil {
		return err
	}
	input := step.StageInput{Model: stage, New: func(rt optim.Runtime, obs optim.Observer) (optim.Sharded, error) {
		config := apexConfig(c, stage, l, rt, obs)
		config.Tensor = 1 // the recorded runs left NeMo's all-reduce over the tensor-parallel group out
		return apex.NewSharded(l, config)
	}}
	err = step.RunStage(input, cfg, step.Replay{World: c.World, Steps: wholeSteps, Observer: p, Order: p.orderOf})
	if err != nil {
		return err
	}
	return p.end()
}

func TestPipelineCases(t *testing.T) {
	files, err := filepath.Glob("testdata/pipeline/*.json.gz")
	require.NoError(t, err)
	require.Len(t, files, 15)
	for _, file := range files {
		require.NoError(t, CheckPipeline(unpack(t, file)), file)
	}
}

// A case in which an event of any kind is missing or changed in any field fails.
func TestEveryPipelineEventCounts(t *testing.T) {
	tested := map[string]bool{}
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
			check(show(fields)+" missing", slices.Delete(slices.Clone(events), i, i+1))
			walk(fields, func(change func() (undo func())) {
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
