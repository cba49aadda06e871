package derive

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
	"distopt/web/sample"
	"distopt/web/state"
)

func TestChangesReadAsFactorsFromTenTimesOn(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want string
	}{{100, 105, "+5.0\u202f%"}, {100, 50, "−50.0\u202f%"}, {100, 999, "+899.0\u202f%"}, {100, 1000, "×\u202f10"}, {14.84, 62693.8, "×\u202f4,225"}} {
		require.Equal(t, c.want, growth(c.a, c.b))
	}
	require.Equal(t, "0.0", signed(0, 1), "nothing has no sign")
	require.Equal(t, "0.0", signed(0.04, 1))
	require.Equal(t, "0.0\u202fms", Difference(0))
}

func TestExposedKindsFitTheirTile(t *testing.T) {
	of := func(times ...report.ExposedBy) string { return byKind(&report.Figures{ExposedBy: times}) }
	require.Equal(t, "nothing is exposed", of())
	require.Equal(t, "grad sync 6.5, norm 0.1", of(report.ExposedBy{Kind: "norm", Time: 0.1e6}, report.ExposedBy{Kind: "grad sync", Time: 6.5e6}))
	require.Equal(t, "TP 3,857, P2P 930, rest 306", of(
		report.ExposedBy{Kind: "grad sync", Time: 164.4e6}, report.ExposedBy{Kind: "param sync", Time: 132.9e6}, report.ExposedBy{Kind: "embedding", Time: 8.5e6},
		report.ExposedBy{Kind: "tensor parallel", Time: 3856.8e6}, report.ExposedBy{Kind: "pipeline", Time: 930e6}))
	little := &report.Figures{Exposed: 146_168, ExposedBy: []report.ExposedBy{{Kind: "amax", Time: 40_000}, {Kind: "grad sync", Time: 44_600}}}
	require.Equal(t, "grad sync 44.6\u202fµs, rest 0.1\u202fms", byKind(little), "what is exposed is not called nothing")
	var all []report.ExposedBy
	for _, kind := range [...]string{"grad sync", "param sync", "amax", "norm", "embedding", "tensor parallel", "pipeline"} {
		all = append(all, report.ExposedBy{Kind: kind, Time: 12_345e6})
		require.LessOrEqual(t, len(of(all...)), byKindWidth)
	}
	require.Equal(t, "FP8 dense, H100 SXM", peak("FP8 dense, H100 SXM 80 GB"))
	require.Equal(t, "FP8 dense, H100 SXM", peak("FP8 dense, H100 SXM"))
}

func TestFormShowsWhatIsWrittenAtAnError(t *testing.T) {
	c, s := page(t, 1)
	for _, typed := range []string{"abc", "١٢", "# x", `"`, "-5"} {
		s, _ = state.Update(s, state.FieldEdited{Path: "model.num_layers", Text: typed})
		p := c.Page(&s)
		require.Equal(t, typed, p.Form.Groups[0].Rows[0].Value)
		require.NotEmpty(t, p.Form.Groups[0].Rows[0].Error)
	}
}

func TestBrokenFromTheStart(t *testing.T) {
	docs := state.Opening()
	docs[state.A].Text += "\nmodel: [broken\n"
	s, _ := state.Update(state.New(), state.Started{Docs: docs})
	p := (&Cache{}).Page(&s)
	require.NotEmpty(t, p.Form.Broken)
	require.Empty(t, p.Form.Groups, "there are no values to show")
	require.Equal(t, "error", p.Banner.Kind)
	require.False(t, p.Banner.Undo, "there is nothing to undo")
	require.NotContains(t, strings.Join(p.Status.Left, " "), "last valid")
}

func TestCompareSaysThatTheOtherHasErrors(t *testing.T) {
	c, s := page(t, 1)
	s, _ = state.Update(s, state.SlotPicked{Slot: state.B})
	s, _ = state.Update(s, state.FieldEdited{Path: "model.num_layers", Text: "x"})
	s, _ = state.Update(s, state.SlotPicked{Slot: state.A})
	require.Empty(t, c.Page(&s).Banner.Kind)
	s, _ = state.Update(s, state.ComparePicked{})
	p := c.Page(&s)
	require.Equal(t, "B has errors.", p.Banner.Lead)
	require.True(t, p.Figures.Stale)
}

func TestEmptyConfigurationSaysWhatToDo(t *testing.T) {
	c, s := page(t, 1)
	s, _ = state.Update(s, state.TextEdited{Text: ""})
	p := c.Page(&s)
	require.Equal(t, "The configuration is empty.", p.Banner.Lead)
	require.True(t, p.Banner.Undo)
}

func TestImportDialogSaysWhyNothingIsSimulated(t *testing.T) {
	c, s := page(t, 1)
	s, _ = state.Update(s, state.Imported{Name: "x", Text: "model:\n  num_layers: abc\n"})
	require.Contains(t, c.Page(&s).Dialog.Failed, "num_layers")
	s, _ = state.Update(s, state.FileRefused{Name: "big.bin", Reason: state.TooLarge})
	require.Equal(t, "big.bin: "+state.TooLarge, c.Page(&s).Dialog.Failed)
}

func TestTimelinesTableBelongsToWhatIsShown(t *testing.T) {
	c, s := page(t, 1)
	s, _ = state.Update(s, state.SpanTableToggled{})
	require.Equal(t, state.A, c.Page(&s).Timeline.Slot)
	s, _ = state.Update(s, state.SlotPicked{Slot: state.B})
	p := c.Page(&s)
	require.Equal(t, state.B, p.Timeline.Slot)
	s, _ = state.Update(s, state.SpanPicked{Slot: p.Timeline.Slot, Span: p.Timeline.Table.Rows[3].Span})
	p = c.Page(&s)
	require.True(t, p.Timeline.Table.Rows[3].Lit)
	s, _ = state.Update(s, state.ComparePicked{})
	require.Equal(t, state.A, c.Page(&s).Timeline.Slot)
}

func TestFiguresAreSpokenInPhrases(t *testing.T) {
	r := sample.Result(1, 4)
	f := figures(figuresKey{a: r})
	for _, tile := range f.Tiles {
		require.True(t, strings.HasPrefix(tile.Spoken, tile.Label+" "+tile.Number), tile.Spoken)
		require.Contains(t, tile.Spoken, ", "+tile.Sub)
	}
}
