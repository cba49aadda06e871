package report

import (
	"distopt/core/bucket"
	"distopt/core/cost"
	"distopt/core/model"
	"distopt/core/sched"
	"distopt/core/step"
	"distopt/core/units"
)

// timed is a task that is placed in time by hand.
type timed struct {
	kind       step.Kind
	stage      int
	stream     int // of its stage, from 0; -1: the host
	step       int8
	start, end sched.Time
	by         int // task, -1: none
	cause      sched.Cause
	deps       []int
	message    int // 1 + its message, 0: none
	buckets    []bucket.ID
	layer      int16   // 1 + its layer, 0: none
	tensor     float64 // the part of it that is exposed tensor-parallel communication, at its begin
}

// compute is a task on stream 0, comm one on stream 1 of stage 0.
func compute(k step.Kind, start, end sched.Time) timed {
	return timed{kind: k, start: start, end: end, by: -1}
}

func comms(k step.Kind, start, end sched.Time, ids ...bucket.ID) timed {
	return timed{kind: k, stream: 1, start: start, end: end, by: -1, buckets: ids}
}

func (t timed) on(stage int) timed               { t.stage = stage; return t }
func (t timed) aside() timed                     { t.stream++; return t }
func (t timed) of(k int8) timed                  { t.step = k; return t }
func (t timed) after(i int, c sched.Cause) timed { t.by, t.cause = i, c; return t }
func (t timed) needs(deps ...int) timed          { t.deps = deps; return t }
func (t timed) meets(message int) timed          { t.message = message + 1; return t }
func (t timed) at(layer int16) timed             { t.layer = layer + 1; return t }

// byHand makes an input of tasks, listed stage by stage. The step from task first to task next is
// drawn. Message i starts at meets[i]; its ends are the tasks that meet it.
func byHand(tasks []timed, first, next int, meets ...sched.Time) *Input {
	stages := 0
	for _, t := range tasks {
		stages = max(stages, t.stage+1)
	}
	in := &Input{Recording: new(step.Recording), Meets: meets, OverlapGradSync: true, OverlapParamSync: true, Tokens: 1000}
	in.GroupSizes[step.Distributed] = 8
	rec, p := in.Recording, &in.Recording.Program
	p.Devices = stages
	for s := range 4 * stages {
		p.Streams = append(p.Streams, sched.Stream{Device: int32(s % stages)})
	}
	p.Messages = make([]sched.Message, len(meets))
	for i := range p.Messages {
		p.Messages[i] = sched.Message{From: sched.None, To: sched.None}
	}
	for i, t := range tasks {
		task := sched.Task{Stream: sched.StreamID((t.stream+1)*stages + t.stage), Comm: sched.None}
		task.Deps[0], task.Messages[0] = int32(len(p.Deps)), int32(len(p.Parts))
		for _, d := range t.deps {
			p.Deps = append(p.Deps, sched.TaskID(d))
		}
		if t.message > 0 {
			m := &p.Messages[t.message-1]
			p.Parts = append(p.Parts, sched.MessageID(t.message-1))
			if m.From == sched.None {
				m.From = sched.TaskID(i)
			} else {
				m.To = sched.TaskID(i)
			}
		}
		task.Deps[1], task.Messages[1] = int32(len(p.Deps)), int32(len(p.Parts))
		p.Tasks = append(p.Tasks, task)
		in.Spans = append(in.Spans, sched.Span{Start: t.start, End: t.end, By: sched.TaskID(t.by), Cause: t.cause})

		from := int32(len(rec.BucketIDs))
		rec.BucketIDs = append(rec.BucketIDs, t.buckets...)
		rec.Labels = append(rec.Labels, step.Label{
			Kind: t.kind, Stage: int16(t.stage), Layer: t.layer - 1, Chunk: 0, Micro: -1, Step: t.step, Work: step.WorkID(t.kind),
			Buckets: [2]int32{from, int32(len(rec.BucketIDs))},
		})
		if t.tensor > 0 {
			rec.Labels[i].Work = step.WorkID(step.NumKinds)
			in.Priced = []cost.Priced{{Total: 1, Parts: []cost.Part{
				{Name: "all-gather", Length: units.Seconds(t.tensor), Comm: true},
				{Name: "gemm", Start: units.Seconds(t.tensor), Length: units.Seconds(1 - t.tensor)},
			}}}
		}
	}
	priced := make([]cost.Priced, step.NumKinds)
	for k := range step.NumKinds {
		w := step.Work{Kind: k, Bytes: 1 << 20, Group: step.Distributed}
		switch k {
		case step.ReduceScatter:
			w.Op = step.OpReduceScatter
		case step.AllGather:
			w.Op = step.OpAllGather
		}
		rec.Works = append(rec.Works, w)
	}
	if len(in.Priced) > 0 {
		rec.Works = append(rec.Works, step.Work{Kind: step.Forward})
	}
	in.Priced = append(priced, in.Priced...)

	rec.StepStart = make([][]sched.TaskID, stages)
	rec.StepStart[0] = []sched.TaskID{sched.TaskID(first), sched.TaskID(next)}
	for range stages {
		in.Stages = append(in.Stages, StageInput{Model: &model.Stage{Chunks: make([]model.ChunkSpan, 1), Params: make([]model.Param, 3)}, Buckets: make([]bucket.Bucket, 32)})
	}
	return in
}
