package report

import "strconv"

// reportFigures fills in the key figures.
func (m *maker) reportFigures() {
	in, f := m.in, &m.out.Figures
	f.StepTime = m.to - m.from
	seconds := float64(f.StepTime) * 1e-9
	f.TokensPerSecond = float64(in.Tokens) / seconds
	if in.Grid.World > 0 {
		f.TokensPerGPU = f.TokensPerSecond / float64(in.Grid.World)
		f.ModelFLOPs = float64(in.ModelFLOPs) / float64(in.Grid.World)
	}
	f.PeakFLOPs, f.PeakName = float64(in.Peak), in.PeakName
	if in.Peak > 0 {
		f.MFU = f.ModelFLOPs / seconds / f.PeakFLOPs
	}
	f.Parameters, f.Tasks, f.Spans = in.Parameters, len(m.tasks), m.out.Spans.Len()

	var filled, size int64
	for s := range m.out.Stages {
		st := &m.out.Stages[s]
		if st.Exposed > m.out.Stages[f.WorstStage].Exposed {
			f.WorstStage = s
		}
		for i := range st.Buckets {
			b := &st.Buckets[i]
			filled += b.Filled
			size += b.Size
			f.BucketSize = max(f.BucketSize, b.Size)
			if f.SmallestBucket == 0 || b.Size < f.SmallestBucket {
				f.SmallestBucket = b.Size
			}
		}
		f.Buckets += len(st.Buckets)
		f.WastedBytes = max(f.WastedBytes, st.WastedBytes)
		f.AmaxReductions = max(f.AmaxReductions, st.AmaxReductions)
	}
	if size > 0 {
		f.Utilisation = float64(filled) / float64(size)
	}
	worst := &m.out.Stages[f.WorstStage]
	f.Exposed, f.ExposedBy, f.ExposedInBubble = worst.Exposed, worst.ExposedBy, worst.ExposedInBubble
	f.Bubble, f.Hidden, f.SyncTotal = worst.Bubble, worst.Hidden, worst.SyncTotal
	f.Overlap = 1
	if f.SyncTotal > 0 {
		f.Overlap = float64(f.Hidden) / float64(f.SyncTotal)
	}
	m.noteDrift()
}

// noteDrift says so if the drawn step is not yet like the ones after it: if a stage's own period
// differs from stage 0's.
func (m *maker) noteDrift() {
	f := &m.out.Figures
	for s, starts := range m.in.Recording.StepStart {
		if len(starts) < int(m.index)+2 {
			continue
		}
		period := m.spans[starts[m.index+1]].Start - m.spans[starts[m.index]].Start
		if d := max(period-f.StepTime, f.StepTime-period); d > f.StepTime/200 {
			m.out.Notes = append(m.out.Notes, Note{Text: "The step shown is not yet steady: from first forward to first forward it takes " +
				length(f.StepTime) + " on stage 0 and " + length(period) + " on stage " + strconv.Itoa(s) + "."})
			return
		}
	}
}
