package derive

import (
	"slices"
	"strings"

	"distopt/core/report"
	"distopt/core/sched"
	"distopt/web/state"
)

// Inspector is what stands beside the timeline: an operation, where the step goes, or why B is
// slower.
type Inspector struct {
	Title  string
	Colour string // of the operation's lane, a class name
	Close  bool   // something is selected
	Facts  []Fact
	Why    []Reason
	Hides  Sentence
	Waits  []Link // what waits for it
	// WaitsTitle is the heading of Waits.
	WaitsTitle string
	Zoom       int32 // span to zoom to, -1: none
	Bucket     bool  // it moves buckets
	Shares     []Share
	Worst      []Link
	Rows       []DifferenceRow // in Compare
	Intro      string
}

// Fact is a name and a value.
type Fact struct {
	Name, Value string
	Hot         bool
	Wide        bool // over the whole width
}

// Reason is one of the checks that an operation had to pass before it started.
type Reason struct {
	Binding bool
	Text    Sentence
}

// Sentence is text with links to spans.
type Sentence []Piece

// Piece is a run of text; Span leads to an operation when it isn't -1.
type Piece struct {
	Text string
	Span int32
}

// Link leads to a span.
type Link struct {
	Text, Value string
	Slot        int
	Span        int32
}

// Share is one row of "Where the step goes".
type Share struct {
	Name, Value, Percent string
	Width                string // of its part of the bar, CSS
	Colour               string
}

type inspectorKey struct {
	a, b    *report.Result
	slot    int
	span    int32
	stage   int
	bucket  int32 // selected by itself, −1: none
	compare bool
}

func inspector(k inspectorKey) *Inspector {
	r := k.a
	if k.compare && k.slot == state.B {
		r = k.b
	}
	switch {
	case r == nil:
		return &Inspector{Title: "Selection", Zoom: -1, Intro: "No result yet."}
	case k.span >= 0 && int(k.span) < len(r.Spans.Start):
		in := operation(r, k.span)
		if k.compare {
			in.Title = string(rune('A'+k.slot)) + ": " + in.Title
		}
		return in
	case k.bucket >= 0 && k.stage < len(r.Stages):
		return ofBucket(r, k.stage, k.bucket, k.slot)
	case k.compare && k.b != nil:
		return whyOther(k.a, k.b)
	}
	return whereItGoes(r)
}

// ofBucket lists the collectives of a bucket that was selected by itself.
func ofBucket(r *report.Result, stage int, id int32, slot int) *Inspector {
	in := &Inspector{Title: "Bucket " + itoa(int(id)), Close: true, Zoom: -1}
	if len(r.Stages) > 1 {
		in.Title += ", stage " + itoa(stage)
	}
	var exposed, hidden int64
	for i := range r.Collectives {
		c := &r.Collectives[i]
		if c.Stage != stage || !slices.Contains(c.Buckets, id) {
			continue
		}
		exposed += int64(c.Exposed)
		hidden += int64(c.Hidden)
		in.Waits = append(in.Waits, Link{Text: Name(r, c.Span), Value: Instant(int64(c.Start)), Slot: slot, Span: c.Span})
	}
	in.WaitsTitle = "Its collectives"
	in.Facts = []Fact{
		{Name: "Exposed", Value: Milliseconds(exposed), Hot: exposed > 0},
		{Name: "Hidden", Value: Milliseconds(hidden)},
	}
	if len(in.Waits) == 0 {
		in.Intro = "No collective moves it in this step."
	}
	return in
}

// operation describes one span.
func operation(r *report.Result, i int32) *Inspector {
	s := &r.Spans
	in := &Inspector{Title: Name(r, i), Close: true, Zoom: i, Colour: colourName(s, i)}
	fact := func(name, value string, hot bool) {
		in.Facts = append(in.Facts, Fact{Name: name, Value: value, Hot: hot})
	}
	fact("Start", Instant(s.Start[i]), false)
	fact("Length", Milliseconds(s.End[i]-s.Start[i]), false)
	fact("End", Instant(s.End[i]), false)
	fact("Stage", itoa(int(s.Stage[i])), false)
	if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		c := &r.Collectives[g]
		in.Bucket = len(c.Buckets) > 0
		if c.Exposed > 0 && c.Hidden == 0 {
			in.Colour = "exposed"
		}
		fact("Exposed", Milliseconds(int64(c.Exposed)), c.Exposed > 0)
		fact("Size", Size(c.Bytes), false)
		fact("algbw", Rate(c.AlgBW), false)
		fact("busbw", Rate(c.BusBW), false)
		in.Facts = append(in.Facts, Fact{Name: "Group", Value: c.Group + ", " + plural(c.Ranks, "rank"), Wide: true})
		if c.InBubble > 0 {
			fact("In a bubble", Milliseconds(int64(c.InBubble)), false)
		}
		in.Hides = hides(r, i, c)
	} else {
		if m := s.Micro[i]; m >= 0 {
			fact("Microbatch", itoa(int(m)), false)
		}
		if l := s.Layer[i]; l >= 0 {
			fact("Layer", itoa(int(l)), false)
		}
		if c := s.Chunk[i]; c > 0 {
			fact("Model chunk", itoa(int(c)), false)
		}
	}
	if laneOf(s, i) != report.LanePhase {
		in.Why = why(r, i)
		in.Waits = waitsFor(r, i)
		in.WaitsTitle = "What waits for it?"
	}
	return in
}

// why gives the three checks, the binding one first.
func why(r *report.Result, i int32) []Reason {
	s := &r.Spans
	by := s.By[i]
	text := func(t string) Piece { return Piece{Text: t, Span: -1} }
	link := func(j int32) Piece { return Piece{Text: Name(r, j), Span: j} }
	ended := func(j int32) string { return " ended at " + Instant(s.End[j]) }
	before := previous(s, i)
	free := Sentence{text("Its stream was free: nothing runs on it earlier in the step.")}
	if before >= 0 {
		free = Sentence{text("Its stream was free: "), link(before), text(" ended " + Milliseconds(s.Start[i]-s.End[before]) + " before.")}
		if s.Start[i] == s.End[before] {
			free = Sentence{text("Its stream was free: "), link(before), text(" ended just then.")}
		}
	}
	data := Sentence{text("Its data was ready by then.")}
	host := Sentence{text("The host was ahead: it had been launched.")}
	others := func(rest ...Sentence) (out []Reason) {
		for _, t := range rest {
			out = append(out, Reason{Text: t})
		}
		return out
	}
	bind := func(t Sentence) []Reason { return []Reason{{Binding: true, Text: t}} }
	named := func(lead, without string) Sentence {
		if by < 0 {
			return Sentence{text(without)}
		}
		return Sentence{text(lead), link(by), text(ended(by) + ".")}
	}
	switch sched.Cause(s.Cause[i]) {
	case sched.ByData:
		return append(bind(named("Waited for data: ", "Waited for data from before the step shown.")), others(free, host)...)
	case sched.ByStream:
		return append(bind(named("Waited for its stream: ", "Waited for its stream, busy from before the step shown.")), others(data, host)...)
	case sched.ByComm:
		return append(bind(named("Waited for its communicator: ", "Waited for its communicator, busy from before the step shown.")), others(data, host)...)
	case sched.ByHost:
		return append(bind(named("Waited for the host, which was held up until ", "Waited for the host: it starts as soon as it is launched.")), others(data, free)...)
	case sched.ByPeer:
		return append(bind(named("Waited for its peer: ", "Waited for its peer: the other stage had not reached the exchange.")), others(data, host)...)
	}
	return bind(Sentence{text("Nothing held it: it starts with the step.")})
}

// previous is the span before i on its lane, -1 if none.
func previous(s *report.Spans, i int32) int32 {
	from, _ := laneRange(s, int(s.Stage[i]), laneOf(s, i))
	best := int32(-1)
	for j := i - 1; j >= from && j >= i-8; j-- {
		if s.End[j] <= s.Start[i] && (best < 0 || s.End[j] > s.End[best]) {
			best = j
		}
	}
	return best
}

// waitsFor lists what span i released, at most four.
func waitsFor(r *report.Result, i int32) (out []Link) {
	s := &r.Spans
	for j := range s.By {
		if s.By[j] == i && s.Lane[j] != report.LanePhase && s.Lane[j] != report.LaneExposed && s.Lane[j] != report.LaneHidden {
			out = append(out, Link{Text: Name(r, int32(j)), Value: Instant(s.Start[j]), Span: int32(j)})
			if len(out) == 4 {
				break
			}
		}
	}
	return out
}

// hides says what runs beside a collective.
func hides(r *report.Result, i int32, c *report.Collective) Sentence {
	if c.Hidden == 0 {
		text := "Nothing."
		if c.Cause != "" {
			text += " " + upper(c.Cause)
		}
		return Sentence{{Text: text, Span: -1}}
	}
	s := &r.Spans
	var longest int32 = -1
	var most int64
	for _, lane := range []report.Lane{report.LaneCompute, report.LaneOptimizer} {
		from, to := laneRange(s, int(s.Stage[i]), lane)
		for j := from; j < to; j++ {
			if s.Start[j] >= s.End[i] {
				break
			}
			if o := min(s.End[j], s.End[i]) - max(s.Start[j], s.Start[i]); o > most {
				most, longest = o, j
			}
		}
	}
	out := Sentence{}
	if longest >= 0 {
		out = append(out, Piece{Text: Name(r, longest), Span: longest}, Piece{Text: ", for " + Milliseconds(most) + ".", Span: -1})
	}
	if c.Exposed > 0 && c.Cause != "" {
		out = append(out, Piece{Text: " The rest is exposed: " + c.Cause, Span: -1})
	}
	return out
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// whereItGoes splits the step of the worst stage.
func whereItGoes(r *report.Result) *Inspector {
	in := &Inspector{Title: "Where the step goes", Zoom: -1}
	f := &r.Figures
	total := float64(f.StepTime)
	if f.WorstStage < len(r.Stages) {
		if len(r.Stages) > 1 {
			in.Title += ", stage " + itoa(f.WorstStage)
		}
		for _, share := range r.Stages[f.WorstStage].Shares {
			part := ratio(float64(share.Time), total)
			in.Shares = append(in.Shares, Share{
				Name: share.Name, Colour: shareColour(share.Name), Value: Milliseconds(int64(share.Time)),
				Percent: Percent(part), Width: "width:" + fixed(part*100, 2) + "%",
			})
		}
	}
	order := make([]int, len(r.Collectives))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(r.Collectives[b].Exposed - r.Collectives[a].Exposed)
	})
	for _, i := range order[:min(5, len(order))] {
		if c := &r.Collectives[i]; c.Exposed > 0 {
			in.Worst = append(in.Worst, Link{Text: Name(r, c.Span), Value: Milliseconds(int64(c.Exposed)), Span: c.Span})
		}
	}
	in.Intro = "Select an operation to see why it started when it did. Arrow keys move along a lane."
	return in
}

func shareColour(name string) string {
	switch name {
	case "Forward":
		return "fwd"
	case "Backward":
		return "bwd"
	case "Optimizer":
		return "optimizer"
	case "Exposed":
		return "exposed"
	case "Bubble":
		return "bubble"
	}
	return "other"
}

// colourName is the class of the swatch of a span.
func colourName(s *report.Spans, i int32) string {
	return ClassName(classOf(s, i, laneOf(s, i)))
}

// ClassName names a colour role for the style sheet.
func ClassName(c Class) string {
	return [NumClasses]string{"fwd", "bwd", "fwd", "bwd", "optimizer", "grad", "param", "tp", "p2p", "host", "exposed", "exposed", "bubble"}[c]
}
