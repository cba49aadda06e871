package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/sched"
	"distopt/core/step"
)

// The step of these cases lasts from 100 to 200 on two stages.
func TestBubble(t *testing.T) {
	const (
		bwd, rs, norm, all, adam = step.Backward, step.ReduceScatter, step.GradNorm, step.NormAllReduce, step.Adam
	)
	first, next := compute(step.Forward, 100, 101), compute(step.Forward, 200, 201).of(1)
	for _, c := range []struct {
		name  string
		tasks []timed // first is task 0
		next  int
		meets []sched.Time
		want  [2]stageTimes
	}{
		{
			name: "a reduce-scatter while another stage computes",
			tasks: []timed{
				first, compute(bwd, 101, 180), compute(all, 180, 182).needs(1, 6), compute(adam, 182, 200), next,
				compute(bwd, 100, 120).on(1), compute(norm, 140, 141).on(1), comms(rs, 120, 140).on(1),
				compute(all, 180, 182).needs(6, 1).on(1), compute(adam, 182, 200).on(1),
			},
			next: 4,
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 79, "Optimizer": 18, "Exposed": 2}, times{"norm": 2}, 0, 0},
				{times{"Backward": 20, "Optimizer": 19, "Exposed": 2, "Bubble": 59}, times{"norm": 2}, 20, 0},
			},
		},
		{
			name: "two stages late by the same",
			tasks: []timed{
				first, compute(bwd, 101, 150), comms(rs, 150, 170), compute(all, 170, 172).needs(2, 7), compute(adam, 172, 200), next,
				compute(bwd, 100, 150).on(1), comms(rs, 150, 170).on(1), compute(all, 170, 172).needs(7, 2).on(1), compute(adam, 172, 200).on(1),
			},
			next: 5,
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 49, "Optimizer": 28, "Exposed": 22}, times{"grad sync": 20, "norm": 2}, 0, 0},
				{times{"Backward": 50, "Optimizer": 28, "Exposed": 22}, times{"grad sync": 20, "norm": 2}, 0, 0},
			},
		},
		{
			name: "only the last part of it is later than the other stage",
			tasks: []timed{
				first, compute(bwd, 101, 160), compute(all, 170, 172).needs(1, 6), compute(adam, 172, 200), next,
				compute(bwd, 100, 150).on(1), comms(rs, 150, 170).on(1), compute(all, 170, 172).needs(6, 1).on(1), compute(adam, 172, 200).on(1),
			},
			next: 4,
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 59, "Optimizer": 28, "Exposed": 2, "Bubble": 10}, times{"norm": 2}, 0, 0},
				{times{"Backward": 50, "Optimizer": 28, "Exposed": 12, "Bubble": 10}, times{"grad sync": 10, "norm": 2}, 10, 0},
			},
		},
		{
			name: "a stage that waits a little answers for what it would still be late without the other's",
			tasks: []timed{
				first, compute(bwd, 101, 140), comms(rs, 140, 170), compute(all, 170, 172).needs(2, 7), compute(adam, 172, 200), next,
				compute(bwd, 100, 150).on(1), comms(rs, 150, 165).on(1), compute(all, 170, 172).needs(7, 2).on(1), compute(adam, 172, 200).on(1),
			},
			next: 5,
			want: [2]stageTimes{
				// Without both they would proceed at 150, 20 sooner. Stage 1 has waited 5 of these.
				{times{"Forward": 1, "Backward": 39, "Optimizer": 28, "Exposed": 22, "Bubble": 10}, times{"grad sync": 20, "norm": 2}, 10, 0},
				{times{"Backward": 50, "Optimizer": 28, "Exposed": 17, "Bubble": 5}, times{"grad sync": 15, "norm": 2}, 0, 0},
			},
		},
		{
			name: "an exchange waits in a bubble and is exposed when it moves",
			tasks: []timed{
				first, compute(bwd, 101, 150), comms(step.Exchange, 150, 155).meets(0), compute(adam, 155, 200).after(2, sched.ByData), next,
				compute(bwd, 100, 110).on(1), comms(step.Exchange, 110, 155).meets(0).on(1), compute(adam, 155, 200).on(1).after(6, sched.ByData),
			},
			next:  4,
			meets: []sched.Time{150},
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 49, "Optimizer": 45, "Exposed": 5}, times{"pipeline": 5}, 0, 0},
				{times{"Backward": 10, "Optimizer": 45, "Exposed": 5, "Bubble": 40}, times{"pipeline": 5}, 0, 0},
			},
		},
		{
			name: "what runs beside a waiting exchange is in the bubble",
			tasks: []timed{
				first, compute(bwd, 101, 150), comms(step.Exchange, 150, 155).meets(0), compute(adam, 155, 200), next,
				compute(bwd, 100, 110).on(1), comms(step.Exchange, 110, 155).meets(0).on(1), comms(rs, 110, 160).on(1).aside(),
				compute(adam, 160, 200).on(1).after(7, sched.ByData),
			},
			next:  4,
			meets: []sched.Time{150},
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 49, "Optimizer": 45, "Exposed": 5}, times{"pipeline": 5}, 0, 0},
				{times{"Backward": 10, "Optimizer": 40, "Exposed": 10, "Bubble": 40}, times{"grad sync": 10}, 40, 0},
			},
		},
		{
			name: "a receive that is posted early and needed late waits for nobody",
			tasks: []timed{
				first, compute(bwd, 101, 150), comms(step.Exchange, 150, 155).meets(0), compute(adam, 155, 200), next,
				compute(bwd, 100, 170).on(1), comms(step.Exchange, 110, 155).meets(0).on(1),
				comms(rs, 170, 180).on(1).aside(), compute(adam, 180, 200).on(1),
			},
			next:  4,
			meets: []sched.Time{150},
			want: [2]stageTimes{
				{times{"Forward": 1, "Backward": 49, "Optimizer": 45, "Exposed": 5}, times{"pipeline": 5}, 0, 0},
				{times{"Backward": 70, "Optimizer": 20, "Exposed": 10}, times{"grad sync": 10}, 0, 0},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Make(byHand(c.tasks, 0, c.next, c.meets...))
			require.NoError(t, err)
			for s := range c.want {
				require.Equal(t, c.want[s], timesOf(&r.Stages[s]), "stage %d", s)
			}
			worst := 0
			if r.Stages[1].Exposed > r.Stages[0].Exposed {
				worst = 1
			}
			require.Equal(t, worst, r.Figures.WorstStage)
			require.Equal(t, r.Stages[worst].Exposed, r.Figures.Exposed)
		})
	}
}

// What came before the drawn step decides how late a stage is at the first point inside it.
func TestBubbleAcrossTheBorder(t *testing.T) {
	r, err := Make(byHand([]timed{
		compute(step.NormAllReduce, 50, 52).needs(0, 6), // the last point of the step before
		comms(step.AllGather, 60, 95),                   // delays the forward pass of stage 0
		compute(step.Forward, 100, 110).of(1), comms(step.Exchange, 110, 111).meets(0), compute(step.Backward, 111, 200),
		compute(step.Forward, 200, 201).of(2),
		compute(step.NormAllReduce, 50, 52).needs(6, 0).on(1),
		comms(step.AllGather, 60, 106).on(1),
		comms(step.Exchange, 106, 111).meets(0).on(1).aside(), compute(step.Backward, 111, 200).on(1),
	}, 2, 5, 110))
	require.NoError(t, err)
	got := timesOf(&r.Stages[1])
	// Exposed since 50, with the norm's 2: 37 on stage 0, 48 on stage 1. Without these they would be
	// there at 73 and 58 and proceed at 73, 37 sooner. Stage 1 has waited 4 of them and answers for
	// 33, the last before 106; 6 of these lie in the step.
	require.Equal(t, times{"Backward": 89, "Exposed": 7, "Bubble": 4}, got.shares)
	require.Equal(t, times{"param sync": 6, "pipeline": 1}, got.exposed)
}
