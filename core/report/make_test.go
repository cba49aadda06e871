package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/dtype"
	"distopt/core/sched"
	"distopt/core/step"
)

func simple() []timed {
	return []timed{
		compute(step.Forward, 100, 150).at(0), compute(step.Adam, 150, 200), compute(step.Forward, 200, 210).at(0).of(1),
	}
}

func TestFigures(t *testing.T) {
	in := byHand(simple(), 0, 2)
	in.Tokens, in.Grid.World, in.ModelFLOPs, in.Peak, in.PeakName = 1000, 4, 8e6, 1e14, "peak"
	in.Stages[0].Buckets = in.Stages[0].Buckets[:2]
	for i := range in.Stages[0].Buckets {
		b := &in.Stages[0].Buckets[i]
		b.Size, b.Filled = 100, 75
		b.DTypes.GradSync, b.DTypes.ParamSync = dtype.BF16, dtype.U8
	}
	r, err := Make(in)
	require.NoError(t, err)
	f := r.Figures
	require.EqualValues(t, 100, f.StepTime)
	require.InEpsilon(t, 1000/100e-9, f.TokensPerSecond, 1e-12)
	require.InEpsilon(t, 250/100e-9, f.TokensPerGPU, 1e-12)
	require.InEpsilon(t, 2e6/100e-9/1e14, f.MFU, 1e-12)
	require.Equal(t, 1.0, f.Overlap, "nothing to hide")
	require.Equal(t, 0.75, f.Utilisation)
	require.Equal(t, 2, f.Buckets)
	require.EqualValues(t, 2*25*(2+1), f.WastedBytes)
	require.Equal(t, []Share{{"Forward", 50}, {"Optimizer", 50}}, r.Stages[0].Shares)

	in.GroupSizes[step.Distributed] = 1
	r, err = Make(in)
	require.NoError(t, err)
	require.Zero(t, r.Figures.WastedBytes, "nothing is sent")
}

func TestMakeRefuses(t *testing.T) {
	for want, damage := range map[string]func(in *Input){
		"3 tasks, 2 labels":                           func(in *Input) { in.Recording.Labels = in.Recording.Labels[:2] },
		"1 steps begin on stage 0":                    func(in *Input) { in.Recording.StepStart[0] = in.Recording.StepStart[0][:1] },
		"step 0 begins at 200 ns and the next at 100": func(in *Input) { in.Recording.StepStart[0] = []sched.TaskID{2, 0} },
		"tasks of different stages are mixed":         func(in *Input) { in.Recording.Labels[0].Stage = 1 },
		"0 stages":                                    func(in *Input) { in.Stages = nil },
	} {
		in := byHand(simple(), 0, 2)
		damage(in)
		_, err := Make(in)
		require.ErrorContains(t, err, want)
	}
}

// The last step of which the next has begun is drawn.
func TestLastWholeStepIsDrawn(t *testing.T) {
	tasks := append(simple(), compute(step.Forward, 330, 340).of(2))
	in := byHand(tasks, 0, 2)
	in.Recording.StepStart[0] = []sched.TaskID{0, 2, 3}
	r, err := Make(in)
	require.NoError(t, err)
	require.EqualValues(t, 130, r.Figures.StepTime)
	require.Equal(t, []Share{{"Forward", 10}, {"Idle", 120}}, r.Stages[0].Shares)
}

func TestDriftIsNoted(t *testing.T) {
	in := byHand(append(simple(), compute(step.Forward, 100, 150).on(1), compute(step.Forward, 201, 202).of(1).on(1)), 0, 2)
	in.Notes = []Note{{Text: "first"}}
	in.Recording.StepStart[1] = []sched.TaskID{3, 4}
	r, err := Make(in)
	require.NoError(t, err)
	require.Len(t, r.Notes, 2)
	require.Contains(t, r.Notes[1].Text, "not yet steady")
	require.Contains(t, r.Notes[1].Text, "stage 1")
	require.Len(t, in.Notes, 1)
}

func TestLanes(t *testing.T) {
	tasks := []timed{
		compute(step.ZeroGrad, 90, 100),
		compute(step.Forward, 100, 120).at(0).of(1).after(0, sched.ByStream), compute(step.Forward, 125, 150).at(1).of(1),
		comms(step.ReduceScatter, 140, 160, 1).of(1).after(2, sched.ByData),
		compute(step.Adam, 160, 160).of(1).after(3, sched.ByData), // no length: not drawn, seen through
		compute(step.Adam, 160, 200).of(1).after(4, sched.ByStream),
		compute(step.Forward, 200, 210).at(0).of(2),
	}
	r, err := Make(byHand(tasks, 1, 6))
	require.NoError(t, err)
	s := &r.Spans
	type span struct {
		lane       Lane
		start, end int64
		by         int32
		work       int32
	}
	var got []span
	for i := range s.Start {
		got = append(got, span{s.Lane[i], s.Start[i], s.End[i], s.By[i], s.Work[i]})
	}
	const rs = 6 // the reduce-scatter's span
	require.Equal(t, []span{
		{LaneExposed, 50, 60, rs, -1},
		{LanePhase, 0, 50, -1, -1},
		{LaneCompute, 0, 20, -1, int32(step.Forward)},
		{LaneCompute, 25, 50, -1, int32(step.Forward)},
		{LaneHidden, 40, 50, rs, -1},
		{LaneOptimizer, 60, 100, rs, int32(step.Adam)},
		{LaneGradSync, 40, 60, 3, int32(step.ReduceScatter)},
	}, got)
	require.EqualValues(t, 1, s.Layer[3])
	require.Equal(t, len(got), r.Figures.Spans)
}

func TestExposedParts(t *testing.T) {
	part := func(lane Lane, start, end uint32) Part { return Part{Lane: lane, Start: start, End: end} }
	for _, c := range []struct {
		want  int64
		parts []Part
	}{
		{0, nil},
		{0, []Part{part(LaneCompute, 0, 10)}},
		{10, []Part{part(LaneTensor, 0, 10), part(LaneCompute, 10, 20)}},
		{4, []Part{part(LaneTensor, 0, 10), part(LaneCompute, 0, 6), part(LaneCompute, 10, 20)}},
		{5, []Part{part(LaneTensor, 0, 10), part(LaneCompute, 2, 5), part(LaneCompute, 8, 20)}},
		{0, []Part{part(LaneTensor, 2, 10), part(LaneCompute, 0, 20)}},
		{6, []Part{part(LaneTensor, 0, 3), part(LaneCompute, 3, 5), part(LaneTensor, 5, 8)}},
	} {
		require.Equal(t, c.want, exposedParts(c.parts), "%v", c.parts)
	}
}
