package derive

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"distopt/core/report"
	"distopt/web/ids"
)

// Figures is the strip of key figures.
type Figures struct {
	Tiles []Figure
	Stale bool
	Open  *Formula // nil: none is open
}

// Figure is one tile.
type Figure struct {
	ID, Label    string
	Number, Unit string
	Second       string // beside the number
	Sub          string // below it
	Value        string // the bare number
	Hot          bool   // exposed communication
	Open         bool
	Spoken       string // all of it, for screen readers

	Other  string // B's value, in Compare
	Change string
	Better int // 1: B is better, -1: worse, 0: neither
}

// Formula shows how a figure comes about.
type Formula struct {
	Title string
	Text  string
	Rows  [][2]string // name, value
	Note  string
}

type figuresKey struct {
	a, b  *report.Result
	stale bool
	open  string
}

// figureOf computes one tile from one result.
type figureOf struct {
	id, label string
	of        func(f *report.Figures) (number, unit, second, sub string)
	value     func(f *report.Figures) float64
	points    bool // a ratio: its change is given in points
	better    int  // sign of a change for the better
}

var tiles = []figureOf{
	{ids.StepTime, "Step time", func(f *report.Figures) (string, string, string, string) {
		n, unit := length(int64(f.StepTime))
		return n, unit, "", "steady state"
	}, func(f *report.Figures) float64 { return float64(f.StepTime) }, false, -1},
	{ids.Tokens, "Tokens/s/GPU", func(f *report.Figures) (string, string, string, string) {
		return fixed(f.TokensPerGPU, 0), "", "", fixed(f.TokensPerSecond, 0) + " in all"
	}, func(f *report.Figures) float64 { return f.TokensPerGPU }, false, 1},
	{ids.MFU, "MFU", func(f *report.Figures) (string, string, string, string) {
		return fixed(f.MFU*100, 1), "%", "", "of " + peak(f.PeakName)
	}, func(f *report.Figures) float64 { return f.MFU }, true, 1},
	{ids.Exposed, "Exposed communication", func(f *report.Figures) (string, string, string, string) {
		n, unit := length(int64(f.Exposed))
		return n, unit, Percent(ratio(float64(f.Exposed), float64(f.StepTime))), byKind(f)
	}, func(f *report.Figures) float64 { return float64(f.Exposed) }, false, -1},
	{ids.Overlap, "Overlap efficiency", func(f *report.Figures) (string, string, string, string) {
		return fixed(f.Overlap*100, 1), "%", "", "of " + Milliseconds(int64(f.SyncTotal)) + " sync"
	}, func(f *report.Figures) float64 { return f.Overlap }, true, 1},
	{ids.Utilisation, "Bucket utilisation", func(f *report.Figures) (string, string, string, string) {
		return fixed(f.Utilisation*100, 1), "%", bucketSizes(f), Size(f.WastedBytes) + " wasted per step"
	}, func(f *report.Figures) float64 { return f.Utilisation }, true, 1},
	{ids.Amax, "Amax reductions", func(f *report.Figures) (string, string, string, string) {
		return Count(int64(f.AmaxReductions)), "", "", "per step"
	}, func(f *report.Figures) float64 { return float64(f.AmaxReductions) }, false, -1},
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// peak is the name of a peak without the size of the GPU's memory, which it does not depend on.
func peak(name string) string {
	words := strings.Fields(name)
	if n := len(words); n > 2 && words[n-1] == "GB" {
		words = words[:n-2]
	}
	return strings.Join(words, " ")
}

// byKindWidth is how many characters a tile has for the kinds of exposed communication.
const byKindWidth = 30

// byKind lists the exposed time of each kind, the longest first: "grad sync 6.1, param sync 0.2".
// What has no room is summed up.
func byKind(f *report.Figures) string {
	kinds := slices.Clone(f.ExposedBy)
	slices.SortStableFunc(kinds, func(a, b report.ExposedBy) int { return cmp.Compare(b.Time, a.Time) })
	text := ""
	for i, e := range kinds {
		if e.Time < 50_000 { // it would read 0.0
			break
		}
		item := kindName(e.Kind) + " " + tenths(int64(e.Time))
		if text != "" {
			item = ", " + item
		}
		rest := int64(0)
		for _, later := range kinds[i+1:] {
			rest += int64(later.Time)
		}
		room := byKindWidth
		if rest >= 50_000 {
			room -= len(", rest " + tenths(rest))
		}
		if text != "" && len(text)+len(item) > room {
			return text + ", rest " + tenths(rest+int64(e.Time))
		}
		text += item
	}
	switch {
	case text != "":
		return text
	case f.Exposed == 0 || len(kinds) == 0:
		return "nothing is exposed"
	}
	text = kindName(kinds[0].Kind) + " " + Milliseconds(int64(kinds[0].Time)) // so little that tenths read 0.0
	if rest := f.Exposed - kinds[0].Time; rest > 0 {
		text += ", rest " + Milliseconds(int64(rest))
	}
	return text
}

// kindName is a kind of communication as the lanes call it.
func kindName(kind string) string {
	switch kind {
	case "tensor parallel":
		return "TP"
	case "pipeline":
		return "P2P"
	}
	return kind
}

// tenths writes milliseconds, with tenths below 100.
func tenths(ns int64) string {
	if ns >= 100e6 {
		return fixed(float64(ns)/1e6, 0)
	}
	return fixed(float64(ns)/1e6, 1)
}

func figures(k figuresKey) *Figures {
	out := &Figures{Stale: k.stale, Tiles: make([]Figure, 0, len(tiles))}
	for _, t := range tiles {
		f := Figure{ID: t.id, Label: t.label, Hot: t.id == ids.Exposed, Open: t.id == k.open}
		if k.a == nil {
			f.Number = "–"
			out.Tiles = append(out.Tiles, f)
			continue
		}
		fa := &k.a.Figures
		f.Number, f.Unit, f.Second, f.Sub = t.of(fa)
		f.Hot = f.Hot && fa.Exposed > 0
		f.Value = strconv.FormatFloat(t.value(fa), 'f', -1, 64)
		if k.b != nil {
			number, unit, _, _ := t.of(&k.b.Figures)
			f.Other = "B " + number
			if unit != "" {
				f.Other += thin + unit
			}
			f.Change, f.Better = change(t.value(fa), t.value(&k.b.Figures), t.points, t.better)
		}
		f.Spoken = spoken(&f)
		out.Tiles = append(out.Tiles, f)
		if f.Open {
			out.Open = formula(t.id, k.a)
			if k.b != nil {
				out.Open.Title += ", of A"
			}
		}
	}
	return out
}

// spoken joins what a tile shows into phrases.
func spoken(f *Figure) string {
	text := strings.TrimSpace(f.Label + " " + f.Number + " " + f.Unit)
	if f.Second != "" {
		text += ", " + f.Second
	}
	if f.Other == "" {
		return text + ", " + f.Sub
	}
	text += ". " + f.Other + ", " + f.Change
	return text + [...]string{", worse", "", ", better"}[f.Better+1]
}

// change says how b differs from a: ratios in points, others in percent of a.
func change(a, b float64, points bool, good int) (text string, better int) {
	switch {
	case a == b:
		return "equal", 0
	case math.Abs(b-a) < negligible*math.Abs(a) && !points, math.Abs(b-a) < negligible && points:
		return "0.0" + thin + map[bool]string{true: "pt", false: "%"}[points], 0
	case points:
		text = signed((b-a)*100, 1) + thin + "pt"
	case a == 0:
		return "new", good
	default:
		text = growth(a, b)
	}
	if b > a {
		return text, good
	}
	return text, -good
}

// growth says how b differs from a: in percent, as a factor from ten times on.
func growth(a, b float64) string {
	if a > 0 && b >= 10*a {
		return "×" + thin + fixed(b/a, 0)
	}
	return signed((b-a)/a*100, 1) + thin + "%"
}

// formula writes out how a figure follows from its inputs.
func formula(id string, r *report.Result) *Formula {
	f := &r.Figures
	step := Instant(int64(f.StepTime))
	row := func(name, value string) [2]string { return [2]string{name, value} }
	switch id {
	case ids.StepTime:
		out := &Formula{
			Title: "Step time",
			Text:  "From the first forward of one step to the first forward of the next. Two steps are simulated and the second is shown, since parameter gathers reach over the border between steps.",
			Rows:  [][2]string{row("Step time", step), row("Tasks simulated", Count(int64(f.Tasks)))},
			Note:  "Kernels: roofline on measured curves. Collectives: latency and bus bandwidth. Model " + r.ModelVersion + ".",
		}
		if f.WorstStage < len(r.Stages) {
			for _, share := range r.Stages[f.WorstStage].Shares {
				out.Rows = append(out.Rows, row(share.Name+", stage "+itoa(f.WorstStage), Milliseconds(int64(share.Time))))
			}
		}
		return out
	case ids.Tokens:
		return &Formula{
			Title: "Tokens per second per GPU",
			Text:  "global batch × sequence length / step time / GPUs",
			Rows:  [][2]string{row("Tokens per step", fixed(f.TokensPerSecond*float64(f.StepTime)/1e9, 0)), row("Step time", step), row("GPUs", Count(int64(r.Grid.World))), row("Tokens/s, all GPUs", fixed(f.TokensPerSecond, 0))},
		}
	case ids.MFU:
		return &Formula{
			Title: "Model FLOP utilisation",
			Text:  "model FLOPs per step per GPU / step time / peak",
			Rows:  [][2]string{row("Model FLOPs", fixed(f.ModelFLOPs/1e12, 1)+" TFLOP"), row("Step time", step), row("Peak", fixed(f.PeakFLOPs/1e12, 0)+" TFLOP/s"), row("Peak of", f.PeakName)},
			Note:  "Model FLOPs count forward and backward of the mathematics, nothing that is recomputed.",
		}
	case ids.Exposed:
		rows := [][2]string{}
		for _, e := range f.ExposedBy {
			rows = append(rows, row(e.Kind, Milliseconds(int64(e.Time))))
		}
		rows = append(rows, row("Sum, stage "+itoa(f.WorstStage), Milliseconds(int64(f.Exposed))))
		if f.ExposedInBubble > 0 {
			rows = append(rows, row("In bubbles, not counted", Milliseconds(int64(f.ExposedInBubble))))
		}
		return &Formula{
			Title: "Exposed communication",
			Text:  "Time covered by communication and by no compute. The part inside a pipeline bubble delays nothing and is kept apart. An instant covered by several collectives belongs to the one that released the next compute.",
			Rows:  rows,
		}
	case ids.Overlap:
		return &Formula{
			Title: "Overlap efficiency",
			Text:  "hidden / all of grad sync and param sync",
			Rows:  [][2]string{row("Hidden", Milliseconds(int64(f.Hidden))), row("Grad and param sync", Milliseconds(int64(f.SyncTotal))), row("Efficiency", Percent(f.Overlap))},
		}
	case ids.Utilisation:
		return &Formula{
			Title: "Bucket utilisation",
			Text:  "filled elements / size, over all buckets of all stages. A bucket is always sent whole.",
			Rows:  [][2]string{row("Buckets", Count(int64(f.Buckets))), row("Smallest", Count(f.SmallestBucket)+" elements"), row("Largest", Count(f.BucketSize)+" elements"), row("Padding moved per step and rank", Size(f.WastedBytes)), row("Utilisation", Percent(f.Utilisation))},
		}
	case ids.Amax:
		return &Formula{
			Title: "Amax reductions",
			Text:  "How often per step the FP8 amaxes are reduced over all ranks. Before NeMo PR 8221 this happened in every call that casts parameters; after it once.",
			Rows:  [][2]string{row("Reductions per step", Count(int64(f.AmaxReductions)))},
		}
	}
	return nil
}

// bucketSizes is the second figure of the bucket tile: "27 × 200 Mi", or "33 to 168 M" where sizes differ.
func bucketSizes(f *report.Figures) string {
	if f.SmallestBucket < f.BucketSize {
		return Count(int64(f.Buckets)) + " to " + Elems(f.BucketSize)
	}
	return Count(int64(f.Buckets)) + " × " + Elems(f.BucketSize)
}
