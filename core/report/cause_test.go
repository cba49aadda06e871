package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

func TestCauses(t *testing.T) {
	const (
		fwd, bwd, rs, ag, norm, adam = step.Forward, step.Backward, step.ReduceScatter, step.AllGather, step.GradNorm, step.Adam
	)
	begin := compute(fwd, 100, 150).at(4)
	for _, c := range []struct {
		name   string
		middle []timed // in ms, between begin, task 0, and the next step at 200
		change func(*Input)
		want   string // of the collective that is exposed most
	}{
		{
			name:   "at the end of the backward pass",
			middle: []timed{comms(rs, 150, 156, 23, 24, 25, 26).after(0, sched.ByData), compute(norm, 156, 200).after(1, sched.ByData)},
			want:   "The reduce-scatter of buckets 23–26 is exposed for 6.0 ms because nothing is left to compute behind it.",
		},
		{
			name:   "in a queue there",
			middle: []timed{comms(rs, 150, 152, 1), comms(rs, 152, 162, 0).after(1, sched.ByStream), compute(norm, 162, 200).after(2, sched.ByData)},
			want:   "The reduce-scatter of bucket 0 is exposed for 10.0 ms because nothing is left to compute behind it: it waits for the reduce-scatter of bucket 1.",
		},
		{
			name:   "shortly before",
			middle: []timed{comms(rs, 147, 157, 1), compute(norm, 157, 200).after(1, sched.ByData)},
			want:   "The reduce-scatter of bucket 1 is exposed for 7.0 ms because only 3.0 ms of compute are left behind it, and it takes 10.0 ms.",
		},
		{
			name:   "at clipping",
			middle: []timed{compute(bwd, 150, 160), comms(rs, 162, 172, 1).after(-1, sched.ByHost), compute(norm, 172, 200).after(2, sched.ByData)},
			change: func(in *Input) {
				in.Stages[0].Model.Params[1].NoOverlap = true
				in.Stages[0].Buckets[1].Fragments = []bucket.Fragment{{Param: 0}, {Param: 1}, {Param: 1}}
			},
			want: "The reduce-scatter of bucket 1 is exposed for 10.0 ms because it is reduced only when gradients are clipped: overlap is disabled for 1 of its parameters.",
		},
		{
			name:   "without overlap of gradients",
			middle: []timed{comms(rs, 150, 160, 1), compute(norm, 160, 200).after(1, sched.ByData)},
			change: func(in *Input) { in.OverlapGradSync = false },
			want:   "The reduce-scatter of bucket 1 is exposed for 10.0 ms because overlap_grad_sync is off: all gradients are reduced when the backward pass is over.",
		},
		{
			name:   "before a pass that waits for it",
			middle: []timed{comms(rs, 150, 160, 1), compute(bwd, 160, 200).after(1, sched.ByData).at(7)},
			want:   "The reduce-scatter of bucket 1 is exposed for 10.0 ms because the backward pass of layer 7 waits for it.",
		},
		{
			name: "on demand, after another was prefetched",
			middle: []timed{
				comms(ag, 140, 145, 26), comms(ag, 150, 154, 3).after(0, sched.ByData), compute(fwd, 154, 200).after(2, sched.ByData).at(0),
			},
			want: "The all-gather of bucket 3 is exposed for 4.0 ms because layer 0 needs it at once; the gather before it was of bucket 26.",
		},
		{
			name: "prefetched too late, before copies for a layer",
			middle: []timed{
				comms(ag, 148, 154, 3).after(0, sched.ByData), compute(step.ParamCopy, 154, 155).after(1, sched.ByData), compute(fwd, 155, 200).at(5),
			},
			want: "The all-gather of bucket 3 is exposed for 4.0 ms because layer 5 needs it 2.0 ms after it starts, and it takes 6.0 ms.",
		},
		{
			name:   "without overlap of parameters",
			middle: []timed{comms(ag, 150, 160, 1), compute(step.ZeroGrad, 160, 200).after(1, sched.ByData)},
			change: func(in *Input) { in.OverlapParamSync = false },
			want:   "The all-gather of bucket 1 is exposed for 10.0 ms because overlap_param_sync is off: all parameters are gathered when the optimizer step is over.",
		},
		{
			name: "in front of what is waited for, on one communicator",
			middle: []timed{
				comms(ag, 150, 160, 1), comms(step.AmaxAllReduce, 160, 161).after(1, sched.ByComm), compute(step.Cast, 161, 200).after(2, sched.ByData),
			},
			want: "The all-gather of bucket 1 is exposed for 10.0 ms because the all-reduce of FP8 amaxes, which is waited for, comes behind it on the same communicator.",
		},
		{
			name: "while another is waited for",
			middle: []timed{
				comms(ag, 150, 160, 1), comms(ag, 160, 162, 2).aside(), compute(fwd, 162, 200).after(2, sched.ByData),
			},
			want: "The all-gather of bucket 1 is exposed for 10.0 ms because the all-gather of bucket 2 is waited for meanwhile.",
		},
		{
			name: "before the host has seen the device idle",
			middle: []timed{
				comms(rs, 150, 160, 1), {kind: step.HostSync, stream: -1, start: 120, end: 161, by: 1, cause: sched.ByData},
				compute(bwd, 162, 200).after(2, sched.ByHost).at(2),
			},
			want: "The reduce-scatter of bucket 1 is exposed for 10.0 ms because the host waits for the whole device, after it has exchanged messages, before it launches the backward pass of layer 2.",
		},
		{
			name:   "while the host is late",
			middle: []timed{comms(rs, 150, 160, 1), compute(bwd, 161, 200).after(-1, sched.ByHost)},
			want:   "The reduce-scatter of bucket 1 is exposed for 10.0 ms because compute waits for the host meanwhile.",
		},
		{
			name:   "norm",
			middle: []timed{comms(step.NormAllReduce, 150, 151), compute(adam, 151, 200)},
			want:   "The all-reduce of the gradient norm is exposed for 1.0 ms because gradient clipping needs the norm of all gradients before anything else can run.",
		},
		{
			name:   "amaxes",
			middle: []timed{comms(ag, 140, 150, 3), comms(step.AmaxAllReduce, 150, 151).after(1, sched.ByComm), compute(adam, 151, 200)},
			want:   "The all-reduce of FP8 amaxes is exposed for 1.0 ms because it is waited for at once, and it waits for the all-gather of bucket 3 on the same communicator.",
		},
		{
			name:   "tied embeddings",
			middle: []timed{comms(step.EmbeddingAllReduce, 150, 151), compute(adam, 151, 200)},
			want:   "The all-reduce of tied embeddings is exposed for 1.0 ms because first and last stage must add their gradients of the tied weights before these can be reduced.",
		},
		{
			name:   "sequence parallel",
			middle: []timed{comms(step.SequenceParallelAllReduce, 150, 151), compute(adam, 151, 200)},
			want:   "The all-reduce of sequence-parallel gradients is exposed for 1.0 ms because it is waited for when the backward pass is over.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := append([]timed{begin}, c.middle...)
			tasks = append(tasks, compute(fwd, 200, 210).of(1))
			const ms = 1_000_000
			for i := range tasks {
				tasks[i].start *= ms
				tasks[i].end *= ms
			}
			in := byHand(tasks, 0, len(tasks)-1)
			if c.change != nil {
				c.change(in)
			}
			r, err := Make(in)
			require.NoError(t, err)
			var worst Collective
			for _, row := range r.Collectives {
				if row.Exposed > worst.Exposed {
					worst = row
				}
			}
			require.Equal(t, c.want, strings.ReplaceAll(worst.Cause, units.Gap, " "))
			require.Contains(t, worst.Cause, "because "+worst.Reason+".")
		})
	}
}

func TestBucketNames(t *testing.T) {
	for want, ids := range map[string][]int32{
		"bucket 3":                    {3},
		"buckets 3, 4":                {4, 3},
		"buckets 23–26":               {26, 23, 24, 25},
		"buckets 0, 4, 5":             {0, 4, 5},
		"buckets 0–2, 7, 9":           {9, 0, 1, 2, 7},
		"5 buckets":                   {0, 2, 4, 6, 8},
		"buckets 0, 2, 4, 6":          {0, 2, 4, 6},
		"buckets 0–3, 5–8, 10–13, 20": {0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 20},
	} {
		require.Equal(t, want, BucketNames(ids))
	}
}
