package web

import (
	"strconv"
	"strings"
	"testing"

	"github.com/maxence-charriere/go-app/v9/pkg/app"
	"github.com/stretchr/testify/require"

	"distopt/core/eval"
	"distopt/web/ids"
	"distopt/web/state"
)

// page mounts the root outside a browser and simulates in its place.
func page(t *testing.T) (*root, func() string) {
	t.Helper()
	r := newRoot()
	d := app.NewClientTester(r)
	t.Cleanup(d.Close)
	d.Consume()
	for i := range r.state.Slots {
		slot := &r.state.Slots[i]
		require.NotZero(t, slot.Request)
		result, err := eval.Evaluate(&slot.Read.Scenario)
		require.NoError(t, err)
		r.send(state.Simulated{Slot: i, ID: slot.Request, Result: result})
	}
	return r, func() string {
		d.Consume()
		return app.HTMLString(r)
	}
}

func TestThePageHoldsWhatOthersRelyOn(t *testing.T) {
	r, html := page(t)
	for _, id := range []string{
		ids.Preset, ids.SideA, ids.SideB, ids.Compare, ids.Share, ids.ShareLink, ids.Theme, ids.Help, ids.HelpDialog, ids.Undo, ids.Redo,
		ids.TabForm, ids.TabYAML, ids.Editor, ids.Problems, ids.Import, ids.Figures, ids.Timeline, ids.Canvas, ids.Inspector, ids.Status,
		ids.TabBuckets, ids.TabFour, ids.TabColls, ids.Buckets, ids.Busy, ids.Cancel, ids.WorkerStop, ids.Restart, ids.Live,
		ids.StepTime, ids.Tokens, ids.MFU, ids.Exposed, ids.Overlap, ids.Utilisation, ids.Amax,
	} {
		require.Contains(t, html(), `id="`+id+`"`)
	}
	r.send(state.ComparePicked{})
	require.Contains(t, html(), `id="`+ids.DiffTable+`"`)
	require.Contains(t, html(), `id="`+ids.TabDiff+`"`)
	r.send(state.SlotPicked{Slot: state.B})
	r.send(state.TableToggled{})
	require.Contains(t, html(), `id="`+ids.BucketTable+`"`)
	r.send(state.DetailPicked{Tab: state.Collectives})
	require.Contains(t, html(), `id="`+ids.CollTable+`"`)
}

func TestTheSeedsClaimOnThePage(t *testing.T) {
	r, html := page(t)
	r.send(state.DetailPicked{Tab: state.FourVersions})
	rows := make([]state.VersionRow, 4)
	for i, v := range state.FourVersionNames {
		s := r.state.Slots[state.A].Read.Scenario
		s.Framework.Version = v
		result, err := eval.Evaluate(&s)
		require.NoError(t, err)
		rows[i] = state.VersionRow{Version: v, Result: result}
	}
	r.send(state.VersionsDone{ID: r.state.Versions.Request, Rows: rows})
	shown := r.cache.Page(&r.state).Details.Versions
	overlaps := map[string]bool{}
	for _, row := range shown.Rows {
		overlaps[row.Version] = row.Overlaps
	}
	require.True(t, overlaps["after"], "the first all-gather runs beside Adam")
	require.False(t, overlaps["before"])
	require.False(t, overlaps["after-old-apex"])
	require.Greater(t, rows[1].Result.Figures.AmaxReductions, rows[3].Result.Figures.AmaxReductions, "the old NeMo on the new Apex reduces more often")
	require.Contains(t, html(), `id="`+ids.FourTable+`"`)
}

// What Compare says of B leaves no part of the difference unexplained.
func TestTheDifferenceAddsUp(t *testing.T) {
	r, _ := page(t)
	r.send(state.ComparePicked{})
	r.send(state.Deselected{})
	in := r.cache.Page(&r.state).Inspector
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(strings.ReplaceAll(strings.ReplaceAll(text, "−", "-"), ",", ""), 64)
		require.NoError(t, err)
		return x
	}
	var sum, total [3]float64
	for _, row := range in.Rows {
		for i, text := range [...]string{row.A, row.B, row.Delta} {
			if row.Name == "Step time" {
				total[i] = number(text)
			} else {
				sum[i] += number(text)
			}
		}
	}
	for i := range sum {
		require.InDelta(t, total[i], sum[i], 0.1*float64(len(in.Rows)))
	}
	require.NotZero(t, total[2])
	var said []string
	for _, why := range in.Why {
		said = append(said, why.Text[0].Text)
	}
	require.Contains(t, strings.Join(said, "\n"), "Parameter copy: A ", "the largest part of it")
}

func TestLinksBringBothDocumentsBack(t *testing.T) {
	r, _ := page(t)
	r.send(state.FieldEdited{Path: "model.optim.bucket_cap_mb", Text: "200"})
	r.send(state.ComparePicked{})
	fragment, err := r.fragment()
	require.NoError(t, err)
	require.Less(t, len(fragment), 300)
	docs, link, err := read("#"+fragment, state.Opening())
	require.NoError(t, err)
	require.True(t, link.Compare)
	require.Equal(t, eval.ModelVersion, link.Model)
	for i := range docs {
		require.Equal(t, r.state.Slots[i].Doc, docs[i])
	}
	_, _, err = read("#c=1.!!!", docs)
	require.Error(t, err)
}
