package derive

import (
	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/web/state"
)

// Page is all that is shown.
type Page struct {
	Header    *Header
	Form      *Form
	Editor    *Editor
	Problems  *Problems
	Figures   *Figures
	Banner    *Banner
	Timeline  *Timeline
	Inspector *Inspector
	Details   *Details
	Status    *Status
	Dialog    *Dialog
	Live      string
	Narrow    state.Sheet
	ConfigTab state.ConfigTab
}

// Header is the line above all.
type Header struct {
	Preset           string
	Presets          []Option
	Shown            int
	Compare          bool
	Other            string // "B: same, before"
	CanUndo, CanRedo bool
	Theme            state.Theme
	Notice           string
	Broken           [2]bool // a slot has errors
}

// Editor is the text editor's content.
type Editor struct {
	Text        string
	Diagnostics string // JSON
	Completions string // JSON
}

// Banner is the line over the figures.
type Banner struct {
	Kind  string // "error", "note", ""
	Lead  string
	Text  string
	Line  int    // where to go, 0: nowhere
	Undo  bool   // offer to undo the edits
	Stays bool   // a note that can't be dismissed
	Again bool   // offer to simulate again
	Bad   string // the text of a link that could not be read
}

// Timeline is the picture and what stands around it.
type Timeline struct {
	Picture *Picture
	Scope   string
	Legend  []LegendItem
	Marked  Marked
	Current string // for screen readers
	Table   *Table // instead of the picture
	Slot    int    // of the table
	Busy    *Busy
	Fade    bool
	Empty   bool
}

// LegendItem is a colour and its meaning.
type LegendItem struct{ Colour, Name string }

// Marked is what the timeline outlines.
type Marked struct {
	Slot    int
	Span    int32
	Related [2][]int32
}

// Busy is the card over the timeline.
type Busy struct {
	Title, Text string
	Share       string // CSS width of the progress bar, "" for none
	Percent     string
	Cancel      bool
	Restart     bool
	Report      string
}

// Details is the lower pane.
type Details struct {
	Tab         state.DetailTab
	Tabs        []DetailTab
	AsTable     bool
	Picks       bool // the tab has a picture and a table
	List        *BucketList
	Bucket      *BucketDetail
	Table       *Table // buckets, collectives
	Fragments   *Table
	Differences *Differences
	Versions    *FourVersions
	Numerics    *Numerics
	Findings    *Findings
	Stages      []Option // to pick from in Buckets
	Scroll      int
	Empty       bool
}

// DetailTab is a tab's label.
type DetailTab struct {
	Tab      state.DetailTab
	ID, Name string
	Count    string
	Narrow   bool // only where the inspector has no place of its own
}

// Status is the line at the foot.
type Status struct {
	Left  []string
	Error string
}

// Dialog is what lies over the page.
type Dialog struct {
	Kind   state.Dialog
	Link   string
	Copy   state.Copy
	Length string
	Import *state.Reading
	Failed string // why an import was refused, or can't be simulated
	Model  string
}

// Cache keeps the parts of the page between calls of Page.
type Cache struct {
	tracks    [2]*tracks
	header    memo[headerKey, Header]
	form      memo[formKey, Form]
	editor    memo[editorKey, Editor]
	problems  memo[*state.Reading, Problems]
	figures   memo[figuresKey, Figures]
	banner    memo[bannerKey, Banner]
	picture   memo[PictureSpec, Picture]
	marked    memo[markedKey, Marked]
	timeline  memo[timelineKey, Timeline]
	inspector memo[inspectorKey, Inspector]
	list      memo[listKey, BucketList]
	bucket    memo[bucketKey, BucketDetail]
	fragments memo[fragmentsKey, Table]
	diff      memo[[2]*report.Result, Differences]
	table     memo[tableKey, Table]
	spans     memo[tableKey, Table]
	versions  memo[versionsKey, FourVersions]
	findings  memo[findingsKey, Findings]
	numerics  memo[numericsKey, Numerics]
	setup     memo[setupKey, labSetup]
	number    memo[[2]string, NumberView]
	details   memo[detailsKey, Details]
	status    memo[statusKey, Status]
	dialog    memo[dialogKey, Dialog]
}

type (
	headerKey struct {
		presets, other, notice string
		shown                  int
		compare, undo, redo    bool
		theme                  state.Theme
		broken                 [2]bool
		empty                  bool
	}
	editorKey struct{ read *state.Reading }
	listKey   struct {
		r           *report.Result
		slot, stage int
	}
	bucketKey struct {
		listKey
		id int32
	}
	fragmentsKey struct {
		d    *BucketDetail
		sort state.Sort
	}
	tableKey struct {
		listKey
		tab  state.DetailTab
		sort state.Sort
		sel  state.Selection
	}
	markedKey struct {
		results [2]*report.Result
		sel     state.Selection
	}
	timelineKey struct {
		picture *Picture
		marked  *Marked
		table   *Table
		slot    int
		busy    Busy
		fade    bool
		compare bool
	}
	findingsKey struct {
		r      *report.Result
		family scenario.Family
	}
	detailsKey struct {
		tab         state.DetailTab
		table       bool
		compare     bool
		scroll      int
		list        *BucketList
		bucket      *BucketDetail
		rows        *Table
		fragments   *Table
		diff        *Differences
		versions    *FourVersions
		findings    *Findings
		numerics    *Numerics
		progress    string // of the lab
		collectives int
	}
	statusKey struct {
		a, b   *report.Result
		errors int
		shown  int
		stale  bool
	}
	dialogKey struct {
		kind    state.Dialog
		shared  state.Shared
		read    *state.Reading
		refused string
		model   string
	}
)

// Page derives everything from s.
func (c *Cache) Page(s *state.State) Page {
	cur := s.Current()
	a, b := cur.Result, (*report.Result)(nil)
	slot := s.Shown
	if s.Compare {
		a, b, slot = s.Slots[state.A].Result, s.Slots[state.B].Result, state.A
	}
	p := Page{Live: s.Live, Narrow: s.Sheet, ConfigTab: s.ConfigTab}
	p.Header = c.headerOf(s)
	base := cur.Doc.Base
	formOf := formKey{read: cur.Form, broken: cur.Read != nil && cur.Read.Broken(), base: base, more: s.More}
	p.Form = c.form.get(formOf, func() *Form { return form(formOf) })
	p.Editor = c.editor.get(editorKey{cur.Read}, func() *Editor { return editor(cur.Read) })
	p.Problems = c.problems.get(cur.Read, func() *Problems { return problems(cur.Read) })
	stale := s.Slots[slot].Stale() || cur.Stale() || cur.Result == nil
	if s.Compare {
		stale = stale || s.Slots[state.B].Stale()
	}
	fk := figuresKey{a, b, stale, s.Figure}
	p.Figures = c.figures.get(fk, func() *Figures { return figures(fk) })
	p.Banner = c.bannerOf(s, p.Problems)
	p.Timeline = c.timelineOf(s, a, b)
	ik := inspectorKey{a: a, b: b, slot: s.Select.Slot, span: s.Select.Span, stage: s.Select.Stage, bucket: -1, compare: s.Compare}
	if s.Select.Span < 0 {
		ik.bucket = s.Select.Bucket
	}
	if !s.Compare && s.Select.Slot != s.Shown {
		ik.span, ik.bucket = -1, -1
	}
	p.Inspector = c.inspector.get(ik, func() *Inspector { return inspector(ik) })
	p.Details = c.detailsOf(s, a, b)
	sk := statusKey{a, b, p.Problems.Errors, s.Shown, stale}
	p.Status = c.status.get(sk, func() *Status { return status(sk) })
	dk := dialogKey{kind: s.Dialog, shared: s.Shared, read: s.Import, refused: s.ImportRefused}
	if cur.Result != nil {
		dk.model = cur.Result.ModelVersion
	}
	p.Dialog = c.dialog.get(dk, func() *Dialog { return dialog(dk) })
	return p
}

func (c *Cache) headerOf(s *state.State) *Header {
	other := &s.Slots[1-s.Shown]
	k := headerKey{
		presets: s.Current().Doc.Preset + "\x00" + s.Current().Doc.Name, shown: s.Shown, compare: s.Compare,
		undo: s.CanUndo(), redo: s.CanRedo(), theme: s.Theme, notice: s.Notice,
		other: string(rune('A'+1-s.Shown)) + ": " + other.Doc.Name, empty: s.Current().Empty(),
	}
	for i := range s.Slots {
		k.broken[i] = s.Slots[i].Read != nil && !s.Slots[i].Read.OK()
	}
	return c.header.get(k, func() *Header {
		h := &Header{Preset: s.Current().Doc.Preset, Shown: k.shown, Compare: k.compare, Other: k.other, CanUndo: k.undo, CanRedo: k.redo, Theme: k.theme, Notice: k.notice, Broken: k.broken}
		name, found := s.Current().Doc.Name, false
		if k.empty {
			h.Preset, name = "", "Empty"
		}
		for _, p := range state.Presets() {
			h.Presets = append(h.Presets, Option{p.ID, p.Name, p.ID == h.Preset})
			found = found || p.ID == h.Preset
		}
		if !found {
			h.Presets = append(h.Presets, Option{"", name, true})
		}
		return h
	})
}

func (c *Cache) timelineOf(s *state.State, a, b *report.Result) *Timeline {
	spec := PictureSpec{Opened: s.Opened, Room: s.Room}
	if s.Compare || s.Shown == state.A {
		spec.A, spec.B = a, b
	} else {
		spec.B = a
	}
	if s.Compare {
		spec.Names = slotNames(s)
	}
	picture := c.picture.get(spec, func() *Picture {
		return fill(spec, c.track(0, spec.A), c.track(1, spec.B))
	})
	mk := markedKey{picture.Results, s.Select}
	mark := c.marked.get(mk, func() *Marked { return marked(mk) })
	k := timelineKey{picture: picture, marked: mark, busy: busy(s), compare: s.Compare}
	k.fade = k.busy.Title != ""
	if s.SpanTable && a != nil {
		if k.slot = s.Shown; s.Compare {
			k.slot = state.A
		}
		tk := tableKey{listKey: listKey{a, k.slot, 0}, sort: s.SpanSort, sel: s.Select}
		k.table = c.spans.get(tk, func() *Table { return operations(a, s.SpanSort, s.Select, k.slot) })
	}
	return c.timeline.get(k, func() *Timeline { return timeline(k, s.Select) })
}

// slotNames tells A from B: by framework version when they start from one preset.
func slotNames(s *state.State) (names [2]string) {
	same := s.Slots[0].Doc.Preset == s.Slots[1].Doc.Preset
	for i := range s.Slots {
		names[i] = s.Slots[i].Doc.Name
		if r := s.Slots[i].ReadOf; same && r != nil {
			if names[i] = r.Scenario.Framework.Version; r.Scenario.Family() > scenario.FamilyApex {
				names[i] = r.Scenario.Family().String()
			}
		}
	}
	return names
}

// track keeps the strips of the results on show.
func (c *Cache) track(slot int, r *report.Result) *tracks {
	if r == nil {
		return nil
	}
	if c.tracks[slot] == nil || c.tracks[slot].of != r {
		c.tracks[slot] = newTracks(r)
	}
	return c.tracks[slot]
}

// marked finds the spans that belong to the selected bucket or share a bucket with the
// selected span, in both results.
func marked(k markedKey) *Marked {
	m := &Marked{Slot: k.sel.Slot, Span: k.sel.Span}
	for slot, r := range k.results {
		if r == nil {
			continue
		}
		ids := []int32{k.sel.Bucket}
		kind := ""
		if own := k.results[k.sel.Slot]; own != nil && k.sel.Span >= 0 && int(k.sel.Span) < own.Spans.Len() {
			ids = buckets(own, k.sel.Span)
			if slot != k.sel.Slot {
				if g := own.Spans.Group[k.sel.Span]; g >= 0 {
					kind = own.Collectives[g].Kind
				}
			}
		}
		for i := range r.Collectives {
			c := &r.Collectives[i]
			if c.Stage == k.sel.Stage && (kind == "" || c.Kind == kind) && Meet(c.Buckets, ids) {
				m.Related[slot] = append(m.Related[slot], c.Span)
			}
		}
	}
	if k.results[m.Slot] == nil {
		m.Span = -1
	}
	return m
}
