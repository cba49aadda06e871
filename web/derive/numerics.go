package derive

import (
	"slices"
	"strings"

	"distopt/core/lab"
	"distopt/core/scenario"
	"distopt/web/state"
)

// Numerics is the tab with the lab.
type Numerics struct {
	Model    string
	Fields   []LabField
	More     bool
	Recent   bool
	Variants []LabChoice
	Wrong    string // about the choice of variants, or the run as a whole
	Ready    bool   // it can be run

	Mode     state.LabMode
	Busy     bool   // an answer is on its way
	Progress string // "Step 12 of 48"
	Done     int    // steps
	Steps    int    // of the run
	Size     string // "28,416 parameters a variant, 61 MiB at most"
	Failure  string
	Report   string
	Stale    bool // what is set up is not what was run

	Checks  []LabCheck
	Rows    []LabRow // one a variant
	Loss    *Chart
	Amax    *Chart
	Scale   *Chart
	Lost    *Chart
	Bins    *Histogram
	Tensors []Option
	Views   []Option
	Parts   []Option
	Element string
	Wrongly string // about the element
	Journey *Journey
	Number  *NumberView
	AsTable bool
	Table   *Table
}

// LabField is one number to set.
type LabField struct {
	Path, Label, Help, Value, Error string
	More                            bool
}

// LabChoice is a variant that can be picked.
type LabChoice struct {
	ID, Name, Formats string
	On                bool
	Error             string
}

// LabCheck is a comparison after every step.
type LabCheck struct {
	State string // "good", "bad", "none"
	Text  string
	Note  string
}

// LabRow is how a variant goes.
type LabRow struct {
	Name, Formats, Colour, Mark                  string
	First, Last, Change, Skipped, Buckets, State string
	Health                                       string
	Word                                         string // of Health
	Note                                         string
}

type numericsKey struct {
	setup   state.LabSetup
	read    *state.Reading
	more    bool
	mode    state.LabMode
	busy    bool
	frame   *lab.Frame
	records int
	failure string
	report  string
	watch   lab.Watch
	seen    state.LabLook
	variant int
	element string
	number  string
	format  string
	table   bool
	sort    state.Sort
}

type setupKey struct {
	setup state.LabSetup
	read  *state.Reading
}

// labSetup is what a set-up means: checking it builds the model's layout.
type labSetup struct {
	config   lab.Config
	wrong    scenario.Errors
	variants []lab.Variant
}

// numericsOf derives the tab while it is shown.
func (c *Cache) numericsOf(s *state.State) *Numerics {
	if s.DetailTab != state.Numerics {
		return nil
	}
	l := &s.Lab
	k := numericsKey{
		l.Setup, s.Current().Read, l.More, l.Mode, l.Request != 0, l.Frame, len(l.Records), l.Failure, l.Report,
		l.Watch, l.Seen, l.Variant, l.Element, l.Number, l.Format, s.Table, s.Sort,
	}
	return c.numerics.get(k, func() *Numerics {
		up := setupKey{k.setup, k.read}
		setup := c.setup.get(up, func() *labSetup {
			config, wrong := up.setup.Config(up.read)
			return &labSetup{config, wrong, state.LabVariants(up.read)}
		})
		number := c.number.get([2]string{l.Number, l.Format}, func() *NumberView { return numberView(l.Number, l.Format) })
		return numerics(s, setup, number)
	})
}

// labProgress is what the tab's name is followed by while a run goes on.
func labProgress(l *state.Lab) string {
	if l.Mode != state.LabRunning && l.Mode != state.LabPaused {
		return ""
	}
	return itoa(len(l.Records)) + "/" + itoa(l.Config.Steps)
}

func numerics(s *state.State, setup *labSetup, number *NumberView) *Numerics {
	l := &s.Lab
	n := &Numerics{
		Model: l.Setup.Model, Recent: l.Setup.MostRecent, More: l.More, Mode: l.Mode, Busy: l.Request != 0, Failure: l.Failure, Report: l.Report,
		Element: l.Element, AsTable: s.Table, Number: number, Ready: len(setup.wrong) == 0,
	}
	n.setUp(s, setup)
	if l.Mode == state.LabIdle {
		return n
	}
	n.Done, n.Steps = len(l.Records), l.Config.Steps
	n.Progress = "Step " + Count(int64(n.Done)) + " of " + Count(int64(n.Steps))
	n.Stale = n.Ready && !sameRun(&setup.config, &l.Config)
	f := l.Frame
	if f == nil {
		return n
	}
	n.Size = Count(int64(f.Parameters)) + " parameters a variant, " + Size(int64(f.Memory)) + " at most"
	marks := labMarks(l.Config.Variants)
	n.Rows = labRows(f, marks, l.Config.Ranks)
	n.Checks = labChecks(l)
	n.charts(l, marks)
	n.look(l)
	if s.Table {
		n.Table = labTable(l, s.Sort)
	}
	return n
}

// sameRun reports whether two configs give the same run.
func sameRun(a, b *lab.Config) bool {
	if !slices.Equal(a.Variants, b.Variants) {
		return false
	}
	x, y := *a, *b
	x.Variants, y.Variants = nil, nil
	return slices.Equal(scalars(&x), scalars(&y))
}

func scalars(c *lab.Config) []any {
	return []any{c.Model, c.Layers, c.Hidden, c.Heads, c.FFN, c.Window, c.Ranks, c.Batch, c.Steps, c.Seed, c.LR, c.WeightDecay,
		c.Beta1, c.Beta2, c.Eps, c.ClipNorm, c.BucketCapMB, c.AmaxHistory, c.MostRecent, c.Margin, c.LossScale, c.ScaleWindow}
}

// setUp places fields, variants and errors.
func (n *Numerics) setUp(s *state.State, setup *labSetup) {
	wrong, all := setup.wrong, setup.variants
	at := map[string]string{}
	for _, e := range wrong {
		text := e.Problem()
		if e.Fix != "" {
			text += "; " + strings.Replace(e.Fix, "set "+e.Path+" to", "set it to", 1)
		}
		if at[e.Path] == "" {
			at[e.Path] = text
		}
	}
	for i := range state.LabFields {
		f := &state.LabFields[i]
		if f.Path == "heads" && n.Model == lab.MLP {
			continue
		}
		row := LabField{Path: f.Path, Label: f.Label, Help: f.Help, Value: s.Lab.Setup.Texts[i], Error: at[f.Path], More: f.More}
		n.More = n.More || f.More && row.Error != ""
		n.Fields = append(n.Fields, row)
		delete(at, f.Path)
	}
	picked := strings.Fields(s.Lab.Setup.Picked)
	for i := range all {
		v := &all[i]
		n.Variants = append(n.Variants, LabChoice{ID: v.ID, Name: upper(brandOf(v)), Formats: v.Name + ": " + formatsOf(v), On: slices.Contains(picked, v.ID)})
	}
	for path, text := range at {
		rest, ok := strings.CutPrefix(path, "variants[")
		if !ok {
			continue
		}
		i := int(rest[0] - '0')
		on := 0
		for _, id := range picked {
			k := slices.IndexFunc(n.Variants, func(v LabChoice) bool { return v.ID == id })
			if k < 0 {
				continue
			}
			if on == i {
				n.Variants[k].Error = text
			}
			on++
		}
		delete(at, path)
	}
	for _, e := range wrong {
		if text := at[e.Path]; text != "" {
			n.Wrong = e.Path + ": " + text
			break
		}
	}
}

func formatsOf(v *lab.Variant) string {
	text := v.Params + " parameters, " + v.State + " state"
	if v.Scaled {
		text += " with a scale for each fragment"
	}
	return text + ", " + v.GradSync + " grad sync"
}

// mark tells a variant from the others.
type mark struct {
	name, colour string
	shape        int
}

// labMarks gives each variant its mark: the colour of its parameters' format, if no other has it.
func labMarks(variants []lab.Variant) []mark {
	spare := []string{"optimizer", "grad", "tp", "fp16"}
	marks := make([]mark, len(variants))
	taken := map[string]bool{}
	for i, v := range variants {
		colour := v.Params
		for k := 0; taken[colour] && k < len(spare); k++ {
			colour = spare[k]
		}
		taken[colour] = true
		marks[i] = mark{brandOf(&v), colour, i}
	}
	return marks
}

// brandOf is a short name for the end of a line.
func brandOf(v *lab.Variant) string {
	if v.ID == "config" {
		return "this configuration"
	}
	name := strings.ToUpper(v.Params)
	switch {
	case v.Scaled:
		return name + ", scaled " + v.State
	case v.State != "fp32":
		return name + ", " + v.State + " state"
	}
	return name
}

var healthWords = map[lab.Health]string{lab.Healthy: "learns", lab.Suspect: "suspect", lab.Useless: "useless", lab.Starting: "not started", lab.Early: "too early to say"}

func labRows(f *lab.Frame, marks []mark, ranks int) []LabRow {
	rows := make([]LabRow, len(f.Variants))
	for i, v := range f.Variants {
		r := LabRow{
			Name: upper(v.Name), Formats: v.Formats, Colour: marks[i].colour, Mark: Marks[marks[i].shape],
			First: lossText(v.First), Last: lossText(v.Last), Change: "–",
			Skipped: Count(int64(v.Skipped)), Buckets: Count(int64(v.Buckets)), State: Size(int64(v.State)),
			Health: string(v.Health), Word: healthWords[v.Health], Note: v.Note,
		}
		if v.First.Finite() && v.Last.Finite() && v.First > 0 {
			r.Change = Percent(float64(v.Last / v.First))
		}
		if v.EmptyShards > 0 {
			r.Note = strings.TrimSpace(r.Note + " " + upper(plural(v.EmptyShards, "rank")) + " of " + itoa(ranks) + " own no element.")
		}
		rows[i] = r
	}
	return rows
}

// lossText writes a loss with three decimals.
func lossText(v lab.Value) string {
	if x := float64(v); v.Finite() && x < 1e6 {
		return fixed(x, 3)
	}
	return numeral(float64(v), 4)
}

// labChecks are the two comparisons that every step makes.
func labChecks(l *state.Lab) []LabCheck {
	f := l.Frame
	if f.Step == 0 {
		return []LabCheck{{State: "none", Text: "No step was taken yet."}}
	}
	agree := LabCheck{
		State: "good", Text: "All " + itoa(l.Config.Ranks) + " ranks hold identical parameters after step " + Count(int64(f.Step)) + ".",
		Note: comparisons(f, func(*lab.VariantStatus) bool { return true }),
	}
	if l.Config.Ranks == 1 {
		agree.Text = "One rank holds all parameters after step " + Count(int64(f.Step)) + "."
	}
	compared := 0
	var apart []string
	without := map[string][]string{} // names by reason
	var reasons []string
	explained := true
	for i := range f.Variants {
		v := &f.Variants[i]
		if v.Agree.Different > 0 {
			agree = LabCheck{State: "bad", Text: "Ranks differ in " + Count(int64(v.Agree.Different)) + " elements (" + v.Name + ").", Note: v.Agree.First}
		}
		switch {
		case !v.Before.Checked:
			if without[v.Before.Reason] == nil {
				reasons = append(reasons, v.Before.Reason)
			}
			without[v.Before.Reason] = append(without[v.Before.Reason], v.Name)
		case v.Before.Different > 0:
			compared++
			apart = append(apart, v.Name+": "+plural(v.Before.Different, "element")+", first at "+v.Before.First+reason(v.Before.Reason))
			explained = explained && v.Before.Reason != ""
		default:
			compared++
		}
	}
	before := LabCheck{State: "good", Text: "BEFORE and AFTER: no difference.", Note: comparisons(f, func(v *lab.VariantStatus) bool { return v.Before.Checked })}
	switch {
	case len(apart) > 0 && explained:
		before = LabCheck{State: "note", Text: "BEFORE and AFTER: a known difference.", Note: strings.Join(apart, "; ")}
	case len(apart) > 0:
		before = LabCheck{State: "bad", Text: "BEFORE and AFTER differ.", Note: strings.Join(apart, "; ")}
	case compared == 0:
		before = LabCheck{State: "none", Text: "BEFORE and AFTER were not compared."}
	}
	for _, why := range reasons {
		before.Note = strings.TrimPrefix(before.Note+". Not compared: "+strings.Join(without[why], "; ")+" ("+why+")", ". ")
	}
	return []LabCheck{agree, before}
}

// comparisons counts the steps that were compared: a variant that was stopped has taken fewer.
func comparisons(f *lab.Frame, compared func(v *lab.VariantStatus) bool) string {
	sum, variants, whole := 0, 0, true
	for i := range f.Variants {
		v := &f.Variants[i]
		if !compared(v) {
			continue
		}
		variants++
		if v.Stopped > 0 && v.Stopped < f.Step {
			sum += v.Stopped
			whole = false
		} else {
			sum += f.Step
		}
	}
	if whole {
		return "0 elements differ in " + plural(f.Step, "step") + " × " + plural(variants, "variant")
	}
	return "0 elements differ in " + plural(sum, "step") + " of " + plural(variants, "variant") + " together"
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
