package derive

import (
	"distopt/core/report"
)

// RowKind says what a row of the timeline shows.
type RowKind uint8

// The rows of a stage, top to bottom; the last three stand in for the others while a stage is
// collapsed.
const (
	RowHead RowKind = iota
	RowExposed
	RowPhase
	RowLayer
	RowHidden
	RowOptimizer
	RowGradSync
	RowParamSync
	RowTensor
	RowPipeline
	RowHost
	RowSync // grad and param sync: one stream, two colours
	RowMessages
)

// Row is one row of the timeline: where it lies and what it shows.
type Row struct {
	Kind   RowKind
	Slot   int // 0: A, 1: B
	Stage  int
	Y, H   int // CSS pixels within the lane area
	Strips []*Strip
	Label  string
	Note   string // right of the label: a total
	Hot    bool   // the note is exposed time
	Button bool   // the label opens and closes its stage
	Open   bool
}

// Picture is the timeline of one or two results on one axis, laid out in rows.
type Picture struct {
	Results [2]*report.Result // nil where not shown
	Rows    []Row
	Height  int   // of all rows together
	End     int64 // of the axis, ns; it begins at 0
	Multi   bool  // more than one stage or result
}

// PictureSpec says what to lay out. It is comparable: an equal spec gives the same picture.
type PictureSpec struct {
	A, B   *report.Result
	Opened string // the stages the visitor opened or closed: "A0 B3"
	Names  [2]string
	Room   int // height at hand, CSS pixels; 0: not known yet
	extra  int // what each tall row gets more
}

// stageRows are the strips of one stage, made once for a result; layer and host only when the stage
// is first opened.
type stageRows struct {
	exposed, phase, layer, hidden, optimizer, grad, param, tensor, tensorParts, pipeline, host *Strip
}

func buildStage(r *report.Result, stage int, parts [][]PartRange) *stageRows {
	s := &r.Spans
	exposed := exposedStrip(s, stage)
	return &stageRows{
		exposed:     exposed,
		phase:       plainStrip(s, stage, report.LanePhase),
		hidden:      plainStrip(s, stage, report.LaneHidden), // coloured by what is hidden
		optimizer:   plainStrip(s, stage, report.LaneOptimizer),
		grad:        commStrip(s, stage, report.LaneGradSync, exposed),
		param:       commStrip(s, stage, report.LaneParamSync, exposed),
		tensor:      commStrip(s, stage, report.LaneTensor, exposed),
		tensorParts: partStrip(s, stage, parts),
		pipeline:    commStrip(s, stage, report.LanePipeline, exposed),
	}
}

// exposedStrip is the row of exposed time: communication that nothing hides, and bubbles.
func exposedStrip(s *report.Spans, stage int) *Strip {
	return plainStrip(s, stage, report.LaneExposed)
}

// tracks keeps the strips of a result for as long as it is shown.
type tracks struct {
	of     *report.Result
	parts  [][]PartRange
	stages []*stageRows
}

func newTracks(r *report.Result) *tracks {
	return &tracks{of: r, parts: partTable(r.Works, report.LaneTensor), stages: make([]*stageRows, len(r.Stages))}
}

func (t *tracks) stage(i int) *stageRows {
	if t.stages[i] == nil {
		t.stages[i] = buildStage(t.of, i, t.parts)
	}
	return t.stages[i]
}

// open adds what only an open stage shows.
func (t *tracks) open(i int) {
	if rows := t.stage(i); rows.layer == nil {
		rows.layer = plainStrip(&t.of.Spans, i, report.LaneCompute)
		rows.host = plainStrip(&t.of.Spans, i, report.LaneHost)
	}
}

// stageKey names a stage of a slot in PictureSpec.Opened.
func stageKey(slot, stage int) string { return string(rune('A'+slot)) + itoa(stage) }

// layout places the rows of every stage of both results.
func layout(spec PictureSpec, a, b *tracks) *Picture {
	p := &Picture{Results: [2]*report.Result{spec.A, spec.B}}
	stages := 0
	for _, r := range p.Results {
		if r == nil {
			continue
		}
		stages = max(stages, len(r.Stages))
		p.End = max(p.End, pictureEnd(r))
	}
	both := a != nil && b != nil
	p.Multi = both || stages > 1
	collapsed := stages > 1
	extra := spec.extra
	place := func(slot, stage int, t *tracks) {
		if t == nil || stage >= len(t.of.Stages) {
			return
		}
		open := contains(spec.Opened, stageKey(slot, stage)) != !collapsed
		p.stage(slot, stage, t, spec.Names[slot], open, both, collapsed, extra)
	}
	if both && stages > 2 { // stages of the same number pair up
		for stage := range stages {
			place(0, stage, a)
			place(1, stage, b)
		}
	} else {
		for slot, t := range [2]*tracks{a, b} {
			for stage := range stages {
				place(slot, stage, t)
			}
		}
	}
	p.Height += 4
	return p
}

// fill lays a single stage out so that its rows fill the room: tall rows grow or shrink alike.
func fill(spec PictureSpec, a, b *tracks) *Picture {
	p := layout(spec, a, b)
	if p.Multi || spec.Room == 0 || len(p.Rows) == 0 {
		return p
	}
	tall := 0.0
	for i := range p.Rows {
		switch p.Rows[i].Kind {
		case RowLayer, RowGradSync, RowParamSync:
			tall++
		case RowOptimizer:
			tall += 0.5
		}
	}
	spec.extra = max(-12, min(60, int(float64(spec.Room-p.Height)/max(tall, 1))))
	return layout(spec, a, b)
}

// stage adds the rows of one stage.
func (p *Picture) stage(slot, stage int, t *tracks, title string, open, both, collapsible bool, extra int) {
	rows := t.stage(stage)
	st := &t.of.Stages[stage]
	put := func(kind RowKind, h, gap int, label string, strips ...*Strip) *Row {
		p.Rows = append(p.Rows, Row{Kind: kind, Slot: slot, Stage: stage, Y: p.Height, H: h, Strips: strips, Label: label})
		p.Height += h + gap
		return &p.Rows[len(p.Rows)-1]
	}
	name := "Stage " + itoa(stage)
	exposed := ""
	if total := st.Exposed + st.ExposedInBubble; total > 0 {
		exposed = brief(int64(total))
	}
	if !open {
		put(RowHead, 5, 0, "")
		put(RowExposed, 5, 1, "", rows.exposed)
		r := put(RowPhase, 18, 0, name, rows.phase, rows.optimizer)
		r.Note, r.Hot, r.Button = exposed, true, true
		if both {
			r.Label = string(rune('A'+slot)) + ", stage " + itoa(stage)
		}
		put(RowHidden, 4, 2, "", rows.hidden)
		put(RowSync, 12, 2, "Grad, param sync", rows.grad, rows.param)
		put(RowMessages, 9, 5, "TP, P2P", rows.tensorParts, rows.tensor, rows.pipeline)
		return
	}
	t.open(stage)
	compact := p.Multi
	pick := func(roomy, tight int) int {
		if compact {
			return tight
		}
		return roomy
	}
	head := put(RowHead, pick(8, 24), 0, "")
	if both || collapsible {
		head.Button, head.Open = collapsible, true
		switch {
		case both && collapsible:
			head.Label = string(rune('A'+slot)) + ", stage " + itoa(stage)
		case both:
			head.Label = string(rune('A' + slot))
			head.Note = title
		default:
			head.Label = name
		}
	}
	r := put(RowExposed, pick(9, 7), 3, "Exposed", rows.exposed)
	r.Note, r.Hot = exposed, true
	put(RowPhase, pick(22, 17), 0, "Compute", rows.phase)
	put(RowLayer, pick(34, 14)+extra, pick(2, 1), "", rows.layer)
	if rows.hidden.Len() > 0 {
		put(RowHidden, pick(8, 6), pick(11, 5), "Hidden", rows.hidden).Note = brief(hiddenTotal(rows.hidden))
	}
	optional := func(kind RowKind, roomy, tight int, label string, strips ...*Strip) {
		n := 0
		for _, s := range strips {
			n += s.Len()
		}
		if n > 0 {
			put(kind, pick(roomy, tight), pick(9, 4), label, strips...)
		}
	}
	optional(RowOptimizer, 28+extra/2, 14, "Optimizer", rows.optimizer)
	optional(RowGradSync, 34+extra, 17, "Grad sync", rows.grad)
	optional(RowParamSync, 34+extra, 17, "Param sync", rows.param)
	optional(RowTensor, 18, 12, "TP", rows.tensorParts, rows.tensor)
	optional(RowPipeline, 18, 12, "P2P", rows.pipeline)
	optional(RowHost, 14, 10, "Host", rows.host)
}

func hiddenTotal(s *Strip) (total int64) {
	for i := range s.Start {
		total += s.End[i] - s.Start[i]
	}
	return total
}

// pictureEnd is where the axis of a result ends: its step, or the last span of it when some
// work of the step outlasts the next step's first forward.
func pictureEnd(r *report.Result) int64 { return int64(r.Figures.StepTime) }
