package derive

import (
	"encoding/json"
	"strings"

	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/core/step"
	"distopt/web/ids"
	"distopt/web/state"
)

type completion struct {
	Path   string `json:"path"`
	Detail string `json:"detail,omitempty"`
	Info   string `json:"info,omitempty"`
}

var completions = func() string {
	list := make([]completion, 0, len(scenario.Fields))
	for i := range scenario.Fields {
		f := &scenario.Fields[i]
		list = append(list, completion{f.Path, f.Want(), f.Help})
	}
	return encode(list)
}()

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return string(text)
}

func editor(read *state.Reading) *Editor {
	e := &Editor{Completions: completions, Diagnostics: "[]"}
	if read == nil {
		return e
	}
	e.Text = read.Text
	if n := len(read.Diagnostics); n > 0 {
		e.Diagnostics = encode(read.Diagnostics[:min(n, 200)])
	}
	return e
}

type bannerKey struct {
	errors, line int
	stale        bool
	failure      string
	halted       bool
	note, bad    string
	remade       string
}

func (c *Cache) bannerOf(s *state.State, p *Problems) *Banner {
	cur := s.Current()
	k := bannerKey{errors: p.Errors, stale: cur.Result != nil, failure: cur.Failure, halted: cur.Halted, note: s.Shared.Note, bad: s.Shared.Bad}
	if cur.Stopped {
		k.failure = ""
	}
	k.remade = remade(s)
	for i := range p.Items {
		if p.Items[i].Error {
			k.line = p.Items[i].Line
			break
		}
	}
	return c.banner.get(k, func() *Banner {
		switch {
		case k.errors > 0:
			b := &Banner{Kind: "error", Lead: plural(k.errors, "error") + " in the configuration.", Line: k.line, Undo: true}
			if k.stale {
				b.Text = "The picture shows the last valid one, from before these edits."
			}
			return b
		case k.failure != "":
			return &Banner{Kind: "error", Lead: "Not simulated.", Text: k.failure, Undo: true}
		case k.halted:
			return &Banner{Kind: "note", Lead: "Cancelled.", Text: "The earlier result stays.", Again: true}
		case k.bad != "":
			return &Banner{Kind: "error", Lead: "The link could not be read.", Text: k.note, Bad: k.bad}
		case k.note != "":
			return &Banner{Kind: "note", Text: k.note}
		case k.remade != "":
			return &Banner{Kind: "note", Text: k.remade}
		}
		return &Banner{}
	})
}

// remade says that a link was made with another model, and what that changes.
func remade(s *state.State) string {
	x, link := s.Current(), &s.Shared
	r := x.Result
	if link.Model == "" || r == nil || r.ModelVersion == link.Model || x.Of != link.Texts[s.Shown] {
		return ""
	}
	text := "This link was made with model " + link.Model + "; model " + r.ModelVersion + " gives " + Milliseconds(int64(r.Figures.StepTime))
	if made := link.Made[s.Shown]; made > 0 && made != r.Figures.StepTime {
		return text + " instead of " + Milliseconds(int64(made)) + "."
	}
	return text + " as well."
}

// busy is the card over the timeline, if any.
func busy(s *state.State) Busy {
	for i := range s.Slots {
		x := &s.Slots[i]
		if !s.Compare && i != s.Shown {
			continue
		}
		if x.Stopped {
			return Busy{Title: "The simulator stopped. Your configuration is safe.", Text: x.Failure, Restart: true, Report: x.Report}
		}
		if x.Request != 0 && x.Slow {
			b := Busy{Title: "Simulating", Cancel: true}
			if s.Compare {
				b.Title += " " + string(rune('A'+i))
			}
			if x.Done > 0 {
				b.Share = "width:" + fixed(x.Done*100, 0) + "%"
				b.Percent = fixed(x.Done*100, 0) + thin + "%"
			}
			return b
		}
	}
	return Busy{}
}

func timeline(k timelineKey, sel state.Selection) *Timeline {
	t := &Timeline{Picture: k.picture, Marked: *k.marked, Table: k.table, Fade: k.fade}
	if k.busy.Title != "" {
		card := k.busy
		t.Busy = &card
	}
	var r *report.Result
	for _, x := range k.picture.Results {
		if x != nil && r == nil {
			r = x
		}
	}
	if r == nil {
		t.Empty = true
		t.Scope = "no result yet"
		return t
	}
	switch {
	case k.compare:
		t.Scope = "two steps on one axis"
	case len(r.Stages) > 1:
		t.Scope = "one step, " + plural(len(r.Stages), "stage")
	default:
		t.Scope = "one step, stage 0, " + Count(int64(r.Figures.Spans)) + " operations"
	}
	t.Legend = legend(k.picture)
	if own := k.picture.Results[sel.Slot]; own != nil && sel.Span >= 0 && int(sel.Span) < own.Spans.Len() {
		t.Current = Describe(own, sel.Span)
	}
	return t
}

// legend lists the colours that the picture uses.
func legend(p *Picture) (items []LegendItem) {
	var used [NumClasses]bool
	for i := range p.Rows {
		for _, s := range p.Rows[i].Strips {
			if s.Parts != nil && s.Len() > 0 {
				used[ClassTensor] = true
				continue
			}
			for _, c := range s.Class {
				used[c] = true
			}
		}
	}
	names := [...]struct {
		c    Class
		name string
	}{{ClassForward, "forward"}, {ClassBackward, "backward"}, {ClassOptimizer, "optimizer"}, {ClassGradSync, "grad sync"}, {ClassParamSync, "param sync"}, {ClassTensor, "TP"}, {ClassPipeline, "P2P"}, {ClassExposed, "exposed"}}
	for _, n := range names {
		if used[n.c] {
			items = append(items, LegendItem{ClassName(n.c), n.name})
		}
	}
	if used[ClassExposedBubble] {
		items = append(items, LegendItem{"bubbled", "exposed in a bubble"})
	}
	return items
}

// Describe says what a span is, for screen readers.
func Describe(r *report.Result, i int32) string {
	s := &r.Spans
	text := Name(r, i) + ", " + laneName(laneOf(s, i)) + ", stage " + itoa(int(s.Stage[i])) + ". Starts at " + fixed(float64(s.Start[i])/1e6, 1) + " milliseconds, takes " + fixed(float64(s.End[i]-s.Start[i])/1e6, 1)
	if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) {
		switch c := &r.Collectives[g]; {
		case c.Exposed >= c.Length:
			text += ", all exposed"
		case c.Exposed > 0:
			text += ", " + fixed(float64(c.Exposed)/1e6, 1) + " exposed"
		default:
			text += ", hidden"
		}
	}
	from, to := laneRange(s, int(s.Stage[i]), laneOf(s, i))
	return text + ". " + Count(int64(i-from+1)) + " of " + Count(int64(to-from)) + "."
}

func laneName(l report.Lane) string {
	return [...]string{"exposed", "compute", "compute", "hidden", "optimizer", "grad sync", "param sync", "tensor parallel", "pipeline", "host"}[l]
}

// operations is the timeline as a table: passes, optimizer and communication of every stage.
func operations(r *report.Result, sort state.Sort, sel state.Selection, slot int) *Table {
	t := &Table{Name: "timeline", Caption: "Operations of one step"}
	for _, c := range [...]Column{{Title: "Stage", Number: true}, {Title: "Lane"}, {Title: "Operation"}, {Title: "Start", Number: true}, {Title: "Length", Number: true}, {Title: "Exposed", Number: true}} {
		t.Columns = append(t.Columns, c)
	}
	s := &r.Spans
	var keys [][]float64
	for i := range int32(s.Len()) {
		lane := laneOf(s, i)
		if lane == report.LaneExposed || lane == report.LaneHidden || lane == report.LaneCompute {
			continue
		}
		if len(t.Rows) == tableLimit*10 {
			t.More = s.Len() - int(i)
			break
		}
		exposed := int64(0)
		if g := s.Group[i]; g >= 0 && int(g) < len(r.Collectives) && r.Collectives[g].Span == i {
			exposed = int64(r.Collectives[g].Exposed)
		}
		t.Rows = append(t.Rows, TableRow{
			Cells: []string{itoa(int(s.Stage[i])), laneName(lane), Name(r, i), Instant(s.Start[i]), Milliseconds(s.End[i] - s.Start[i]), Milliseconds(exposed)},
			Stage: int(s.Stage[i]), Span: i, Bucket: first(buckets(r, i)), Colour: colourName(s, i), Hot: exposed > 0,
			Lit: sel.Slot == slot && sel.Span == i,
		})
		keys = append(keys, []float64{float64(s.Stage[i]), 0, 0, float64(s.Start[i]), float64(s.End[i] - s.Start[i]), float64(exposed)})
	}
	sortTable(t, keys, sort)
	return t
}

func (c *Cache) detailsOf(s *state.State, a, b *report.Result) *Details {
	slot := s.Shown
	if s.Compare && s.Select.Bucket >= 0 {
		slot = s.Select.Slot
	} else if s.Compare {
		slot = state.A
	}
	r := s.Slots[slot].Result
	k := detailsKey{tab: s.DetailTab, table: s.Table, compare: s.Compare, scroll: s.Scroll}
	if r != nil {
		stage := s.Stage
		if s.Select.Bucket >= 0 && s.Select.Slot == slot {
			stage = s.Select.Stage
		}
		if stage >= len(r.Stages) {
			stage = 0
		}
		k.collectives = len(r.Collectives)
		lk := listKey{r, slot, stage}
		k.list = c.list.get(lk, func() *BucketList { return bucketList(r, slot, stage) })
		id := int32(0)
		if s.Select.Bucket >= 0 && s.Select.Slot == slot && s.Select.Stage == stage {
			id = s.Select.Bucket
		}
		bk := bucketKey{lk, id}
		k.bucket = c.bucket.get(bk, func() *BucketDetail { return bucketDetail(r, slot, stage, id) })
		tk := tableKey{lk, s.DetailTab, s.Sort, s.Select}
		switch s.DetailTab {
		case state.Buckets:
			if s.Table {
				k.rows = c.table.get(tk, func() *Table { return bucketTable(r, stage, s.Sort, s.Select, slot) })
			}
			fk := fragmentsKey{k.bucket, s.FragmentSort}
			k.fragments = c.fragments.get(fk, func() *Table { return fragmentTable(k.bucket, s.FragmentSort) })
		case state.Collectives:
			k.rows = c.table.get(tk, func() *Table { return collectives(r, s.Sort, s.Select, slot) })
		}
	}
	if s.Compare && a != nil && b != nil {
		dk := [2]*report.Result{a, b}
		k.diff = c.diff.get(dk, func() *Differences { return differences(a, b) })
	}
	vk := versionsKey{len(s.Versions.Rows), s.Versions.Of, s.Versions.Request, s.Versions.Failure, s.Versions.Of != s.Current().Doc.Text}
	k.versions = c.versions.get(vk, func() *FourVersions { return fourVersions(&s.Versions, vk.stale) })
	return c.details.get(k, func() *Details { return details(k, r) })
}

func details(k detailsKey, r *report.Result) *Details {
	d := &Details{Tab: k.tab, AsTable: k.table, List: k.list, Bucket: k.bucket, Table: k.rows, Fragments: k.fragments, Differences: k.diff, Versions: k.versions, Scroll: k.scroll, Empty: r == nil}
	d.Picks = k.tab == state.Buckets
	if k.compare {
		d.Tabs = append(d.Tabs, DetailTab{Tab: state.Differences, ID: ids.TabDiff, Name: "Differences"})
	}
	count := ""
	if k.list != nil {
		count = Count(int64(len(k.list.Rows)))
		for i := range k.list.Stages {
			n := itoa(i)
			d.Stages = append(d.Stages, Option{n, "Stage " + n, i == k.list.Stage})
		}
	}
	d.Tabs = append(d.Tabs,
		DetailTab{Tab: state.SelectionTab, ID: "tab-selection", Name: "Selection", Narrow: true},
		DetailTab{Tab: state.Buckets, ID: ids.TabBuckets, Name: "Buckets", Count: count},
		DetailTab{Tab: state.Collectives, ID: ids.TabColls, Name: "Collectives", Count: Count(int64(k.collectives))},
		DetailTab{Tab: state.FourVersions, ID: ids.TabFour, Name: "Four versions"},
	)
	return d
}

type versionsKey struct {
	rows    int
	of      string
	request int
	failure string
	stale   bool
}

// FourVersions is the table that takes the two changes apart.
type FourVersions struct {
	Rows    []VersionRow
	Busy    bool
	Stale   bool
	Failure string
	Summary string
}

// VersionRow is one framework version.
type VersionRow struct {
	Version, Name, What string
	Step, Exposed, Amax string
	Change              string
	Better              int
	Overlap             string // of the first all-gather with the optimizer step
	Overlaps            bool
	Error               string
}

func versionName(v string) (name, what string) {
	switch v {
	case scenario.Before:
		return "BEFORE", "NeMo before PR 8221 on Apex before PR 1771"
	case scenario.BeforeNewApex:
		return "BEFORE*", "the old NeMo on the new Apex"
	case scenario.AfterOldApex:
		return "AFTER on old Apex", "the new NeMo on the old Apex"
	case scenario.After:
		return "AFTER", "NeMo PR 8221 on Apex PR 1771"
	}
	return v, ""
}

func fourVersions(v *state.Versions, stale bool) *FourVersions {
	f := &FourVersions{Busy: v.Request != 0, Stale: stale, Failure: v.Failure}
	var before *report.Result
	for i := range v.Rows {
		if v.Rows[i].Version == scenario.Before {
			before = v.Rows[i].Result
		}
	}
	var after *report.Result
	for i := range v.Rows {
		x := &v.Rows[i]
		row := VersionRow{Version: x.Version, Error: x.Err}
		row.Name, row.What = versionName(x.Version)
		if r := x.Result; r != nil {
			row.Step = fixed(float64(r.Figures.StepTime)/1e6, 2)
			row.Exposed = fixed(float64(exposedBy(&r.Figures, "param sync"))/1e6, 2)
			row.Amax = itoa(r.Figures.AmaxReductions)
			row.Overlaps, row.Overlap = firstGather(r)
			if before != nil && r != before {
				row.Change, row.Better = change(float64(before.Figures.StepTime), float64(r.Figures.StepTime), false, -1)
			}
			if x.Version == scenario.After {
				after = r
			}
		}
		f.Rows = append(f.Rows, row)
	}
	if before != nil && after != nil {
		f.Summary = gain(before, after)
	}
	return f
}

// gain says what the change is worth here, and does not dress up a small one.
func gain(before, after *report.Result) string {
	d := int64(before.Figures.StepTime - after.Figures.StepTime)
	share := ratio(float64(d), float64(before.Figures.StepTime))
	switch {
	case share < -0.0005:
		return "On this configuration AFTER is " + Milliseconds(-d) + " slower than BEFORE (" + Percent(-share) + ")."
	case share < 0.001:
		return "On this configuration the two changes make no difference that counts: " + Milliseconds(max(d, -d)) + " per step, less than 0.1" + thin + "%."
	case share < 0.01:
		return "On this configuration AFTER saves " + Milliseconds(d) + " per step, a small gain (" + Percent(share) + ")."
	}
	return "On this configuration AFTER saves " + Milliseconds(d) + " per step (" + Percent(share) + ")."
}

// firstGather says what the first all-gather after the gradients runs beside: the optimizer
// step proper (Adam), or only what comes after it.
func firstGather(r *report.Result) (overlaps bool, text string) {
	s := &r.Spans
	stage := r.Figures.WorstStage
	var ready int64 // the last backward pass has ended
	from, to := laneRange(s, stage, report.LanePhase)
	for i := from; i < to; i++ {
		if kindOf(s, i) == step.Backward {
			ready = max(ready, s.End[i])
		}
	}
	var c *report.Collective
	for i := range r.Collectives {
		x := &r.Collectives[i]
		if x.Stage == stage && len(x.Buckets) > 0 && kindOf(s, x.Span) == step.AllGather && int64(x.Start) >= ready && (c == nil || x.Start < c.Start) {
			c = x
		}
	}
	if c == nil {
		return false, "no all-gather before the next forward"
	}
	start, end := int64(c.Start), int64(c.Start+c.Length)
	var beside, most int64
	other := int32(-1)
	from, to = laneRange(s, stage, report.LaneOptimizer)
	for i := from; i < to; i++ {
		o := min(s.End[i], end) - max(s.Start[i], start)
		if o <= 0 {
			continue
		}
		if kindOf(s, i) == step.Adam {
			beside += o
		} else if o > most {
			most, other = o, i
		}
	}
	name := upper(IDs(c.Buckets))
	switch {
	case beside > 0:
		return true, name + ": yes, " + Milliseconds(beside) + " of " + Milliseconds(int64(c.Length))
	case other >= 0:
		return false, name + ": no; it runs beside " + strings.ToLower(Name(r, other))
	}
	return false, name + ": no"
}

func status(k statusKey) *Status {
	st := &Status{}
	if k.errors > 0 {
		st.Error = plural(k.errors, "error")
		st.Left = append(st.Left, "Showing the last valid configuration")
	}
	if k.a != nil {
		f := &k.a.Figures
		st.Left = append(st.Left, Count(int64(f.Tasks))+" tasks simulated", Count(int64(f.Spans))+" operations drawn", "model "+k.a.ModelVersion, Large(f.Parameters)+" parameters")
	}
	return st
}

func dialog(k dialogKey) *Dialog {
	return &Dialog{Kind: k.kind, Link: k.shared.Link, Copied: k.shared.Copied, Length: Count(int64(len(k.shared.Link))), Import: k.read, Model: k.model}
}
