package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/sched"
	"distopt/core/step"
)

// stageTimes is what a stage's step is made of.
type stageTimes struct {
	shares   map[string]sched.Time
	exposed  map[string]sched.Time
	inBubble sched.Time
	hidden   sched.Time
}

func timesOf(s *Stage) stageTimes {
	t := stageTimes{map[string]sched.Time{}, map[string]sched.Time{}, s.ExposedInBubble, s.Hidden}
	for _, x := range s.Shares {
		t.shares[x.Name] = x.Time
	}
	for _, x := range s.ExposedBy {
		t.exposed[x.Kind] = x.Time
	}
	return t
}

type times = map[string]sched.Time

// The step of these cases lasts from 100 to 200.
func TestExposedTime(t *testing.T) {
	const (
		fwd, rs, ag, adam = step.Forward, step.ReduceScatter, step.AllGather, step.Adam
	)
	begin := compute(fwd, 100, 150)
	end := compute(fwd, 200, 210).of(1)
	for _, c := range []struct {
		name   string
		middle []timed // between begin, task 0, and end
		want   stageTimes
		rows   []sched.Time // exposed, of the collectives in order
	}{
		{
			name:   "covered by no compute",
			middle: []timed{comms(rs, 150, 170, 0), compute(adam, 170, 200)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 30, "Exposed": 20}, times{"grad sync": 20}, 0, 0},
			rows:   []sched.Time{20},
		},
		{
			name:   "covered in part",
			middle: []timed{comms(rs, 140, 175, 0), compute(adam, 170, 200)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 30, "Exposed": 20}, times{"grad sync": 20}, 0, 15},
			rows:   []sched.Time{20},
		},
		{
			name:   "covered by another stream's compute",
			middle: []timed{comms(rs, 150, 170, 0), compute(adam, 145, 200).aside()},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 50}, times{}, 0, 20},
			rows:   []sched.Time{0},
		},
		{
			name:   "of two, the one that released the next compute accounts for the time of both",
			middle: []timed{comms(rs, 150, 180, 0), comms(ag, 150, 185, 1).aside(), compute(adam, 180, 200).after(1, sched.ByData)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 20, "Exposed": 30}, times{"grad sync": 30}, 0, 5},
			rows:   []sched.Time{30, 0},
		},
		{
			name:   "where it has not begun, the other does",
			middle: []timed{comms(rs, 150, 180, 0), comms(ag, 170, 185, 1).aside(), compute(adam, 185, 200).after(2, sched.ByData)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 15, "Exposed": 35}, times{"grad sync": 20, "param sync": 15}, 0, 0},
			rows:   []sched.Time{20, 15},
		},
		{
			name:   "if neither released it, the last to end does",
			middle: []timed{comms(rs, 150, 180, 0), comms(ag, 150, 185, 1).aside(), compute(adam, 190, 200).after(-1, sched.ByHost)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 10, "Exposed": 35, "Idle": 5}, times{"param sync": 35}, 0, 0},
			rows:   []sched.Time{0, 35},
		},
		{
			name: "a release is seen through the wait of the host",
			middle: []timed{
				comms(rs, 150, 180, 0), comms(ag, 150, 175, 1).aside(),
				{kind: step.HostSync, stream: -1, start: 120, end: 176, by: 2, cause: sched.ByData},
				compute(adam, 178, 200).after(3, sched.ByHost),
			},
			want: stageTimes{times{"Forward": 50, "Optimizer": 22, "Exposed": 28}, times{"grad sync": 3, "param sync": 25}, 0, 2},
			rows: []sched.Time{3, 25},
		},
		{
			name:   "one after the other",
			middle: []timed{comms(rs, 150, 165, 0), comms(rs, 165, 180, 1).after(1, sched.ByStream), compute(adam, 180, 200).after(2, sched.ByData)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 20, "Exposed": 30}, times{"grad sync": 30}, 0, 0},
			rows:   []sched.Time{15, 15},
		},
		{
			name:   "the host alone is idle time",
			middle: []timed{compute(adam, 160, 200).after(-1, sched.ByHost)},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 40, "Idle": 10}, times{}, 0, 0},
		},
		{
			name: "tensor-parallel communication inside a pass",
			middle: []timed{
				{kind: fwd, start: 150, end: 190, by: -1, tensor: 0.25}, comms(rs, 150, 190, 0),
				compute(adam, 190, 200),
			},
			want: stageTimes{times{"Forward": 80, "Optimizer": 10, "Exposed": 10}, times{"tensor parallel": 10}, 0, 40},
			rows: []sched.Time{0},
		},
		{
			name:   "the next step's compute is what the last gap waits for",
			middle: []timed{compute(adam, 150, 180), comms(ag, 175, 220, 0), comms(rs, 175, 200, 1).aside()},
			want:   stageTimes{times{"Forward": 50, "Optimizer": 30, "Exposed": 20}, times{"param sync": 20}, 0, 10},
			rows:   []sched.Time{20, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := append([]timed{begin}, c.middle...)
			tasks = append(tasks, end)
			r, err := Make(byHand(tasks, 0, len(tasks)-1))
			require.NoError(t, err)
			require.EqualValues(t, 100, r.Figures.StepTime)
			require.Equal(t, c.want, timesOf(&r.Stages[0]))
			require.Len(t, r.Collectives, len(c.rows))
			for i, want := range c.rows {
				require.Equal(t, want, r.Collectives[i].Exposed, "row %d", i)
			}
		})
	}
}

// A collective that crosses the begin of the step is the last step's copy of the one that crosses
// its end: both make one row.
func TestCollectiveAcrossTheBorder(t *testing.T) {
	r, err := Make(byHand([]timed{
		compute(step.Adam, 60, 85),
		comms(step.AllGather, 90, 110, 4, 5),
		compute(step.Forward, 100, 150).of(1),
		compute(step.Adam, 150, 185).of(1),
		comms(step.AllGather, 190, 210, 4, 5).of(1),
		compute(step.Forward, 200, 250).of(2),
	}, 2, 5))
	require.NoError(t, err)
	require.Len(t, r.Collectives, 1)
	c := r.Collectives[0]
	require.EqualValues(t, -10, c.Start)
	require.EqualValues(t, 20, c.Length)
	require.EqualValues(t, 10, c.Exposed)
	require.EqualValues(t, 10, c.Hidden)
	require.Equal(t, []int32{4, 5}, c.Buckets)
	require.InDelta(t, float64(1<<20)/20e-9, c.AlgBW, 1)
	require.InDelta(t, float64(1<<20)/20e-9*7/8, c.BusBW, 1)

	s := &r.Spans
	var drawn []int64
	for i := s.First[LaneParamSync]; i < s.First[LaneParamSync+1]; i++ {
		drawn = append(drawn, s.Start[i], s.End[i])
		require.EqualValues(t, 0, s.Group[i])
	}
	require.Equal(t, []int64{-10, 10, 90, 110}, drawn)
	require.Equal(t, s.First[LaneParamSync], c.Span)
	require.EqualValues(t, 1, s.First[LaneHidden+1]-s.First[LaneHidden], "hidden once, at the begin")
	require.EqualValues(t, 1, s.First[LaneExposed+1]-s.First[LaneExposed], "exposed once, at the end")
}

func TestSameBucketsInTwoStepsOnly(t *testing.T) {
	r, err := Make(byHand([]timed{
		comms(step.AllGather, 90, 110, 4),
		compute(step.Forward, 100, 190).of(1),
		comms(step.AllGather, 190, 210, 5).of(1),
		compute(step.Forward, 200, 250).of(2),
	}, 1, 3))
	require.NoError(t, err)
	require.Len(t, r.Collectives, 2)
}
