package eval

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/finding"
	"distopt/core/report"
	"distopt/core/scenario"
)

func found(r *report.Result, rule string) *report.Finding {
	for i := range r.Findings {
		if r.Findings[i].Rule == rule {
			return &r.Findings[i]
		}
	}
	return nil
}

// Each rule fires where its cause is, and not where it is not; its change takes it away.
func TestFindings(t *testing.T) {
	type change = func(s *scenario.Scenario)
	pipeline := func(s *scenario.Scenario) {
		s.Hardware.Nodes, s.Parallel.PP, s.Batch.Global = 2, 2, 64
	}
	chunks := func(s *scenario.Scenario) {
		s.Hardware.Nodes, s.Parallel.PP, s.Parallel.VP, s.Batch.Global = 4, 4, 2, 64
	}
	experts := func(s *scenario.Scenario) {
		s.Precision.FP8, s.Model.Bias = false, false
		s.Model.Layers, s.Model.Hidden, s.Model.Heads, s.Model.FFN, s.Parallel.EP = 4, 1024, 16, 2048, 4
		s.Model.Experts.Count, s.Model.Experts.TopK, s.Model.Experts.GroupedGEMM = 8, 2, true
	}
	all := func(list ...change) change {
		return func(s *scenario.Scenario) {
			for _, f := range list {
				f(s)
			}
		}
	}
	nothing := func(*scenario.Scenario) {}
	grads16 := func(s *scenario.Scenario) { s.Optim.GradSync = "bf16" }
	grads32 := func(s *scenario.Scenario) { s.Optim.GradSync = "fp32" }
	aligned := func(s *scenario.Scenario) { s.Optim.MCore.AlignParamGather = true }
	cases := map[string]struct{ fires, silent change }{
		"mcore-no-overlap":       {func(s *scenario.Scenario) { s.Optim.OverlapGradSync, s.Optim.OverlapParamSync = false, false }, nothing},
		"mcore-first-stage-only": {pipeline, chunks},
		"mcore-whole-chunk":      {chunks, all(chunks, func(s *scenario.Scenario) { s.Optim.MCore.AlignGradReduce = false })},
		"mcore-gather-order":     {all(chunks, aligned), chunks},
		"mcore-first-gather":     {nothing, all(chunks, aligned)},
		"mcore-chunk-starts":     {chunks, nothing},
		"mcore-experts-twice":    {all(experts, func(s *scenario.Scenario) { s.Optim.OverlapParamSync = false }), experts},
		"mcore-fp8-last-group":   {func(s *scenario.Scenario) { s.Precision.FP8Params = true }, nothing},
		"mcore-padding": {func(s *scenario.Scenario) {
			s.Model.Layers, s.Model.Hidden, s.Model.Heads, s.Model.FFN = 2, 256, 4, 1024
			s.Optim.MCore.PadBuckets, s.Optim.MCore.BucketSize = true, 1000
		}, nothing},
		"mcore-scaling-pass":    {func(s *scenario.Scenario) { s.Optim.MCore.AverageInCollective = false }, nothing},
		"mcore-nan-check":       {func(s *scenario.Scenario) { s.Optim.MCore.CheckNaN = true }, nothing},
		"mcore-fp32-copies":     {grads16, grads32},
		"mcore-tied-embedding":  {pipeline, nothing},
		"mcore-max-connections": {func(s *scenario.Scenario) { s.Optim.MCore.MaxConnections = 1 }, nothing},
		"mcore-first-step":      {nothing, func(s *scenario.Scenario) { s.Optim.OverlapGradSync, s.Optim.OverlapParamSync = false, false }},
	}
	var x Simulator
	for _, rule := range finding.Rules() {
		c, ok := cases[rule]
		require.True(t, ok, "rule %s has no case", rule)
		s := onMegatron(t)
		c.silent(s)
		r, err := x.Evaluate(s)
		require.NoError(t, err, rule)
		require.Nil(t, found(r, rule), "%s must be silent", rule)

		s = onMegatron(t)
		c.fires(s)
		r, err = x.Evaluate(s)
		require.NoError(t, err, rule)
		f := found(r, rule)
		require.NotNil(t, f, rule)
		_, ok = scenario.ByPath(f.Path)
		require.True(t, ok, "%s: %s", rule, f.Path)
		require.LessOrEqual(t, f.Cost, r.Figures.StepTime, rule)
		if len(f.Changes) == 0 {
			continue
		}
		for _, e := range f.Changes {
			field, ok := scenario.ByPath(e.Path)
			require.True(t, ok, rule)
			require.NotEqual(t, e.Value, field.Get(s), rule)
			require.Nil(t, field.Set(s, e.Value), rule)
		}
		r, err = x.Evaluate(s)
		require.NoError(t, err, "%s: the change leads to a valid configuration", rule)
		if again := found(r, rule); again != nil {
			require.NotEqual(t, f.Changes, again.Changes, "%s: still there", rule)
		}
	}
	a, err := x.Evaluate(preset(t, "gpt3-5b-fp8"))
	require.NoError(t, err)
	for _, f := range a.Findings {
		require.NotContains(t, f.Rule, "mcore")
	}
}
