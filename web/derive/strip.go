package derive

import (
	"sort"

	"distopt/core/report"
	"distopt/core/step"
)

// Class is the colour role of a segment; the painter maps it to a token of the style sheet.
type Class uint8

// The classes.
const (
	ClassForward Class = iota
	ClassBackward
	ClassForwardLayer // pale: the layer row under the phase row
	ClassBackwardLayer
	ClassOptimizer
	ClassGradSync
	ClassParamSync
	ClassTensor
	ClassPipeline
	ClassHost
	ClassExposed       // exposed communication that delays the step
	ClassExposedBubble // exposed inside a pipeline bubble: same hue, hatched
	ClassBubble        // no work and no communication
	NumClasses
)

// Strip is what one row of the timeline shows: segments in order of start. A span of
// communication that is partly exposed gives several segments. Segments of one lane do not
// overlap; those of merged lanes may.
type Strip struct {
	Start, End []int64
	Class      []Class
	Span       []int32 // index into report.Spans

	// Parts is set on strips that show parts of layer passes (tensor parallel communication):
	// a segment is then the whole pass, Work says which work it is, and Parts where its parts
	// lie within it.
	Work  []int32
	Parts [][]PartRange // by work

	sums *Sums
}

// PartRange is where one part lies within a work, as fractions of it in 1/65536.
type PartRange struct {
	Part       int32
	Start, End uint32
}

// Len returns the number of segments.
func (s *Strip) Len() int { return len(s.Start) }

func (s *Strip) add(start, end int64, class Class, span int32) {
	s.Start = append(s.Start, start)
	s.End = append(s.End, end)
	s.Class = append(s.Class, class)
	s.Span = append(s.Span, span)
}

// FirstVisible returns the first segment that ends after t. Segments that a longer one
// covers (merged lanes) make ends fall back, so the search goes by start and steps back over
// what still reaches t.
func (s *Strip) FirstVisible(t int64) int {
	i := sort.Search(len(s.Start), func(i int) bool { return s.Start[i] > t })
	for i > 0 && s.End[i-1] > t {
		i--
	}
	return i
}

// FirstFrom returns the first segment that starts at t or later.
func (s *Strip) FirstFrom(t int64) int {
	return sort.Search(len(s.Start), func(i int) bool { return s.Start[i] >= t })
}

// At returns the segment that covers t, the last one that starts before it, or -1. Within
// slack of a segment's border counts as inside, so that a hair-thin span can be picked.
func (s *Strip) At(t, slack int64) int {
	i := sort.Search(len(s.Start), func(i int) bool { return s.Start[i] > t }) - 1
	best, distance := -1, slack+1
	for j := max(i-1, 0); j <= i+1 && j < len(s.Start); j++ {
		d := int64(0)
		if t < s.Start[j] {
			d = s.Start[j] - t
		} else if t > s.End[j] {
			d = t - s.End[j]
		}
		if d < distance || (d == 0 && distance == 0) {
			best, distance = j, d
		}
	}
	return best
}

// laneRange returns the half-open range of spans of one lane of one stage.
func laneRange(s *report.Spans, stage int, lane report.Lane) (from, to int32) {
	k := stage*int(report.NumLanes) + int(lane)
	if k+1 >= len(s.First) {
		return 0, 0
	}
	return s.First[k], s.First[k+1]
}

// plainStrip shows the spans of one lane as they are.
func plainStrip(s *report.Spans, stage int, lane report.Lane) *Strip {
	from, to := laneRange(s, stage, lane)
	st := &Strip{Start: s.Start[from:to:to], End: s.End[from:to:to], Class: make([]Class, to-from), Span: make([]int32, to-from)}
	last := -1 // kind of the span before
	for k := range st.Class {
		i := from + int32(k)
		st.Span[k] = i
		if kind := int(s.Kind[i]); kind == last && lane != report.LaneExposed {
			st.Class[k] = st.Class[k-1]
		} else {
			st.Class[k], last = classOf(s, i, lane), kind
		}
	}
	return st
}

// commStrip shows the spans of one lane of communication, cut where they are exposed.
func commStrip(s *report.Spans, stage int, lane report.Lane, exposed *Strip) *Strip {
	from, to := laneRange(s, stage, lane)
	st := newStrip(int(to-from) + exposed.Len())
	e := 0
	for i := from; i < to; i++ {
		start, end, class := s.Start[i], s.End[i], classOf(s, i, lane)
		for e < exposed.Len() && exposed.End[e] <= start {
			e++
		}
		t := start
		for k := e; k < exposed.Len() && exposed.Start[k] < end; k++ {
			if exposed.Class[k] == ClassBubble {
				continue
			}
			a, b := max(exposed.Start[k], t), min(exposed.End[k], end)
			if b <= a {
				continue
			}
			if a > t {
				st.add(t, a, class, i)
			}
			st.add(a, b, exposed.Class[k], i)
			t = b
		}
		if t < end || start == end {
			st.add(t, end, class, i)
		}
	}
	return st
}

// partTable lists, for every work, its parts that belong to lane; nil when there are none.
func partTable(works []report.Work, lane report.Lane) [][]PartRange {
	var table [][]PartRange
	for w := range works {
		for p, part := range works[w].Parts {
			if part.Lane != lane {
				continue
			}
			if table == nil {
				table = make([][]PartRange, len(works))
			}
			table[w] = append(table[w], PartRange{Part: int32(p), Start: part.Start, End: part.End})
		}
	}
	return table
}

// partStrip shows the parts in table of every layer pass of a stage.
func partStrip(s *report.Spans, stage int, table [][]PartRange) *Strip {
	from, to := laneRange(s, stage, report.LaneCompute)
	st := &Strip{Parts: table}
	if table == nil {
		return st
	}
	n := int(to - from)
	st.Start, st.End, st.Class = make([]int64, 0, n), make([]int64, 0, n), make([]Class, 0, n)
	st.Span, st.Work = make([]int32, 0, n), make([]int32, 0, n)
	for i := from; i < to; i++ {
		w := s.Work[i]
		if w >= 0 && int(w) < len(table) && len(table[w]) > 0 {
			st.add(s.Start[i], s.End[i], ClassTensor, i)
			st.Work = append(st.Work, w)
		}
	}
	return st
}

func newStrip(n int) *Strip {
	return &Strip{Start: make([]int64, 0, n), End: make([]int64, 0, n), Class: make([]Class, 0, n), Span: make([]int32, 0, n)}
}

// classOf gives the colour role of span i when it is drawn on lane: by its kind, on the lane of
// exposed time by its state.
func classOf(s *report.Spans, i int32, lane report.Lane) Class {
	kind := step.Kind(s.Kind[i])
	switch lane {
	case report.LanePhase:
		if kind == step.Forward {
			return ClassForward
		}
		return ClassBackward
	case report.LaneCompute:
		switch kind {
		case step.Forward:
			return ClassForwardLayer
		case step.Backward:
			return ClassBackwardLayer
		}
		return ClassOptimizer
	case report.LaneOptimizer:
		return ClassOptimizer
	case report.LaneHost:
		return ClassHost
	case report.LaneExposed:
		return exposedClass(s, i)
	}
	return commClass(kind)
}

// commClass gives the colour role of a kind of communication.
func commClass(kind step.Kind) Class {
	switch kind {
	case step.ReduceScatter, step.ShardAllReduce, step.GradAllReduce, step.GradCopy, step.NormAllReduce:
		return ClassGradSync
	case step.AllGather, step.AmaxAllReduce, step.ParamCopy, step.Cast:
		return ClassParamSync
	case step.Exchange, step.LossSend:
		return ClassPipeline
	case step.SequenceParallelAllReduce, step.EmbeddingAllReduce:
		return ClassTensor
	}
	return ClassOptimizer
}

// exposedClass tells exposed time that delays the step from that inside a bubble, and both
// from the bubble itself.
func exposedClass(s *report.Spans, i int32) Class {
	switch s.State[i] {
	case report.InBubble:
		return ClassExposedBubble
	case report.Waits:
		return ClassBubble
	}
	return ClassExposed
}
