package report

import (
	"cmp"
	"slices"

	"distopt/core/sched"
)

// Comparison is what differs between two results.
type Comparison struct {
	Rows    []Difference       `json:"rows"`
	Buckets []BucketDifference `json:"buckets"` // only those that differ
	Moved   []Move             `json:"moved"`   // decisions of the optimizer that came out differently
}

// Difference is one figure of two results, in the unit of Figures: nanoseconds, fractions, bytes
// or a count.
type Difference struct {
	Name string  `json:"name"`
	Unit Unit    `json:"unit"`
	Part bool    `json:"part,omitempty"` // part of the last row that is not
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	// Better is 1 if B is better than A, -1 if it is worse, 0 if they are equal or neither is good.
	Better int `json:"better"`
}

// Unit says how a figure is to be written.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Fraction    Unit = "fraction" // of 1; changes are written in points
	InBytes     Unit = "bytes"
	Number      Unit = "count"
	PerSecond   Unit = "per second"
)

// BucketDifference compares the buckets of one number on one stage. Exposed is that of the
// collectives in which the bucket takes part, with all their buckets.
type BucketDifference struct {
	Stage int       `json:"stage"`
	ID    int32     `json:"id"`
	A     BucketUse `json:"a"`
	B     BucketUse `json:"b"`
}

// BucketUse is a bucket in a comparison; without a size it does not exist.
type BucketUse struct {
	Size    int64      `json:"size"`
	Filled  int64      `json:"filled"`
	Exposed sched.Time `json:"exposed_ns"`
}

// Compare compares b with a.
func Compare(a, b *Result) Comparison {
	return Comparison{Rows: compareFigures(&a.Figures, &b.Figures), Buckets: compareBuckets(a, b), Moved: moves(a, b)}
}

func compareFigures(a, b *Figures) []Difference {
	var rows []Difference
	add := func(name string, unit Unit, good int, x, y float64) {
		rows = append(rows, Difference{Name: name, Unit: unit, A: x, B: y, Better: good * cmp.Compare(y, x)})
	}
	const more, less, neither = 1, -1, 0
	add("Step time", Nanoseconds, less, float64(a.StepTime), float64(b.StepTime))
	add("Tokens/s/GPU", PerSecond, more, a.TokensPerGPU, b.TokensPerGPU)
	add("MFU", Fraction, more, a.MFU, b.MFU)
	add("Exposed communication", Nanoseconds, less, float64(a.Exposed), float64(b.Exposed))
	for _, kind := range familyNames {
		if x, y := timeOf(a.ExposedBy, kind), timeOf(b.ExposedBy, kind); x > 0 || y > 0 {
			add(kind, Nanoseconds, less, float64(x), float64(y))
			rows[len(rows)-1].Part = true
		}
	}
	if a.Bubble > 0 || b.Bubble > 0 {
		add("Bubble", Nanoseconds, less, float64(a.Bubble), float64(b.Bubble))
		add("exposed in it", Nanoseconds, neither, float64(a.ExposedInBubble), float64(b.ExposedInBubble))
		rows[len(rows)-1].Part = true
	}
	add("Overlap efficiency", Fraction, more, a.Overlap, b.Overlap)
	add("Amax reductions", Number, less, float64(a.AmaxReductions), float64(b.AmaxReductions))
	add("Buckets", Number, neither, float64(a.Buckets), float64(b.Buckets))
	add("Bucket utilisation", Fraction, more, a.Utilisation, b.Utilisation)
	add("Padding moved per step", InBytes, less, float64(a.WastedBytes), float64(b.WastedBytes))
	return rows
}

func timeOf(list []ExposedBy, kind string) sched.Time {
	for _, e := range list {
		if e.Kind == kind {
			return e.Time
		}
	}
	return 0
}

func compareBuckets(a, b *Result) []BucketDifference {
	var out []BucketDifference
	for s := range max(len(a.Stages), len(b.Stages)) {
		x, y := bucketUses(a, s), bucketUses(b, s)
		for id := range max(len(x), len(y)) {
			d := BucketDifference{Stage: s, ID: int32(id)}
			if id < len(x) {
				d.A = x[id]
			}
			if id < len(y) {
				d.B = y[id]
			}
			if d.A != d.B {
				out = append(out, d)
			}
		}
	}
	return out
}

// bucketUses lists the buckets of a stage by number.
func bucketUses(r *Result, stage int) []BucketUse {
	if stage >= len(r.Stages) {
		return nil
	}
	uses := make([]BucketUse, len(r.Stages[stage].Buckets))
	for i := range r.Stages[stage].Buckets {
		b := &r.Stages[stage].Buckets[i]
		uses[i].Size, uses[i].Filled = b.Size, b.Filled
	}
	from, _ := slices.BinarySearchFunc(r.Collectives, stage, func(c Collective, s int) int { return cmp.Compare(c.Stage, s) })
	for i := from; i < len(r.Collectives) && r.Collectives[i].Stage == stage; i++ {
		for _, id := range r.Collectives[i].Buckets {
			if int(id) < len(uses) {
				uses[id].Exposed += r.Collectives[i].Exposed
			}
		}
	}
	return uses
}
