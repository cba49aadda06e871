package derive

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/web/sample"
	"distopt/web/state"
)

func TestNumbersAreWrittenOneWay(t *testing.T) {
	for _, c := range [][2]string{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(-1234567), "−1,234,567"},
		{Milliseconds(196_140_000), "196.1\u202fms"}, {Milliseconds(99_999), "100.0\u202fµs"}, {Milliseconds(100_000), "0.1\u202fms"}, {Milliseconds(0), "0.0\u202fms"},
		{Percent(0.0312), "3.1\u202f%"}, {fixed(-0.04, 1), "0.0"}, {fixed(-0.06, 1), "−0.1"}, {signed(3.8, 1), "+3.8"},
		{Size(400 << 20), "400\u202fMiB"}, {Size(3 << 30), "3.0\u202fGiB"}, {Size(12), "12\u202fB"},
		{Rate(417e9), "417\u202fGB/s"}, {Rate(0), "–"}, {Large(5_050_000_000), "5.05\u202fB"},
		{Difference(3_800_000), "+3.8\u202fms"}, {Difference(-3_800_000), "−3.8\u202fms"},
		{Runs([]int32{1, 3, 4, 5, 9}), "1, 3–5, 9"}, {IDs([]int32{22}), "bucket 22"}, {IDs([]int32{23, 24}), "buckets 23–24"},
		{Elems(200 << 20), "200\u202fMi"}, {Elems(1000), "1,000"},
	} {
		require.Equal(t, c[1], c[0])
	}
}

func TestShortNames(t *testing.T) {
	for long, short := range map[string]string{
		"model.language_model.encoder.layers.3.self_attention.linear_qkv.weight": "L3.qkv.w",
		"decoder.layers.0.mlp.linear_fc1.layer_norm_weight":                      "L0.fc1.ln_weight",
		"embedding.word_embeddings.weight":                                       "word",
		"decoder.final_layernorm.bias":                                           "final_ln.b",
	} {
		require.Equal(t, short, Short(long))
	}
}

func TestCommStripIsCutWhereExposed(t *testing.T) {
	exposed := &Strip{Start: []int64{5, 30}, End: []int64{8, 40}, Class: []Class{ClassExposed, ClassExposedBubble}, Span: []int32{0, 1}}
	s := &report.Spans{
		Start: []int64{0, 20, 50}, End: []int64{10, 35, 60}, Stage: make([]uint16, 3), Kind: []uint8{4, 4, 4}, State: make([]report.State, 3),
		First: make([]int32, int(report.NumLanes)+1),
	}
	for k := int(report.LaneGradSync) + 1; k < len(s.First); k++ {
		s.First[k] = 3
	}
	st := commStrip(s, 0, report.LaneGradSync, exposed)
	require.Equal(t, []int64{0, 5, 8, 20, 30, 50}, st.Start)
	require.Equal(t, []int64{5, 8, 10, 30, 35, 60}, st.End)
	require.Equal(t, []Class{ClassGradSync, ClassExposed, ClassGradSync, ClassGradSync, ClassExposedBubble, ClassGradSync}, st.Class)
	require.Equal(t, 0, st.FirstVisible(4))
	require.Equal(t, 3, st.FirstVisible(12))
	require.Equal(t, 2, st.At(9, 0))
	require.Equal(t, -1, st.At(15, 2))
	require.Equal(t, 5, st.At(48, 3), "within slack")
}

func TestRowsDoNotOverlap(t *testing.T) {
	for _, stages := range []int{1, 2, 4, 12} {
		r := sample.Result(stages, 4)
		for _, spec := range []PictureSpec{{A: r}, {B: r}, {A: r, B: r}, {A: r, Opened: "A0 A3"}, {A: r, Room: 260}, {A: r, Room: 600}} {
			p := fill(spec, tracksOf(spec.A), tracksOf(spec.B))
			bottom := 0
			for _, row := range p.Rows {
				require.GreaterOrEqual(t, row.Y, bottom)
				require.Positive(t, row.H)
				bottom = row.Y + row.H
			}
			require.LessOrEqual(t, bottom, p.Height)
			require.Equal(t, stages > 1 || spec.A != nil && spec.B != nil, p.Multi)
		}
	}
}

func tracksOf(r *report.Result) *tracks {
	if r == nil {
		return nil
	}
	return newTracks(r)
}

func page(t *testing.T, stages int) (*Cache, state.State) {
	t.Helper()
	s, effects := state.Update(state.New(), state.Started{Docs: state.Opening()})
	for _, e := range effects {
		if e, ok := e.(state.Simulate); ok {
			s, _ = state.Update(s, state.Simulated{Slot: e.Slot, ID: e.ID, Result: sample.Result(stages, 6)})
		}
	}
	return &Cache{}, s
}

func TestNothingIsDerivedTwice(t *testing.T) {
	c, s := page(t, 2)
	one, two := c.Page(&s), c.Page(&s)
	require.Equal(t, one, two)
	require.Same(t, one.Form, two.Form)
	require.Same(t, one.Timeline, two.Timeline)
	require.Same(t, one.Details, two.Details)
	s, _ = state.Update(s, state.BucketPicked{Stage: 1, Bucket: 3})
	three := c.Page(&s)
	require.Same(t, one.Form, three.Form)
	require.Same(t, one.Timeline.Picture, three.Timeline.Picture)
	require.NotSame(t, one.Details, three.Details)
}

func TestBucketAndOperationLightUpTogether(t *testing.T) {
	c, s := page(t, 1)
	r := s.Current().Result
	s, _ = state.Update(s, state.BucketPicked{Bucket: 3})
	p := c.Page(&s)
	require.NotEmpty(t, p.Timeline.Marked.Related[0])
	for _, span := range p.Timeline.Marked.Related[0] {
		require.Contains(t, buckets(r, span), int32(3))
	}
	s, _ = state.Update(s, state.SpanPicked{Span: p.Timeline.Marked.Related[0][0]})
	p = c.Page(&s)
	require.Equal(t, int32(3), p.Details.Bucket.ID)
	require.Contains(t, p.Inspector.Title, "3")
	require.NotEmpty(t, p.Inspector.Why)
	require.True(t, p.Inspector.Why[0].Binding)
}

func TestFiguresInCompareSayBetterOrWorse(t *testing.T) {
	a, b := sample.Result(1, 4), sample.Result(1, 4)
	b.Figures.StepTime += 4e6
	b.Figures.MFU -= 0.01
	f := figures(figuresKey{a: a, b: b})
	require.Equal(t, "+2.0\u202f%", f.Tiles[0].Change)
	require.Equal(t, -1, f.Tiles[0].Better)
	require.Equal(t, "−1.0\u202fpt", f.Tiles[2].Change)
	require.Equal(t, -1, f.Tiles[2].Better)
	require.Equal(t, "equal", f.Tiles[5].Change)
	for _, tile := range f.Tiles {
		open := figures(figuresKey{a: a, open: tile.ID})
		require.NotNil(t, open.Open, tile.ID)
		require.NotEmpty(t, open.Open.Rows)
	}
}

func TestOutcomeIsHonestAboutSmallGains(t *testing.T) {
	a, b := sample.Result(1, 4), sample.Result(1, 4)
	require.Equal(t, "A and B take the same time per step.", outcome(a, b))
	b.Figures.StepTime += 50_000
	require.Contains(t, outcome(a, b), "too little to matter")
	require.Contains(t, gain(b, a), "make no difference that counts")
	b.Figures.StepTime += 1_000_000
	require.Contains(t, gain(b, a), "a small gain")
	require.Contains(t, gain(a, b), "slower than BEFORE")
}

func TestErrorsStandAtTheirFields(t *testing.T) {
	doc := state.Opening()[0]
	read := state.Read(strings.Replace(doc.Text, "global_batch_size: 16", "global_batch_size: 20", 1))
	f := form(formKey{read: read, base: doc.Base})
	found := false
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			if r.Path == "model.global_batch_size" {
				found = true
				require.NotEmpty(t, r.Error)
				require.True(t, r.Changed)
				require.Equal(t, "16", r.Preset)
			} else {
				require.False(t, r.Changed, r.Path)
			}
		}
	}
	require.True(t, found)
	p := problems(read)
	require.Equal(t, 1, p.Errors)
	require.NotEmpty(t, p.Items[0].Fix)
	require.Regexp(t, `^Line \d+:\d+$`, p.Items[0].Where)
}

func TestTablesSortAndExport(t *testing.T) {
	r := sample.Result(1, 4)
	exposed := collectives(r, state.Sort{Column: 6, Reverse: true}, state.NoSelection, 0)
	require.True(t, exposed.Rows[0].Hot)
	require.False(t, exposed.Rows[len(exposed.Rows)-1].Hot)
	table := bucketTable(r, 0, state.Sort{Column: 2}, state.NoSelection, 0)
	require.Equal(t, int32(5), table.Rows[0].Bucket, "the emptiest first")
	quoted := newTable("", "", 3, []field{
		{title: "a", csv: "a", text: func(i int) string { return [...]string{`x,"y`, "1\n2", "z"}[i] }},
		{title: "range"},
		{title: "b", csv: "b (ns)", number: func(i int) float64 { return [...]float64{1e3, missing, 1.0 / 3}[i] }},
		whole("", "c", func(i int) int64 { return 201_326_592 }),
	}, state.Sort{Column: 2, Reverse: true}, func(i int) TableRow { return TableRow{} })
	require.Equal(t, "a,b (ns),c\r\n\"x,\"\"y\",1000,201326592\r\nz,0.3333333333333333,201326592\r\n\"1\n2\",,201326592\r\n", CSV(quoted))
}

// What the page rounds and spells for the eye is bare and whole in the CSV.
func TestCSVHoldsBareNumbers(t *testing.T) {
	r := sample.Result(2, 4)
	for _, table := range []*Table{
		collectives(r, state.Sort{Column: -1}, state.NoSelection, 0), bucketTable(r, 1, state.Sort{Column: -1}, state.NoSelection, 0),
		operations(r, state.Sort{Column: -1}, state.NoSelection, 0), fragmentTable(bucketDetail(r, 0, 0, 2), state.Sort{Column: -1}),
	} {
		lines, err := csv.NewReader(strings.NewReader(CSV(table))).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, table.Total+1)
		require.Greater(t, table.Total, 1, table.Name)
		c := 0
		for _, f := range table.fields {
			if f.csv == "" {
				continue
			}
			require.Equal(t, f.csv, lines[0][c])
			for i, line := range lines[1:] {
				require.NotContains(t, line[c], thin)
				if f.number != nil {
					x, err := strconv.ParseFloat(line[c], 64)
					require.NoError(t, err, "%s: %s", table.Name, f.csv)
					require.Equal(t, f.number(i), x)
				}
			}
			c++
		}
		for i := range table.Rows {
			require.Len(t, table.Rows[i].Cells, len(table.Columns), table.Name)
		}
	}
	lines, err := csv.NewReader(strings.NewReader(CSV(collectives(r, state.Sort{Column: -1}, state.NoSelection, 0)))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(int64(r.Collectives[0].Length), 10), lines[1][slices.Index(lines[0], "Length (ns)")])
}

// A hundred thousand buckets, the most that a step has, are as quick to show as a few.
func TestManyBuckets(t *testing.T) {
	r := sample.Result(1, 4)
	st := &r.Stages[0]
	some := st.Buckets[:2]
	st.Buckets = nil
	for i := range 100_000 {
		b := some[i%2]
		b.ID, b.Set, b.Offset = int32(i), i/4000, int64(i)*b.Size
		st.Buckets = append(st.Buckets, b)
		r.Collectives[i%len(r.Collectives)].Buckets = append(r.Collectives[i%len(r.Collectives)].Buckets, int32(i))
	}
	for i := range r.Collectives {
		slices.Sort(r.Collectives[i].Buckets)
	}
	st.GradBuffers[0].Length = 100_000 * some[0].Size
	s, _ := state.Update(state.New(), state.Started{Docs: state.Opening()})
	s, _ = state.Update(s, state.Simulated{Slot: state.A, ID: s.Slots[state.A].Request, Result: r})
	c := &Cache{}
	show := func(name string, m state.Msg) Page {
		began := time.Now()
		s, _ = state.Update(s, m)
		p := c.Page(&s)
		require.Less(t, time.Since(began), 5*time.Second, name) // some 100 ms on an idle machine
		return p
	}
	p := show("arrival", state.FigureOpened{})
	require.Equal(t, 100_000, p.Details.List.Len())
	require.Equal(t, int32(99_999), p.Details.List.Row(99_999).ID)
	p = show("bucket", state.BucketPicked{Bucket: 50_000})
	for _, row := range p.Details.Bucket.Buffers {
		require.LessOrEqual(t, len(row.Slots), 10, "neighbours narrower than a pixel are one slot")
	}
	require.NotEmpty(t, p.Timeline.Marked.Related[0])
	p = show("table", state.TableToggled{})
	require.Nil(t, p.Details.Bucket, "nothing is made that is not shown")
	require.Len(t, p.Details.Table.Rows, tableLimit)
	require.Equal(t, "0–3999", p.Details.Table.Rows[0].Cells[10])
	for column := range p.Details.Table.Columns {
		show("sort", state.SortPicked{Column: column})
	}
	began := time.Now()
	require.Equal(t, 100_001, strings.Count(CSV(p.Details.Table), "\n"))
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestSegmentsCoverTheBucket(t *testing.T) {
	r := sample.Result(1, 3)
	for i := range r.Stages[0].Buckets {
		b := &r.Stages[0].Buckets[i]
		at := int64(0)
		for _, s := range segments(&r.Stages[0], b) {
			require.Equal(t, at, s.Start)
			at = s.End
		}
		require.Equal(t, b.Size, at)
	}
	d := bucketDetail(r, 0, 0, 4)
	require.Equal(t, []Segment{{Start: 4718592, End: 200 << 20}}, d.Gaps)
	require.Equal(t, []string{"L0.qkv.w"}, d.Also)
	require.Contains(t, d.Buffers[1].Note, "never used")
}

// A field shows what its key holds, also where that has no value.
func TestFieldsShowWhatTheDocumentHolds(t *testing.T) {
	base := state.Opening()[0]
	for _, c := range []struct{ path, old, text string }{
		{"model.num_layers", "num_layers: 24", "${a.b}"},
		{"model.num_layers", "num_layers: 24", "???"},
		{"model.num_layers", "num_layers: 24", "many"},
		{"model.optim.grad_sync_dtype", "grad_sync_dtype: bf16", "${a.b}"},
		{"model.optim.grad_sync_dtype", "grad_sync_dtype: bf16", "bfloat"},
		{"hardware.gpu", "gpu: h100", "???"},
	} {
		key, _, _ := strings.Cut(c.old, ":")
		require.Contains(t, base.Text, c.old)
		f := form(formKey{read: state.Read(strings.Replace(base.Text, c.old, key+": "+c.text, 1)), base: base.Base})
		found := false
		for _, g := range f.Groups {
			for _, r := range append(g.Rows, g.Rare...) {
				if r.Path != c.path {
					continue
				}
				found = true
				require.NotEmpty(t, r.Error)
				require.Equal(t, c.text, r.Value)
				if len(r.Options) > 0 {
					require.Equal(t, Option{c.text, c.text, true}, r.Options[len(r.Options)-1])
				}
			}
		}
		require.True(t, found)
	}
}

func TestShortTimesAreSpoken(t *testing.T) {
	require.Equal(t, "16.0 microseconds", say(16_000))
	require.Equal(t, "1.2 milliseconds", say(1_200_000))
}

func TestCompareSpeaksOfBoth(t *testing.T) {
	a, b := sample.Result(1, 4), sample.Result(1, 8)
	b.Figures.Parameters *= 2
	st := status(statusKey{a: a, b: b})
	require.Equal(t, Count(int64(a.Figures.Tasks+b.Figures.Tasks))+" tasks of A and B simulated", st.Left[0])
	require.Contains(t, st.Left[3], "5.05\u202fB and 10.1\u202fB parameters")
	require.Equal(t, "Model FLOP utilisation, of A", figures(figuresKey{a: a, b: b, open: "figure-mfu"}).Open.Title)
}

func TestAnEmptyConfigurationIsCalledSo(t *testing.T) {
	s, _ := state.Update(state.New(), state.Started{Docs: state.Opening()})
	s, _ = state.Update(s, state.TextEdited{Text: "# nothing\n"})
	p := new(Cache).Page(&s)
	require.Equal(t, "The configuration is empty.", p.Banner.Lead)
	require.Equal(t, Option{"", "Empty", true}, p.Header.Presets[len(p.Header.Presets)-1])
	require.Empty(t, p.Header.Preset)
	require.Empty(t, p.Problems.Items)
}
