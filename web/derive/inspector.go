package derive

import (
	"slices"
	"strings"

	"distopt/core/report"
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
